//! Makes a request fit into its model's context, before the engine hits its end.
//!
//! Invariant: only what the model reads is changed, never what is stored or shown. The same history is cut at the same
//! places from step to step, so that what was evaluated can be reused.

pub(crate) mod estimate;
pub(crate) mod shorten;
pub(crate) mod summary;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::ids::{MessageId, ToolCallId, ToolName};

/// What happens to earlier turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlierTurns {
    /// They are sent, summarised when they no longer fit.
    #[default]
    Sent,
    /// Only those are sent that the question means nothing without ("And the other one?"); all others would lead a model
    /// astray that copies what it sees.
    PointedTo,
}

/// How a request was made to fit, for the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/fit.ts")]
pub struct Fit {
    /// Tokens of the prompt as it was sent.
    pub tokens: u32,
    /// Whether the model counted them; else they are estimated.
    pub exact: bool,
    /// Tokens that the prompt may have: the context without what the answer may need.
    pub room: u32,
    /// Tool results of which the model got a part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<Shortened>,
    /// The summary that stands for the oldest messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub summary: Option<SummaryUsed>,
}

/// A tool result of which the model got a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/fit.ts")]
pub struct Shortened {
    /// Its call.
    pub call: ToolCallId,
    /// The tool.
    pub tool: ToolName,
    /// Characters that it has.
    pub from: u32,
    /// Characters that the model got, the marker included.
    pub to: u32,
}

/// A summary that stands for the oldest messages of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/fit.ts")]
pub struct SummaryUsed {
    /// The last message that it stands for.
    pub up_to: MessageId,
    /// How many messages it stands for.
    pub messages: u32,
    /// Its text; empty when the model could not summarise them, and they are left out.
    pub text: String,
    /// Whether it was made for this step.
    pub new: bool,
}
