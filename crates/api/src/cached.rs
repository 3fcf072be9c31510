//! Results of tools that only read, for a few seconds.
//!
//! Invariant: what a tool gave is only given again to the same key, in the same session or in another that nobody named,
//! for the same arguments, and only when the server says that the tool changes nothing and reaches nothing beyond this
//! computer, and the user trusts the server. A call of any other tool makes all of it old. Which session is answered is
//! not a part of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lectern_core::{JsonObject, ToolCallId, ToolSpec, TurnId};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// How long a result is good.
pub const FRESH: Duration = Duration::from_secs(10);

/// Results at most, and bytes of all of them, and of one.
const MOST: usize = 256;
const MOST_BYTES: usize = 32 << 20;
const LARGEST: usize = 2 << 20;

/// The results.
#[derive(Default)]
pub struct Cached(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    results: HashMap<Question, Answer>,
    bytes: usize,
    /// Counts what may have changed something.
    changes: u64,
}

/// What was asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Question([u8; 32]);

/// What was answered.
#[derive(Clone)]
pub struct Answer {
    /// Its tag, with quotation marks.
    pub tag: String,
    /// What the tool gave.
    pub result: Arc<Value>,
    /// The call that gave it, and its turn, as the audit log has them.
    pub call: (TurnId, ToolCallId),
    bytes: usize,
    at: Instant,
}

impl Answer {
    /// What a call gave now.
    pub fn new(result: Value, call: (TurnId, ToolCallId)) -> Self {
        let written = result.to_string();
        // Ids differ from call to call; the tag is of what the tool said.
        let tag = tag(written.as_bytes());
        Self { tag, result: Arc::new(result), call, bytes: written.len(), at: Instant::now() }
    }
}

impl Question {
    /// By a key, in a session, to a tool as it is now.
    pub fn new(key: &str, session: &str, tool: &ToolSpec, arguments: &JsonObject) -> Self {
        let mut hasher = Sha256::new();
        // Values of ours always have a text.
        let words = serde_json::to_vec(&(key, session, tool, arguments)).unwrap_or_default();
        hasher.update(words);
        Self(hasher.finalize().into())
    }
}

/// Whether the same question has the same answer for a while.
pub fn may_keep(tool: &ToolSpec) -> bool {
    let hints = &tool.annotations;
    tool.is_read_only() && hints.open_world != Some(true) && hints.idempotent != Some(false)
}

/// A body's tag.
pub fn tag(body: &[u8]) -> String {
    let digest: String = Sha256::digest(body)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digest}\"")
}

impl Cached {
    /// The answer to a question, while it is good.
    pub fn get(&self, question: &Question) -> Option<Answer> {
        self.open().results.get(question).filter(|answer| answer.at.elapsed() < FRESH).cloned()
    }

    /// Where the changes are now; given back with the answer.
    pub fn begin(&self) -> u64 {
        self.open().changes
    }

    /// Keeps an answer, unless something may have changed since its call began.
    pub fn keep(&self, question: Question, answer: Answer, begun: u64) {
        let mut kept = self.open();
        if answer.bytes > LARGEST || kept.changes != begun {
            return;
        }
        kept.results.retain(|_, answer| answer.at.elapsed() < FRESH);
        kept.bytes = kept.results.values().map(|answer| answer.bytes).sum();
        if kept.results.len() >= MOST || kept.bytes + answer.bytes > MOST_BYTES {
            return;
        }
        kept.bytes += answer.bytes;
        kept.results.insert(question, answer);
    }

    /// Something may have changed.
    pub fn changed(&self) {
        let mut kept = self.open();
        kept.changes += 1;
        kept.results.clear();
    }

    // A std mutex: nothing awaits while it is held.
    fn open(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
