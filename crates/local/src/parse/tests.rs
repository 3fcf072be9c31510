use lectern_test_gguf::{CHATML, CHATML_TOOLS};
use serde_json::json;

use super::*;

fn tools() -> Vec<Value> {
    vec![json!({
        "type": "function",
        "function": {
            "name": "search",
            "description": "Searches",
            "parameters": { "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"] },
        },
    })]
}

fn calls(parsed: &ParsedText) -> Vec<(&str, &Value)> {
    parsed.tool_calls.iter().map(|call| (call.name.as_str(), &call.arguments)).collect()
}

#[test]
fn the_templates_own_form_is_read() {
    let text =
        "Let me see.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"q\": \"a\"}}\n</tool_call>";
    let parsed = parse_text(Some(CHATML_TOOLS), &tools(), text, false).unwrap();
    assert_eq!(calls(&parsed), [("search", &json!({"q": "a"}))]);
    assert_eq!(parsed.content.trim(), "Let me see.");
}

#[test]
fn other_forms_are_rescued() {
    for template in [None, Some(CHATML), Some(CHATML_TOOLS)] {
        for text in ["[search(q='a')]", "{\"name\": \"search\", \"parameters\": {\"q\": \"a\"}}"] {
            let parsed = parse_text(template, &tools(), text, false).unwrap();
            assert_eq!(calls(&parsed), [("search", &json!({"q": "a"}))], "{text}");
            assert_eq!(parsed.content, "");
        }
    }
}

#[test]
fn a_call_of_nothing_keeps_its_name() {
    let text = "<tool_call>\n{\"name\": \"nothing\", \"arguments\": {}}\n</tool_call>";
    for template in [None, Some(CHATML), Some(CHATML_TOOLS)] {
        let parsed = parse_text(template, &tools(), text, false).unwrap();
        assert_eq!(calls(&parsed), [("nothing", &json!({}))]);
    }
}

#[test]
fn a_broken_call_is_text_with_an_error() {
    let text = "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"q\": }\n</tool_call>";
    let parsed = parse_text(Some(CHATML_TOOLS), &tools(), text, false).unwrap();
    assert_eq!((parsed.content.as_str(), parsed.tool_calls.len()), (text, 0));
    assert!(parsed.error.is_some());
}

#[test]
fn a_broken_template_is_an_error() {
    assert!(parse_text(Some("{% for %}"), &[], "x", false).is_err());
}

#[test]
fn a_beginning_gives_what_is_certain() {
    let text = "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"q\": \"a";
    let parsed = parse_text(Some(CHATML_TOOLS), &tools(), text, true).unwrap();
    assert_eq!(parsed.content, "");
    assert_eq!(parsed.tool_calls.first().map(|call| call.name.as_str()), Some("search"));
}

#[test]
fn odd_arguments_come_through_as_they_are() {
    let arguments = [
        json!({}),
        json!({ "q": "größe 🎉 \u{202e}x\u{0} \\ \" \n\t </tool_call" }),
        json!({ "q": "{\"name\": \"search\", \"arguments\": {\"q\": 1}}" }),
        json!({ "q": "```json\n[search(q='a')]\n```" }),
        json!({ "q": 9_007_199_254_740_993_u64, "n": -9_223_372_036_854_775_808_i64, "f": 1e-7 }),
        json!({ "q": { "a": [[], {}, [null, true, { "": "" }]] } }),
    ];
    for arguments in arguments {
        let call = json!({ "name": "search", "arguments": arguments });
        let wanted = [ParsedToolCall { name: "search".into(), arguments: arguments.clone() }];
        for (template, text) in [
            (CHATML_TOOLS, format!("<tool_call>\n{call}\n</tool_call>")),
            (CHATML, format!("<tool_call>\n{call}\n</tool_call>")),
            (CHATML, format!("Let me look.\n\n<tool_call>{call}</tool_call>")),
            (CHATML, format!("```json\n{call}\n```")),
        ] {
            let read = parse_text(Some(template), &tools(), &text, false).unwrap();
            assert_eq!(read.tool_calls, wanted, "{text}");
            assert!(!read.content.contains("tool_call"), "{text}: {:?}", read.content);
        }
    }
}
