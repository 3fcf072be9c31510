//! One model call: the request, the stream, the whole message.
//!
//! Invariant: the stream is drained and the message stored before any tool of it runs; each `StepStarted` has its
//! `StepFinished`.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::time::{Instant, sleep_until};

use super::assemble::Assembler;
use super::exposing::Offer;
use super::fitting;
use super::journal::Journal;
use super::run::Turn;
use crate::clock::Stopwatch;
use crate::event::{AnswerBound, EventKind, StepSettings, StepStats, TurnError, TurnErrorCode, TurnOutcome};
use crate::message::AssistantMessage;
use crate::model::{AnswerForm, ChatRequest, Delta, FinishReason, ModelError, ModelErrorCode, ToolChoice};
use crate::tool::ToolSpec;

/// How long a cancelled model may take to stop, and a finished one to end its stream.
const GRACE: Duration = Duration::from_secs(1);

/// A draft is kept when this much is new, in time or in bytes.
const DRAFT_MILLIS: u32 = 1_000;
const DRAFT_BYTES: usize = 2_048;

/// A step's reply, stored, with the tools that were offered for it.
pub(super) struct Reply {
    pub message: AssistantMessage,
    pub tools: Vec<ToolSpec>,
    pub finish: FinishReason,
}

/// A step whose reply is streaming.
pub(super) struct OpenStep {
    step: u32,
    reply: Assembler,
    watch: Stopwatch,
    first_delta_ms: Option<u32>,
    drafted_ms: u32,
    drafted_size: usize,
}

pub(super) async fn stream_step(turn: &mut Turn, step: u32, offer: Offer) -> Result<Reply, TurnError> {
    turn.journal.check()?;
    let (request, fit) = fitting::request(turn, &offer).await?;
    let offered = request.tool_choice != ToolChoice::None;
    let tools = if offered { offer.tools } else { Vec::new() };
    turn.journal.tell(EventKind::StepStarted {
        step,
        tools: tools.iter().map(|spec| spec.name.clone()).collect(),
        exposure: offer.exposure,
        settings: Some(settings(turn, &request)),
        fit,
    });
    turn.open_step = Some(OpenStep::new(step, turn));
    let stream = turn.input.model.stream(request, turn.cancel.clone());
    drain(turn, stream).await?;
    let Some(open) = turn.open_step.take() else { return Err(no_finish()) };
    let (message, finish) = open.finish(turn)?;
    Ok(Reply { message, tools, finish })
}

fn settings(turn: &Turn, request: &ChatRequest) -> StepSettings {
    StepSettings {
        sampling: request.sampling.clone(),
        thinking: request.thinking,
        answer: match request.answer {
            AnswerForm::Free => AnswerBound::Free,
            AnswerForm::JsonSchema(_) => AnswerBound::JsonSchema,
            AnswerForm::Grammar(_) => AnswerBound::Grammar,
        },
        context_length: turn.input.model.info().context_length,
        others: Some(Box::new(turn.input.others.clone())).filter(|others| !others.is_empty()),
    }
}

/// Takes the stream in until it ends: by itself, by an error, or because a cancelled model did not stop.
async fn drain(
    turn: &mut Turn,
    mut stream: BoxStream<'static, Result<Delta, ModelError>>,
) -> Result<(), TurnError> {
    let cancel = turn.cancel.clone();
    let mut deadline: Option<Instant> = None;
    loop {
        let finished = turn.open_step.as_ref().is_some_and(|open| open.reply.finish.is_some());
        if deadline.is_none() && (finished || cancel.is_cancelled()) {
            deadline = Some(Instant::now() + GRACE);
        }
        let delta = match deadline {
            Some(deadline) => tokio::select! {
                biased;
                () = sleep_until(deadline) => None,
                delta = stream.next() => delta,
            },
            None => tokio::select! {
                biased;
                () = cancel.cancelled() => continue,
                delta = stream.next() => delta,
            },
        };
        match delta {
            None => return Ok(()),
            // The reply is whole already; what breaks afterwards does not unmake it.
            Some(Err(_)) if finished => return Ok(()),
            Some(Err(error)) => return Err(model_error(error)),
            Some(Ok(delta)) => take(turn, delta, finished),
        }
    }
}

