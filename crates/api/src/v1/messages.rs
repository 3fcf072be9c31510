//! The messages of a request as the core knows them.
//!
//! Invariant: each result follows its call, as every provider wants; a history that is not so is refused by the place
//! where it breaks, never mended in silence.

use std::collections::HashMap;

use lectern_core::{
    AssistantMessage, Content, JsonObject, Message, Part, ToolCall, ToolCallId, ToolName, ToolOutcome,
    ToolResult, UserMessage, history as rules,
};
use serde_json::Value;

use super::parts::{text_content, user_content};
use super::tools::check_name;
use crate::error::ApiError;
use crate::fields::{Fields, missing, not_one_of};

/// Messages of a request at most.
pub const MOST_MESSAGES: usize = 2_048;

/// What was said so far.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// All instructions, in their order.
    pub system: Option<String>,
    /// The rest, oldest first, valid for every provider.
    pub messages: Vec<Message>,
    /// The index of the message in the request that each image came with.
    pub images: Vec<usize>,
}

/// `messages`.
pub fn history(items: Vec<Value>) -> Result<History, ApiError> {
    if items.is_empty() {
        let message = "`messages` has to have a message";
        return Err(ApiError::invalid("empty_array", "messages", message));
    }
    if items.len() > MOST_MESSAGES {
        let message = format!("`messages` can have {MOST_MESSAGES} messages, and has {}", items.len());
        return Err(ApiError::invalid("array_above_max_length", "messages", message));
    }
    let mut reader = Reader::default();
    for (index, item) in items.into_iter().enumerate() {
        reader.take(index, Fields::of(format!("messages[{index}]"), item)?)?;
    }
    reader.end()
}

#[derive(Default)]
struct Reader {
    system: Vec<String>,
    messages: Vec<Message>,
    images: Vec<usize>,
    /// The calls of the last assistant message that have no result yet, in their order.
    open: Vec<(ToolCallId, ToolName)>,
    /// Where that message stands.
    caller: usize,
}

/// Fields of earlier answers that clients send back, and others that say nothing to the model.
const PASSED_OVER: [&str; 8] = [
    "annotations",
    "audio",
    "cache_control",
    "id",
    "name",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
];

impl Reader {
    fn take(&mut self, index: usize, mut fields: Fields) -> Result<(), ApiError> {
        let role = fields.required_string("role")?;
        if role != "tool" {
            self.all_answered()?;
        }
        match role.as_str() {
            "system" | "developer" => {
                let content = required_content(&mut fields)?;
                self.system.push(text_content(&fields.at("content"), content)?);
            }
            "user" => self.user(index, &mut fields)?,
            "assistant" => self.assistant(index, &mut fields)?,
            "tool" => self.result(&mut fields)?,
            "function" => {
                let message = "messages of the role `function` are not served; use `tool`";
                return Err(ApiError::unsupported(fields.at("role"), message));
            }
            other => {
                let roles = ["system", "developer", "user", "assistant", "tool"];
                return Err(not_one_of(fields.at("role"), other, &roles));
            }
        }
        fields.ignore(&PASSED_OVER);
        fields.end()
    }

    fn user(&mut self, index: usize, fields: &mut Fields) -> Result<(), ApiError> {
        let content = required_content(fields)?;
        let parts = user_content(&fields.at("content"), content)?;
        if parts.iter().any(|part| matches!(part, Part::Image(_))) {
            self.images.push(index);
        }
        self.messages.push(Message::User(UserMessage { parts, context: None }));
        Ok(())
    }

    fn assistant(&mut self, index: usize, fields: &mut Fields) -> Result<(), ApiError> {
        let mut parts = Vec::new();
        let at = fields.at("content");
        if let Some(content) = fields.value("content") {
            parts.push(Part::Text { text: text_content(&at, content)? });
        }
        if let Some(text) = fields.string("refusal")? {
            parts.push(Part::Text { text });
        }
        if fields.value("function_call").is_some() {
            let message = "`function_call` is not served; use `tool_calls`";
            return Err(ApiError::unsupported(fields.at("function_call"), message));
        }
        let at = fields.at("tool_calls");
        for (number, item) in fields.list("tool_calls")?.unwrap_or_default().into_iter().enumerate() {
            let call = call(Fields::of(format!("{at}[{number}]"), item)?)?;
            if self.open.iter().any(|(id, _)| *id == call.id) {
                let message =
                    format!("two calls have the id `{}`", crate::fields::shortened(call.id.as_str()));
                return Err(ApiError::invalid("invalid_value", format!("{at}[{number}].id"), message));
            }
            self.open.push((call.id.clone(), call.tool.clone()));
            parts.push(Part::ToolCall(call));
        }
        self.caller = index;
        self.messages.push(Message::Assistant(AssistantMessage { parts, ..AssistantMessage::default() }));
        Ok(())
    }

