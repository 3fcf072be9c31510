//! The loop itself, and its end.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::ahead;
use super::asked::AskedQuestions;
use super::execute::run_tool_calls;
use super::exposing::{Exposing, offer};
use super::handle::Questions;
use super::journal::{Journal, store_error};
use super::repeats::Repeats;
use super::step::{OpenStep, Reply, cut_before_answer, stream_step};
use super::{Place, TurnInput};
use crate::event::{Event, EventKind, TurnError, TurnErrorCode, TurnOutcome};
use crate::exposure::ExposureReason;
use crate::fit::shorten::Cuts;
use crate::ids::ToolCallId;
use crate::model::{FinishReason, ModelErrorCode};
use crate::store::{StoreError, StoredSummary, TurnKey};

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
    /// What was offered to the model so far.
    pub exposing: Exposing,
    /// The calls so far.
    pub repeats: Repeats,
    /// What stands for the oldest messages.
    pub summary: Option<StoredSummary>,
    /// Tool results of which the model gets a part.
    pub cuts: Cuts,
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
            exposing: Exposing::default(),
            repeats: Repeats::default(),
            summary: None,
            cuts: Cuts::default(),
            open_step: None,
            input,
            key,
            place,
        }
    }

    /// What came of a reply that broke off is kept.
    fn close_step(&mut self, outcome: &TurnOutcome) {
        if let Some(step) = self.open_step.take() {
            step.close(&self.journal, outcome);
        }
    }

    /// Settles what is open and tells the outcome; only the first one counts.
    fn end(&mut self, outcome: TurnOutcome) {
        self.close_step(&outcome);
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
    remember(turn).map_err(|error| store_error(&error))?;
    let mut asked_again = false;
    for step in 0..turn.input.max_steps {
        let offer = offer(turn).await?;
        let forced = offer.is_forced();
        let may_ask_again = !asked_again && step + 1 < turn.input.max_steps && turn.repeats.any();
        let reply = match stream_step(turn, step, offer).await {
            Ok(reply) => reply,
            // Some providers tell an empty answer as an error.
            Err(error) if may_ask_again && error.code == EMPTY => {
                turn.close_step(&TurnOutcome::Failed { error });
                asked_again = true;
                ask_again(turn);
                continue;
            }
            Err(error) => return Err(error),
        };
        if reply.message.has_tool_calls() {
            ahead::of_answer(turn).await;
        }
        run_tool_calls(turn, &reply).await?;
        if turn.cancel.is_cancelled() || reply.message.incomplete {
            return Ok(TurnOutcome::Cancelled);
        }
        if is_handed_over(turn, &reply) {
            return Ok(TurnOutcome::Completed);
        }
        if reply.message.has_tool_calls() {
            if forced {
                return Ok(TurnOutcome::StepLimit);
            }
            watch_circles(turn);
            continue;
        }
        if !(may_ask_again && reply.message.says_nothing()) {
            return completed(turn, &reply);
        }
        asked_again = true;
        ask_again(turn);
    }
    Ok(TurnOutcome::StepLimit)
}

const EMPTY: TurnErrorCode = TurnErrorCode::Model(ModelErrorCode::EmptyAnswer);

/// The model asks for no tool any more.
fn completed(turn: &mut Turn, reply: &Reply) -> Result<TurnOutcome, TurnError> {
    if reply.finish == FinishReason::Length && reply.message.says_nothing() {
        return Err(cut_before_answer());
    }
    if reply.tools.is_empty() {
        ahead::of_question(turn);
    }
    Ok(TurnOutcome::Completed)
}

/// Whether somebody else runs a call of this step. The turn can't go on without its result.
fn is_handed_over(turn: &Turn, reply: &Reply) -> bool {
    reply.message.tool_calls().any(|call| turn.input.tools.hands_over(&call.tool))
}

/// A model that says nothing after its tools is asked once more, without them.
fn ask_again(turn: &mut Turn) {
    turn.input.thinking.enabled = turn.input.thinking.enabled.and(Some(false));
    turn.exposing.end_tools(ExposureReason::EmptyAnswer);
    let message = "the model answered nothing after its tools; it is asked once more without them";
    turn.journal.tell(EventKind::Notice { code: "empty_answer".to_owned(), message: message.to_owned() });
}

/// What earlier turns left that this one goes on with.
fn remember(turn: &mut Turn) -> Result<(), StoreError> {
    let (store, conversation) = (&turn.input.store, &turn.key.conversation);
    turn.call_ids.extend(store.call_ids(conversation)?);
    turn.summary = store.summary(conversation)?;
    turn.cuts = store.cuts(conversation)?;
    Ok(())
}

/// A model that only makes calls which it made before has to answer.
fn watch_circles(turn: &mut Turn) {
    if turn.repeats.out_of_patience() {
        turn.exposing.end_tools(ExposureReason::Repeating);
        let message = "the model repeats its calls; it has to answer without tools now";
        turn.journal.tell(EventKind::Notice { code: "repeating".to_owned(), message: message.to_owned() });
    }
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
