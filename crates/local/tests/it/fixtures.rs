use lectern_local::{TextParser, parse_text};
use lectern_test_gguf::{CHATML, CHATML_TOOLS};
use serde_json::{Value, json};

use crate::support::{repository, worker};

/// Calls from a public collection, each written in three forms. Not part of the repository: a path in
/// `LECTERN_TOOL_CALL_CASES`, or `shared/fixtures/tool-calls/cases.jsonl` beside the repository.
fn cases() -> Option<Vec<Value>> {
    let path = std::env::var_os("LECTERN_TOOL_CALL_CASES")
        .map_or_else(|| repository().join("../shared/fixtures/tool-calls/cases.jsonl"), Into::into);
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn every_case_is_read_in_every_form() {
    let Some(cases) = cases() else {
        println!("SKIPPED: no tool-call cases here (set LECTERN_TOOL_CALL_CASES)");
        return;
    };
    for template in [None, Some(CHATML), Some(CHATML_TOOLS)] {
        let mut read = 0;
        for case in &cases {
            let tools = case["tools"].as_array().unwrap();
            for (form, text) in case["text"].as_object().unwrap() {
                let Some(text) = text.as_str() else { continue };
                let parsed = parse_text(template, tools, text, false).unwrap();
                let calls: Vec<Value> = parsed
                    .tool_calls
                    .iter()
                    .map(|call| json!({ "name": call.name, "arguments": call.arguments }))
                    .collect();
                assert_eq!(Value::Array(calls), case["expect"], "{} as {form}: {text}", case["id"]);
                assert_eq!(parsed.content, "", "{} as {form}", case["id"]);
                read += 1;
            }
        }
        println!("FIGURE tool-call cases: {read} texts read in three forms");
    }
}

#[tokio::test]
async fn a_worker_parses_line_after_line() {
    let tools = vec![json!({
        "type": "function",
        "function": { "name": "now", "description": "", "parameters": { "type": "object", "properties": {} } },
    })];
    let mut parser = TextParser::new(worker(), CHATML_TOOLS.to_owned(), tools.clone());
    let text = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
    for _ in 0..3 {
        let parsed = parser.parse(text, false).await.unwrap();
        assert_eq!(parsed.tool_calls.len(), 1);
    }
    let mut broken = TextParser::new(worker(), "{% if %}".to_owned(), tools);
    assert!(broken.parse("x", false).await.is_err());
}
