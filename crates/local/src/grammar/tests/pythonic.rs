//! Calls as Python writes them: what the grammar writes is read by our reader, and valid.

use serde_json::{Value, json};

use super::super::{pythonic_calls, pythonic_trigger};
use super::random::schema_at_random;
use super::reader::{Grammar, Random};
use crate::prompted::{parse_free_text, written_calls};

fn tool(name: &str, schema: &Value) -> Value {
    json!({ "type": "function", "function": { "name": name, "description": "", "parameters": schema } })
}

fn names(tools: &[Value]) -> Vec<String> {
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Writes lists of calls at random; gives how many calls were read, all of tools that exist. Arguments are valid where
/// the grammar holds all of a schema.
fn write(tools: &[Value], lists: u64) -> usize {
    let bound = pythonic_calls(tools).unwrap();
    let grammar = Grammar::read(&bound.text);
    let (names, mut read) = (names(tools), 0);
    for seed in 0..lists {
        let text = grammar.write("root", &mut Random(seed));
        let (said, calls) = parse_free_text(&text, names.clone(), false);
        // What closes a list stands behind what opened it, which is no part of the grammar.
        assert!(
            ["", "</tool_call>", "<|tool_call_end|>", "```"].contains(&said.trim()),
            "{said:?}: {text:?}"
        );
        assert!(!calls.is_empty(), "no call in {text:?}");
        for call in calls {
            let place = names.iter().position(|name| *name == call.name);
            let schema =
                &tools[place.unwrap_or_else(|| panic!("no tool {}", call.name))]["function"]["parameters"];
            read += 1;
            if bound.loose.contains(&call.name) || bound.open.contains_key(&call.name) {
                continue;
            }
            let arguments = Value::Object(call.arguments);
            // A server may write a schema that leads nowhere.
            let Ok(validator) = jsonschema::options().should_validate_formats(true).build(schema) else {
                continue;
            };
            let errors: Vec<String> =
                validator.iter_errors(&arguments).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{errors:?}: {arguments} is no {schema}\n{text}");
        }
    }
    read
}

/// Lists of tools as servers gave them, where they were fetched (`tests/fetch-tool-lists`), and one of our own.
fn tool_lists() -> Vec<Vec<Value>> {
    let folder = std::env::var_os("LECTERN_TOOL_LISTS").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tool-lists"),
        std::path::PathBuf::from,
    );
    let mut out = vec![vec![
        tool("plain", &json!({ "type": "object", "properties": {} })),
        tool("notes__any", &json!({})),
        tool("notes__map", &json!({ "type": "object", "additionalProperties": { "type": "integer" } })),
        tool(
            "notes__find",
            &json!({
                "type": "object",
                "properties": {
                    "text": { "type": "string", "maxLength": 9 },
                    "kind": { "enum": ["it's", "a \"b\"", 1, null, true, { "k": ["v"] }] },
                    "deep": { "type": "array", "items": { "type": "object", "properties": { "is": { "type": "boolean" } } } },
                    "day": { "type": "string", "format": "date" },
                    "at": { "type": "string", "format": "uri" },
                    "code": { "type": "string", "pattern": "^[a-z']{2,4}\"\\d+$" },
                    "set": { "type": "array", "uniqueItems": true, "items": { "enum": ["a", "b", "c"] } },
                },
                "required": ["text", "kind"],
                "additionalProperties": false,
            }),
        ),
        tool(
            "notes__move",
            &json!({
                "$defs": { "place": { "type": "object", "properties": { "path": { "type": "string" }, "in": { "$ref": "#/$defs/place" } }, "required": ["path"] } },
                "anyOf": [{ "$ref": "#/$defs/place" }, { "type": "object", "properties": { "to": { "$ref": "#/$defs/place" } }, "required": ["to"] }],
            }),
        ),
    ]];
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let listed: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let own = listed.iter().map(|own| {
            let name =
                own["name"].as_str().unwrap().replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
            tool(&format!("server__{name}"), &own["inputSchema"])
        });
        out.push(own.collect());
    }
    out
}

#[test]
fn calls_of_real_tools_are_read_and_valid() {
    let lists = tool_lists();
    let read: usize = lists.iter().map(|tools| write(tools, 200)).sum();
    println!("{read} calls of {} lists of tools", lists.len());
    assert!(read >= 200 * lists.len());
}

#[test]
fn calls_of_tools_at_random_are_read_and_valid() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let fields: serde_json::Map<String, Value> =
            (0..1 + seed % 4).map(|at| (format!("field_{at}"), schema_at_random(&mut random))).collect();
        let schema = json!({ "type": "object", "properties": fields, "required": ["field_0"] });
        if pythonic_calls(&[tool("t", &schema)]).is_some_and(|bound| bound.loose.is_empty()) {
            write(&[tool("t", &schema)], 20);
        }
    }
}

#[test]
fn what_the_instructions_show_is_taken() {
    let tools = tool_lists().remove(0);
    let grammar = Grammar::read(&pythonic_calls(&tools).unwrap().text);
    let arguments =
        json!({ "text": "x'y\n\"z\"", "kind": "it's", "deep": [{ "is": true }, {}], "day": "2026-11-21" });
    let arguments = arguments.as_object().unwrap();
    let call = written_calls(
        &[("notes__find", arguments), ("plain", &serde_json::Map::new())],
        crate::CallForm::Pythonic,
    );
    assert!(grammar.takes("root", &call), "{call}");
    for wrong in [
        "[notes__lost(text='x')]",
        "[notes__find(text='x')]",
        "[notes__find(text='far too long', kind=1)]",
        "[notes__find(text='x', kind='other')]",
        "[notes__find(text='x', kind=true)]",
        "[notes__find(text='x', kind=1, more=2)]",
        "[plain(a=1)]",
    ] {
        assert!(!grammar.takes("root", wrong), "{wrong}");
    }
}

#[test]
fn a_list_begins_with_the_name_of_a_server_or_of_a_tool() {
    let tools = [tool("notes__find", &json!({})), tool("notes__read", &json!({})), tool("go.to", &json!({}))];
    let trigger = pythonic_trigger(&tools);
    assert!(trigger.ends_with(r"(\[ ?(?:go\.to\(|notes__))"), "{trigger}");
}
