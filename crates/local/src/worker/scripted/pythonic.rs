//! Calls in the pythonic form that a model makes by itself, held by llama.cpp's own sampler.

use serde_json::{Value, json};

use super::{Scene, Spelling, asked, tool};
use crate::CallForm;
use crate::protocol::{Finish, Generate};

const CHATML: &str = "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
                      {%- endfor %}{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

fn tools() -> Vec<Value> {
    let path = json!({ "type": "string", "maxLength": 8 });
    let of = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    let kinds = json!({ "enum": ["it's", "b", null, true] });
    let list = json!({ "type": "array", "items": { "type": "boolean" }, "minItems": 1, "maxItems": 3 });
    vec![
        tool("notes__find", of(json!({ "path": path, "kind": kinds }), json!(["kind"]))),
        tool(
            "notes__flag",
            of(json!({ "flags": list, "day": { "type": "string", "format": "date" } }), json!(["flags"])),
        ),
        tool(
            "files__read",
            of(
                json!({ "path": path, "lines": { "type": "integer", "minimum": 1, "maximum": 99 } }),
                json!(["path"]),
            ),
        ),
        tool("now", of(json!({}), json!([]))),
    ]
}

fn pythonic(tools: &[Value], seed: u32) -> Generate {
    let mut request = Generate { described: tools.to_vec(), form: CallForm::Pythonic, ..asked(&[]) };
    request.sampling.seed = Some(seed);
    request
}

#[test]
fn two_hundred_calls_of_a_random_model_are_valid() {
    let (scene, tools) = (Scene::new(CHATML), tools());
    let begin = [
        "[notes__",
        "[files__",
        "[now(",
        "I look it up.\n[notes__",
        "<tool_call>[files__",
        "```python\n[notes__",
    ];
    let (mut calls, mut cut) = (0, 0);
    let mut seed = 0;
    while calls < 200 {
        let script = begin[seed as usize % begin.len()];
        let written = scene.write(&pythonic(&tools, seed), script, Spelling::Letters).unwrap();
        seed += 1;
        assert!(seed < 400, "{calls} calls, {cut} cut off");
        assert_eq!(written.notes, [] as [String; 0]);
        if written.finish == Some(Finish::Length) {
            cut += 1;
            continue;
        }
        assert!(!written.calls.is_empty(), "{:?}", written.raw);
        for (name, arguments) in &written.calls {
            let tool =
                tools.iter().find(|tool| tool["function"]["name"] == *name).expect("a tool that exists");
            assert!(
                jsonschema::is_valid(&tool["function"]["parameters"], arguments),
                "{name} {arguments}: {:?}",
                written.raw
            );
        }
        calls += written.calls.len();
    }
    println!("{calls} calls in {seed} replies, {cut} cut off");
}

#[test]
fn a_tool_that_does_not_exist_cannot_be_called_and_a_link_stays_text() {
    let (scene, tools) = (Scene::new(CHATML), tools());
    let wrong = scene.write(&pythonic(&tools, 3), "[notes__lose(path='x')]", Spelling::Letters).unwrap();
    assert!(!wrong.followed, "{:?}", wrong.raw);
    for text in ["[a link](https://example.org)", "A list:\n[1, 2]", "[now and then]"] {
        let written = scene.write(&pythonic(&tools, 3), text, Spelling::Letters).unwrap();
        assert_eq!((written.followed, written.text.as_str(), written.calls.len()), (true, text, 0));
    }
}
