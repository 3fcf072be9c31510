//! What of a message is repeated in HTTP headers (MCP 2026-07-28, Streamable HTTP, Request Metadata).
//!
//! Invariant: a value is sent so that it can't break out of its header, and only arguments that the tool's schema marks
//! with `x-mcp-header` are ever repeated.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// The mark in a schema.
const MARK: &str = "x-mcp-header";
/// Integers beyond this lose digits on their way through JavaScript.
const SAFE_INTEGER: u64 = (1 << 53) - 1;
/// A schema nested deeper is nobody's.
const MOST_DEPTH: usize = 64;

/// One argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mirrored {
    /// The header's name after `Mcp-Param-`.
    pub(crate) name: String,
    /// Where the argument stands.
    path: Vec<String>,
}

/// Which arguments of a tool are repeated in headers. The error says what is wrong with the tool's marks.
pub(crate) fn mirrored(schema: &Value) -> Result<Vec<Mirrored>, String> {
    let mut found = Vec::new();
    if schema.get(MARK).is_some() {
        return Err(format!("`{MARK}` stands at the top of its schema instead of at a property"));
    }
    walk(schema, &mut Vec::new(), &mut found)?;
    let mut seen = HashSet::new();
    match found.iter().find(|one| !seen.insert(one.name.to_ascii_lowercase())) {
        Some(twice) => Err(format!("`{MARK}` has the name `{}` twice", twice.name)),
        None => Ok(found),
    }
}

