//! The replies that stand in a slot's tokens, so that a later prompt goes on from the very tokens that were generated.
//!
//! Invariant: the text before each reply is a beginning of the text before the next one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::told::Telling;

/// A reply that was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    /// Its place among the messages.
    pub(super) place: usize,
    /// The text it was generated as.
    pub(super) raw: String,
    /// The text of the prompt, up to the place where the reply begins.
    pub(super) base: String,
}

/// Replies, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct History {
    /// The text before the last reply.
    base: String,
    replies: Vec<Written>,
    /// Which questions tell of which tools.
    #[serde(default)]
    pub(super) told: Vec<Telling>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Written {
    place: usize,
    raw: String,
    /// Bytes of `base` that stand before it.
    base: usize,
    /// Tokens up to its end.
    end: usize,
}

impl History {
    /// Adds a reply that ends with the token before `end`.
    pub(super) fn push(&mut self, record: Record, end: usize) {
        let Record { place, raw, base } = record;
        let old = std::mem::take(&mut self.base);
        self.replies.retain(|reply| {
            reply.place < place && old.get(..reply.base).is_some_and(|before| base.starts_with(before))
        });
        self.replies.push(Written { place, raw, base: base.len(), end });
        self.base = base;
    }

    /// Only so many tokens stay as they were.
    pub(super) fn keep(&mut self, tokens: usize) {
        self.replies.retain(|reply| reply.end <= tokens);
        let length = self.replies.last().map_or(0, |reply| reply.base);
        self.base.truncate(length);
    }

    /// The last reply that stands in these messages: its place, the text before it, the tokens up to its end.
    pub(super) fn continued_at(&self, messages: &[Value]) -> Option<(usize, &str, usize)> {
        let stands =
            |reply: &&Written| messages.get(reply.place).is_some_and(|message| message["raw"] == *reply.raw);
        let reply = self.replies.iter().rev().find(stands)?;
        Some((reply.place, self.base.get(..reply.base)?, reply.end))
    }

    /// Whether the last reply is none of these messages.
    pub(super) fn is_unknown_to(&self, messages: &[Value]) -> bool {
        self.replies.last().is_some_and(|last| !messages.iter().any(|message| message["raw"] == *last.raw))
    }

    /// Whether every number in it is one of a slot with so many tokens.
    pub(super) fn fits(&self, tokens: usize) -> bool {
        self.replies.iter().all(|reply| reply.end <= tokens && self.base.is_char_boundary(reply.base))
    }
}
