//! Reads the text of a reply: what `lectern debug parse` shows.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::native::{NativeError, ParsedMessage, Templates};
use crate::prompted::{TextCall, parse_free_text};

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
    if !templates.knows_tools() {
        let (_, format) = templates.apply(&probe(&[]))?;
        return Ok(match format.parse(text, partial) {
            Ok(message) => with_free_calls(message, names(tools), partial),
            Err(_) => free(names(tools), text, partial),
        });
    }
    let (_, format) = templates.apply(&probe(tools))?;
    match format.parse(text, partial) {
        Ok(message) if message.tool_calls.is_empty() => Ok(rescued(message, names(tools), partial)),
        Ok(message) => Ok(native(message)),
        Err(error) => {
            let mut out = free(names(tools), text, partial);
            if !out.content.trim().is_empty() || out.tool_calls.is_empty() {
                out = ParsedText { content: text.to_owned(), error: Some(error.0), ..ParsedText::default() };
            }
            Ok(out)
        }
    }
}

fn probe(tools: &[Value]) -> Value {
    serde_json::json!({
        "messages": [{ "role": "user", "content": "Hello" }],
        "tools": tools,
        "parallel_tool_calls": true,
    })
}

fn names(tools: &[Value]) -> Vec<String> {
    let name = |tool: &Value| tool.pointer("/function/name")?.as_str().map(str::to_owned);
    tools.iter().filter_map(name).collect()
}

fn native(message: ParsedMessage) -> ParsedText {
    let calls = message.tool_calls.into_iter().map(|call| {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or(Value::String(call.arguments));
        ParsedToolCall { name: call.name, arguments }
    });
    ParsedText {
        content: message.content,
        reasoning: message.reasoning,
        tool_calls: calls.collect(),
        error: None,
    }
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

/// A model that knows a format may still write a call in another one: believed when nothing else is said.
fn rescued(message: ParsedMessage, tools: Vec<String>, partial: bool) -> ParsedText {
    let rescued = with_free_calls(message.clone(), tools, partial);
    let only_calls = !rescued.tool_calls.is_empty() && rescued.content.trim().is_empty();
    if only_calls { rescued } else { native(message) }
}

#[cfg(test)]
mod tests;
