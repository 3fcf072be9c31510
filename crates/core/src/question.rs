//! What a server asks of the user while a tool runs: values for a form, a visit to an address, a reply of the model.
//!
//! Invariant: plain data. Nothing here answers; who does is an [`Asker`], and the answer is the user's.

use futures::future::{BoxFuture, FutureExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use ts_rs::TS;

use crate::form::FormField;
use crate::ids::{ModelId, ServerId};
use crate::message::{AssistantMessage, JsonObject, Message};
use crate::model::{FinishReason, Sampling, ToolChoice, Usage};
use crate::tool::ToolSpec;

/// A question of a server; all of its text is untrusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "core/question.ts")]
pub enum Question {
    /// Values for a form (MCP `elicitation/create`, mode `form`).
    Form {
        /// Why it asks.
        message: String,
        /// The fields, read from `schema`.
        fields: Vec<FormField>,
        /// JSON Schema of the answer, as the server wrote it.
        #[ts(type = "unknown")]
        schema: Value,
    },
    /// A visit to an address, in a browser and only with the user's consent (mode `url`). Never opened ahead.
    Url {
        /// Why it asks.
        message: String,
        /// The whole address.
        url: String,
        /// By what the server names this visit, when it does.
        elicitation_id: Option<String>,
    },
    /// A reply of the conversation's model (MCP `sampling/createMessage`). Approved by the user; costs tokens.
    Sampling {
        /// What the model would be asked.
        request: Box<SampleRequest>,
        /// The model that would answer.
        model: Option<ModelId>,
    },
    /// What the model said to a server, before the server gets it: a yes sends it, a no gives the server nothing
    /// (MCP 2025-11-25, Sampling, "Human in the loop"). Follows each `Sampling` that was allowed and answered.
    SamplingReply {
        /// The whole reply.
        message: AssistantMessage,
        /// The model that gave it.
        model: ModelId,
        /// Why it ended.
        finish: FinishReason,
    },
}

/// What a server wants a model to be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/question.ts")]
pub struct SampleRequest {
    /// Instructions that stand before the messages.
    pub system: Option<String>,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// Tools that the model may call; the server runs them.
    pub tools: Vec<ToolSpec>,
    /// Whether the model must, may or must not call.
    #[serde(skip)]
    #[ts(skip)]
    pub tool_choice: ToolChoice,
    /// How tokens are chosen, with their limit.
    pub sampling: Sampling,
    /// Names of models that the server would like; Lectern takes the conversation's.
    pub hints: Vec<String>,
}

/// What the user answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[ts(export, export_to = "core/question.ts")]
pub enum QuestionAnswer {
    /// Yes.
    Accepted {
        /// The values, for a form.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(type = "Record<string, unknown>", optional)]
        content: Option<JsonObject>,
    },
    /// No.
    Declined,
    /// Neither: the question was closed, or the call stopped.
    Cancelled,
}

/// What came of a question, for the one who put it.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The user's answer to a form or an address; for sampling a refusal.
    Answer(QuestionAnswer),
    /// What the model said; the user had approved the request and this reply.
    Sample(Box<Sample>),
    /// The user had approved the request, but the model failed. A lowercase fragment.
    Failed(String),
}

/// A model's reply to a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The reply.
    pub message: AssistantMessage,
    /// The model that gave it.
    pub model: ModelId,
    /// Why it ended.
    pub finish: FinishReason,
    /// What it cost.
    pub usage: Usage,
}

/// Puts the questions of servers to whoever can answer them.
pub trait Asker: Send + Sync + std::fmt::Debug {
    /// Asks and waits. When `cancel` fires the question is withdrawn and the reply is `Cancelled`.
    fn ask(
        &self,
        server: ServerId,
        question: Question,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Reply>;
}

/// Declines everything: there is nobody to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Asker for Nobody {
    fn ask(&self, _: ServerId, _: Question, _: CancellationToken) -> BoxFuture<'static, Reply> {
        std::future::ready(Reply::Answer(QuestionAnswer::Declined)).boxed()
    }
}

impl Question {
    /// What is wrong with an answer; empty when it fits. Only a form wants values.
    pub fn faults(&self, answer: &QuestionAnswer) -> Vec<crate::validate::ValidationError> {
        match (self, answer) {
            (Self::Form { fields, .. }, QuestionAnswer::Accepted { content }) => {
                crate::form::faults(fields, content.as_ref().unwrap_or(&JsonObject::new()))
            }
            (
                Self::Form { .. } | Self::Url { .. } | Self::Sampling { .. } | Self::SamplingReply { .. },
                _,
            ) => Vec::new(),
        }
    }
}
