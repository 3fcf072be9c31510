//! Which sequence of the cache holds which conversation, and what is kept beside them.
//!
//! A sequence knows its tokens, the generated ones included, so that text which is rendered and tokenized again
//! never breaks a cached prefix. Invariant: pure bookkeeping; the cache itself is changed by the caller. A slot of
//! a conversation never gives way to a side job.

use std::sync::Arc;

use llama_cpp_2::token::LlamaToken;
use serde_json::Value;

use super::cells::whole;
use super::history::History;
pub(super) use super::history::Record;

/// A shared beginning shorter than this is not worth the copy.
pub(super) const WORTH_SHARING: usize = 16;
/// What would be lost of a branch, or won by bringing a state back, has to be longer than this.
pub(super) const WORTH_KEEPING: usize = 64;
/// So many tokens of a resting conversation, which it shares with no one, are worth a copy to get them out of the way:
/// attention of the one that goes on looks over them with each token.
pub(super) const IN_THE_WAY: usize = 64;
/// What is lost with another setting is worth a branch, unless that many times as much stays.
const SMALL_PART: usize = 8;
/// Checkpoints of one slot.
pub(crate) const CHECKPOINTS: usize = 6;

/// A sequence of the cache.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    pub(super) conversation: Option<String>,
    /// Prompt and reply.
    pub(super) tokens: Vec<LlamaToken>,
    /// How many of `tokens` are in the cache.
    pub(super) cached: usize,
    pub(super) history: History,
    /// What stands before the messages: digest of instructions and tools.
    pub(super) setting: String,
    /// States of a model that cannot forget a part, oldest first.
    pub(super) checkpoints: Vec<Checkpoint>,
    pub(super) last_use: u64,
    /// The name of its file, when it was saved.
    pub(super) file: Option<String>,
    /// Whether it holds more than that file.
    pub(super) changed: bool,
    /// Where the checkpoint stands that a draft goes on from, until it is sent.
    pub(super) draft: Option<usize>,
}

/// A copy of a recurrent state, and how many tokens it had read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Checkpoint {
    pub(super) at: usize,
    pub(super) state: Arc<Vec<u8>>,
}

impl Slot {
    /// The last recorded reply that stands in these messages: its place, the text before it, and the tokens up to its
    /// end.
    pub(super) fn continued_at(&self, messages: &[Value]) -> Option<(usize, &str, &[LlamaToken])> {
        let (place, base, end) = self.history.continued_at(messages)?;
        Some((place, base, self.tokens.get(..end)?))
    }

    /// How many tokens of this beginning are cached.
    pub(super) fn common(&self, tokens: &[LlamaToken]) -> usize {
        whole(&self.tokens, common_prefix(&self.tokens[..self.cached], tokens))
    }

    /// How many of these tokens the cache can keep; the last one is always evaluated, for its logits. A model that
    /// cannot forget a part goes back to a checkpoint.
    pub(super) fn reusable(&self, tokens: &[LlamaToken], rewinds: bool) -> usize {
        let common = whole(tokens, self.common(tokens).min(tokens.len().saturating_sub(1)));
        if rewinds || common == self.cached {
            common
        } else {
            self.checkpoint(common).map_or(0, |one| one.at)
        }
    }

    /// The last checkpoint of at most so many tokens.
    pub(super) fn checkpoint(&self, most: usize) -> Option<&Checkpoint> {
        self.checkpoints.iter().rev().find(|checkpoint| checkpoint.at <= most)
    }

    /// Keeps a checkpoint; the second oldest gives way, because the first stands behind the instructions.
    pub(super) fn add_checkpoint(&mut self, checkpoint: Checkpoint) {
        // One that more goes back to than a draft stays.
        self.draft.take_if(|draft| *draft == checkpoint.at);
        self.checkpoints.retain(|one| one.at < checkpoint.at);
        self.checkpoints.push(checkpoint);
        if self.checkpoints.len() > CHECKPOINTS {
            self.checkpoints.remove(1);
        }
    }

    /// Keeps a checkpoint that a draft goes on from, in place of the last one.
    pub(super) fn add_draft(&mut self, checkpoint: Checkpoint) {
        self.drop_draft();
        if self.checkpoints.last().is_some_and(|last| last.at == checkpoint.at) {
            return;
        }
        let at = checkpoint.at;
        self.add_checkpoint(checkpoint);
        self.draft = Some(at);
    }

    /// The draft was sent: nobody goes back into it.
    pub(super) fn drop_draft(&mut self) {
        if let Some(draft) = self.draft.take() {
            self.checkpoints.retain(|checkpoint| checkpoint.at != draft);
        }
    }

    /// Notes what the tokens now stand for; none when they say more than the reply. A token that `ended` the reply is
    /// not counted as its own: the template may write another.
    pub(super) fn set_record(&mut self, record: Option<Record>, ended: bool) {
        if let Some(record) = record {
            self.history.push(record, self.tokens.len().saturating_sub(usize::from(ended)));
        }
    }