    fn result(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        let content = required_content(fields)?;
        let text = text_content(&fields.at("content"), content)?;
        let id = ToolCallId(fields.required_string("tool_call_id")?);
        let Some(at) = self.open.iter().position(|(open, _)| *open == id) else {
            let message =
                "a message of the role `tool` has to answer a call of the assistant's message before it";
            return Err(ApiError::invalid("unknown_tool_call_id", fields.at("tool_call_id"), message));
        };
        let (call, tool) = self.open.remove(at);
        self.messages.push(Message::Tool(ToolResult {
            call,
            tool,
            outcome: ToolOutcome::Succeeded,
            content: vec![Content::Text { text }],
            structured: None,
            sources: Vec::new(),
            note: None,
        }));
        Ok(())
    }

    fn all_answered(&self) -> Result<(), ApiError> {
        let Some((id, _)) = self.open.first() else { return Ok(()) };
        let id = crate::fields::shortened(id.as_str());
        let message = format!(
            "each of an assistant's `tool_calls` has to be followed by a message of the role `tool`; `{id}` is not"
        );
        Err(ApiError::invalid(
            "missing_tool_result",
            format!("messages[{}].tool_calls", self.caller),
            message,
        ))
    }

    fn end(mut self) -> Result<History, ApiError> {
        self.all_answered()?;
        if self.messages.is_empty() {
            // Instructions alone are a question to models that know no instructions.
            let text = std::mem::take(&mut self.system).join("\n\n");
            self.messages.push(Message::User(UserMessage::text(text)));
        }
        let system = self.system.join("\n\n");
        Ok(History {
            system: (!system.is_empty()).then_some(system),
            messages: distinct(rules::for_request(self.messages)),
            images: self.images,
        })
    }
}

/// Clients number their calls anew in each answer; the core wants each id once in a conversation.
fn distinct(mut messages: Vec<Message>) -> Vec<Message> {
    let mut used: HashMap<ToolCallId, u32> = HashMap::new();
    let mut renamed: HashMap<ToolCallId, ToolCallId> = HashMap::new();
    for message in &mut messages {
        match message {
            Message::User(_) => {}
            Message::Assistant(assistant) => {
                renamed.clear();
                for part in &mut assistant.parts {
                    let Part::ToolCall(call) = part else { continue };
                    let times = used.entry(call.id.clone()).or_default();
                    *times += 1;
                    if *times > 1 {
                        let id = ToolCallId(format!("{}-{times}", call.id));
                        renamed.insert(std::mem::replace(&mut call.id, id.clone()), id);
                    }
                }
            }
            Message::Tool(result) => {
                if let Some(id) = renamed.get(&result.call) {
                    result.call = id.clone();
                }
            }
        }
    }
    messages
}

fn required_content(fields: &mut Fields) -> Result<Value, ApiError> {
    fields.value("content").ok_or_else(|| missing(fields.at("content")))
}

fn call(mut fields: Fields) -> Result<ToolCall, ApiError> {
    let id = fields.required_string("id")?;
    fields.ignore(&["index"]);
    let kind = fields.string("type")?.unwrap_or_else(|| "function".to_owned());
    if kind != "function" {
        return Err(not_one_of(fields.at("type"), &kind, &["function"]));
    }
    let mut function = fields.required_object("function")?;
    let name = function.required_string("name")?;
    check_name(&function.at("name"), &name)?;
    let text = function.required_string("arguments")?;
    function.end()?;
    fields.end()?;
    let (arguments, malformed) = arguments(text);
    Ok(ToolCall { id: ToolCallId(id), tool: ToolName(name), arguments, malformed, provider_data: None })
}

/// Models write nothing for tools without arguments; what is no object is handed back as it was.
fn arguments(text: String) -> (JsonObject, Option<String>) {
    if text.trim().is_empty() {
        return (JsonObject::new(), None);
    }
    match serde_json::from_str(&text) {
        Ok(Value::Object(arguments)) => (arguments, None),
        Ok(_) | Err(_) => (JsonObject::new(), Some(text)),
    }
}
