//! Calls written as JSON: Llama's, Hermes', OpenAI's and their mixtures.

use serde_json::{Deserializer, Map, Value};

use super::TextCall;
use super::pythonic::NoCall;

const NAME_KEYS: [&str; 4] = ["name", "tool", "tool_name", "function"];
const ARGUMENT_KEYS: [&str; 4] = ["arguments", "parameters", "args", "input"];
/// Keys with which the object of a call begins.
const FIRST_KEYS: [&str; 11] = [
    "name",
    "tool",
    "tool_name",
    "function",
    "arguments",
    "parameters",
    "args",
    "input",
    "type",
    "id",
    "tool_calls",
];

/// Reads the JSON value at the beginning of a text; gives the value and its length.
pub(super) fn value(text: &str) -> Result<(Value, usize), NoCall> {
    let mut stream = Deserializer::from_str(text).into_iter::<Value>();
    match stream.next() {
        Some(Ok(value)) => Ok((value, stream.byte_offset())),
        Some(Err(error)) if error.is_eof() => Err(NoCall::Incomplete),
        None => Err(NoCall::Incomplete),
        Some(Err(_)) => Err(NoCall::Other),
    }
}

/// The calls that a JSON value stands for.
pub(super) fn calls(value: Value) -> Option<Vec<TextCall>> {
    match value {
        Value::Array(items) if !items.is_empty() => {
            items.into_iter().map(calls).collect::<Option<Vec<_>>>().map(|all| all.concat())
        }
        Value::Object(mut fields) => match fields.remove("tool_calls") {
            Some(all @ Value::Array(_)) => calls(all),
            Some(_) => None,
            None => call(fields).map(|call| vec![call]),
        },
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn call(mut fields: Map<String, Value>) -> Option<TextCall> {
    if let Some(Value::Object(inner)) = fields.get_mut("function") {
        return call(std::mem::take(inner));
    }
    let name = NAME_KEYS.iter().find_map(|key| fields.get(*key)?.as_str()).map(str::to_owned)?;
    let given = ARGUMENT_KEYS.iter().find_map(|key| fields.remove(*key));
    let arguments = match given {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        // OpenAI writes them as JSON inside a string.
        Some(Value::String(text)) => serde_json::from_str(&text).ok()?,
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => return None,
    };
    Some(TextCall { name, arguments })
}

/// Whether the text can still become a call: an object whose first key is one of a call's.
pub(super) fn may_become_call(text: &str) -> bool {
    let inside = text.trim_start().trim_start_matches('[').trim_start();
    let Some(inside) = inside.strip_prefix('{') else { return inside.is_empty() };
    let inside = inside.trim_start();
    let Some(key) = inside.strip_prefix('"') else { return inside.is_empty() };
    match key.split_once('"') {
        Some((key, _)) => FIRST_KEYS.contains(&key),
        None => FIRST_KEYS.iter().any(|known| known.starts_with(key)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(text: &str) -> Option<Vec<String>> {
        calls(value(text).unwrap().0).map(|calls| calls.into_iter().map(|call| call.name).collect())
    }

    #[test]
    fn reads_every_shape() {
        for text in [
            r#"{"name": "f", "arguments": {"a": 1}}"#,
            r#"{"name": "f", "parameters": {"a": 1}}"#,
            r#"{"type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}"#,
            r#"{"function": "f", "args": {"a": 1}}"#,
            r#"{"tool": "f", "input": {"a": 1}}"#,
            r#"[{"name": "f", "arguments": {"a": 1}}]"#,
            r#"{"tool_calls": [{"id": "x", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]}"#,
        ] {
            let found = calls(value(text).unwrap().0).unwrap();
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(Value::Object(found[0].arguments.clone()), json!({"a": 1}), "{text}");
            assert!(may_become_call(text));
        }
    }

    #[test]
    fn leaves_other_json_alone() {
        assert_eq!(names(r#"{"title": "x"}"#), None);
        assert_eq!(names(r#"{"name": "f", "arguments": [1]}"#), None);
        assert_eq!(names("[]"), None);
        assert!(!may_become_call(r#"{"title"#));
        assert!(may_become_call("{ \"na"));
        assert!(may_become_call("["));
    }
}
