//! The words of JSON Schema, and what the subset has for them.
//!
//! Invariant: pure tables; nothing here knows where a word stands.

use serde_json::{Map, Value};

/// Keywords that say something to people only.
pub(super) const SILENT: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "$defs",
    "definitions",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$vocabulary",
    "contentMediaType",
    "contentEncoding",
    "markdownDescription",
];

pub(super) fn keep(out: &mut Map<String, Value>, keyword: &str, value: &Value) {
    out.insert(keyword.to_owned(), value.clone());
}

pub(super) fn unescaped(pointer: &str) -> String {
    // A pointer in an address is percent-encoded; names with spaces are the only common case.
    pointer.replace("%20", " ").replace("%24", "$")
}

pub(super) fn type_name(kind: &str) -> Option<&'static str> {
    Some(match kind.to_ascii_lowercase().as_str() {
        "object" => "OBJECT",
        "array" => "ARRAY",
        "string" => "STRING",
        "integer" => "INTEGER",
        "number" => "NUMBER",
        "boolean" => "BOOLEAN",
        _ => return None,
    })
}

/// The formats that the subset knows; others are refused.
pub(super) fn is_format(format: &str) -> bool {
    matches!(format, "date-time" | "enum" | "float" | "double" | "int32" | "int64")
}

/// Keywords about values, as opposed to words about the whole.
pub(super) fn is_of_value(keyword: &str) -> bool {
    !matches!(keyword, "title" | "description" | "default" | "nullable" | "anyOf" | "oneOf" | "allOf")
}

/// Whether a keyword says something about values of this type.
pub(super) fn belongs(keyword: &str, kind: &str) -> bool {
    let of = match keyword {
        "properties"
        | "required"
        | "additionalProperties"
        | "minProperties"
        | "maxProperties"
        | "patternProperties"
        | "propertyNames"
        | "dependentRequired" => "OBJECT",
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" => "ARRAY",
        "minLength" | "maxLength" | "pattern" => "STRING",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            return kind == "INTEGER" || kind == "NUMBER";
        }
        "title" | "description" | "default" | "anyOf" | "oneOf" | "allOf" | "enum" | "const" => return false,
        _ => return true,
    };
    of == kind
}
