//! Lets the conversation's model answer a server that was allowed to ask it.
//!
//! Invariant: the conversation itself is not part of what the model gets, and what it says does not enter it.

use std::collections::HashSet;
use std::sync::Arc;

use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::TurnInput;
use super::assemble::Assembler;
use super::journal::Journal;
use crate::clock::Stopwatch;
use crate::event::{EventKind, StepStats};
use crate::ids::{ConversationId, ModelId, QuestionId, ToolCallId};
use crate::model::{ChatModel, ChatRequest, FinishReason, Purpose, ToolMode};
use crate::question::{QuestionAnswer, Reply, Sample, SampleRequest};

/// The model of a turn, for those who may ask it.
pub(super) struct Sampler {
    model: Arc<dyn ChatModel>,
    tool_mode: ToolMode,
}

impl Sampler {
    pub fn new(input: &TurnInput) -> Self {
        Self { model: Arc::clone(&input.model), tool_mode: input.tool_mode }
    }

    pub fn model(&self) -> ModelId {
        self.model.info().id.clone()
    }

    /// Asks the model and tells what it said and cost.
    pub async fn run(
        &self,
        journal: &Journal,
        call: &ToolCallId,
        question: &QuestionId,
        request: SampleRequest,
        cancel: &CancellationToken,
    ) -> Reply {
        let watch = Stopwatch::start();
        match self.stream(request, cancel).await {
            Ok(sample) if sample.finish == FinishReason::Cancelled => {
                Reply::Answer(QuestionAnswer::Cancelled)
            }
            Ok(sample) => {
                let stats = StepStats { usage: sample.usage, first_delta_ms: None, total_ms: watch.millis() };
                journal.tell(EventKind::SampleFinished {
                    call: call.clone(),
                    question_id: question.clone(),
                    message: sample.message.clone(),
                    finish: sample.finish,
                    stats,
                });
                Reply::Sample(Box::new(sample))
            }
            Err(why) => {
                let message = format!("the model did not answer the server: {why}");
                journal.tell(EventKind::Notice { code: "sampling_failed".to_owned(), message });
                Reply::Failed(why)
            }
        }
    }

    async fn stream(&self, request: SampleRequest, cancel: &CancellationToken) -> Result<Sample, String> {
        // A conversation of its own: the model's cache of this one is not to be lost.
        let conversation = ConversationId::fresh();
        let tool_mode = if request.tools.is_empty() { ToolMode::Off } else { self.tool_mode };
        let request = ChatRequest {
            conversation,
            system: request.system,
            messages: request.messages,
            tools: request.tools,
            tool_choice: request.tool_choice,
            tool_mode,
            sampling: request.sampling,
            purpose: Purpose::Side,
            ..ChatRequest::default()
        };
        let cancel = cancel.child_token();
        let _stops_when_dropped = cancel.clone().drop_guard();
        let mut stream = self.model.stream(request, cancel);
        let mut reply = Assembler::new(self.model());
        let mut ids = HashSet::new();
        while let Some(delta) = stream.next().await {
            _ = reply.take(delta.map_err(|error| error.message)?, &mut ids);
        }
        let finish = reply.finish.ok_or("the model's reply broke off")?;
        let (usage, model) = (reply.usage, self.model());
        Ok(Sample { message: reply.whole(), model, finish, usage })
    }
}
