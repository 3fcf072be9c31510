//! Finds the next place in a text where calls may stand, and reads them there.

use super::TextCall;
use super::json;
use super::pythonic::{self, NoCall};

/// Tags around calls. After an opening tag every name is a call's; elsewhere only that of an offered tool.
const TAGS: [(&str, &str); 5] = [
    ("<tool_call>", "</tool_call>"),
    ("<|tool_call_start|>", "<|tool_call_end|>"),
    ("<function_call>", "</function_call>"),
    ("<|python_tag|>", ""),
    ("[TOOL_CALLS]", ""),
];
const FENCE: &str = "```";

/// What stands at the beginning of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
    /// Calls, of this length.
    Calls(Vec<TextCall>, usize),
    /// Calls perhaps, when more text comes.
    Incomplete,
    /// Text.
    Text,
}

/// Who may be called.
#[derive(Clone, Debug)]
pub(super) struct Known(pub(super) Vec<String>);

impl Known {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|known| known == name)
    }

    fn has_all(&self, calls: &[TextCall]) -> bool {
        !calls.is_empty() && calls.iter().all(|call| self.has(&call.name))
    }

    fn some_begins_with(&self, start: &str) -> bool {
        self.0.iter().any(|known| known.starts_with(start))
    }
}

/// A text without the tag of a call, or the beginning of one, at its end.
pub(crate) fn before_tag(text: &str) -> &str {
    let end = text.trim_end();
    let whole = TAGS.iter().find_map(|(open, _)| end.strip_suffix(open));
    let begun = || TAGS.iter().filter_map(|(open, _)| unfinished(text, open)).min().map(|at| &text[..at]);
    whole.or_else(begun).unwrap_or(text)
}

/// The first place where calls may stand, or a tag may have begun.
pub(super) fn next_place(text: &str, line_start: bool) -> Option<usize> {
    let tag = TAGS.iter().filter_map(|(open, _)| text.find(open)).min();
    let unfinished = TAGS.iter().filter_map(|(open, _)| unfinished(text, open)).min();
    let mut at_start = line_start;
    let mut bare = None;
    for (at, letter) in text.char_indices() {
        if at_start && (letter == '[' || letter == '{' || letter == '`') {
            bare = Some(at);
            break;
        }
        at_start = letter == '\n' || (at_start && letter.is_whitespace());
    }
    [tag, unfinished, bare].into_iter().flatten().min()
}

/// Where a tag begins that the end of the text cuts off.
fn unfinished(text: &str, tag: &str) -> Option<usize> {
    (1..tag.len()).rev().find(|len| text.ends_with(&tag[..*len])).map(|len| text.len() - len)
}

/// What stands at a place.
pub(super) fn at_place(text: &str, known: &Known) -> Found {
    for (open, close) in TAGS {
        if let Some(inside) = text.strip_prefix(open) {
            return after(open.len(), tagged(inside, close));
        }
        if open.starts_with(text) {
            return Found::Incomplete;
        }
    }
    if text.starts_with('`') {
        return fenced(text, known);
    }
    match bare(text, known) {
        Found::Calls(calls, _) if !known.has_all(&calls) => Found::Text,
        found => found,
    }
}

/// A whole text that is nothing but calls of known tools; `f(a=1)` without brackets too.
pub(super) fn whole(text: &str, known: &Known) -> Option<Vec<TextCall>> {
    let text = text.trim();
    match pythonic::single_call(text) {
        Ok((call, len)) if len == text.len() && known.has(&call.name) => Some(vec![call]),
        Ok(_) | Err(_) => None,
    }
}

fn after(before: usize, found: Found) -> Found {
    match found {
        Found::Calls(calls, len) => Found::Calls(calls, before + len),
        Found::Incomplete | Found::Text => found,
    }
}

fn tagged(inside: &str, close: &str) -> Found {
    let start = inside.len() - inside.trim_start().len();
    let found = match inside[start..].chars().next() {
        None => Found::Incomplete,
        Some('{') => from_json(&inside[start..]),
        Some('[') => from_list(&inside[start..]),
        Some(_) => single(&inside[start..]),
    };
    let Found::Calls(calls, len) = found else { return found };
    let end = start + len;
    let rest = inside[end..].trim_start();
    let closed_at = inside.len() - rest.len();
    if close.is_empty() {
        return Found::Calls(calls, end);
    }
    if rest.starts_with(close) {
        return Found::Calls(calls, closed_at + close.len());
    }
    if close.starts_with(rest) {
        return Found::Incomplete;
    }
    Found::Calls(calls, end)
}

