//! The loop itself, and its end.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::asked::AskedQuestions;
use super::execute::run_tool_calls;
use super::handle::Questions;
use super::journal::{Journal, store_error};
use super::step::{OpenStep, stream_step};
use super::{Place, TurnInput};
use crate::event::{Event, TurnError, TurnErrorCode, TurnOutcome};
use crate::ids::ToolCallId;
use crate::store::TurnKey;

/// A turn that runs.
pub(super) struct Turn {
    pub input: TurnInput,
    pub key: TurnKey,
    pub journal: Arc<Journal>,
    pub questions: Arc<Questions>,
    pub asked: Arc<AskedQuestions>,
    pub cancel: CancellationToken,
    /// The ids of all calls of the conversation.
    pub call_ids: HashSet<ToolCallId>,
    /// The step whose reply is streaming; kept here so that a panic does not lose it.
    pub open_step: Option<OpenStep>,
    place: Place,
}

/// Runs a turn to its end, whatever happens in it.
pub(super) async fn drive(input: TurnInput, key: TurnKey, first: Event, place: Place) {
    let mut turn = Turn::new(input, key, first, place);
    let outcome = match AssertUnwindSafe(run_turn(&mut turn)).catch_unwind().await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) if turn.cancel.is_cancelled() => TurnOutcome::Cancelled,
        Ok(Err(error)) => TurnOutcome::Failed { error },
        Err(panic) => TurnOutcome::Failed { error: panic_error(&*panic) },
    };
    turn.end(outcome);
}

impl Turn {
    fn new(input: TurnInput, key: TurnKey, first: Event, place: Place) -> Self {
        let handle = &place.handle;
        Self {
            journal: Arc::new(Journal::new(input.store.clone(), key.clone(), handle.log().clone(), first)),
            questions: handle.questions().clone(),
            asked: handle.asked().clone(),
            cancel: handle.cancel_token().clone(),
            call_ids: HashSet::new(),
            open_step: None,
            input,
            key,
            place,
        }
    }

    /// Settles what is open and tells the outcome; only the first one counts.
    fn end(&mut self, outcome: TurnOutcome) {
        if let Some(step) = self.open_step.take() {
            step.close(&self.journal, &outcome);
        }
        self.journal.finish(outcome, || self.place.leave());
    }
}

impl Drop for Turn {
    /// The runtime may be shut down under a turn: it is ended here then.
    fn drop(&mut self) {
        self.end(TurnOutcome::Failed { error: TurnError::interrupted() });
    }
}

async fn run_turn(turn: &mut Turn) -> Result<TurnOutcome, TurnError> {
    let ids = turn.input.store.call_ids(&turn.key.conversation).map_err(|error| store_error(&error))?;
    turn.call_ids.extend(ids);
    for step in 0..turn.input.max_steps {
        let reply = stream_step(turn, step).await?;
        run_tool_calls(turn, &reply).await?;
        if turn.cancel.is_cancelled() || reply.message.incomplete {
            return Ok(TurnOutcome::Cancelled);
        }
        if !reply.message.has_tool_calls() {
            return Ok(TurnOutcome::Completed);
        }
    }
    Ok(TurnOutcome::StepLimit)
}

/// The words of a panic, as far as it has any.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

fn panic_error(panic: &(dyn std::any::Any + Send)) -> TurnError {
    TurnError {
        code: TurnErrorCode::Panic,
        message: "a defect of Lectern ended this answer".to_owned(),
        hint: Some("Ask again; if it happens again, please report it.".to_owned()),
        detail: Some(Value::String(panic_text(panic))),
    }
}