    /// Goes on with these tokens, of which some are cached.
    pub(super) fn begin(&mut self, tokens: Vec<LlamaToken>, cached: usize) {
        self.history.keep(common_prefix(&self.tokens, &tokens));
        self.checkpoints.retain(|checkpoint| checkpoint.at <= cached);
        self.tokens = tokens;
        self.cached = cached;
        self.changed = true;
    }

    /// The beginning of this slot, for another conversation or another branch.
    pub(super) fn fork(&self, length: usize) -> Self {
        let mut history = self.history.clone();
        history.keep(length);
        let checkpoints =
            self.checkpoints.iter().filter(|checkpoint| checkpoint.at <= length).cloned().collect();
        let tokens = self.tokens.get(..length).unwrap_or_default().to_vec();
        Self { cached: tokens.len(), tokens, history, checkpoints, ..Self::default() }
    }

    /// Whether going on with `common` tokens of this slot would lose another branch of the conversation: a longer
    /// end, with a reply that the request does not know; or much of it, because other tools are offered. Those of this
    /// slot may be offered again in the next step.
    pub(super) fn is_another_branch(&self, common: usize, messages: &[Value], setting: &str) -> bool {
        let lost = self.cached.saturating_sub(common);
        let other_setting = self.setting != setting && lost * SMALL_PART > common;
        lost >= WORTH_KEEPING && (other_setting || self.history.is_unknown_to(messages))
    }
}

/// The sequences of a context; the last one is for side jobs.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    clock: u64,
}

impl Slots {
    /// So many empty sequences.
    pub(super) fn new(count: u32) -> Self {
        Self { slots: (0..count.max(2)).map(|_| Slot::default()).collect(), clock: 0 }
    }

    /// The sequence of side jobs.
    pub(super) fn side(&self) -> usize {
        self.slots.len() - 1
    }

    /// Slots of conversations.
    pub(super) fn chats(&self) -> &[Slot] {
        &self.slots[..self.side()]
    }

    /// The conversation's slot is used now.
    pub(super) fn touch(&mut self, index: usize, conversation: &str) {
        self.clock += 1;
        self.slots[index].last_use = self.clock;
        self.slots[index].conversation = Some(conversation.to_owned());
    }

    /// The slot whose history these messages continue farthest.
    pub(super) fn teller(&self, messages: &[Value], setting: &str) -> Option<&Slot> {
        best_teller(self.slots.iter(), messages, setting)
    }

    /// The slot that has most of these tokens, and how many; the conversation's own when it has as many.
    pub(super) fn best(
        &self,
        conversation: &str,
        tokens: &[LlamaToken],
        rewinds: bool,
    ) -> Option<(usize, usize)> {
        let each = self.slots.iter().enumerate().map(|(index, slot)| (index, slot.reusable(tokens, rewinds)));
        each.filter(|(_, kept)| *kept > 0).max_by_key(|(index, kept)| {
            let slot = &self.slots[*index];
            (*kept, slot.conversation.as_deref() == Some(conversation), slot.last_use)
        })
    }

    /// The sequence that a conversation may have: a free one, or else that unused for longest.
    pub(super) fn free_or_oldest(&self, except: Option<usize>) -> usize {
        let others = self.chats().iter().enumerate().filter(|(index, _)| Some(*index) != except);
        let oldest = others.min_by_key(|(_, slot)| (!slot.tokens.is_empty(), slot.last_use));
        oldest.map_or(0, |(index, _)| index)
    }

    /// The slot to give up when the cache is full; side jobs first.
    pub(super) fn oldest_filled(&self, except: usize) -> Option<usize> {
        let others =
            self.slots.iter().enumerate().filter(|(index, slot)| *index != except && slot.cached > 0);
        let side = self.side();
        others.min_by_key(|(index, slot)| (*index != side, slot.last_use)).map(|(index, _)| index)
    }