fn take(turn: &mut Turn, delta: Delta, finished: bool) {
    let Some(open) = turn.open_step.as_mut() else { return };
    // After the finish only the accounts may follow.
    if finished && !matches!(delta, Delta::Usage(_) | Delta::ProviderData(_)) {
        return;
    }
    if let Some(event) = open.reply.take(delta, &mut turn.call_ids) {
        turn.journal.tell(event);
    }
    open.note_progress(&turn.journal);
}

impl OpenStep {
    fn new(step: u32, turn: &Turn) -> Self {
        Self {
            step,
            reply: Assembler::new(turn.input.model.info().id.clone()),
            watch: Stopwatch::start(),
            first_delta_ms: None,
            drafted_ms: 0,
            drafted_size: 0,
        }
    }

    fn note_progress(&mut self, journal: &Journal) {
        let now = self.watch.millis();
        if self.first_delta_ms.is_none() && self.reply.has_begun() {
            self.first_delta_ms = Some(now);
        }
        let grown = self.reply.size - self.drafted_size;
        if grown >= DRAFT_BYTES || (grown > 0 && now - self.drafted_ms >= DRAFT_MILLIS) {
            journal.save_draft(self.step, &self.reply.partial());
            self.drafted_ms = now;
            self.drafted_size = self.reply.size;
        }
    }

    /// The stream ended by itself or by cancel.
    fn finish(self, turn: &mut Turn) -> Result<(AssistantMessage, FinishReason), TurnError> {
        let (message, finish, error) = match self.reply.finish {
            Some(FinishReason::Cancelled) => (self.reply.partial(), FinishReason::Cancelled, None),
            Some(FinishReason::Failed) => (self.reply.partial(), FinishReason::Failed, Some(no_finish())),
            Some(
                finish @ (FinishReason::Stop
                | FinishReason::ToolCalls
                | FinishReason::Length
                | FinishReason::Filtered),
            ) => (self.reply.whole(), finish, None),
            None if turn.cancel.is_cancelled() => (self.reply.partial(), FinishReason::Cancelled, None),
            None => (self.reply.partial(), FinishReason::Failed, Some(no_finish())),
        };
        turn.journal.finish_step(self.step, message.clone(), finish, self.stats())?;
        error.map_or(Ok((message, finish)), Err)
    }

    /// The turn ends in the middle of the reply: what is there is kept.
    pub fn close(self, journal: &Journal, outcome: &TurnOutcome) {
        let finish = match outcome {
            TurnOutcome::Cancelled => FinishReason::Cancelled,
            TurnOutcome::Failed { .. } | TurnOutcome::Completed | TurnOutcome::StepLimit => {
                FinishReason::Failed
            }
        };
        // A failure of the store is in the journal, which tells it in `TurnFinished`.
        let _ = journal.finish_step(self.step, self.reply.partial(), finish, self.stats());
    }

    fn stats(&self) -> StepStats {
        StepStats {
            usage: self.reply.usage,
            first_delta_ms: self.first_delta_ms,
            total_ms: self.watch.millis(),
        }
    }
}

fn model_error(error: ModelError) -> TurnError {
    TurnError {
        code: TurnErrorCode::Model(error.code),
        message: error.message,
        hint: error.hint,
        detail: error.detail,
    }
}

/// The limit of tokens left nothing but thoughts.
pub(super) fn cut_before_answer() -> TurnError {
    TurnError {
        code: TurnErrorCode::Model(ModelErrorCode::EmptyAnswer),
        message: "the limit of tokens was reached before the answer began".to_owned(),
        hint: Some("Allow longer answers, or let the model think less.".to_owned()),
        detail: None,
    }
}

fn no_finish() -> TurnError {
    TurnError {
        code: TurnErrorCode::Model(ModelErrorCode::Provider),
        message: "the model's reply broke off".to_owned(),
        hint: Some("Ask again.".to_owned()),
        detail: None,
    }
}
