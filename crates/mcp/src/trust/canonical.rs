//! A tool's definition in one spelling, and its digest.
//!
//! Invariant: pure. The same JSON in another order of keys has the same digest; any other difference another one.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::unicode::has_invisible;

/// What a model and a user can read of a tool, and what a call must be like (MCP 2025-06-18, `Tool`).
/// Sorted, as all keys are.
const FIELDS: [&str; 6] = ["annotations", "description", "inputSchema", "name", "outputSchema", "title"];

/// Schemas are no deeper than this; what is below counts as one text.
const DEEPEST: usize = 100;

/// A tool as its server defines it: name, title, description, schemas and annotations. Icons and `_meta` are left out:
/// they say nothing to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinition {
    /// The name that the server knows.
    pub name: String,
    /// SHA-256 of `text`, in hex.
    pub digest: String,
    /// The definition as JSON without blanks, keys sorted.
    pub text: String,
    /// Whether any text in it holds characters that can't be seen.
    pub invisible: bool,
}

impl ToolDefinition {
    /// Reads a tool of a list. What it lacks it lacks in the definition, too.
    pub fn of(tool: &Value) -> Self {
        let fields: Vec<(&str, &Value)> =
            FIELDS.iter().filter_map(|name| Some((*name, tool.get(*name)?))).collect();
        let mut text = Vec::new();
        write_fields(&fields, 1, &mut text);
        // Nothing but JSON was written.
        let text = String::from_utf8(text).unwrap_or_default();
        Self {
            name: tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            digest: digest("lectern tool 1", &text),
            invisible: fields.iter().any(|(_, field)| any_text(field, 1, &mut |text| has_invisible(text))),
            text,
        }
    }

    /// The definition as a value.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }
}

/// SHA-256 of a text, in hex, that no text of another kind can have.
pub(super) fn digest(kind: &str, text: &str) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let hash = Sha256::new().chain_update(kind).chain_update([0]).chain_update(text).finalize();
    hash.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]).collect()
}

/// JSON without blanks, the keys of all objects sorted.
pub(super) fn canonical(value: &Value) -> String {
    let mut out = Vec::new();
    write(value, 0, &mut out);
    // Nothing but JSON was written.
    String::from_utf8(out).unwrap_or_default()
}

fn write(value: &Value, depth: usize, out: &mut Vec<u8>) {
    match value {
        Value::Array(items) if depth <= DEEPEST => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                comma(at, out);
                write(item, depth + 1, out);
            }
            out.push(b']');
        }
        Value::Object(fields) if depth <= DEEPEST => {
            let mut fields: Vec<(&str, &Value)> =
                fields.iter().map(|(name, field)| (name.as_str(), field)).collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            write_fields(&fields, depth + 1, out);
        }
        value => json(value, out),
    }
}

fn write_fields(fields: &[(&str, &Value)], depth: usize, out: &mut Vec<u8>) {
    out.push(b'{');
    for (at, (name, field)) in fields.iter().enumerate() {
        comma(at, out);
        json(*name, out);
        out.push(b':');
        write(field, depth, out);
    }
    out.push(b'}');
}

fn comma(at: usize, out: &mut Vec<u8>) {
    if at > 0 {
        out.push(b',');
    }
}

fn json<T: serde::Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    // A value always serialises, and memory takes everything.
    let _ = serde_json::to_writer(out, value);
}

/// Whether any text in a value, names of fields included, is such.
fn any_text(value: &Value, depth: usize, such: &mut impl FnMut(&str) -> bool) -> bool {
    match value {
        Value::String(text) => such(text),
        _ if depth > DEEPEST => such(&value.to_string()),
        Value::Array(items) => items.iter().any(|item| any_text(item, depth + 1, such)),
        Value::Object(fields) => {
            fields.iter().any(|(name, field)| such(name) || any_text(field, depth + 1, such))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn base() -> Value {
        json!({"name": "t", "description": "d", "inputSchema": {"type": "object", "properties": {"a": {}, "b": {}}},
               "annotations": {"readOnlyHint": true}})
    }

    #[test]
    fn the_order_of_keys_and_what_a_model_never_sees_do_not_matter() {
        let other = json!({"annotations": {"readOnlyHint": true}, "icons": [{"src": "x"}], "_meta": {"n": 1},
            "inputSchema": {"properties": {"b": {}, "a": {}}, "type": "object"}, "description": "d", "name": "t"});
        assert_eq!(ToolDefinition::of(&base()), ToolDefinition::of(&other));
        let text = r#"{"annotations":{"readOnlyHint":true},"description":"d","inputSchema":{"properties":{"a":{},"b":{}},"type":"object"},"name":"t"}"#;
        assert_eq!(ToolDefinition::of(&base()).text, text);
        assert_eq!(ToolDefinition::of(&base()).value(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn every_other_difference_is_another_digest() {
        let mut seen = vec![ToolDefinition::of(&base()).digest];
        for (pointer, value) in [
            ("/name", json!("u")),
            ("/description", json!("d ")),
            ("/inputSchema/properties/a", json!({"type": "string"})),
            ("/annotations/readOnlyHint", json!(false)),
            ("/annotations/readOnlyHint", json!("true")),
            ("/annotations", json!([])),
        ] {
            let mut tool = base();
            *tool.pointer_mut(pointer).unwrap() = value;
            seen.push(ToolDefinition::of(&tool).digest);
        }
        for (field, value) in [("title", json!("T")), ("outputSchema", json!({})), ("title", Value::Null)] {
            let mut tool = base();
            tool[field] = value;
            seen.push(ToolDefinition::of(&tool).digest);
        }
        let many = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), many);
    }

    #[test]
    fn invisible_text_is_found_wherever_it_stands() {
        for pointer in ["/name", "/description", "/inputSchema/properties/a", "/annotations/readOnlyHint"] {
            let mut tool = base();
            *tool.pointer_mut(pointer).unwrap() = json!("a\u{200b}b");
            assert!(ToolDefinition::of(&tool).invisible, "{pointer}");
        }
        let mut key = base();
        key["inputSchema"]["properties"]["a\u{e0041}"] = json!({});
        assert!(ToolDefinition::of(&key).invisible);
        assert!(!ToolDefinition::of(&base()).invisible);
    }

    #[test]
    fn what_is_no_tool_does_no_harm() {
        let mut deep = json!(1);
        for _ in 0..500 {
            deep = json!([deep]);
        }
        for odd in [json!(null), json!(17), json!({"name": 3}), json!({"name": "x", "inputSchema": deep})] {
            assert_eq!(ToolDefinition::of(&odd).digest.len(), 64);
        }
    }
}
