//! Checks arguments against a tool's JSON Schema (drafts 4 to 2020-12), with words that let a model correct itself.
//!
//! Invariant: pure. A `$ref` never leaves the schema: nothing is read from the network or the disk.

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{Draft, PatternOptions, ValidationError as Fault};
use serde::Serialize;
use serde_json::Value;

mod plain;

/// Errors that are told at most; a model corrects the rest in the next round.
pub const MAX_ERRORS: usize = 5;

/// Levels of nesting at most: the library walks schemas and values by recursion, and a stack is soon used up.
const DEEPEST: usize = 256;

/// Characters of a value in an error at most.
const SHOWN: usize = 80;

/// One thing that is wrong with the arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValidationError {
    /// Where, as a JSON pointer; empty for the arguments as a whole.
    pub path: String,
    /// What should stand there.
    pub expected: String,
    /// What stands there, shortened.
    pub got: String,
}

/// A schema that can't be used: the calls of its tool are not checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tool's schema is broken: {0}")]
pub struct SchemaFault(pub String);

impl std::fmt::Display for ValidationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = if self.path.is_empty() { "the arguments" } else { &self.path };
        write!(f, "{path}: expected {}, got {}", self.expected, self.got)
    }
}

/// The errors of the arguments, at most [`MAX_ERRORS`]; empty when they are valid.
pub fn validate(schema: &Value, arguments: &Value) -> Result<Vec<ValidationError>, SchemaFault> {
    check(schema, arguments, false)
}

/// Whether a schema can be used at all. Cheap for the schemas that most tools have.
pub fn check_schema(schema: &Value) -> Result<(), SchemaFault> {
    if plain::is_plain(schema) { Ok(()) } else { validate(schema, &Value::Null).map(drop) }
}

/// As [`validate`], and `format` is more than a remark.
pub(crate) fn validate_with_formats(
    schema: &Value,
    value: &Value,
) -> Result<Vec<ValidationError>, SchemaFault> {
    check(schema, value, true)
}

fn check(schema: &Value, arguments: &Value, formats: bool) -> Result<Vec<ValidationError>, SchemaFault> {
    if is_deep(schema) {
        return Err(SchemaFault("it is nested too deeply".to_owned()));
    }
    if is_deep(arguments) {
        let expected = format!("at most {DEEPEST} levels");
        return Ok(vec![ValidationError { path: String::new(), expected, got: "more".to_owned() }]);
    }
    let validator = jsonschema::options()
        // MCP: a schema that names no draft is of 2020-12.
        .with_draft(draft_of(schema))
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(100_000))
        .should_validate_formats(formats)
        .offline()
        .build(schema)
        .map_err(|fault| SchemaFault(shorten(&fault.to_string(), 200)))?;
    Ok(validator.iter_errors(arguments).take(MAX_ERRORS).map(|fault| describe(&fault)).collect())
}

/// The draft that the schema names, else the one that MCP names. An unknown one is read as the latest.
fn draft_of(schema: &Value) -> Draft {
    match Draft::Draft202012.detect(schema) {
        Draft::Unknown => Draft::Draft202012,
        draft => draft,
    }
}

fn is_deep(value: &Value) -> bool {
    let mut level = vec![value];
    for _ in 0..DEEPEST {
        level = level.into_iter().flat_map(children).collect();
        if level.is_empty() {
            return false;
        }
    }
    true
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(entries) => entries.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn describe(fault: &Fault<'_>) -> ValidationError {
    let (expected, got) = words(fault);
    ValidationError { path: fault.instance_path().to_string(), expected, got }
}

fn words(fault: &Fault<'_>) -> (String, String) {
    let value = fault.instance();
    let got = show(value);
    match fault.kind() {
        Kind::Required { property } => (format!("the required property {property}"), keys(value)),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => (
            "no other properties than the schema's".to_owned(),
            format!("also `{}`", unexpected.join("`, `")),
        ),
        Kind::Type { .. } => (type_name(fault), format!("{} {got}", kind_of(value))),
        Kind::Enum { options } => (format!("one of {}", shorten(&options.to_string(), 400)), got),
        Kind::Constant { expected_value } => (shorten(&expected_value.to_string(), 200), got),
        Kind::Minimum { limit } => (format!("at least {limit}"), got),
        Kind::Maximum { limit } => (format!("at most {limit}"), got),
        Kind::ExclusiveMinimum { limit } => (format!("more than {limit}"), got),
        Kind::ExclusiveMaximum { limit } => (format!("less than {limit}"), got),
        Kind::MinLength { limit } => (format!("at least {limit} characters"), got),
        Kind::MaxLength { limit } => (format!("at most {limit} characters"), got),
        Kind::MinItems { limit } => (format!("at least {limit} items"), got),
        Kind::MaxItems { limit } => (format!("at most {limit} items"), got),
        Kind::Pattern { pattern } => (format!("text that matches {}", shorten(pattern, 200)), got),
        Kind::Format { format } => (format!("text in the format {format}"), got),
        // The rest is rare in tools' schemas; the library's own sentence tells it well enough.
        _ => (shorten(&fault.masked().to_string(), 300), got),
    }
}

/// The type that the schema names at this place.
fn type_name(fault: &Fault<'_>) -> String {
    match fault.kind() {
        Kind::Type { kind: jsonschema::error::TypeKind::Single(one) } => one.to_string(),
        Kind::Type { kind: jsonschema::error::TypeKind::Multiple(many) } => {
            let names: Vec<String> = many.iter().map(|one| one.to_string()).collect();
            names.join(" or ")
        }
        _ => "another type".to_owned(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn keys(value: &Value) -> String {
    match value.as_object() {
        Some(object) if object.is_empty() => "an empty object".to_owned(),
        Some(object) => {
            let names: Vec<&str> = object.keys().map(String::as_str).collect();
            shorten(&format!("only `{}`", names.join("`, `")), 200)
        }
        None => show(value),
    }
}

fn show(value: &Value) -> String {
    shorten(&value.to_string(), SHOWN)
}

fn shorten(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let cut: String = text.chars().take(limit).collect();
    format!("{cut}…")
}
