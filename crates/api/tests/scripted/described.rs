//! `/openapi.json`, and what is served held to it.

use reqwest::Client;
use serde_json::{Value, json};

/// The document of a server.
pub struct Described(pub Value);

impl Described {
    /// As the server at this address tells it.
    pub async fn at(url: &str, client: &Client) -> Self {
        let response = client.get(format!("{url}/openapi.json")).send().await.unwrap();
        assert_eq!(response.status(), 200, "it needs no key");
        assert_eq!(response.headers()["content-type"], "application/json");
        Self(response.json().await.unwrap())
    }

    /// Holds a value to one of the schemas. Fields that it does not describe are a mistake, also in answers.
    pub fn hold(&self, name: &str, value: &Value) {
        let mut components = self.0["components"].clone();
        for (name, schema) in components["schemas"].as_object_mut().unwrap() {
            // Each kind of event has fields of its own, which docs/events.md describes.
            if name != "SessionEvent" {
                close(schema);
            }
        }
        let schema = json!({"$ref": format!("#/components/schemas/{name}"), "components": components});
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(value)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:?} in {value:#}");
    }

    /// All references in it.
    pub fn references(&self) -> Vec<String> {
        let mut found = Vec::new();
        references(&self.0, &mut found);
        found
    }
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") {
                fields.entry("additionalProperties").or_insert(json!(false));
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}
