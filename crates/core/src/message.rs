//! What a conversation is made of: messages with typed parts.
//!
//! Invariant: a tool call is a part of its own, never a marker inside text.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::ids::{ModelId, ToolCallId, ToolName};

/// A JSON object; argument names keep the order in which the model wrote them.
pub type JsonObject = serde_json::Map<String, Value>;

/// Data of a provider that is stored and handed back untouched (e.g. Gemini's thought signature).
pub type Opaque = Value;

/// One entry of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "role", rename_all = "snake_case")]
#[ts(export, export_to = "core/message.ts")]
pub enum Message {
    /// What the user wrote.
    User(UserMessage),
    /// What the model answered in one step.
    Assistant(AssistantMessage),
    /// What one tool call came to.
    Tool(ToolResult),
}

/// What the user wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/message.ts")]
pub struct UserMessage {
    /// Text, images and resources, in order.
    pub parts: Vec<Part>,
    /// What the model is told beside the words, as it was when they were sent: the day, for one. It is kept and never
    /// changes, so that what was evaluated stays valid in later turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub context: Option<String>,
}

/// What the model answered in one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/message.ts")]
pub struct AssistantMessage {
    /// Text, thinking and tool calls, in the order in which they came.
    pub parts: Vec<Part>,
    /// The model that wrote it; none for imported history.
    pub model: Option<ModelId>,
    /// True when the stream ended before its finish (cancel, error, crash); the text stays.
    #[serde(default)]
    pub incomplete: bool,
    /// Data of the provider for the whole message, handed back untouched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "unknown", optional)]
    pub provider_data: Option<Opaque>,
}

/// A typed piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "core/message.ts")]
pub enum Part {
    /// Plain text or Markdown.
    Text {
        /// The text.
        text: String,
    },
    /// The model's reasoning, shown apart from the answer.
    Thinking(Thinking),
    /// A tool the model wants to be called.
    ToolCall(ToolCall),
    /// Something to look at: an image, or a document with pages (`application/pdf`), as [`Blob::mime`] says. Its bytes
    /// are here, whatever the store does with them, so that a model needs to read nothing else. In a [`UserMessage`] it
    /// is what the user attached, or what a server's prompt or resource brought along. Of images, what the app takes in
    /// is a PNG or JPEG of moderate size; what a server brings may be of any type.
    Image(Blob),
    /// A resource of an MCP server.
    Resource(ResourceRef),
}

/// The model's reasoning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/message.ts")]
pub struct Thinking {
    /// The text of the reasoning.
    pub text: String,
    /// Data of the provider, handed back untouched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "unknown", optional)]
    pub provider_data: Option<Opaque>,
}

/// What the model asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/message.ts")]
pub struct ToolCall {
    /// Ties the result to the call.
    pub id: ToolCallId,
    /// The public name of the tool, as the model wrote it; it may name no tool at all.
    pub tool: ToolName,
    /// The arguments, already parsed.
    #[ts(type = "Record<string, unknown>")]
    pub arguments: JsonObject,
    /// The arguments as the model wrote them when they are not a JSON object; `arguments` is then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub malformed: Option<String>,
    /// Data of the provider, handed back untouched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "unknown", optional)]
    pub provider_data: Option<Opaque>,
}

/// What came of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/message.ts")]
pub struct ToolResult {
    /// The call this answers.
    pub call: ToolCallId,
    /// The tool's public name.
    pub tool: ToolName,
    /// How it ended.
    pub outcome: ToolOutcome,
    /// What the model and the user get to see.
    pub content: Vec<Content>,
    /// MCP structured content, when the tool gave some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "unknown", optional)]
    pub structured: Option<Value>,
    /// Where in the notes the content stands, for citations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// When it is not simply what the tool answered: what the turn made of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub note: Option<ResultNote>,
}

/// What the turn made of a call that it did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "core/message.ts")]
pub enum ResultNote {
    /// The same call was made before in this turn; its result is shown again.
    Repeated {
        /// The call that ran.
        first: ToolCallId,
    },
    /// The model had not seen the tool's definition yet; it is shown in the next step.
    DefinitionShown,
    /// The turn answered itself, e.g. a search among the tools.
    Answered,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "core/message.ts")]
pub enum ToolOutcome {
    /// The tool did its work.
    Succeeded,
    /// The tool or its server failed; news for the model.
    Failed,
    /// The user or a rule said no.
    Denied,
    /// The user stopped it.
    Cancelled,
}

