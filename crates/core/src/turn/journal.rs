//! Writes down what happens in a turn: to the store first, then to those who follow.
//!
//! Invariant: `seq` has no gap; a message and the events that tell of it are stored together; each open call is
//! settled exactly once, and its result stored in call order; nothing comes after `TurnFinished`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::handle::EventLog;
use crate::clock;
use crate::event::{Event, EventKind, StepStats, TurnError, TurnErrorCode, TurnOutcome};
use crate::ids::MessageId;
use crate::message::{AssistantMessage, Message, ToolCall, ToolOutcome, ToolResult};
use crate::model::FinishReason;
use crate::store::{Store, StoreError, TurnKey, TurnWrite};

pub(super) struct Journal {
    store: Store,
    key: TurnKey,
    log: Arc<EventLog>,
    // A std mutex: nothing awaits while it is held.
    page: Mutex<Page>,
}

#[derive(Default)]
struct Page {
    next_seq: u64,
    /// Told already, stored with the next write.
    unsaved: Vec<Event>,
    /// The calls of the current step, in call order.
    open: Vec<OpenCall>,
    /// The first failure of the store.
    failure: Option<TurnError>,
    finished: bool,
}

struct OpenCall {
    call: ToolCall,
    message_id: MessageId,
    state: CallState,
}

enum CallState {
    Running,
    Settled(ToolResult),
    Stored,
}

/// When an event has to be in the store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// Before anyone hears of it.
    Now,
    /// With the next write.
    Soon,
    /// Never; `StepFinished` or `ToolFinished` says it all.
    No,
}

impl Journal {
    /// Begins with `TurnStarted`, which is stored already.
    pub fn new(store: Store, key: TurnKey, log: Arc<EventLog>, first: Event) -> Self {
        log.push(first);
        Self { store, key, log, page: Mutex::new(Page { next_seq: 1, ..Page::default() }) }
    }

    /// Tells an event. A failure of the store is kept for [`Journal::check`].
    pub fn tell(&self, kind: EventKind) {
        let page = &mut *self.page();
        if page.finished {
            return;
        }
        let keep = keep_of(&kind);
        let event = self.event(page, kind);
        if keep != Keep::No {
            page.unsaved.push(event.clone());
        }
        if keep == Keep::Now {
            self.write(page, TurnWrite::default());
        }
        self.log.push(event);
    }

    /// Stores the message of a step and opens its calls.
    pub fn finish_step(
        &self,
        step: u32,
        message: AssistantMessage,
        finish: FinishReason,
        stats: StepStats,
    ) -> Result<(), TurnError> {
        let page = &mut *self.page();
        let message_id = MessageId::fresh();
        page.open = message.tool_calls().map(OpenCall::new).collect();
        let kind = EventKind::StepFinished {
            step,
            message_id: message_id.clone(),
            message: message.clone(),
            finish,
            stats,
        };
        let event = self.event(page, kind);
        page.unsaved.push(event.clone());
        let messages = vec![(&message_id, Message::Assistant(message))];
        self.write(page, TurnWrite { messages, drop_draft: true, ..TurnWrite::default() });
        self.log.push(event);
        page.check()
    }

    /// Settles a call of the current step; only the first result of a call counts.
    pub fn settle(&self, result: ToolResult) {
        self.settle_in(&mut self.page(), result);
    }

    fn settle_in(&self, page: &mut Page, result: ToolResult) {
        let slot = page.open.iter_mut().find(|open| open.call.id == result.call);
        let Some(slot) = slot.filter(|slot| matches!(slot.state, CallState::Running)) else { return };
        slot.state = CallState::Settled(result.clone());
        let message_id = slot.message_id.clone();
        let event = self.event(page, EventKind::ToolFinished { message_id, result });
        page.unsaved.push(event.clone());
        let ready = page.take_ready();
        let messages = ready.iter().map(|(id, result)| (id, Message::Tool(result.clone()))).collect();
        self.write(page, TurnWrite { messages, ..TurnWrite::default() });
        self.log.push(event);
    }

    /// The first failure of the store, if there was one.
    pub fn check(&self) -> Result<(), TurnError> {
        self.page().check()
    }

    /// Makes the turn fail; only the first failure counts.
    pub fn fail(&self, error: TurnError) {
        self.page().failure.get_or_insert(error);
    }

