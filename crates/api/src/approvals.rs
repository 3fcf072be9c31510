//! Calls that wait for the user's yes: in the window, or over the API with a key that may answer.
//!
//! Invariant: a call whose answer nobody can give is refused at once; none waits for ever, and none outlives its turn.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lectern_core::{Grant, PermissionAnswer, Timestamp, ToolCall, TurnHandle, clock};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The calls that wait. Clones are the same.
#[derive(Clone, Default)]
pub struct Approvals(Arc<Inner>);

#[derive(Default)]
struct Inner {
    // A std mutex: nothing awaits while it is held.
    waiting: Mutex<BTreeMap<String, Waiting>>,
    windows: AtomicUsize,
    changes: watch::Sender<()>,
}

/// A call that waits.
#[derive(Clone)]
pub struct Waiting {
    /// Names it.
    pub id: String,
    /// The name of the key whose request it belongs to.
    pub key: Arc<str>,
    /// The session, when it has one.
    pub session: Option<String>,
    /// The call.
    pub call: ToolCall,
    /// The answers that are offered.
    pub choices: Vec<Grant>,
    /// When it is denied by itself.
    pub until: Timestamp,
    turn: TurnHandle,
}

/// Somebody who answers, until it is dropped.
pub struct Attended(Approvals);

/// A place among the calls that wait; given up when it is dropped.
pub struct Place {
    approvals: Approvals,
    /// Names it.
    pub id: String,
}

impl Approvals {
    /// From now on somebody looks at what waits.
    pub fn attend(&self) -> Attended {
        self.0.windows.fetch_add(1, Ordering::Relaxed);
        Attended(self.clone())
    }

    /// Whether somebody looks.
    pub fn is_attended(&self) -> bool {
        self.0.windows.load(Ordering::Relaxed) > 0
    }

    /// Fires when something changed.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }

    /// All that wait, the oldest first.
    pub fn waiting(&self) -> Vec<Waiting> {
        self.open().values().cloned().collect()
    }

    /// Puts a call among those that wait, so long at most.
    pub fn ask(
        &self,
        turn: &TurnHandle,
        key: Arc<str>,
        session: Option<String>,
        call: ToolCall,
        choices: Vec<Grant>,
        patience: Duration,
    ) -> Place {
        // Later ids sort after earlier ones.
        let id = format!("apr_{}", uuid::Uuid::now_v7().simple());
        let now = clock::now();
        let until = now.checked_add(patience).unwrap_or(now);
        let waiting = Waiting { id: id.clone(), key, session, call, choices, until, turn: turn.clone() };
        self.open().insert(id.clone(), waiting);
        self.tell();
        Place { approvals: self.clone(), id }
    }

    /// Answers. False when nothing of this id waits any more.
    pub fn answer(&self, id: &str, answer: PermissionAnswer) -> bool {
        let Some(waiting) = self.open().remove(id) else { return false };
        self.tell();
        waiting.turn.answer_permission(&waiting.call.id, answer).is_ok()
    }

    /// One that waits.
    pub fn get(&self, id: &str) -> Option<Waiting> {
        self.open().get(id).cloned()
    }

    fn tell(&self) {
        self.0.changes.send_replace(());
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Waiting>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// As a client sees it.
    pub fn view(&self) -> Value {
        json!({
            "id": self.id,
            "key": &*self.key,
            "session_id": self.session,
            "tool_call_id": self.call.id,
            "tool": self.call.tool,
            "arguments": self.call.arguments,
            "choices": self.choices,
        })
    }
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approvals").field("waiting", &self.open().len()).finish_non_exhaustive()
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        self.0.0.windows.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.approvals.open().remove(&self.id).is_some() {
            self.approvals.tell();
        }
    }
}