    /// Empties a slot whose sequence was forgotten, and gives what it was.
    pub(super) fn take(&mut self, index: usize) -> Slot {
        std::mem::take(&mut self.slots[index])
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

/// Of these, the one whose history the messages continue farthest, and most lately used. One with other instructions or
/// tools comes last: its text is another from the beginning.
pub(super) fn best_teller<'a>(
    slots: impl Iterator<Item = &'a Slot>,
    messages: &[Value],
    setting: &str,
) -> Option<&'a Slot> {
    let place = |slot: &Slot| slot.continued_at(messages).map(|(place, ..)| place);
    slots
        .filter(|slot| place(slot).is_some())
        .max_by_key(|slot| (slot.setting == setting, place(slot), slot.last_use))
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

/// How many tokens two texts begin with alike.
pub(super) fn common_prefix(left: &[LlamaToken], right: &[LlamaToken]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokens(ids: &[i32]) -> Vec<LlamaToken> {
        ids.iter().copied().map(LlamaToken).collect()
    }

    fn long(start: i32, count: i32) -> Vec<LlamaToken> {
        (start..start + count).map(LlamaToken).collect()
    }

    fn record(place: usize, raw: &str, base: &str) -> Record {
        Record { place, raw: raw.to_owned(), base: base.to_owned() }
    }

    #[test]
    fn a_free_sequence_comes_before_the_oldest_and_side_jobs_have_their_own() {
        let mut slots = Slots::new(3);
        for (name, index) in [("a", 0), ("b", 1)] {
            assert_eq!(slots.free_or_oldest(None), index);
            slots[index].begin(tokens(&[1, 2]), 2);
            slots.touch(index, name);
        }
        assert_eq!(slots.side(), 2);
        assert_eq!(slots.free_or_oldest(None), 0);
        slots.touch(0, "a");
        assert_eq!(slots.free_or_oldest(None), 1, "b was unused for longest");
        slots[2].begin(tokens(&[1, 2]), 2);
        slots.touch(2, "side");
        assert_eq!(slots.oldest_filled(0), Some(2), "side jobs give way first");
    }

    #[test]
    fn the_last_token_is_always_evaluated() {
        let mut slot = Slot::default();
        slot.begin(tokens(&[1, 2, 3]), 3);
        assert_eq!(slot.reusable(&tokens(&[1, 2, 3]), true), 2);
        assert_eq!(slot.reusable(&tokens(&[1, 2, 3, 4]), true), 3);
        assert_eq!(slot.reusable(&tokens(&[1, 9, 3, 4]), true), 1);
    }

    #[test]
    fn what_cannot_forget_goes_back_to_a_checkpoint() {
        let mut slot = Slot::default();
        slot.begin(long(0, 100), 100);
        for at in [30, 60] {
            slot.add_checkpoint(Checkpoint { at, state: Arc::default() });
        }
        let mut edited = long(0, 70);
        edited.push(LlamaToken(-7));
        assert_eq!(slot.reusable(&edited, false), 60);
        edited.truncate(50);
        assert_eq!(slot.reusable(&edited, false), 30);
        assert_eq!(slot.reusable(&long(0, 120), false), 100);
        assert_eq!(slot.reusable(&long(0, 20), false), 0);
    }

    #[test]
    fn an_older_reply_is_continued_when_the_last_one_is_gone() {
        let (q, a, r, b) = (
            json!({"role": "user", "content": "q"}),
            json!({"role": "assistant", "content": "a", "raw": "a!"}),
            json!({"role": "tool", "content": "r"}),
            json!({"role": "assistant", "content": "b", "raw": "b!"}),
        );
        let mut slot = Slot::default();
        slot.begin(tokens(&[1, 2, 3]), 3);
        slot.set_record(Some(record(1, "a!", "q")), false);
        slot.begin(tokens(&[1, 2, 3, 4, 5, 6]), 3);
        slot.set_record(Some(record(3, "b!", "q a r")), true);
        let history = [q.clone(), a.clone(), r.clone(), b];
        assert_eq!(slot.continued_at(&history), Some((3, "q a r", &tokens(&[1, 2, 3, 4, 5])[..])));
        assert_eq!(slot.continued_at(&history[..3]), Some((1, "q", &tokens(&[1, 2, 3])[..])));
        assert_eq!(slot.continued_at(&history[..1]), None);
        let other = [q, json!({"role": "assistant", "content": "c"}), r];
        assert_eq!(slot.continued_at(&other), None);
        // Tokens that differ before a reply say something else.
        slot.begin(tokens(&[1, 2, 9]), 2);
        assert_eq!(slot.continued_at(&history), None);
    }

    #[test]
    fn an_edit_is_another_branch_and_a_new_rendering_is_not() {
        let mut slot = Slot::default();
        slot.begin(long(0, 200), 200);
        slot.set_record(Some(record(1, "a!", "q")), false);
        let with_reply = [json!({"role": "user"}), json!({"role": "assistant", "raw": "a!"})];
        assert!(slot.is_another_branch(100, &with_reply[..1], ""));
        assert!(!slot.is_another_branch(100, &with_reply, ""), "rendered anew");
        assert!(!slot.is_another_branch(190, &with_reply[..1], ""), "too short to be kept");
        assert!(slot.is_another_branch(30, &with_reply, "other tools"));
        slot.begin(long(0, 900), 900);
        slot.set_record(Some(record(1, "a!", "q")), false);
        assert!(!slot.is_another_branch(830, &with_reply, "other tools"), "nearly all of it stays");
    }

    #[test]
    fn the_best_slot_has_most_of_the_tokens() {
        let mut slots = Slots::new(4);
        slots[0].begin(tokens(&[1, 2, 3, 4]), 4);
        slots.touch(0, "a");
        slots[1].begin(tokens(&[1, 2, 9]), 3);
        slots.touch(1, "b");
        assert_eq!(slots.best("c", &tokens(&[1, 2, 3, 7]), true), Some((0, 3)));
        assert_eq!(
            slots.best("b", &tokens(&[1, 2, 5]), true),
            Some((1, 2)),
            "its own, where both have as much"
        );
        assert_eq!(slots.best("c", &tokens(&[8]), true), None);
    }
}
