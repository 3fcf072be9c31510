//! Schemas of tools as llama.cpp can take them.
//!
//! Servers write every kind of JSON Schema; llama.cpp's templates and grammars know a part of it and refuse the
//! whole conversation over the rest. So a refused schema is made simpler, twice if need be. The arguments are checked
//! against the true schema afterwards, by the core. Invariant: pure; names of tools and arguments stay.

use serde_json::{Map, Value, json};

/// How much of the schemas is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All of them.
    Given,
    /// Without what llama.cpp refuses: patterns, references, long limits, missing types.
    Simple,
    /// Names and descriptions of the arguments only.
    Open,
}

impl Detail {
    /// From the fullest to the plainest.
    pub(crate) const ALL: [Self; 3] = [Self::Given, Self::Simple, Self::Open];
}

/// Longer repetitions make a grammar too large.
const LONGEST_REPETITION: u64 = 200;
const LENGTHS: [&str; 4] = ["minLength", "maxLength", "minItems", "maxItems"];
const NOT_UNDERSTOOD: [&str; 8] =
    ["pattern", "patternProperties", "$ref", "not", "if", "then", "else", "propertyNames"];
const DEEPEST: usize = 24;

/// The tools with that much detail.
pub(crate) fn with_detail(tools: &[Value], detail: Detail) -> Vec<Value> {
    let mut out = tools.to_vec();
    for parameters in out.iter_mut().filter_map(|tool| tool.pointer_mut("/function/parameters")) {
        match detail {
            Detail::Given => {}
            Detail::Simple => simplify(parameters, 0),
            Detail::Open => *parameters = opened(parameters),
        }
    }
    out
}

fn simplify(schema: &mut Value, depth: usize) {
    let Value::Object(fields) = schema else {
        // `true` allows anything.
        *schema = json!({});
        return;
    };
    if depth > DEEPEST {
        fields.clear();
        return;
    }
    fields.retain(|key, value| {
        let too_long =
            LENGTHS.contains(&key.as_str()) && value.as_u64().is_none_or(|n| n > LONGEST_REPETITION);
        !too_long && !NOT_UNDERSTOOD.contains(&key.as_str())
    });
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for property in properties.values_mut() {
            simplify(property, depth + 1);
            fill_in_type(property);
        }
    }
    fill_in_items(fields);
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(key).filter(|inner| inner.is_object()) {
            simplify(inner, depth + 1);
        }
    }
    for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(choices)) = fields.get_mut(key) {
            choices.iter_mut().for_each(|choice| simplify(choice, depth + 1));
        }
    }
}

/// Some templates fail where a schema leaves the type out.
fn fill_in_type(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    if ["type", "anyOf", "oneOf", "allOf"].iter().any(|key| fields.contains_key(*key)) {
        return;
    }
    let first = fields.get("enum").and_then(Value::as_array).and_then(|all| all.first());
    let kind = match first.or_else(|| fields.get("const")) {
        Some(Value::Bool(_)) => "boolean",
        Some(Value::Number(_)) => "number",
        Some(Value::Array(_)) => "array",
        Some(Value::Object(_)) => "object",
        Some(Value::String(_) | Value::Null) => "string",
        None if fields.contains_key("properties") => "object",
        None if fields.contains_key("items") => "array",
        None => "string",
    };
    fields.insert("type".to_owned(), Value::String(kind.to_owned()));
}

/// Where a list says nothing of its items, some templates take the method `items` of the schema for it, and fail.
fn fill_in_items(fields: &mut Map<String, Value>) {
    if fields.get("type").is_some_and(|kind| kind == "array") {
        fields.entry("items").or_insert_with(|| json!({}));
    }
}

fn opened(schema: &Value) -> Value {
    let mut properties = Map::new();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let known = property.get("type").and_then(Value::as_str);
        let kind =
            known.filter(|kind| ["string", "number", "integer", "boolean", "array", "object"].contains(kind));
        let said = property.get("description").and_then(Value::as_str);
        // Some templates fail over every list, others over what has no type.
        let open = match (kind.unwrap_or("string"), said) {
            ("array", said) => {
                json!({ "type": "string", "description": format!("A list. {}", said.unwrap_or_default()).trim() })
            }
            (kind, Some(said)) => json!({ "type": kind, "description": said }),
            (kind, None) => json!({ "type": kind }),
        };
        properties.insert(name.clone(), open);
    }
    let required: Vec<&Value> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|name| name.as_str().is_some_and(|name| properties.contains_key(name)))
        .collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(parameters: Value) -> Vec<Value> {
        vec![
            json!({ "type": "function", "function": { "name": "f", "description": "", "parameters": parameters } }),
        ]
    }

    #[test]
    fn what_is_understood_stays() {
        let tools = tool(json!({
            "type": "object",
            "properties": { "a": { "type": "string", "maxLength": 20 }, "b": { "enum": [1, 2] } },
            "required": ["a"],
        }));
        assert_eq!(with_detail(&tools, Detail::Given), tools);
        let simple = with_detail(&tools, Detail::Simple);
        let parameters = &simple[0]["function"]["parameters"];
        assert_eq!(parameters["properties"]["a"], json!({ "type": "string", "maxLength": 20 }));
        assert_eq!(parameters["properties"]["b"], json!({ "enum": [1, 2], "type": "number" }));
    }

    #[test]
    fn what_is_not_understood_goes() {
        let tools = tool(json!({
            "type": "object",
            "properties": {
                "a": { "type": "string", "pattern": "[a-z]+", "maxLength": 100_000 },
                "b": { "$ref": "https://example.org/schema" },
                "c": true,
                "d": { "type": "array", "items": { "anyOf": [{ "pattern": "x" }, { "type": "null" }] } },
            },
            "required": ["a", "gone"],
        }));
        let simple = with_detail(&tools, Detail::Simple);
        assert_eq!(
            simple[0]["function"]["parameters"]["properties"],
            json!({
                "a": { "type": "string" },
                "b": { "type": "string" },
                "c": { "type": "string" },
                "d": { "type": "array", "items": { "anyOf": [{}, { "type": "null" }] } },
            })
        );
        let open = with_detail(&tools, Detail::Open);
        assert_eq!(open[0]["function"]["parameters"]["required"], json!(["a"]));
        assert_eq!(
            open[0]["function"]["parameters"]["properties"]["d"],
            json!({ "type": "string", "description": "A list." })
        );
        let bare = with_detail(&tool(json!({ "properties": { "a": { "type": "array" } } })), Detail::Simple);
        assert_eq!(bare[0]["function"]["parameters"]["properties"]["a"]["items"], json!({}));
    }
}
