//! Which conversation of the caches a request goes on with: the one whose messages it begins with.
//!
//! Invariant: two keys never share a conversation, and no two requests that run at once do. Nothing but speed depends on
//! what is found here.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lectern_core::{ConversationId, Message};
use sha2::{Digest, Sha256};

/// Beginnings that are known at most.
const KNOWN: usize = 512;

type Mark = [u8; 32];

/// What was asked before. Clones are the same.
#[derive(Clone, Default)]
pub struct Prefixes(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    known: HashMap<Mark, Known>,
    running: HashSet<ConversationId>,
    /// Counts the requests, to tell old from new.
    clock: u64,
    /// Conversations that no beginning leads to any more.
    forgotten: Vec<ConversationId>,
}

struct Known {
    conversation: ConversationId,
    used: u64,
}

/// A conversation that one request has for itself while it runs.
pub struct Lease {
    prefixes: Prefixes,
    conversation: ConversationId,
    mark: Mark,
}

impl Prefixes {
    /// The conversation with the longest beginning of these messages, else a new one.
    pub fn lease(&self, key: &str, model: &str, messages: &[Message]) -> Lease {
        let marks = marks(key, model, messages);
        let mut table = self.table();
        let found = marks.iter().rev().find_map(|mark| {
            let conversation = &table.known.get(mark)?.conversation;
            (!table.running.contains(conversation)).then(|| conversation.clone())
        });
        let conversation = found.unwrap_or_else(ConversationId::fresh);
        table.running.insert(conversation.clone());
        drop(table);
        // There is always a mark: that of no message at all.
        let mark = marks.last().copied().unwrap_or_default();
        Lease { prefixes: self.clone(), conversation, mark }
    }

    /// The conversations that are of no use any more; each is given once.
    pub fn take_forgotten(&self) -> Vec<ConversationId> {
        std::mem::take(&mut self.table().forgotten)
    }

    /// All conversations; none is known afterwards.
    pub fn take_all(&self) -> Vec<ConversationId> {
        let mut table = self.table();
        let known: HashSet<ConversationId> =
            table.known.drain().map(|(_, known)| known.conversation).collect();
        known.into_iter().chain(std::mem::take(&mut table.forgotten)).collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// The conversation.
    pub fn conversation(&self) -> &ConversationId {
        &self.conversation
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut table = self.prefixes.table();
        table.running.remove(&self.conversation);
        table.clock += 1;
        let used = table.clock;
        let known = Known { conversation: self.conversation.clone(), used };
        if let Some(before) = table.known.insert(self.mark, known) {
            table.let_go(before.conversation);
        }
        table.shrink();
    }
}

impl Table {
    fn shrink(&mut self) {
        if self.known.len() <= KNOWN {
            return;
        }
        let oldest = self.known.iter().min_by_key(|(_, known)| known.used).map(|(mark, _)| *mark);
        if let Some(gone) = oldest.and_then(|mark| self.known.remove(&mark)) {
            self.let_go(gone.conversation);
        }
    }

    /// One beginning leads there no more; the last one takes the conversation along.
    fn let_go(&mut self, conversation: ConversationId) {
        let reached = self.known.values().any(|known| known.conversation == conversation);
        if !reached && !self.running.contains(&conversation) {
            self.forgotten.push(conversation);
        }
    }
}

/// A mark for each beginning, the shortest first; that of nothing is left out, so that it is no beginning of all.
fn marks(key: &str, model: &str, messages: &[Message]) -> Vec<Mark> {
    let mut hasher = Sha256::new();
    for text in [key, model] {
        hasher.update(text.len().to_le_bytes());
        hasher.update(text);
    }
    let mark = |message: &Message| {
        // Messages of ours always have a text.
        hasher.update(serde_json::to_vec(message).unwrap_or_default());
        hasher.update([0]);
        hasher.clone().finalize().into()
    };
    messages.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use lectern_core::UserMessage;

    use super::*;

    fn says(texts: &[&str]) -> Vec<Message> {
        texts.iter().map(|text| Message::User(UserMessage::text(*text))).collect()
    }

    fn ask(prefixes: &Prefixes, key: &str, texts: &[&str]) -> ConversationId {
        prefixes.lease(key, "m", &says(texts)).conversation().clone()
    }

    #[test]
    fn a_request_goes_on_where_its_beginning_stopped() {
        let prefixes = Prefixes::default();
        let first = ask(&prefixes, "a", &["one"]);
        let second = ask(&prefixes, "a", &["one", "two", "three"]);
        assert_eq!(first, second);
        assert_eq!(ask(&prefixes, "a", &["one", "two", "three", "four"]), first);
        assert_ne!(ask(&prefixes, "a", &["two"]), first);
        assert_ne!(ask(&prefixes, "b", &["one"]), first);
    }

    #[test]
    fn requests_that_run_at_once_have_each_their_own() {
        let prefixes = Prefixes::default();
        let one = prefixes.lease("a", "m", &says(&["one"]));
        drop(prefixes.lease("a", "m", &says(&["one"])));
        let other = prefixes.lease("a", "m", &says(&["one", "more"]));
        assert_ne!(one.conversation(), other.conversation());
    }

    #[test]
    fn what_is_pushed_out_is_given_back_once() {
        let prefixes = Prefixes::default();
        let first = ask(&prefixes, "a", &["first"]);
        for number in 0..KNOWN {
            ask(&prefixes, "a", &[&number.to_string()]);
        }
        assert_eq!(prefixes.take_forgotten(), [first]);
        assert_eq!(prefixes.take_forgotten(), []);
        assert_eq!(prefixes.take_all().len(), KNOWN);
    }
}
