//! Reads the text of a reply: what `lectern debug parse` shows.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::grammar::{TAGGED_ARGUMENT, with_plain_types};
use crate::native::{Applied, Format, NativeError, ParsedCall, ParsedMessage, Templates};
use crate::prompted::{TextCall, before_tag, parse_free_text};
use crate::worker::schemas::{Detail, with_detail};

/// A text as it was understood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ParsedText {
    /// What is said.
    pub content: String,
    /// What was thought.
    pub reasoning: String,
    /// The calls, in order.
    pub tool_calls: Vec<ParsedToolCall>,
    /// Why the template's own parser could not read it; the text is then in `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A call in a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParsedToolCall {
    /// The tool's name, as it was written.
    pub name: String,
    /// The arguments; text, when they are not (yet) a JSON object.
    pub arguments: Value,
}

/// Why a text could not be parsed at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub(crate) String);

/// Parses a text as the reply of a model with this template, or with none, that was offered these tools (in
/// OpenAI's shape). With `partial` the text is the beginning of a reply.
pub fn parse_text(
    template: Option<&str>,
    tools: &[Value],
    text: &str,
    partial: bool,
) -> Result<ParsedText, ParseError> {
    let failed = |error: NativeError| ParseError(error.0);
    let Some(source) = template else { return Ok(free(names(tools), text, partial)) };
    let templates = Templates::of_text(source, "", "").map_err(failed)?;
    parse_with(&templates, tools, text, partial).map_err(failed)
}

/// The same with templates at hand.
pub(crate) fn parse_with(
    templates: &Templates,
    tools: &[Value],
    text: &str,
    partial: bool,
) -> Result<ParsedText, NativeError> {
    let (applied, format) = format_with(templates, tools)?;
    Ok(read_with(templates, (&applied, &format), tools, text, partial))
}

/// The format in which a model writes that is told of these tools, as detailed as its template takes them.
pub(crate) fn format_with(templates: &Templates, tools: &[Value]) -> Result<(Applied, Format), NativeError> {
    if !templates.knows_tools() {
        return templates.apply(&probe(&[]));
    }
    let mut refused = None;
    for detail in Detail::ALL {
        match templates.apply(&probe(&with_detail(tools, detail))) {
            // Between tags the parser has to know what is text.
            Ok((applied, _)) if applied.grammar.contains(TAGGED_ARGUMENT) => {
                return templates.apply(&probe(&with_plain_types(tools, false)));
            }
            Ok(applied) => return Ok(applied),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| NativeError("the template refuses the tools".to_owned())))
}

/// The same in a format that is at hand.
pub(crate) fn read_with(
    templates: &Templates,
    format: (&Applied, &Format),
    tools: &[Value],
    text: &str,
    partial: bool,
) -> ParsedText {
    let mut read = read_any(templates, format, tools, text, partial);
    let (start, ends) = (format.0.thinking_start_tag.trim(), &format.0.thinking_end_tags);
    if partial && read.reasoning.is_empty() && begins_thinking(&read.content, start) {
        read.content.clear();
    } else if read.reasoning.is_empty()
        && let Some((thought, said)) = split_thought(&read.content, start, ends, None)
    {
        (read.reasoning, read.content) = (thought, said.to_owned());
    }
    if partial {
        let certain = before_tag(read.content.trim_end()).trim_end().len();
        read.content.truncate(certain);
    }
    read
}

fn read_any(
    templates: &Templates,
    (applied, format): (&Applied, &Format),
    tools: &[Value],
    text: &str,
    partial: bool,
) -> ParsedText {
    let mut parsed = format.parse(text, partial);
    if let (Ok(message), true) = (&mut parsed, partial) {
        // A call without an argument may still turn out to be none.
        message.tool_calls.retain(ParsedCall::has_begun);
    }
    match parsed {
        Ok(message) if !templates.knows_tools() => with_free_calls(message, names(tools), partial),
        Ok(message) if message.tool_calls.is_empty() => rescued(message, text, names(tools), partial),
        Ok(message) => native(message),
        Err(_) if !templates.knows_tools() => free(names(tools), text, partial),
        // What goes wrong later than here does not take back what was said.
        Err(_) if partial => {
            let (reasoning, said) = thought(applied, format, text);
            ParsedText { reasoning, tool_calls: Vec::new(), ..free(names(tools), said, partial) }
        }
        Err(error) => {
            let (reasoning, said) = thought(applied, format, text);
            match free(names(tools), said, partial) {
                read if read.tool_calls.is_empty() => {
                    let content = said.to_owned();
                    ParsedText { content, reasoning, error: Some(error.0), ..ParsedText::default() }
                }
                read => ParsedText { reasoning, ..read },
            }
        }
    }
}

