//! From an MCP result to what the model and the user get to see.
//!
//! Invariant: a result is data. Whatever shape it has, it becomes content, never an error of the host; and what the
//! model gets of it fits the budget.

use lectern_core::{Blob, Content, ResourceRef, Source};
use serde_json::Value;

/// More places are no citation.
const MOST_SOURCES: usize = 200;
/// Bytes of structured content that are kept with the message; the trace has the rest.
const STRUCTURED_LIMIT: usize = 256 << 10;
/// Bytes of one message in the trace.
const WIRE_LIMIT: usize = 20 << 20;
/// Characters of a text, and items of a list, in a message over that limit.
const SHORTENED_TO: usize = 4_096;

/// A tool's result.
#[derive(Debug, PartialEq)]
pub(crate) struct CallResult {
    pub(crate) is_error: bool,
    pub(crate) content: Vec<Content>,
    pub(crate) structured: Option<Value>,
    pub(crate) sources: Vec<Source>,
    /// Characters that were cut off.
    pub(crate) cut: usize,
}

/// Maps the result of `tools/call`.
pub(crate) fn map(result: &Value, budget: usize) -> CallResult {
    if !result.is_object() {
        return senseless(result, budget);
    }
    let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    let items = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut content: Vec<Content> = items.iter().map(content_of).collect();
    if content.is_empty() {
        // Some tools give structured content alone; older ones (2024) a bare `toolResult`.
        let only = structured.or_else(|| result.get("toolResult"));
        let text = only.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let text = text
            .unwrap_or_else(|| if is_error { "the tool failed and gave no reason" } else { "" }.to_owned());
        content.push(Content::Text { text });
    }
    let cut = fit(&mut content, budget);
    CallResult {
        is_error,
        content,
        structured: structured.filter(|value| size(value) <= STRUCTURED_LIMIT).cloned(),
        sources: structured.map(sources).unwrap_or_default(),
        cut,
    }
}

/// An answer that is no result of a tool (2025-11-25, server/tools, calling tools: `result` is an object).
fn senseless(result: &Value, budget: usize) -> CallResult {
    let text = format!("the server answered with something that is no result of a tool: {result}");
    let mut content = vec![Content::Text { text }];
    let cut = fit(&mut content, budget);
    CallResult { is_error: true, content, structured: None, sources: Vec::new(), cut }
}

/// A message for the trace: as it is, unless it is very large; then its longest texts are shortened.
pub(crate) fn for_trace(message: &Value) -> Value {
    if size(message) <= WIRE_LIMIT { message.clone() } else { shortened(message, SHORTENED_TO) }
}

pub(crate) fn content_of(item: &Value) -> Content {
    let text = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    let blob = || Some(Blob { mime: text("mimeType")?, base64: text("data")? });
    let known = match item.get("type").and_then(Value::as_str) {
        Some("text") => text("text").map(|text| Content::Text { text }),
        Some("image") => blob().map(Content::Image),
        Some("audio") => blob().map(Content::Audio),
        Some("resource_link") => text("uri").map(|uri| {
            let name = text("title").or_else(|| text("name"));
            Content::Resource(ResourceRef { uri, name, mime: text("mimeType"), text: None })
        }),
        Some("resource") => item.get("resource").and_then(embedded),
        _ => None,
    };
    // What is not understood is shown as it came.
    known.unwrap_or_else(|| Content::Text { text: item.to_string() })
}

fn embedded(resource: &Value) -> Option<Content> {
    let text = |name: &str| resource.get(name).and_then(Value::as_str).map(str::to_owned);
    let (uri, mime) = (text("uri")?, text("mimeType"));
    match (&mime, text("blob")) {
        (Some(kind), Some(base64)) if kind.starts_with("image/") => {
            Some(Content::Image(Blob { mime: kind.clone(), base64 }))
        }
        (Some(kind), Some(base64)) if kind.starts_with("audio/") => {
            Some(Content::Audio(Blob { mime: kind.clone(), base64 }))
        }
        _ => Some(Content::Resource(ResourceRef {
            uri,
            name: text("title").or_else(|| text("name")),
            mime,
            text: text("text"),
        })),
    }
}

