//! How others follow and steer a running turn.
//!
//! Invariant: every follower sees every event from where it attached, in order; a slow one loses nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::asked::{AnswerRefused, AskedQuestions};
use crate::event::{Event, EventKind, TurnError, TurnOutcome};
use crate::ids::{ConversationId, QuestionId, ToolCallId, TurnId};
use crate::permission::PermissionAnswer;
use crate::question::QuestionAnswer;
use crate::store::TurnKey;

/// A running (or finished) turn. Clones are the same turn.
#[derive(Clone)]
pub struct TurnHandle(Arc<Shared>);

struct Shared {
    key: TurnKey,
    cancel: CancellationToken,
    log: Arc<EventLog>,
    questions: Arc<Questions>,
    asked: Arc<AskedQuestions>,
}

/// The answer came too late, or the call never asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the call asks for no permission now")]
pub struct NotAsked;

impl TurnHandle {
    pub(super) fn new(key: TurnKey, cancel: CancellationToken) -> Self {
        Self(Arc::new(Shared {
            key,
            cancel,
            log: Arc::default(),
            questions: Arc::default(),
            asked: Arc::default(),
        }))
    }

    /// The conversation.
    pub fn conversation(&self) -> &ConversationId {
        &self.0.key.conversation
    }

    /// The turn.
    pub fn turn(&self) -> &TurnId {
        &self.0.key.turn
    }

    /// All events from the first one on.
    pub fn events(&self) -> Events {
        self.events_from(0)
    }

    /// The events whose `seq` is `seq` or more, those to come included.
    pub fn events_from(&self, seq: u64) -> Events {
        let news = self.0.log.length.subscribe();
        Events { log: self.0.log.clone(), next: usize::try_from(seq).unwrap_or(usize::MAX), news }
    }

    /// Stops the turn. It still settles its calls and sends `TurnFinished`.
    pub fn cancel(&self) {
        self.0.cancel.cancel();
    }

    /// Whether it was told to stop; it may still settle its calls.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancel.is_cancelled()
    }

    /// Answers a `PermissionRequested`.
    pub fn answer_permission(&self, call: &ToolCallId, answer: PermissionAnswer) -> Result<(), NotAsked> {
        let sender = self.0.questions.open().remove(call).ok_or(NotAsked)?;
        sender.send(answer).map_err(|_| NotAsked)
    }

    /// Answers a `QuestionAsked`. An answer that does not fit its form is refused, and the question stays open.
    pub fn answer_question(&self, id: &QuestionId, answer: QuestionAnswer) -> Result<(), AnswerRefused> {
        self.0.asked.answer(id, answer)
    }

    /// Waits for the end.
    pub async fn finished(&self) -> TurnOutcome {
        let mut length = self.0.log.length.subscribe();
        // The sender lives in the log that `self` holds, so waiting can't fail.
        let _ = length.wait_for(|length| length.closed).await;
        match self.0.log.events().last().map(|event| event.kind.clone()) {
            Some(EventKind::TurnFinished { outcome }) => outcome,
            // The runtime was shut down before the turn began; the store repairs it when it is opened next.
            Some(_) | None => TurnOutcome::Failed { error: TurnError::interrupted() },
        }
    }

    pub(super) fn log(&self) -> &Arc<EventLog> {
        &self.0.log
    }

    pub(super) fn questions(&self) -> &Arc<Questions> {
        &self.0.questions
    }

    pub(super) fn asked(&self) -> &Arc<AskedQuestions> {
        &self.0.asked
    }

    pub(super) fn cancel_token(&self) -> &CancellationToken {
        &self.0.cancel
    }
}

/// Follows a turn's events.
pub struct Events {
    log: Arc<EventLog>,
    next: usize,
    news: watch::Receiver<Length>,
}

impl Events {
    /// The next event; none after `TurnFinished`.
    pub async fn next(&mut self) -> Option<Event> {
        self.wait().await?;
        let event = self.log.events().get(self.next).cloned()?;
        self.next += 1;
        Some(event)
    }

    /// Waits for the next event and gives it together with all that are there by then; empty after `TurnFinished`.
    pub async fn next_batch(&mut self) -> Vec<Event> {
        if self.wait().await.is_none() {
            return Vec::new();
        }
        self.ready()
    }

    /// What is there now, without waiting.
    pub fn ready(&mut self) -> Vec<Event> {
        let batch: Vec<Event> = self.log.events().get(self.next..).unwrap_or_default().to_vec();
        self.next += batch.len();
        batch
    }

    async fn wait(&mut self) -> Option<()> {
        let next = self.next;
        let length = *self.news.wait_for(|length| length.events > next || length.closed).await.ok()?;
        (length.events > next).then_some(())
    }
}

/// All events of a turn, kept in memory until the last handle is dropped.
#[derive(Default)]
pub(super) struct EventLog {
    // Entry n has seq n. A std mutex: nothing awaits while it is held.
    events: Mutex<Vec<Event>>,
    length: watch::Sender<Length>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Length {
    events: usize,
    closed: bool,
}

impl EventLog {
    pub fn push(&self, event: Event) {
        let last = matches!(event.kind, EventKind::TurnFinished { .. });
        let events = {
            let mut events = self.events();
            events.push(event);
            events.len()
        };
        self.length.send_modify(|length| {
            length.events = events;
            length.closed |= last;
        });
    }

    /// No more will come.
    pub fn close(&self) {
        self.length.send_modify(|length| length.closed = true);
    }

    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calls that wait for the user.
#[derive(Default)]
pub(super) struct Questions(Mutex<HashMap<ToolCallId, oneshot::Sender<PermissionAnswer>>>);

impl Questions {
    /// Opens a question. The receiver fails when the question is withdrawn.
    pub fn ask(&self, call: &ToolCallId) -> oneshot::Receiver<PermissionAnswer> {
        let (sender, receiver) = oneshot::channel();
        self.open().insert(call.clone(), sender);
        receiver
    }

    pub fn withdraw(&self, call: &ToolCallId) {
        self.open().remove(call);
    }

    fn open(&self) -> MutexGuard<'_, HashMap<ToolCallId, oneshot::Sender<PermissionAnswer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
