//! Tells schemas that are valid at a glance from those that have to be built to be known.
//!
//! Invariant: pure, and never optimistic: what is not plainly valid is not plain. Building a validator takes a thousand
//! times as long, and a host lists thousands of tools when it starts.

use serde_json::{Map, Value};

/// Levels of schemas in schemas at most.
const DEEPEST: usize = 32;

/// Drafts in which all that is looked at here means the same; a schema that names none is of 2020-12.
const DRAFTS: [&str; 4] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2020-12/schema#",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-07/schema#",
];

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Whether a schema has well-known keywords in their usual form only, and is valid for that reason. It has no `$ref`,
/// no pattern and nothing else whose validity lies outside of the keyword itself.
pub(super) fn is_plain(schema: &Value) -> bool {
    is_plain_at(schema, 0)
}

fn is_plain_at(schema: &Value, depth: usize) -> bool {
    match schema {
        _ if depth > DEEPEST => false,
        Value::Bool(_) => true,
        Value::Object(fields) => fields.iter().all(|(name, value)| is_plain_keyword(name, value, depth)),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

fn is_plain_keyword(name: &str, value: &Value, depth: usize) -> bool {
    let inner = |schema: &Value| is_plain_at(schema, depth + 1);
    match name {
        "$schema" => depth == 0 && value.as_str().is_some_and(|draft| DRAFTS.contains(&draft)),
        "title" | "description" | "$comment" | "format" => value.is_string(),
        "default" => true,
        "examples" => value.is_array(),
        "deprecated" | "readOnly" | "writeOnly" | "uniqueItems" => value.is_boolean(),
        "type" => match value {
            Value::Array(kinds) => !kinds.is_empty() && kinds.iter().all(is_type) && are_names(kinds),
            kind => is_type(kind),
        },
        "enum" => value.as_array().is_some_and(|options| !options.is_empty()),
        "const" => true,
        "required" => value.as_array().is_some_and(|names| are_names(names)),
        "properties" => value.as_object().is_some_and(|fields: &Map<_, _>| fields.values().all(inner)),
        "items" | "additionalProperties" => inner(value),
        "anyOf" | "oneOf" | "allOf" => {
            value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(inner))
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|step| step > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.is_u64()
        }
        _ => false,
    }
}

fn is_type(kind: &Value) -> bool {
    kind.as_str().is_some_and(|kind| TYPES.contains(&kind))
}

/// Texts, none of them twice. Many names are not looked at: the list is only compared here if that is cheap.
fn are_names(names: &[Value]) -> bool {
    let differ = |(at, name): (usize, &Value)| name.is_string() && !names[..at].contains(name);
    names.len() <= 64 && names.iter().enumerate().all(differ)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each keyword with a value that is plain, and one that makes the whole schema invalid.
    fn keywords() -> Vec<(&'static str, Value, Option<Value>)> {
        let number = json!({"type": "number"});
        vec![
            ("$schema", json!("http://json-schema.org/draft-07/schema#"), Some(json!(7))),
            ("title", json!("T"), Some(json!(1))),
            ("description", json!("D"), Some(json!([]))),
            ("format", json!("date"), Some(json!({}))),
            ("default", json!({"$ref": "#/nowhere", "$id": "x"}), None),
            ("const", json!({"$ref": "#/nowhere"}), None),
            ("examples", json!([1, "a"]), Some(json!("a"))),
            ("uniqueItems", json!(true), Some(json!("yes"))),
            ("type", json!("array"), Some(json!("text"))),
            ("type", json!(["string", "null"]), Some(json!(["null", "null"]))),
            ("enum", json!(["a", null, 3]), Some(json!("a"))),
            ("required", json!(["a", "b"]), Some(json!(["a", "a"]))),
            ("required", json!([]), Some(json!([1]))),
            ("properties", json!({"$ref": number, "a": true}), Some(json!({"a": {"type": 5}}))),
            ("properties", json!({"a": {"properties": {"b": number}}}), Some(json!([]))),
            ("items", number.clone(), Some(json!({"type": "text"}))),
            ("additionalProperties", json!(false), Some(json!("no"))),
            ("anyOf", json!([number, true]), Some(json!([]))),
            ("oneOf", json!([number]), Some(json!([3]))),
            ("allOf", json!([number]), Some(json!(number))),
            ("minimum", json!(-1.5), Some(json!("1"))),
            ("exclusiveMaximum", json!(1), Some(json!(true))),
            ("multipleOf", json!(0.01), Some(json!(0))),
            ("minLength", json!(0), Some(json!(-1))),
            ("maxItems", json!(9), Some(json!("9"))),
        ]
    }

    fn builds(schema: &Value) -> bool {
        super::super::validate(schema, &json!({})).is_ok()
    }

    #[test]
    fn what_is_plain_builds_and_what_does_not_build_is_not_plain() {
        for (name, good, bad) in keywords() {
            let nested = |value: &Value| match name {
                "$schema" => json!({ name: value }),
                _ => json!({"type": "object", "properties": {"x": {"items": {name: value}}}}),
            };
            assert!(is_plain(&nested(&good)) && builds(&nested(&good)), "{name}: {good}");
            if let Some(bad) = bad {
                assert!(!is_plain(&nested(&bad)) && !builds(&nested(&bad)), "{name}: {bad}");
            }
        }
    }

    #[test]
    fn what_points_elsewhere_or_has_to_be_compiled_is_not_plain() {
        for schema in [
            json!({"$ref": "#/$defs/a", "$defs": {"a": {}}}),
            json!({"$dynamicRef": "#a"}),
            json!({"$id": "http://x/"}),
            json!({"pattern": "a+"}),
            json!({"patternProperties": {"^a": {}}}),
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": 3}),
            json!({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}),
            json!([]),
            json!("object"),
        ] {
            assert!(!is_plain(&schema), "{schema}");
        }
        let mut deep = json!({});
        for _ in 0..300 {
            deep = json!({"items": deep});
        }
        assert!(!is_plain(&deep));
    }
}
