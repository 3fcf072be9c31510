//! Arguments as the audit log may keep them.
//!
//! Invariant: pure. Hides the server's secrets wherever they stand, and what is a secret by its name.

use lectern_core::JsonObject;
use serde_json::Value;

use crate::mask::{MASKED, Mask, names_a_secret};

/// The arguments without secrets.
pub(crate) fn masked_arguments(mask: &Mask, arguments: &JsonObject) -> JsonObject {
    let named = arguments.iter().map(|(name, value)| (name.clone(), by_name(name, value))).collect();
    match mask.value(Value::Object(named)) {
        Value::Object(masked) => masked,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    }
}

fn by_name(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if !text.is_empty() && is_secret_argument(name) => MASKED.into(),
        Value::Array(items) => Value::Array(items.iter().map(|item| by_name(name, item)).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, field)| (name.clone(), by_name(name, field))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Tools that keep pairs call one half of them `key`; that is no secret.
fn is_secret_argument(name: &str) -> bool {
    !name.eq_ignore_ascii_case("key") && names_a_secret(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::ServerConfig;

    #[test]
    fn secrets_are_hidden_by_name_and_by_what_the_server_has() {
        let mask = Mask::of(&ServerConfig::new("s", "x", ["--token", "hunter2hunter2"]));
        let Value::Object(arguments) = json!({
            "path": "A.md", "key": "colour", "api_key": "abc", "header": "x hunter2hunter2 y",
            "login": {"password": "p", "user": "me", "tries": 3}, "tokens": ["a", "b"], "token": ""
        }) else {
            panic!()
        };
        assert_eq!(
            Value::Object(masked_arguments(&mask, &arguments)),
            json!({
                "path": "A.md", "key": "colour", "api_key": "••••••", "header": "x •••••• y",
                "login": {"password": "••••••", "user": "me", "tries": 3}, "tokens": ["a", "b"], "token": ""
            })
        );
    }
}