/// Follows `properties`; a mark anywhere else is wrong.
fn walk(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirrored>) -> Result<(), String> {
    let Value::Object(fields) = schema else { return Ok(()) };
    if path.len() > MOST_DEPTH {
        return Err("its schema is nested too deeply".into());
    }
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    if let Some(mark) = property.get(MARK) {
                        found.push(Mirrored { name: checked(mark, property, name)?, path: path.clone() });
                    }
                    walk(property, path, found)?;
                    path.pop();
                }
            }
            // Examples and constants are data, not schemas.
            ("default" | "const" | "enum" | "examples", _) => {}
            (_, other) if holds_mark(other, 0) => {
                return Err(format!("`{MARK}` stands under `{key}`, where it can't be followed"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn holds_mark(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > MOST_DEPTH => false,
        Value::Object(fields) => {
            fields.contains_key(MARK) || fields.values().any(|v| holds_mark(v, depth + 1))
        }
        Value::Array(items) => items.iter().any(|item| holds_mark(item, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn checked(mark: &Value, property: &Value, at: &str) -> Result<String, String> {
    let name = mark.as_str().ok_or_else(|| format!("`{MARK}` of `{at}` is not a text"))?;
    if !is_token(name) {
        return Err(format!("`{MARK}` of `{at}` is not a name of a header"));
    }
    match property.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(name.to_owned()),
        _ => Err(format!("`{MARK}` of `{at}` marks something that is no text, integer or boolean")),
    }
}

/// RFC 9110, section 5.6.2.
fn is_token(name: &str) -> bool {
    let special = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || special(byte))
}

/// A value as a header can carry it (MCP 2026-07-28, Streamable HTTP, Value Encoding).
fn encoded(value: &str) -> Option<HeaderValue> {
    let plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.trim() == value;
    let marked = value.starts_with("=?base64?") && value.ends_with("?=");
    let text =
        if plain && !marked { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) };
    HeaderValue::try_from(text).ok()
}

/// The headers of servers whose tools are known.
#[derive(Debug, Default)]
pub(super) struct ParamHeaders(Mutex<HashMap<String, Vec<Mirrored>>>);

impl ParamHeaders {
    // A std mutex: nothing awaits while it is held.
    fn known(&self) -> MutexGuard<'_, HashMap<String, Vec<Mirrored>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the tools in an answer to `tools/list`.
    pub(super) fn learn(&self, reply: &Value) {
        let tools = reply.pointer("/result/tools").and_then(Value::as_array);
        for tool in tools.into_iter().flatten() {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            // A tool with bad marks is left out of the catalog with the reason.
            match mirrored(tool.get("inputSchema").unwrap_or(&Value::Null)) {
                Ok(found) if !found.is_empty() => _ = self.known().insert(name.to_owned(), found),
                Ok(_) | Err(_) => _ = self.known().remove(name),
            }
        }
    }

    /// Adds the headers that a message of the modern era wants.
    pub(super) fn add(&self, message: &Value, headers: &mut HeaderMap) {
        let Some(method) = message.get("method").and_then(Value::as_str) else { return };
        let mut put = |name: &'static str, value: &str| {
            if let Some(value) = encoded(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        put("mcp-method", method);
        let params = message.get("params");
        let field = |name: &str| params.and_then(|params| params.get(name)).and_then(Value::as_str);
        let name = match method {
            "tools/call" | "prompts/get" => field("name"),
            "resources/read" => field("uri"),
            "tasks/get" | "tasks/update" | "tasks/cancel" | "tasks/result" => field("taskId"),
            _ => None,
        };
        if let Some(name) = name {
            put("mcp-name", name);
        }
        if method == "tools/call" {
            self.mirror(params, headers);
        }
    }

    fn mirror(&self, params: Option<&Value>, headers: &mut HeaderMap) {
        let Some(params) = params else { return };
        let known = self.known();
        let Some(wanted) = params.get("name").and_then(Value::as_str).and_then(|name| known.get(name)) else {
            return;
        };
        for Mirrored { name, path } in wanted {
            let value = path.iter().try_fold(params.get("arguments"), |at, key| at.map(|at| at.get(key)));
            let Some(text) = value.flatten().and_then(as_text) else { continue };
            let header = HeaderName::try_from(format!("mcp-param-{name}"));
            if let (Ok(header), Some(value)) = (header, encoded(&text)) {
                headers.insert(header, value);
            }
        }
    }
}

/// An argument as text; none when it is not there, null, or no integer that everybody can read.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Number(number) => {
            let whole = number.as_i64().filter(|whole| whole.unsigned_abs() <= SAFE_INTEGER)?;
            Some(whole.to_string())
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn marks_must_be_names_of_headers_unique_and_on_plain_values() {
        for (bad, why) in [
            (json!({"a": {"type": "string", MARK: ""}}), "not a name"),
            (json!({"a": {"type": "string", MARK: "Région"}}), "not a name"),
            (json!({"a": {"type": "string", MARK: "a\tb"}}), "not a name"),
            (json!({"a": {"type": "string", MARK: 5}}), "not a text"),
            (json!({"a": {"type": "number", MARK: "A"}}), "no text, integer"),
            (json!({"a": {MARK: "A"}}), "no text, integer"),
            (json!({"a": {"type": "string", MARK: "A"}, "b": {"type": "string", MARK: "a"}}), "twice"),
            (json!({"a": {"type": "array", "items": {"type": "string", MARK: "A"}}}), "under `items`"),
            (json!({"a": {"anyOf": [{"type": "string", MARK: "A"}]}}), "under `anyOf`"),
        ] {
            let error = mirrored(&schema(bad.clone())).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
        let fine = json!({"a": {"type": "object", "properties": {"b": {"type": "integer", MARK: "B"}},
            "default": {MARK: "not a mark"}}});
        assert_eq!(mirrored(&schema(fine)).unwrap()[0].path, ["a", "b"]);
    }

    #[test]
    fn values_are_encoded_when_a_header_would_change_them() {
        let params = ParamHeaders::default();
        let of = |kind: &str, name: &str| json!({"type": kind, MARK: name});
        let tool = json!({"name": "t", "inputSchema": schema(json!({
            "s": of("string", "S"), "n": of("integer", "N"), "b": of("boolean", "B"), "null": of("string", "Null"),
            "deep": {"type": "object", "properties": {"x": of("string", "X")}}, "free": {"type": "string"}}))});
        params.learn(&json!({"result": {"tools": [tool]}}));
        let headers = |arguments: Value| {
            let mut headers = HeaderMap::new();
            let message = json!({"method": "tools/call", "params": {"name": "t", "arguments": arguments}});
            params.add(&message, &mut headers);
            move |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        let plain = headers(
            json!({"s": "us west", "n": 42, "b": false, "null": null, "deep": {"x": "y"}, "free": "z"}),
        );
        assert_eq!(plain("mcp-method").as_deref(), Some("tools/call"));
        assert_eq!(plain("mcp-name").as_deref(), Some("t"));
        assert_eq!(plain("mcp-param-s").as_deref(), Some("us west"));
        assert_eq!(plain("mcp-param-n").as_deref(), Some("42"));
        assert_eq!(plain("mcp-param-b").as_deref(), Some("false"));
        assert_eq!(plain("mcp-param-x").as_deref(), Some("y"));
        assert_eq!((plain("mcp-param-null"), plain("mcp-param-free")), (None, None));
        for (value, header) in [
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
        ] {
            assert_eq!(headers(json!({"s": value}))("mcp-param-s").as_deref(), Some(header));
        }
    }
}
