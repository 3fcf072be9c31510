//! The resources and prompts of servers, and how a message takes them along.
//!
//! Invariant: all of their text is the server's, untrusted.

use std::collections::BTreeMap;

use lectern_core::{Part, ServerId};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A resource that a message takes along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/resources.ts")]
pub struct Attachment {
    /// The server that has it.
    pub server: ServerId,
    /// Its address.
    pub uri: String,
}

/// A prompt that a message runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/resources.ts")]
pub struct PromptRun {
    /// The server that has it.
    pub server: ServerId,
    /// Its name.
    pub name: String,
    /// What it takes.
    pub arguments: BTreeMap<String, String>,
}

/// What one server has to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/resources.ts")]
pub struct ResourcesView {
    /// The server.
    pub server: ServerId,
    /// Single resources.
    pub resources: Vec<ResourceView>,
    /// Families of resources.
    pub templates: Vec<TemplateView>,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/resources.ts")]
pub struct ResourceView {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// MIME type.
    pub mime: Option<String>,
    /// Bytes.
    #[ts(type = "number | null")]
    pub size: Option<u64>,
}

/// A family of resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/resources.ts")]
pub struct TemplateView {
    /// Their addresses as a URI template (RFC 6570).
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What they are.
    pub description: Option<String>,
    /// MIME type of all of them.
    pub mime: Option<String>,
}

/// What one server has to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/resources.ts")]
pub struct PromptsView {
    /// The server.
    pub server: ServerId,
    /// Its prompts.
    pub prompts: Vec<PromptView>,
}

/// A prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/resources.ts")]
pub struct PromptView {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    pub arguments: Vec<ArgumentView>,
}

/// What a prompt takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/resources.ts")]
pub struct ArgumentView {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// Whether the prompt needs it.
    pub required: bool,
}

/// A prompt with its arguments filled in, as the parts of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/resources.ts")]
pub struct FilledPromptView {
    /// What it is for.
    pub description: Option<String>,
    /// Text, images and resources, in order.
    pub parts: Vec<Part>,
}

/// What is to be completed while it is typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/resources.ts")]
pub struct CompletionRequest {
    /// The server.
    pub server: ServerId,
    /// A prompt, for its argument.
    pub prompt: Option<String>,
    /// A resource template, for its variable; only without a prompt.
    pub template: Option<String>,
    /// The argument or variable.
    pub argument: String,
    /// What is typed so far.
    pub typed: String,
    /// The other arguments so far.
    #[serde(default)]
    pub known: BTreeMap<String, String>,
}

/// Suggestions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/resources.ts")]
pub struct CompletionView {
    /// The best first.
    pub values: Vec<String>,
    /// Whether there are more.
    pub has_more: bool,
}
