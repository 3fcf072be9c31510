//! The OpenAPI document at `/openapi.json`, and the page that shows it.
//!
//! Invariant: both are made from what is routed, once, and need no key: they say what this program can do, not what is on
//! this computer.

mod answers;
mod page;

use std::collections::BTreeSet;

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use bytes::Bytes;
use serde_json::{Value, json};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Components, OpenApi};
use utoipa::{Modify, OpenApi as _};

pub use answers::{ErrorBody, ErrorFields, Failures, ServerSentEvent};

use crate::state::Api;

/// What the document says before anything is routed.
pub fn frame() -> OpenApi {
    Frame::openapi()
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Lectern's local API",
        description = "Models and tools of this computer. `/v1` is OpenAI's API; `/api` has what that can't carry: tools that \
                       run here, told frame by frame, sessions, consent. Each request needs a key.",
    ),
    servers((url = "/", description = "This server")),
    security(("key" = [])),
    components(schemas(ErrorBody)),
    modifiers(&WithKey),
)]
struct Frame;

/// `Authorization: Bearer KEY`.
struct WithKey;

impl Modify for WithKey {
    fn modify(&self, document: &mut OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document.components.get_or_insert_with(Components::new).add_security_scheme("key", scheme);
    }
}

/// The document and its page, for a router without keys.
pub fn routes(document: &OpenApi) -> Router<Api> {
    let document = finished(document);
    let text = Bytes::from(document.to_string());
    let page = page::Page::of(&document);
    let json = move || {
        let text = text.clone();
        async move { ([(header::CONTENT_TYPE, "application/json")], text) }
    };
    let show = move || {
        let page = page.clone();
        async move { page.into_response() }
    };
    Router::new()
        .route("/openapi.json", get(json))
        .route("/docs", get(show))
        .route("/", get(async || Redirect::temporary("/docs")))
}

/// The document as JSON. What a request is made of is closed: fields that nobody knows are refused, in all objects.
fn finished(document: &OpenApi) -> Value {
    // A document of ours always has a text.
    let mut document = serde_json::to_value(document).unwrap_or_default();
    let mut found = BTreeSet::new();
    for operation in operations(&document) {
        references(&operation["requestBody"], &mut found);
    }
    let mut open: Vec<String> = found.iter().cloned().collect();
    while let Some(name) = open.pop() {
        let mut further = BTreeSet::new();
        references(&document["components"]["schemas"][&name], &mut further);
        open.extend(further.into_iter().filter(|name| found.insert(name.clone())));
    }
    for name in found {
        if let Some(schema) = document["components"]["schemas"].get_mut(&name) {
            close(schema);
        }
    }
    document
}

/// All operations.
fn operations(document: &Value) -> impl Iterator<Item = &Value> {
    let paths = document["paths"].as_object().into_iter().flat_map(|paths| paths.values());
    paths.filter_map(Value::as_object).flat_map(|path| path.values())
}

/// The names of the schemas that are referred to.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                found.extend(reference.strip_prefix("#/components/schemas/").map(str::to_owned));
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
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
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
