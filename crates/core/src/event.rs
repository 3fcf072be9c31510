//! What a turn tells while it runs. The window, the command line, the HTTP API and the trace see the same events.
//!
//! Invariant: within one turn `seq` counts from 0 without a gap, `TurnStarted` comes first and
//! `TurnFinished` last, exactly once.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::Timestamp;
use crate::exposure::Exposure;
use crate::fit::Fit;
use crate::ids::{ConversationId, MessageId, ModelId, QuestionId, ServerId, ToolCallId, ToolName, TurnId};
use crate::message::{AssistantMessage, ToolCall, ToolResult, UserMessage};
use crate::model::{FinishReason, ModelErrorCode, Sampling, ThinkingOptions, Usage};
use crate::permission::{Grant, PermissionAnswer};
use crate::question::{Question, QuestionAnswer};
use crate::tool::{Progress, WireDirection};

/// One thing that happened in a turn. As JSON the fields of `kind` stand beside the others, told apart by `kind`:
/// `{"conversation":"…","turn":"…","seq":3,"at":"2026-11-20T22:30:00.123Z","kind":"text_delta","text":"Hel"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/event.ts")]
pub struct Event {
    /// The conversation.
    pub conversation: ConversationId,
    /// The turn.
    pub turn: TurnId,
    /// Counts from 0 in each turn.
    pub seq: u64,
    /// When it happened.
    #[ts(type = "string")]
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export, export_to = "core/event.ts")]
pub enum EventKind {
    /// The turn began; the user's message is stored.
    TurnStarted {
        /// Id of the stored message.
        message_id: MessageId,
        /// The user's message.
        message: UserMessage,
        /// The model that will answer.
        model: ModelId,
    },
    /// A model call began.
    StepStarted {
        /// Counts from 0.
        step: u32,
        /// The tools whose definitions the model gets in this step.
        tools: Vec<ToolName>,
        /// Why these; none in what older versions stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        exposure: Option<Exposure>,
        /// The settings that the reply is made with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        settings: Option<StepSettings>,
        /// What was done so that the request fits; none when nothing had to be counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        fit: Option<Fit>,
    },
    /// The model is being loaded; only before the first text of a step.
    ModelLoading {
        /// 0 to 1.
        fraction: f32,
    },
    /// How much of the prompt is evaluated.
    PromptProgress {
        /// Tokens evaluated or reused so far.
        done: u32,
        /// Tokens of the prompt.
        total: u32,
        /// Tokens that the cache already held.
        reused: u32,
    },
    /// The provider gave no reply for now; it is asked again after a pause. Cancel ends the pause.
    Retrying {
        /// Milliseconds until then.
        #[ts(type = "number")]
        after_ms: u64,
        /// How often the provider was asked already.
        attempt: u32,
        /// What was in the way; the UI chooses its words by this.
        reason: ModelErrorCode,
        /// For the trace, in English.
        message: String,
    },
    /// A piece of the answer.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// A piece of the reasoning.
    ThinkingDelta {
        /// The piece.
        text: String,
    },
    /// A piece of a call as the model writes it; the first one of a call has the name and may have no arguments.
    ToolCallDelta {
        /// The call.
        call: ToolCallId,
        /// The tool's public name.
        tool: ToolName,
        /// A piece of the arguments, JSON text.
        arguments: String,
    },
    /// The reply is whole and stored. Comes before any of its tools runs.
    StepFinished {
        /// Counts from 0.
        step: u32,
        /// Id of the stored message.
        message_id: MessageId,
        /// The complete message.
        message: AssistantMessage,
        /// Why the reply ended.
        finish: FinishReason,
        /// What it cost.
        stats: StepStats,
    },
    /// The user is asked. The turn waits for the answer or for cancel.
    PermissionRequested {
        /// The call; its arguments are in the message of the step.
        call: ToolCall,
        /// The answers that are offered.
        choices: Vec<Grant>,
    },
    /// The user, or a rule in the meantime, answered.
    PermissionAnswered {
        /// The call.
        call: ToolCallId,
        /// The answer.
        answer: PermissionAnswer,
    },
    /// A call runs now.
    ToolStarted {
        /// The call.
        call: ToolCall,
    },
    /// A call came further.
    ToolProgress {
        /// The call.
        call: ToolCallId,
        /// How far.
        progress: Progress,
    },
    /// A raw JSON-RPC message of a call.
    ToolWire {
        /// The call.
        call: ToolCallId,
        /// Which way it went.
        direction: WireDirection,
        /// The message; secrets are masked.
        #[ts(type = "unknown")]
        message: Value,
    },
    /// A line that the server logged while a call ran.
    ToolLog {
        /// The call.
        call: ToolCallId,
        /// The line.
        line: String,
    },
    /// A server asks the user something while a call runs. The call waits; its time does not run.
    QuestionAsked {
        /// The call.
        call: ToolCallId,
        /// Names the question; the answer must have it.
        question_id: QuestionId,
        /// The server that asks.
        server: ServerId,
        /// What it asks.
        question: Question,
    },
    /// A question is over: answered by the user, or withdrawn (`cancelled`).
    QuestionAnswered {
        /// The call.
        call: ToolCallId,
        /// The question.
        question_id: QuestionId,
        /// The answer.
        answer: QuestionAnswer,
    },
    /// A model answered a request of a server that the user had approved. The server gets the reply only when the
    /// user says yes to the question that follows.
    SampleFinished {
        /// The call.
        call: ToolCallId,
        /// The question that was approved.
        question_id: QuestionId,
        /// What it said; `message.model` answered.
        message: AssistantMessage,
        /// Why the reply ended.
        finish: FinishReason,
        /// What it cost.
        stats: StepStats,
    },
    /// A call is settled, whatever came of it. Calls that never ran (denied, cancelled, unknown tool) have this
    /// event without a `ToolStarted`.
    ToolFinished {
        /// Id of the stored message.
        message_id: MessageId,
        /// What came of it.
        result: ToolResult,
    },
    /// Something worth showing that ends nothing: e.g. that a result was cut, or that a model was reloaded.
    Notice {
        /// What kind; the UI chooses its words by this.
        code: String,
        /// For the trace, in English.
        message: String,
    },
    /// The turn is over.
    TurnFinished {
        /// How.
        outcome: TurnOutcome,
    },
}

