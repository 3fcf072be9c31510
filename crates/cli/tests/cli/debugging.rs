use serde_json::{Value, json};

use crate::lectern::Lectern;

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn validate_answers_each_line_and_survives_bad_ones() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let good = json!({"schema": schema, "arguments": {"n": 1}});
    let bad = json!({"schema": schema, "arguments": {"n": "one"}});
    let broken = json!({"schema": {"type": 7}, "arguments": {}});
    let input = format!("{good}\n{bad}\nno json\n\n{{}}\n{broken}\n{good}\n");
    let ran = Lectern::new().run_with(&input, ["debug", "validate"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let out = lines(&ran.out);
    assert_eq!(out.len(), 6);
    assert_eq!(out[0], json!({"valid": true, "errors": []}));
    assert_eq!((&out[1]["valid"], &out[1]["errors"][0]["path"]), (&json!(false), &json!("/n")));
    assert!(out[2..5].iter().all(|line| line["error"].is_string()), "{out:#?}");
    assert_eq!(out[5], out[0]);
}

#[test]
fn parse_reads_replies_as_the_starters_template_would() {
    let lectern = Lectern::new();
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/starter/template.jinja");
    let tools = json!([{"name": "notes__read_note", "description": "", "inputSchema":
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}]);
    let tools = lectern.write("tools.json", &tools.to_string());
    let call =
        "<tool_call>\n{\"name\": \"notes__read_note\", \"arguments\": {\"path\": \"A.md\"}}\n</tool_call>";
    let input = format!("{}\nnonsense\n{}\n", json!({ "text": call }), json!({"text": "Just text."}));
    let args = ["debug", "parse", "--template", template, "--tools", tools.to_str().unwrap()];
    let ran = lectern.run_with(&input, args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let out = lines(&ran.out);
    assert_eq!(out[0]["tool_calls"], json!([{"name": "notes__read_note", "arguments": {"path": "A.md"}}]));
    assert!(out[1]["error"].is_string());
    assert_eq!((&out[2]["content"], &out[2]["tool_calls"]), (&json!("Just text."), &json!([])));
}