/// One piece of a tool result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "core/message.ts")]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(Blob),
    /// Sound.
    Audio(Blob),
    /// A link to, or the text of, a resource.
    Resource(ResourceRef),
}

/// Binary data with its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/message.ts")]
pub struct Blob {
    /// MIME type, e.g. `image/png`.
    pub mime: String,
    /// The bytes in standard base64.
    pub base64: String,
}

/// A resource of an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/message.ts")]
pub struct ResourceRef {
    /// E.g. `note:///Travel/Lyon.md`.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
    /// MIME type, when the server says one.
    pub mime: Option<String>,
    /// The text, when it was embedded.
    pub text: Option<String>,
}

/// A place in a note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/message.ts")]
pub struct Source {
    /// Path of the note within its vault, with `/`.
    pub path: String,
    /// Title of the note.
    pub title: Option<String>,
    /// Headings above the passage, outermost first, joined by ` › `.
    pub heading: Option<String>,
    /// First line, from 1.
    pub start_line: Option<u32>,
    /// Last line, from 1, inclusive.
    pub end_line: Option<u32>,
}

impl UserMessage {
    /// A message of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text { text: text.into() }], context: None }
    }

    /// Its images and documents, in order.
    pub fn images(&self) -> impl Iterator<Item = &Blob> {
        self.parts.iter().filter_map(|part| match part {
            Part::Image(blob) => Some(blob),
            Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::Resource(_) => None,
        })
    }
}

impl Blob {
    /// These bytes.
    pub fn of(mime: impl Into<String>, bytes: &[u8]) -> Self {
        Self { mime: mime.into(), base64: STANDARD.encode(bytes) }
    }

    /// The bytes. What a server sent may be no base64 at all.
    pub fn bytes(&self) -> Result<Vec<u8>, DecodeError> {
        STANDARD.decode(&self.base64)
    }
}

impl AssistantMessage {
    /// The tool calls, in the order of the model.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            Part::Text { .. } | Part::Thinking(_) | Part::Image(_) | Part::Resource(_) => None,
        })
    }

    /// Whether the model asked for any tool.
    pub fn has_tool_calls(&self) -> bool {
        self.tool_calls().next().is_some()
    }

    /// The text parts, joined.
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }

    /// Whether there is nothing for the user to read: no text, at most reasoning.
    pub fn says_nothing(&self) -> bool {
        self.parts.iter().all(|part| match part {
            Part::Text { text } => text.trim().is_empty(),
            Part::Thinking(_) => true,
            Part::ToolCall(_) | Part::Image(_) | Part::Resource(_) => false,
        })
    }
}

/// The arguments that a model wrote as text; none when they are no object. For tools without arguments models write
/// nothing, or null; some servers put the text into quotation marks once more.
pub fn arguments_of(text: &str) -> Option<JsonObject> {
    let plain = |text: &str| match text.trim() {
        "" => Some(Value::Null),
        text => serde_json::from_str(text).ok(),
    };
    let value = match plain(text)? {
        Value::String(inner) => plain(&inner)?,
        value => value,
    };
    match value {
        Value::Object(arguments) => Some(arguments),
        Value::Null => Some(JsonObject::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    }
}

impl ToolResult {
    /// A result of text alone.
    pub fn of(call: &ToolCall, outcome: ToolOutcome, text: impl Into<String>) -> Self {
        Self {
            call: call.id.clone(),
            tool: call.tool.clone(),
            outcome,
            content: vec![Content::Text { text: text.into() }],
            structured: None,
            sources: Vec::new(),
            note: None,
        }
    }

    /// The text content, joined by line breaks. A resource without text is a link: its name and address.
    pub fn text(&self) -> String {
        let text = |content: &Content| match content {
            Content::Text { text } => Some(text.clone()),
            Content::Resource(ResourceRef { text: Some(text), .. }) => Some(text.clone()),
            Content::Resource(ResourceRef { uri, name: Some(name), .. }) => Some(format!("{name}: {uri}")),
            Content::Resource(ResourceRef { uri, .. }) => Some(uri.clone()),
            Content::Image(_) | Content::Audio(_) => None,
        };
        self.content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }
}

/// The text parts of a message, joined.
pub fn text_of(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Thinking(_) | Part::ToolCall(_) | Part::Image(_) | Part::Resource(_) => None,
        })
        .collect()
}
