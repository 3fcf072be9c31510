//! From a request of the core to the messages and tools that a chat template takes (OpenAI's shape).
//!
//! Invariant: pure and deterministic; the same history gives the same messages, so that caches stay good.

use lectern_core::message::text_of;
use lectern_core::{
    AssistantMessage, ChatRequest, Message, Part, ToolCall, ToolOutcome, ToolPlacement, ToolResult, ToolSpec,
    UserMessage,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::format::CallForm;
use crate::images::in_text;
use crate::names::Names;
use crate::prompted::{instructions, written_calls};

/// How tools are brought to the model in this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Through the template.
    Native,
    /// In the instructions, calls written so.
    Prompted(CallForm),
}

/// Deeper parts of a schema are left out: neither the worker nor any reader of a prompt takes more.
const DEEPEST_SCHEMA: usize = 100;

/// A schema as the worker can read it: what lies deeper than that may be anything.
pub(crate) fn readable(mut schema: Value) -> Value {
    cut_off(&mut schema, DEEPEST_SCHEMA);
    schema
}

fn cut_off(value: &mut Value, left: usize) {
    match value {
        Value::Array(_) | Value::Object(_) if left == 0 => *value = json!({}),
        Value::Array(items) => items.iter_mut().for_each(|item| cut_off(item, left - 1)),
        Value::Object(fields) => fields.values_mut().for_each(|field| cut_off(field, left - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Tools in OpenAI's shape.
pub(crate) fn tools_of(specs: &[ToolSpec], names: &Names) -> Vec<Value> {
    let one = |spec: &ToolSpec| {
        json!({
            "type": "function",
            "function": {
                "name": names.alias(spec.name.as_str()),
                "description": spec.description,
                "parameters": readable(names.schema(spec.name.as_str(), &spec.input_schema)),
            },
        })
    };
    specs.iter().map(one).collect()
}

/// The messages of a request.
///
/// What changes from request to request is written into the last user message: its question stands first, so that
/// the evaluated history stays good up to there. In the next turn that message has become history and is written
/// without it; what follows it is then evaluated once more, and nothing before it.
pub(crate) fn messages_of(request: &ChatRequest, form: Form, sees: bool, names: &Names) -> Vec<Value> {
    let mut out = Vec::new();
    let described = described_tools(request, form, names);
    let (before, last) = match request.tool_placement {
        ToolPlacement::System => (described, None),
        ToolPlacement::LastUser => (None, described),
    };
    let system: Vec<&str> = request.system.iter().chain(&before).map(String::as_str).collect();
    if !system.concat().is_empty() {
        out.push(json!({ "role": "system", "content": system.join("\n\n") }));
    }
    let mut ids = CallIds::default();
    let last_user = request.messages.iter().rposition(|message| matches!(message, Message::User(_)));
    let volatile: Vec<&String> = last.iter().chain(&request.tail).filter(|text| !text.is_empty()).collect();
    for (place, message) in request.messages.iter().enumerate() {
        let value = match (message, form) {
            (Message::User(user), _) => {
                let mut text = user_text(user, sees);
                for more in volatile.iter().filter(|_| Some(place) == last_user) {
                    text.push_str("\n\n");
                    text.push_str(more);
                }
                json!({ "role": "user", "content": text })
            }
            (Message::Assistant(assistant), Form::Native) => native_reply(assistant, &mut ids, names),
            (Message::Assistant(assistant), Form::Prompted(form)) => prompted_reply(assistant, form, names),
            (Message::Tool(result), Form::Native) => native_result(result, &mut ids, names),
            (Message::Tool(result), Form::Prompted(_)) => prompted_result(result),
        };
        push(&mut out, value, form);
    }
    out
}

/// The tools in our words, for a model whose template has none.
fn described_tools(request: &ChatRequest, form: Form, names: &Names) -> Option<String> {
    match form {
        Form::Prompted(form) if !request.tools.is_empty() => {
            Some(instructions(&tools_of(&request.tools, names), form))
        }
        Form::Prompted(_) | Form::Native => None,
    }
}

/// Templates without tools want users and assistants to take turns, so results and questions are joined.
fn push(out: &mut Vec<Value>, value: Value, form: Form) {
    let both_users = |last: &Value| last["role"] == "user" && value["role"] == "user";
    match out.last_mut() {
        Some(last) if form != Form::Native && both_users(last) => {
            let joined = format!("{}\n{}", text_at(last), text_at(&value));
            last["content"] = Value::String(joined);
        }
        Some(_) | None => out.push(value),
    }
}

fn text_at(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

fn user_text(user: &UserMessage, sees: bool) -> String {
    let mut out = String::new();
    for part in &user.parts {
        match part {
            Part::Text { text } => out.push_str(text),
            Part::Resource(resource) => {
                let text = resource.text.as_deref().unwrap_or("(not embedded)");
                out.push_str(&format!("\n\n[{}]\n{text}\n\n", resource.uri));
            }
            Part::Image(blob) => out.push_str(&in_text(blob, sees)),
            Part::Thinking(_) | Part::ToolCall(_) => {}
        }
    }
    let text = out.trim();
    match &user.context {
        Some(context) if !context.trim().is_empty() => format!("{text}\n\n({})", context.trim()),
        Some(_) | None => text.to_owned(),
    }
}

fn native_reply(reply: &AssistantMessage, ids: &mut CallIds, names: &Names) -> Value {
    let mut out = json!({ "role": "assistant", "content": reply.text() });
    let thinking = thinking_of(reply);
    if !thinking.is_empty() {
        out["reasoning_content"] = Value::String(thinking);
    }
    if reply.has_tool_calls() {
        let one = |call: &ToolCall| {
            let arguments = names.written(call.tool.as_str(), &call.arguments);
            json!({
                "id": ids.short(call.id.as_str()),
                "type": "function",
                "function": { "name": names.alias(call.tool.as_str()), "arguments": arguments_text(&arguments) },
            })
        };
        out["tool_calls"] = reply.tool_calls().map(one).collect();
    }
    with_raw(out, reply)
}

/// Malformed arguments are shown as an empty object: templates parse them. The result says what was wrong.
fn arguments_text(arguments: &Map<String, Value>) -> String {
    Value::Object(arguments.clone()).to_string()
}

fn prompted_reply(reply: &AssistantMessage, form: CallForm, names: &Names) -> Value {
    let mut text = reply.text();
    let written = |call: &ToolCall| {
        let name = call.tool.as_str();
        (names.alias(name).to_owned(), names.written(name, &call.arguments))
    };
    let calls: Vec<_> = reply.tool_calls().map(written).collect();
    if !calls.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        let calls: Vec<_> = calls.iter().map(|(name, arguments)| (name.as_str(), arguments)).collect();
        text.push_str(&written_calls(&calls, form));
    }
    with_raw(json!({ "role": "assistant", "content": text }), reply)
}

fn native_result(result: &ToolResult, ids: &mut CallIds, names: &Names) -> Value {
    json!({
        "role": "tool",
        "tool_call_id": ids.short(result.call.as_str()),
        "name": names.alias(result.tool.as_str()),
        "content": result_text(result),
    })
}

fn prompted_result(result: &ToolResult) -> Value {
    let text = format!("<tool_response>\n{}\n</tool_response>", result_text(result));
    json!({ "role": "user", "content": text })
}

fn result_text(result: &ToolResult) -> String {
    let text = result.text();
    if !text.is_empty() {
        return text;
    }
    match result.outcome {
        ToolOutcome::Succeeded => "(the tool gave no text)",
        ToolOutcome::Failed => "The tool failed.",
        ToolOutcome::Denied => "The user did not allow this call.",
        ToolOutcome::Cancelled => "The user stopped this call.",
    }
    .to_owned()
}

fn thinking_of(reply: &AssistantMessage) -> String {
    let thought = |part: &Part| match part {
        Part::Thinking(thinking) => Some(thinking.text.clone()),
        Part::Text { .. } | Part::ToolCall(_) | Part::Image(_) | Part::Resource(_) => None,
    };
    reply.parts.iter().filter_map(thought).collect()
}

/// Numbers calls through a history. Some templates want ids of nine letters and digits, no more, no less.
#[derive(Default)]
struct CallIds(Vec<String>);

impl CallIds {
    fn short(&mut self, id: &str) -> String {
        let place = self.0.iter().position(|known| known == id).unwrap_or_else(|| {
            self.0.push(id.to_owned());
            self.0.len() - 1
        });
        format!("call{place:05}")
    }
}

/// What is stored with a reply, so that the cache can be continued with the tokens it was generated as.
pub(crate) fn provider_data(raw: &str, reply: &Spoken, notes: &[String]) -> Value {
    let mut data = json!({ "raw": raw, "of": reply.digest() });
    if !notes.is_empty() {
        data["notes"] = json!(notes);
    }
    json!({ "lectern_local": data })
}

/// The raw text goes along only while the message still says what was generated.
fn with_raw(mut value: Value, reply: &AssistantMessage) -> Value {
    let data = reply.provider_data.as_ref().and_then(|data| data.get("lectern_local"));
    let raw =
        data.filter(|data| data["of"] == Spoken::of(reply).digest()).and_then(|data| data["raw"].as_str());
    if let Some(raw) = raw {
        value["raw"] = Value::String(raw.to_owned());
    }
    value
}

/// What a reply says, however it was cut into parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spoken {
    pub(crate) text: String,
    pub(crate) thinking: String,
    /// Names, and arguments as JSON text.
    pub(crate) calls: Vec<(String, String)>,
}

impl Spoken {
    fn of(reply: &AssistantMessage) -> Self {
        let written = |call: &ToolCall| {
            (call.tool.0.clone(), call.malformed.clone().unwrap_or_else(|| arguments_text(&call.arguments)))
        };
        Self {
            text: text_of(&reply.parts),
            thinking: thinking_of(reply),
            calls: reply.tool_calls().map(written).collect(),
        }
    }

    /// The same for every way of writing the same arguments.
    fn digest(&self) -> String {
        let calls: Vec<Value> = self
            .calls
            .iter()
            .map(|(name, arguments)| {
                // Nothing, and null, are no arguments.
                let parsed = match serde_json::from_str(arguments) {
                    Ok(Value::Null) => json!({}),
                    Ok(parsed) => parsed,
                    Err(_) if arguments.trim().is_empty() => json!({}),
                    Err(_) => Value::String(arguments.clone()),
                };
                json!([name, parsed])
            })
            .collect();
        let text = json!([self.text, self.thinking, calls]).to_string();
        Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests;