    /// Keeps what a running step has so far.
    pub fn save_draft(&self, step: u32, draft: &AssistantMessage) {
        let page = &mut *self.page();
        let seq = page.next_seq - 1;
        // The events before it too: recovery looks for the step's start.
        if !page.unsaved.is_empty() {
            self.write(page, TurnWrite::default());
        }
        if let Err(error) = self.store.save_draft(&self.key.turn, step, seq, draft) {
            page.fail(&error);
        }
    }

    /// Settles what is still open and ends the turn. `before_telling` runs when all is stored, just before
    /// `TurnFinished` is told.
    pub fn finish(&self, outcome: TurnOutcome, before_telling: impl FnOnce()) {
        let page = &mut *self.page();
        if page.finished {
            return;
        }
        for call in page.running() {
            self.settle_in(page, ToolResult::of(&call, ToolOutcome::Cancelled, unsettled(&outcome)));
        }
        let outcome = page.failure.clone().map_or(outcome, |error| TurnOutcome::Failed { error });
        let event = self.event(page, EventKind::TurnFinished { outcome });
        page.unsaved.push(event.clone());
        self.write(page, TurnWrite { drop_draft: true, finished: true, ..TurnWrite::default() });
        page.finished = true;
        before_telling();
        self.log.push(event);
    }

    fn event(&self, page: &mut Page, kind: EventKind) -> Event {
        let seq = page.next_seq;
        page.next_seq += 1;
        let TurnKey { conversation, turn } = self.key.clone();
        Event { conversation, turn, seq, at: clock::now(), kind }
    }

    fn write(&self, page: &mut Page, write: TurnWrite<'_>) {
        let events = std::mem::take(&mut page.unsaved);
        if let Err(error) = self.store.write_turn(&self.key, &TurnWrite { events: &events, ..write }) {
            page.fail(&error);
        }
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Page {
    fn running(&self) -> Vec<ToolCall> {
        let running = self.open.iter().filter(|open| matches!(open.state, CallState::Running));
        running.map(|open| open.call.clone()).collect()
    }

    /// The results that no unsettled call stands before.
    fn take_ready(&mut self) -> Vec<(MessageId, ToolResult)> {
        let mut ready = Vec::new();
        for open in &mut self.open {
            match std::mem::replace(&mut open.state, CallState::Stored) {
                CallState::Settled(result) => ready.push((open.message_id.clone(), result)),
                CallState::Stored => {}
                CallState::Running => {
                    open.state = CallState::Running;
                    break;
                }
            }
        }
        ready
    }

    fn fail(&mut self, error: &StoreError) {
        tracing::error!(%error, "the turn can't be stored");
        self.failure.get_or_insert_with(|| store_error(error));
    }

    fn check(&self) -> Result<(), TurnError> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}

impl OpenCall {
    fn new(call: &ToolCall) -> Self {
        Self { call: call.clone(), message_id: MessageId::fresh(), state: CallState::Running }
    }
}

/// The store's failure as the turn's.
pub(super) fn store_error(error: &StoreError) -> TurnError {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    TurnError {
        code: TurnErrorCode::Store,
        message: format!("{error}{source}"),
        hint: Some(error.hint().unwrap_or("Check that the disk has room and can be written to.").to_owned()),
        detail: None,
    }
}

fn unsettled(outcome: &TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::Cancelled => "The user stopped before this call was done.",
        TurnOutcome::Failed { .. } => "The turn failed before this call was done.",
        TurnOutcome::Completed | TurnOutcome::StepLimit => "This call was not run.",
    }
}

fn keep_of(kind: &EventKind) -> Keep {
    match kind {
        EventKind::TurnStarted { .. }
        | EventKind::StepFinished { .. }
        | EventKind::PermissionRequested { .. }
        | EventKind::PermissionAnswered { .. }
        | EventKind::ToolStarted { .. }
        | EventKind::QuestionAsked { .. }
        | EventKind::QuestionAnswered { .. }
        | EventKind::SampleFinished { .. }
        | EventKind::ToolFinished { .. }
        | EventKind::TurnFinished { .. } => Keep::Now,
        EventKind::StepStarted { .. }
        | EventKind::ToolProgress { .. }
        | EventKind::ToolWire { .. }
        | EventKind::ToolLog { .. }
        | EventKind::Retrying { .. }
        | EventKind::Notice { .. } => Keep::Soon,
        EventKind::ModelLoading { .. }
        | EventKind::PromptProgress { .. }
        | EventKind::TextDelta { .. }
        | EventKind::ThinkingDelta { .. }
        | EventKind::ToolCallDelta { .. } => Keep::No,
    }
}

#[cfg(test)]
mod tests;
