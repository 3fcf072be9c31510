//! Shortens tool results for the model: start and end stay, a marker says what is missing and how to get it.
//!
//! Invariant: pure. A result that was shortened to some length always looks the same.

use std::collections::HashMap;

use serde_json::Value;

use super::Shortened;
use crate::ids::ToolCallId;
use crate::message::{Content, Message, ToolResult};
use crate::tool::ToolSpec;

/// Characters that a result keeps at least.
pub const LEAST: usize = 400;

/// How many characters the model gets of which result; what is not here it gets whole.
pub type Cuts = HashMap<ToolCallId, usize>;

/// Names of arguments by which tools give a part of something.
const PARTIAL: &[&str] = &[
    "start_line",
    "end_line",
    "line_start",
    "line_end",
    "lines",
    "offset",
    "limit",
    "page",
    "cursor",
    "range",
    "section",
    "heading",
    "start",
    "end",
    "head",
    "tail",
    "max_length",
    "length",
    "max_chars",
    "start_index",
    "from",
    "to",
];

/// Shortens what is to be shortened.
pub(crate) fn apply(messages: &mut [Message], cuts: &Cuts, tools: &[ToolSpec]) -> Vec<Shortened> {
    let mut out = Vec::new();
    for message in messages {
        let Message::Tool(result) = message else { continue };
        let Some(keep) = cuts.get(&result.call) else { continue };
        let from = length(result);
        if from <= *keep {
            continue;
        }
        let advice = advice(result, tools);
        cut(result, *keep, &advice);
        let to = length(result);
        out.push(Shortened {
            call: result.call.clone(),
            tool: result.tool.clone(),
            from: u32::try_from(from).unwrap_or(u32::MAX),
            to: u32::try_from(to).unwrap_or(u32::MAX),
        });
    }
    out
}

/// Characters of text in a result, the structured content included: models that get it get both.
pub(crate) fn length(result: &ToolResult) -> usize {
    let structured = result.structured.as_ref().map_or(0, |value| value.to_string().chars().count());
    texts(result).map(|text| text.chars().count()).sum::<usize>() + structured
}

fn texts(result: &ToolResult) -> impl Iterator<Item = &String> {
    result.content.iter().filter_map(|content| match content {
        Content::Text { text } => Some(text),
        Content::Resource(resource) => resource.text.as_ref(),
        Content::Image(_) | Content::Audio(_) => None,
    })
}

/// Keeps this many characters: two thirds from the start, one third from the end of all text.
fn cut(result: &mut ToolResult, keep: usize, advice: &str) {
    result.structured = None;
    let total: usize = texts(result).map(|text| text.chars().count()).sum();
    if total <= keep {
        return;
    }
    let (start, end) = (keep - keep / 3, total - keep / 3);
    let mut at = 0;
    let mut marked = false;
    for content in &mut result.content {
        let text = match content {
            Content::Text { text } => text,
            Content::Resource(resource) => match &mut resource.text {
                Some(text) => text,
                None => continue,
            },
            Content::Image(_) | Content::Audio(_) => continue,
        };
        let length = text.chars().count();
        let (first, last) = (start.saturating_sub(at).min(length), end.saturating_sub(at).min(length));
        at += length;
        if first >= last {
            continue;
        }
        let mut kept: String = text.chars().take(first).collect();
        if !std::mem::replace(&mut marked, true) {
            kept.push_str(&format!(
                "\n[… {} characters are left out here to fit. {advice} …]\n",
                end - start
            ));
        }
        kept.extend(text.chars().skip(last));
        *text = kept;
    }
}

/// How the model gets what is missing.
fn advice(result: &ToolResult, tools: &[ToolSpec]) -> String {
    let spec = tools.iter().find(|spec| spec.name == result.tool);
    let properties = spec.and_then(|spec| spec.input_schema.get("properties")).and_then(Value::as_object);
    let partial: Vec<&str> = properties
        .into_iter()
        .flat_map(|properties| properties.keys())
        .filter(|name| PARTIAL.contains(&name.to_lowercase().as_str()))
        .map(String::as_str)
        .take(3)
        .collect();
    match (spec, partial.as_slice()) {
        (Some(spec), []) => format!("Call `{}` for a smaller piece to see them", spec.name),
        (Some(spec), names) => format!("Call `{}` with `{}` to see them", spec.name, names.join("`, `")),
        (None, _) => "Ask for a smaller piece to see them".to_owned(),
    }
}
