//! Which sequence of the cache holds which conversation.
//!
//! A sequence knows its tokens, the generated ones included, so that text which is rendered and tokenized again
//! never breaks a cached prefix. Invariant: pure bookkeeping; the cache itself is changed by the caller.

use llama_cpp_2::token::LlamaToken;
use serde_json::Value;

/// A sequence of the cache.
#[derive(Debug, Default)]
pub(super) struct Slot {
    conversation: Option<String>,
    /// Prompt and reply.
    pub(super) tokens: Vec<LlamaToken>,
    /// How many of `tokens` are in the cache.
    pub(super) cached: usize,
    record: Option<Record>,
    last_use: u64,
}

/// The request that `tokens` stand for, and the reply.
#[derive(Debug, PartialEq)]
pub(super) struct Record {
    pub(super) tools: Vec<Value>,
    pub(super) messages: Vec<Value>,
    pub(super) raw: String,
    /// The text of the prompt, up to the place where the reply begins.
    pub(super) base: String,
}

impl Slot {
    /// Whether these messages continue the recorded reply; then the place of that reply among them, and the text
    /// that stood before it.
    pub(super) fn continued_at(&self, tools: &[Value], messages: &[Value]) -> Option<(usize, &str)> {
        let record = self.record.as_ref()?;
        let place = record.messages.len();
        let reply = messages.get(place)?;
        let same = record.tools == tools
            && messages[..place] == record.messages[..]
            && reply.get("raw").and_then(Value::as_str) == Some(record.raw.as_str());
        same.then_some((place, record.base.as_str()))
    }

    /// How many of these tokens the cache can keep; the last one is always evaluated, for its logits.
    pub(super) fn reusable(&self, tokens: &[LlamaToken]) -> usize {
        common_prefix(&self.tokens[..self.cached], tokens).min(tokens.len().saturating_sub(1))
    }

    /// Notes what the tokens now stand for; none when they say more than the reply.
    pub(super) fn set_record(&mut self, record: Option<Record>) {
        self.record = record;
    }

    /// Begins anew with these tokens, of which some are cached.
    pub(super) fn begin(&mut self, tokens: Vec<LlamaToken>, cached: usize) {
        self.tokens = tokens;
        self.cached = cached;
        self.record = None;
    }
}

/// The sequences of a context.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    clock: u64,
}

impl Slots {
    /// So many empty sequences.
    pub(super) fn new(count: u32) -> Self {
        Self { slots: (0..count.max(1)).map(|_| Slot::default()).collect(), clock: 0 }
    }

    /// The slot of a conversation: its own, a free one, or the one unused for longest.
    pub(super) fn of(&mut self, conversation: &str) -> usize {
        self.clock += 1;
        let own = self.slots.iter().position(|slot| slot.conversation.as_deref() == Some(conversation));
        let index = own.unwrap_or_else(|| {
            let oldest = self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.last_use);
            oldest.map_or(0, |(index, _)| index)
        });
        let slot = &mut self.slots[index];
        slot.conversation = Some(conversation.to_owned());
        slot.last_use = self.clock;
        index
    }

    /// The other slot that shares the longest cached beginning with these tokens, and how long that is.
    pub(super) fn best_donor(&self, except: usize, tokens: &[LlamaToken]) -> Option<(usize, usize)> {
        let others = self.slots.iter().enumerate().filter(|(index, _)| *index != except);
        others.map(|(index, slot)| (index, slot.reusable(tokens))).max_by_key(|(_, shared)| *shared)
    }

    /// The slot to give up when the cache is full.
    pub(super) fn oldest_filled(&self, except: usize) -> Option<usize> {
        let others =
            self.slots.iter().enumerate().filter(|(index, slot)| *index != except && slot.cached > 0);
        others.min_by_key(|(_, slot)| slot.last_use).map(|(index, _)| index)
    }

    /// Empties a slot whose sequence was forgotten.
    pub(super) fn clear(&mut self, index: usize) {
        self.slots[index] = Slot::default();
    }
}

impl std::ops::Index<usize> for Slots {
    type Output = Slot;
    fn index(&self, index: usize) -> &Slot {
        &self.slots[index]
    }
}

impl std::ops::IndexMut<usize> for Slots {
    fn index_mut(&mut self, index: usize) -> &mut Slot {
        &mut self.slots[index]
    }
}

fn common_prefix(left: &[LlamaToken], right: &[LlamaToken]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokens(ids: &[i32]) -> Vec<LlamaToken> {
        ids.iter().copied().map(LlamaToken).collect()
    }

    #[test]
    fn conversations_keep_their_slots_and_the_oldest_gives_way() {
        let mut slots = Slots::new(2);
        let (a, b) = (slots.of("a"), slots.of("b"));
        assert_ne!(a, b);
        assert_eq!(slots.of("a"), a);
        assert_eq!(slots.of("c"), b, "b was unused for longest");
    }

    #[test]
    fn the_last_token_is_always_evaluated() {
        let mut slot = Slot::default();
        slot.begin(tokens(&[1, 2, 3]), 3);
        assert_eq!(slot.reusable(&tokens(&[1, 2, 3])), 2);
        assert_eq!(slot.reusable(&tokens(&[1, 2, 3, 4])), 3);
        assert_eq!(slot.reusable(&tokens(&[1, 9, 3, 4])), 1);
    }

    #[test]
    fn only_the_recorded_reply_is_continued() {
        let (user, reply, result) = (
            json!({"role": "user", "content": "q"}),
            json!({"role": "assistant", "content": "a", "raw": "a!"}),
            json!({"role": "tool", "content": "r"}),
        );
        let mut slot = Slot::default();
        slot.set_record(Some(Record {
            tools: vec![],
            messages: vec![user.clone()],
            raw: "a!".into(),
            base: "b".into(),
        }));
        let history = [user.clone(), reply.clone(), result.clone()];
        assert_eq!(slot.continued_at(&[], &history), Some((1, "b")));
        assert_eq!(slot.continued_at(&[json!({})], &history), None, "other tools");
        assert_eq!(slot.continued_at(&[], &history[..1]), None, "no reply");
        let edited = [user, json!({"role": "assistant", "content": "b"}), result];
        assert_eq!(slot.continued_at(&[], &edited), None, "another reply");
    }

    #[test]
    fn donors_are_other_slots() {
        let mut slots = Slots::new(3);
        let (a, b) = (slots.of("a"), slots.of("b"));
        slots[a].begin(tokens(&[1, 2, 3, 4]), 4);
        slots[b].begin(tokens(&[1, 2, 9]), 3);
        let c = slots.of("c");
        assert_eq!(slots.best_donor(c, &tokens(&[1, 2, 3, 7])), Some((a, 3)));
        assert_eq!(slots.oldest_filled(a), Some(b));
    }
}