/// What was thought in a text that cannot be read as a whole, and the rest of it.
fn thought<'text>(applied: &Applied, format: &Format, text: &'text str) -> (String, &'text str) {
    split_thought(text, applied.thinking_start_tag.trim(), &applied.thinking_end_tags, Some(format))
        .unwrap_or((String::new(), text))
}

/// Whether thinking stands at the beginning of a text, or may come to stand there.
pub(crate) fn begins_thinking(text: &str, start: &str) -> bool {
    let text = text.trim_start();
    !start.is_empty() && (text.starts_with(start) || start.starts_with(text))
}

/// The thinking that a text begins with, as the template's parser reads it where it can, and the rest.
pub(crate) fn split_thought<'text>(
    text: &'text str,
    start: &str,
    ends: &[String],
    format: Option<&Format>,
) -> Option<(String, &'text str)> {
    let ends = ends.iter().map(|end| end.trim()).filter(|end| !end.is_empty());
    let (at, end) = ends.filter_map(|end| text.find(end).map(|at| (at, end))).min()?;
    let (head, said) = text.split_at(at + end.len());
    if let Some(Ok(message)) = format.map(|format| format.parse(head, true))
        && !message.reasoning.is_empty()
    {
        return Some((message.reasoning, said));
    }
    let inner = text[..at].trim_start().strip_prefix(start).filter(|_| !start.is_empty())?;
    Some((inner.trim().to_owned(), said))
}

fn probe(tools: &[Value]) -> Value {
    serde_json::json!({
        "messages": [{ "role": "user", "content": "Hello" }],
        "tools": tools,
        "parallel_tool_calls": true,
    })
}

pub(crate) fn names(tools: &[Value]) -> Vec<String> {
    let name = |tool: &Value| tool.pointer("/function/name")?.as_str().map(str::to_owned);
    tools.iter().filter_map(name).collect()
}

fn native(message: ParsedMessage) -> ParsedText {
    // A format that needs no tag, and a model that wrote one all the same.
    let said = if message.tool_calls.is_empty() { &message.content } else { before_tag(&message.content) };
    ParsedText {
        content: said.to_owned(),
        reasoning: message.reasoning,
        tool_calls: message.tool_calls.into_iter().map(call).collect(),
        error: None,
    }
}

fn call(call: ParsedCall) -> ParsedToolCall {
    let arguments = serde_json::from_str(&call.arguments).unwrap_or(Value::String(call.arguments));
    ParsedToolCall { name: call.name, arguments }
}

fn from_free(call: TextCall) -> ParsedToolCall {
    ParsedToolCall { name: call.name, arguments: Value::Object(call.arguments) }
}

fn free(tools: Vec<String>, text: &str, partial: bool) -> ParsedText {
    let (content, calls) = parse_free_text(text, tools, partial);
    ParsedText { content, tool_calls: calls.into_iter().map(from_free).collect(), ..ParsedText::default() }
}

fn with_free_calls(message: ParsedMessage, tools: Vec<String>, partial: bool) -> ParsedText {
    ParsedText { reasoning: message.reasoning, ..free(tools, &message.content, partial) }
}

/// A model that knows a format may still write a call in another one: believed when nothing else is said. While more
/// may come that cannot be known, so nothing is said at all.
fn rescued(message: ParsedMessage, text: &str, tools: Vec<String>, partial: bool) -> ParsedText {
    if partial && message.content.is_empty() && message.reasoning.is_empty() {
        // The parser takes the end for the beginning of a call; words that stand before it were said. A single one may
        // be how thinking begins.
        let said = ParsedText { tool_calls: Vec::new(), ..free(tools, text, partial) };
        return if said.content.trim().contains(char::is_whitespace) { said } else { ParsedText::default() };
    }
    let rescued = with_free_calls(message.clone(), tools, partial);
    match (rescued.content.trim().is_empty(), partial) {
        (true, true) => ParsedText { reasoning: rescued.reasoning, ..ParsedText::default() },
        (true, false) if !rescued.tool_calls.is_empty() => rescued,
        (true | false, _) => native(message),
    }
}

#[cfg(test)]
mod tests;
