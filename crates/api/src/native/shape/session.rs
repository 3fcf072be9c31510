//! `GET /api/sessions/{id}`: the messages as the store keeps them.

use serde_json::Value;
use utoipa::ToSchema;

use super::tool::OutcomeWord;

/// What was said in a session, and where its folder is.
#[derive(ToSchema)]
pub struct SessionShown {
    object: SessionObject,
    /// Its name.
    id: String,
    /// Its conversation, as the audit log and the events name it.
    conversation: String,
    /// Its folder.
    workspace_path: String,
    messages: Vec<SessionMessage>,
}

#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionObject {
    Session,
}

/// A message.
#[derive(ToSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum SessionMessage {
    /// What the user said.
    User {
        parts: Vec<SessionPart>,
        /// What the model is told beside the words.
        #[schema(nullable = false)]
        context: Option<String>,
    },
    /// What the model answered in one step.
    Assistant {
        /// In the order in which they came.
        parts: Vec<SessionPart>,
        /// The model that wrote it; null when that was elsewhere.
        #[schema(required = true)]
        model: Option<String>,
        /// Whether it ended before its finish.
        incomplete: bool,
        /// Data of the provider.
        provider_data: Option<Value>,
    },
    /// What came of one call.
    Tool {
        /// The call.
        call: String,
        /// The tool.
        tool: String,
        outcome: OutcomeWord,
        content: Vec<SessionContent>,
        /// Structured content, when the tool gave some.
        structured: Option<Value>,
        /// Where in the notes the content stands.
        #[schema(nullable = false)]
        sources: Option<Vec<SessionSource>>,
        #[schema(nullable = false)]
        note: Option<SessionNote>,
    },
}

/// A piece of a message.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionPart {
    /// Words.
    Text { text: String },
    /// What the model thought.
    Thinking {
        text: String,
        /// Data of the provider.
        provider_data: Option<Value>,
    },
    /// A call that the model made.
    ToolCall {
        /// The result names it.
        id: String,
        /// The tool, as the model wrote it.
        tool: String,
        #[schema(value_type = Object)]
        arguments: Value,
        /// The arguments as the model wrote them when they are no object.
        #[schema(nullable = false)]
        malformed: Option<String>,
        /// Data of the provider.
        provider_data: Option<Value>,
    },
    /// An image or a document.
    Image {
        mime: String,
        /// Its bytes.
        base64: String,
    },
    /// A resource of a server.
    Resource {
        uri: String,
        #[schema(required = true)]
        name: Option<String>,
        #[schema(required = true)]
        mime: Option<String>,
        #[schema(required = true)]
        text: Option<String>,
    },
}

/// A piece of what a tool gave.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionContent {
    /// Words.
    Text { text: String },
    /// An image.
    Image {
        mime: String,
        /// Its bytes.
        base64: String,
    },
    /// Sound.
    Audio {
        mime: String,
        /// Its bytes.
        base64: String,
    },
    /// A resource of the server.
    Resource {
        uri: String,
        #[schema(required = true)]
        name: Option<String>,
        #[schema(required = true)]
        mime: Option<String>,
        #[schema(required = true)]
        text: Option<String>,
    },
}

/// A place in a note.
#[derive(ToSchema)]
pub struct SessionSource {
    /// The note, within its vault.
    path: String,
    #[schema(required = true)]
    title: Option<String>,
    /// The headings above the passage.
    #[schema(required = true)]
    heading: Option<String>,
    /// From 1.
    #[schema(required = true, minimum = 1)]
    start_line: Option<i64>,
    /// From 1, inclusive.
    #[schema(required = true, minimum = 1)]
    end_line: Option<i64>,
}

/// What the turn made of a call that it did not run.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionNote {
    /// The same call was made before in this turn; its result is shown again.
    Repeated {
        /// The call that ran.
        first: String,
    },
    /// The model had not seen the tool's definition yet; it is shown in the next step.
    DefinitionShown {},
    /// The turn answered itself, e.g. a search among the tools.
    Answered {},
}
