//! Who uses which session now.
//!
//! Invariant: while something is done to a session as a whole, nobody begins to use it; what is in use is left alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lectern_core::{ConversationId, ToolProvider};

use crate::error::ApiError;

/// Sessions that are not in use and keep their processes, at most.
const MOST_RESTING: usize = 16;

/// The sessions that are in use, and those that have processes of servers. Clones are the same.
#[derive(Clone, Default)]
pub struct Uses(Arc<Mutex<HashMap<ConversationId, Use>>>);

struct Use {
    count: usize,
    since: Instant,
    tools: Option<Arc<dyn ToolProvider>>,
}

/// A session is in use until this is dropped.
pub struct InUse {
    uses: Uses,
    conversation: ConversationId,
}

impl Uses {
    /// Begins to use a session, once it is ready.
    pub fn begin(
        &self,
        conversation: &ConversationId,
        ready: impl FnOnce() -> Result<(), ApiError>,
    ) -> Result<Arc<InUse>, ApiError> {
        let mut uses = self.open();
        ready()?;
        let fresh = || Use { count: 0, since: Instant::now(), tools: None };
        uses.entry(conversation.clone()).or_insert_with(fresh).count += 1;
        Ok(Arc::new(InUse { uses: self.clone(), conversation: conversation.clone() }))
    }

    /// Does something to a session as a whole; none while it is in use. Its processes end.
    pub fn end<T>(&self, conversation: &ConversationId, act: impl FnOnce() -> T) -> Option<T> {
        let mut uses = self.open();
        if uses.get(conversation).is_some_and(|one| one.count > 0) {
            return None;
        }
        uses.remove(conversation);
        Some(act())
    }

    /// Ends the processes of sessions that nobody used for so long.
    pub fn rest(&self, longest: Duration) {
        self.open().retain(|_, one| one.count > 0 || one.since.elapsed() < longest);
    }

    // A std mutex: nothing awaits while it is held.
    fn open(&self) -> MutexGuard<'_, HashMap<ConversationId, Use>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InUse {
    /// The session's tools, made when they are asked for first.
    pub fn tools(&self, make: impl FnOnce() -> Arc<dyn ToolProvider>) -> Arc<dyn ToolProvider> {
        let mut uses = self.uses.open();
        let tools = match uses.get_mut(&self.conversation) {
            Some(one) => Arc::clone(one.tools.get_or_insert_with(make)),
            None => make(),
        };
        let resting = uses.iter().filter(|(_, one)| one.count == 0 && one.tools.is_some());
        if resting.clone().count() > MOST_RESTING {
            let oldest =
                resting.min_by_key(|(_, one)| one.since).map(|(conversation, _)| conversation.clone());
            oldest.and_then(|oldest| uses.remove(&oldest));
        }
        tools
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(one) = self.uses.open().get_mut(&self.conversation) {
            one.count = one.count.saturating_sub(1);
            one.since = Instant::now();
        }
    }
}
