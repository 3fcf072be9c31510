//! The frames of `POST /api/chat/completions` with `stream`.

use serde_json::Value;
use utoipa::ToSchema;

use super::answer::ToolExecution;
use super::tool::ToolOutput;
use crate::document::ErrorFields;
use crate::v1::shape::answer::{DeltaCall, FinishReason, Usage};

/// A piece of an answer: the data of one event. `seq` counts from 0 without a gap. The last frame is `done` or `error`, and
/// after it comes `data: [DONE]`. Comments keep the connection awake.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Frame {
    /// Words of the answer.
    Content {
        #[schema(minimum = 0)]
        seq: i64,
        delta: WordsDelta,
    },
    /// What the model thinks.
    Thinking {
        #[schema(minimum = 0)]
        seq: i64,
        delta: WordsDelta,
    },
    /// A call that begins, with its id and name, or more of the arguments of one.
    ToolCall {
        #[schema(minimum = 0)]
        seq: i64,
        tool_call_id: String,
        delta: CallDelta,
    },
    /// A call that waits for consent.
    ApprovalRequired {
        #[schema(minimum = 0)]
        seq: i64,
        tool_call_id: String,
        /// The tool.
        tool: String,
        #[schema(value_type = Object)]
        arguments: Value,
        /// Names what waits, for `POST /api/approvals/{id}`; null when nobody can answer: the call is refused.
        #[schema(required = true)]
        approval_id: Option<String>,
        /// The answers that are offered.
        choices: Vec<GrantWord>,
    },
    /// A tool of a server begins.
    ToolStart {
        #[schema(minimum = 0)]
        seq: i64,
        tool_call_id: String,
        /// The tool.
        tool: String,
        #[schema(value_type = Object)]
        arguments: Value,
    },
    /// A tool came further.
    ToolProgress {
        #[schema(minimum = 0)]
        seq: i64,
        tool_call_id: String,
        progress: CallProgress,
    },
    /// A tool came to its end.
    ToolResult {
        #[schema(minimum = 0)]
        seq: i64,
        tool_call_id: String,
        /// The tool.
        tool: String,
        result: ToolOutput,
    },
    /// What the answer cost.
    Usage {
        #[schema(minimum = 0)]
        seq: i64,
        usage: Usage,
    },
    /// The answer is whole.
    Done {
        #[schema(minimum = 0)]
        seq: i64,
        finish_reason: FinishReason,
        tool_execution: ToolExecution,
    },
    /// The answer could not go on.
    Error {
        #[schema(minimum = 0)]
        seq: i64,
        error: ErrorFields,
    },
}

/// Words that are new.
#[derive(ToSchema)]
pub struct WordsDelta {
    content: String,
}

/// What is new of a call.
#[derive(ToSchema)]
pub struct CallDelta {
    #[schema(min_items = 1, max_items = 1)]
    tool_calls: Vec<DeltaCall>,
}

/// For how long a call may be allowed: once, in this session, always. An "always" is given in the window only.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GrantWord {
    Once,
    Conversation,
    Always,
}

/// How far a call has come.
#[derive(ToSchema)]
pub struct CallProgress {
    /// In the server's own unit; never falls.
    done: f64,
    /// All the work, when the server says it.
    #[schema(required = true)]
    total: Option<f64>,
    /// What it is doing.
    #[schema(required = true)]
    message: Option<String>,
}