/// Cuts the texts so that they have `budget` characters together, each cut visible. Returns how many were cut off.
fn fit(content: &mut [Content], budget: usize) -> usize {
    let mut left = budget;
    let mut cut = 0;
    for item in content {
        let text = match item {
            Content::Text { text } => text,
            Content::Resource(ResourceRef { text: Some(text), .. }) => text,
            Content::Image(_) | Content::Audio(_) | Content::Resource(_) => continue,
        };
        // So few bytes can't be too many characters, and counting is quicker than walking.
        let over = if text.len() <= left { None } else { text.char_indices().nth(left) };
        match over {
            None => left -= text.chars().count(),
            Some((end, _)) => {
                let over = text[end..].chars().count();
                text.truncate(end);
                text.push_str(&format!("\n[… cut: {over} more characters]"));
                cut += over;
                left = 0;
            }
        }
    }
    cut
}

/// The places in notes that a structured result names: objects with a `path` and a line or a heading.
fn sources(structured: &Value) -> Vec<Source> {
    let mut found = Vec::new();
    collect_sources(structured, 0, &mut found);
    found
}

fn collect_sources(value: &Value, depth: usize, found: &mut Vec<Source>) {
    if depth > 4 || found.len() >= MOST_SOURCES {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_sources(item, depth + 1, found)),
        Value::Object(fields) => {
            if let Some(source) = source(value).filter(|source| !found.contains(source)) {
                found.push(source);
            }
            fields.values().for_each(|field| collect_sources(field, depth + 1, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A place names a line or a heading; a path alone is an entry of a list. The words may be written in either fashion.
fn source(value: &Value) -> Option<Source> {
    let text = |name: &str| value.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let line = |snake: &str, camel: &str| {
        let line = value.get(snake).or_else(|| value.get(camel))?.as_u64()?;
        u32::try_from(line).ok().filter(|line| *line > 0)
    };
    let trail = || {
        let headings = value.get("heading")?.as_array()?.iter().filter_map(Value::as_str);
        let joined = headings.collect::<Vec<_>>().join(" › ");
        (!joined.is_empty()).then_some(joined)
    };
    let source = Source {
        path: text("path")?,
        title: text("title"),
        heading: text("heading").or_else(trail),
        start_line: line("start_line", "startLine"),
        end_line: line("end_line", "endLine"),
    };
    (source.heading.is_some() || source.start_line.is_some()).then_some(source)
}

/// Bytes of a value as JSON, near enough and without writing it.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| name.len() + size(field) + 4).sum::<usize>() + 2
        }
    }
}

fn shortened(value: &Value, limit: usize) -> Value {
    match value {
        Value::String(text) => match text.char_indices().nth(limit) {
            Some((end, _)) => format!("{}[… cut: {} more bytes]", &text[..end], text.len() - end).into(),
            None => value.clone(),
        },
        Value::Array(items) => {
            let mut kept: Vec<Value> = items.iter().take(limit).map(|item| shortened(item, limit)).collect();
            if items.len() > limit {
                kept.push(format!("[… cut: {} more items]", items.len() - limit).into());
            }
            kept.into()
        }
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, field)| (name.clone(), shortened(field, limit))).collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mapped(result: Value, budget: usize) -> CallResult {
        map(&result, budget)
    }

    fn text(text: &str) -> Content {
        Content::Text { text: text.into() }
    }

    #[test]
    fn every_kind_of_content_is_kept() {
        let result = mapped(
            json!({"isError": true, "content": [
                {"type": "text", "text": "hello"},
                {"type": "image", "data": "aW1n", "mimeType": "image/png"},
                {"type": "audio", "data": "c25k", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "note:///a.md", "name": "a", "mimeType": "text/markdown"},
                {"type": "resource", "resource": {"uri": "note:///b.md", "text": "B"}},
                {"type": "resource", "resource": {"uri": "x:///c.png", "blob": "aW1n", "mimeType": "image/png"}},
                {"type": "hologram", "x": 1},
                {"type": "text"},
            ]}),
            1_000,
        );
        let blob = |mime: &str, base64: &str| Blob { mime: mime.into(), base64: base64.into() };
        assert!(result.is_error);
        assert_eq!(
            result.content,
            [
                text("hello"),
                Content::Image(blob("image/png", "aW1n")),
                Content::Audio(blob("audio/wav", "c25k")),
                Content::Resource(ResourceRef {
                    uri: "note:///a.md".into(),
                    name: Some("a".into()),
                    mime: Some("text/markdown".into()),
                    text: None
                }),
                Content::Resource(ResourceRef {
                    uri: "note:///b.md".into(),
                    name: None,
                    mime: None,
                    text: Some("B".into())
                }),
                Content::Image(blob("image/png", "aW1n")),
                text(r#"{"type":"hologram","x":1}"#),
                text(r#"{"type":"text"}"#),
            ]
        );
    }

    #[test]
    fn the_budget_holds_for_all_texts_together_and_counts_characters() {
        let result = mapped(
            json!({"content": [{"type": "text", "text": "äöü"}, {"type": "text", "text": "日本語です"}, {"type": "text", "text": "x"}]}),
            5,
        );
        assert_eq!(
            result.content,
            [text("äöü"), text("日本\n[… cut: 3 more characters]"), text("\n[… cut: 1 more characters]")]
        );
        assert_eq!(result.cut, 4);
    }

    #[test]
    fn structured_content_alone_is_also_text() {
        let result = mapped(json!({"structuredContent": {"sum": 5}}), 100);
        assert_eq!(
            (result.content, result.structured),
            (vec![text(r#"{"sum":5}"#)], Some(json!({"sum": 5})))
        );
        assert_eq!(mapped(json!({"content": [], "isError": true}), 100).content.len(), 1);
    }

    #[test]
    fn an_answer_that_is_no_result_is_a_failure_that_shows_it() {
        for answer in [json!(null), json!("hello"), json!([1])] {
            let result = mapped(answer.clone(), 1000);
            assert!(result.is_error);
            assert!(
                matches!(&result.content[..], [Content::Text { text }] if text.ends_with(&answer.to_string()))
            );
        }
        let long = mapped(json!("x".repeat(1000)), 200);
        assert!(long.cut > 0);
    }

    #[test]
    fn places_in_notes_become_sources() {
        let hit = json!({"path": "Travel/Lyon.md", "title": "Lyon", "heading": "Food", "start_line": 3, "end_line": 9});
        let other =
            json!({"path": "Travel/Lyon.md", "title": "Lyon", "heading": ["Trips", "Food"], "startLine": 12});
        let listed = json!({"path": "Home.md", "title": "Home", "heading": []});
        let result =
            mapped(json!({"structuredContent": {"query": "x", "hits": [hit, hit, other, listed]}}), 100);
        let source = Source {
            path: "Travel/Lyon.md".into(),
            title: Some("Lyon".into()),
            heading: Some("Food".into()),
            start_line: Some(3),
            end_line: Some(9),
        };
        let other = Source {
            heading: Some("Trips › Food".into()),
            start_line: Some(12),
            end_line: None,
            ..source.clone()
        };
        assert_eq!(result.sources, [source, other]);
    }

    #[test]
    fn a_huge_message_is_shortened_for_the_trace_only() {
        let huge = json!({"result": {"content": [{"text": "x".repeat(21 << 20)}]}});
        assert!(size(&for_trace(&huge)) < 10_000);
        let large = json!({"text": "x".repeat(100_000)});
        assert_eq!(for_trace(&large), large);
    }
}