/// Calls that are whole at the end of a text although their closing tag is missing.
pub(super) fn unclosed(text: &str) -> Option<Vec<TextCall>> {
    let (open, close) = TAGS.iter().find(|(open, _)| text.starts_with(open))?;
    let inside = text[open.len()..].trim();
    // Part of the closing tag may be there.
    let cut = unfinished(inside, close).unwrap_or(inside.len());
    match tagged(inside[..cut].trim_end(), "") {
        Found::Calls(calls, len) if len == inside[..cut].trim_end().len() => Some(calls),
        Found::Calls(..) | Found::Incomplete | Found::Text => None,
    }
}

fn bare(text: &str, known: &Known) -> Found {
    if text.starts_with('{') {
        return if json::may_become_call(text) { from_json(text) } else { Found::Text };
    }
    let inside = text[1..].trim_start();
    let name_end = inside.find(|letter: char| !letter.is_alphanumeric() && !"_.-/".contains(letter));
    match name_end {
        None if known.some_begins_with(inside) => Found::Incomplete,
        None => Found::Text,
        Some(0) if inside.starts_with('{') && json::may_become_call(text) => from_json(text),
        Some(end) if known.has(&inside[..end]) => from_list(text),
        Some(_) => Found::Text,
    }
}

fn fenced(text: &str, known: &Known) -> Found {
    if FENCE.starts_with(text) {
        return Found::Incomplete;
    }
    let Some(inside) = text.strip_prefix(FENCE) else { return Found::Text };
    let Some((language, body)) = inside.split_once('\n') else {
        let may_be =
            inside.len() < 20 && inside.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        return if may_be { Found::Incomplete } else { Found::Text };
    };
    if !matches!(language.trim(), "" | "json" | "tool_call" | "tool_calls" | "tool_code" | "python") {
        return Found::Text;
    }
    let Some(end) = body.find(FENCE) else {
        return if may_be_calls(body, known) { Found::Incomplete } else { Found::Text };
    };
    let length = text.len() - body.len() + end + FENCE.len();
    let body = body[..end].trim();
    let found = match body.chars().next() {
        Some('{' | '[') => bare(body, known),
        Some(_) => single(body),
        None => Found::Text,
    };
    match found {
        Found::Calls(calls, len) if len == body.len() && known.has_all(&calls) => Found::Calls(calls, length),
        Found::Calls(..) | Found::Incomplete | Found::Text => Found::Text,
    }
}

/// Whether the unfinished inside of a fence can still be calls.
fn may_be_calls(body: &str, known: &Known) -> bool {
    let body = body.trim_start();
    match body.chars().next() {
        None => true,
        Some('{' | '[') => bare(body, known) != Found::Text,
        Some(_) => {
            let name = body.split('(').next().unwrap_or_default();
            if name.len() < body.len() { known.has(name) } else { known.some_begins_with(name) }
        }
    }
}

fn from_json(text: &str) -> Found {
    match json::value(text) {
        Ok((value, len)) => json::calls(value).map_or(Found::Text, |calls| Found::Calls(calls, len)),
        Err(NoCall::Incomplete) => Found::Incomplete,
        Err(NoCall::Other) => Found::Text,
    }
}

fn from_list(text: &str) -> Found {
    if text[1..].trim_start().starts_with('{') {
        return from_json(text);
    }
    match pythonic::call_list(text) {
        Ok((calls, len)) => Found::Calls(calls, len),
        Err(NoCall::Incomplete) => Found::Incomplete,
        Err(NoCall::Other) => Found::Text,
    }
}

fn single(text: &str) -> Found {
    match pythonic::single_call(text) {
        Ok((call, len)) => Found::Calls(vec![call], len),
        Err(NoCall::Incomplete) => Found::Incomplete,
        Err(NoCall::Other) => Found::Text,
    }
}