/// What a reply is made with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/event.ts")]
pub struct StepSettings {
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Whether and how long the model may think.
    #[serde(default)]
    pub thinking: ThinkingOptions,
    /// What binds the text of the answer.
    pub answer: AnswerBound,
    /// Tokens that fit into the model's context.
    pub context_length: Option<u32>,
    /// Other settings that hold, by their names in the settings: the preset, how tools reach the model, how it was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Record<string, unknown>")]
    pub others: Option<Box<serde_json::Map<String, Value>>>,
}

/// What binds the text of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "core/event.ts")]
pub enum AnswerBound {
    /// Nothing.
    #[default]
    Free,
    /// A JSON schema.
    JsonSchema,
    /// A grammar.
    Grammar,
}

/// What one step cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/event.ts")]
pub struct StepStats {
    /// Tokens.
    pub usage: Usage,
    /// Milliseconds from the request to the first text, thinking or call.
    pub first_delta_ms: Option<u32>,
    /// Milliseconds from the request to the end of the reply.
    pub total_ms: u32,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "core/event.ts")]
pub enum TurnOutcome {
    /// The assistant answered without asking for a tool.
    Completed,
    /// The user stopped it.
    Cancelled,
    /// The limit of steps was reached.
    StepLimit,
    /// It could not go on.
    Failed {
        /// Why.
        error: TurnError,
    },
}

/// Why a turn failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS, thiserror::Error)]
#[error("{message}")]
#[ts(export, export_to = "core/event.ts")]
pub struct TurnError {
    /// What kind; the UI chooses its words by this.
    pub code: TurnErrorCode,
    /// What happened, a lowercase fragment that names the thing.
    pub message: String,
    /// The way out, one sentence.
    pub hint: Option<String>,
    /// More for the trace.
    #[ts(type = "unknown | null")]
    pub detail: Option<Value>,
}

impl TurnError {
    /// The app ended while the turn ran.
    pub(crate) fn interrupted() -> Self {
        Self {
            code: TurnErrorCode::Interrupted,
            message: "Lectern ended while this answer was being made".to_owned(),
            hint: Some("Ask again.".to_owned()),
            detail: None,
        }
    }
}

/// Kinds of turn errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "type", content = "model", rename_all = "snake_case")]
#[ts(export, export_to = "core/event.ts")]
pub enum TurnErrorCode {
    /// The model failed.
    Model(ModelErrorCode),
    /// The store could not be written.
    Store,
    /// A defect of Lectern; the turn's task panicked.
    Panic,
    /// The app ended while the turn ran.
    Interrupted,
}
