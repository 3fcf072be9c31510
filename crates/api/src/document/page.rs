//! The document as a page: one file of HTML and CSS, without a script and without the network.
//!
//! Invariant: all text of the document is escaped, and nothing but the page's own style is let in.

use std::fmt::Write as _;

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page.css");

/// The page, and what a browser may load for it.
#[derive(Clone)]
pub struct Page {
    html: Bytes,
    policy: HeaderValue,
}

impl Page {
    /// Draws the document.
    pub fn of(document: &Value) -> Self {
        let digest = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        // Base64 is good in a header.
        let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
        Self { html: html(document).into(), policy }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let mut response = Response::new(self.html.into());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(
            HeaderName::from_static("cross-origin-resource-policy"),
            HeaderValue::from_static("same-origin"),
        );
        response
    }
}

fn html(document: &Value) -> String {
    let mut out = String::with_capacity(64 << 10);
    let info = &document["info"];
    let (title, said) = (text(&info["title"]), prose(&info["description"]));
    let version = text(&info["version"]);
    let _ = write!(
        out,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style><main><h1>{title} \
         <small>{version}</small></h1><p>{said}</p><p>The same for programs: <a \
         href=\"/openapi.json\">/openapi.json</a></p>"
    );
    for (path, item) in entries(&document["paths"]) {
        for (method, operation) in entries(item) {
            draw_operation(&mut out, path, method, operation);
        }
    }
    out.push_str("<h2>Schemas</h2>");
    for (name, schema) in entries(&document["components"]["schemas"]) {
        let said = prose(&schema["description"]);
        let _ = write!(out, "<section id=\"{0}\"><h3>{0}</h3><p>{said}</p>", escaped(name));
        draw_schema(&mut out, schema);
        out.push_str("</section>");
    }
    out.push_str("</main></html>");
    out
}

fn draw_operation(out: &mut String, path: &str, method: &str, operation: &Value) {
    let heading = format!("<code>{}</code> {}", escaped(&method.to_uppercase()), escaped(path));
    let (summary, said) = (prose(&operation["summary"]), prose(&operation["description"]));
    let _ = write!(out, "<section><h2>{heading}</h2><p>{summary}</p><p>{said}</p>");
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    for parameter in parameters {
        let (name, place) = (text(&parameter["name"]), text(&parameter["in"]));
        let said = prose(&parameter["description"]);
        let _ = write!(out, "<p><b>{name}</b> <i>in {place}</i> {said}</p>");
    }
    for (kind, content) in entries(&operation["requestBody"]["content"]) {
        let _ = write!(out, "<p>Takes {} as {}</p>", kind_of(&content["schema"]), escaped(kind));
    }
    draw_responses(out, &operation["responses"]);
    out.push_str("</section>");
}

/// Those with the same bodies in one row: all errors are alike.
fn draw_responses(out: &mut String, responses: &Value) {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for (status, response) in entries(responses) {
        let bodies = entries(&response["content"])
            .map(|(kind, content)| format!("{} as {}", kind_of(&content["schema"]), escaped(kind)));
        let bodies = bodies.collect::<Vec<_>>().join("<br>");
        let said = format!("{} {}", escaped(status), prose(&response["description"]));
        match rows.iter_mut().find(|(of, _)| *of == bodies) {
            Some((_, all)) => all.push(said),
            None => rows.push((bodies, vec![said])),
        }
    }
    out.push_str("<table>");
    for (bodies, said) in rows {
        let _ = write!(out, "<tr><td>{}</td><td>{bodies}</td></tr>", said.join(", "));
    }
    out.push_str("</table>");
}

/// The fields of an object, or the choices of a union.
fn draw_schema(out: &mut String, schema: &Value) {
    if let Some(choices) = schema["oneOf"].as_array() {
        for choice in choices {
            let _ = write!(out, "<p>{} {}</p>", kind_of(choice), prose(&choice["description"]));
            draw_schema(out, choice);
        }
        return;
    }
    let Some(properties) = schema["properties"].as_object() else {
        if schema.get("$ref").is_none() && schema.get("enum").is_some() {
            let _ = write!(out, "<p>{}</p>", kind_of(schema));
        }
        return;
    };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    out.push_str("<table>");
    for (name, property) in properties {
        let needed = if required.contains(&name.as_str()) { " *" } else { "" };
        let (kind, said) = (kind_of(property), prose(&property["description"]));
        let _ = write!(out, "<tr><th>{}{needed}</th><td>{kind}</td><td>{said}</td></tr>", escaped(name));
    }
    out.push_str("</table>");
}

/// A type in a few words.
fn kind_of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = escaped(reference.rsplit('/').next().unwrap_or_default());
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    if let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["allOf"].as_array()) {
        return choices.iter().map(kind_of).collect::<Vec<_>>().join(" or ");
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| escaped(&word.to_string())).collect::<Vec<_>>().join(" or ");
    }
    let one = |kind: &Value| match kind.as_str() {
        Some("array") => format!("array of {}", kind_of(&schema["items"])),
        Some(kind) => escaped(kind),
        None => "anything".to_owned(),
    };
    let bounds = [("minimum", "from"), ("maximum", "to"), ("maxItems", "at most"), ("pattern", "like")];
    let bounds = bounds.iter().filter_map(|(key, word)| {
        let bound = schema.get(*key)?;
        Some(format!(" {word} {}", escaped(&bound.as_str().map_or_else(|| bound.to_string(), str::to_owned))))
    });
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(one).collect::<Vec<_>>().join(" or "),
        kind => one(kind),
    };
    kinds + &bounds.collect::<String>()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn text(value: &Value) -> String {
    escaped(value.as_str().unwrap_or_default())
}

/// Text whose words between backticks are code.
fn prose(value: &Value) -> String {
    let pieces = value.as_str().unwrap_or_default().split('`').enumerate();
    let drawn = pieces.map(|(at, piece)| {
        let piece = escaped(piece);
        if at % 2 == 1 { format!("<code>{piece}</code>") } else { piece }
    });
    drawn.collect()
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_document_says_is_text() {
        let document = json!({
            "info": {"title": "<script>", "description": "a `b<` \"c\""},
            "paths": {"/x\"y": {"get": {"summary": "<img>", "responses": {}}}},
        });
        let page = html(&document);
        assert!(!page.contains("<script>") && !page.contains("<img>") && !page.contains("x\"y"), "{page}");
        assert!(page.contains("<code>b&lt;</code>"));
    }
}
