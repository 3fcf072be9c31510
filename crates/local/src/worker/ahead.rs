//! Reads the beginning of a prompt that is not whole yet: the history, and the words that are typed already.
//!
//! Invariant: what two ways to go on have in common is evaluated, so nothing of it has to be taken back but for an edit;
//! or all but the last token of one, where both are the same. A model that cannot take anything back goes back to a copy.

use super::cells::whole;
use super::no_model;
use super::schemas::Detail;
use super::session::{Session, count};
use super::slots::common_prefix;
use crate::protocol::{Event, Generate, WorkerError};

pub(super) fn read_ahead(
    one: &Generate,
    other: &Generate,
    session: Option<&mut Session<'_>>,
) -> Result<Event, WorkerError> {
    let session = session.ok_or_else(no_model)?;
    let tokens = session.read_common(one, other)?;
    Ok(Event::ReadAhead { job: one.job, tokens })
}

impl Session<'_> {
    /// Evaluates what both prompts begin with; gives how much of it is in the cache.
    fn read_common(&mut self, one: &Generate, other: &Generate) -> Result<u32, WorkerError> {
        self.renderer.images.take_in(&one.images)?;
        let teller = self.teller(one);
        let mut prompt = self.renderer.prompt(one, &teller, Detail::Given)?;
        let second = self.renderer.prompt(other, &teller, Detail::Given)?;
        // The last token of a prompt is evaluated by the reply, for what it says of the next.
        let common = common_prefix(&prompt.tokens, &second.tokens).min(prompt.tokens.len().saturating_sub(1));
        let common = whole(&prompt.tokens, common);
        let pauses = if self.rewinds() { Vec::new() } else { self.renderer.pauses(one, &prompt) };
        prompt.tokens.truncate(common);
        if prompt.tokens.is_empty() || count(common) >= self.context_size() {
            return Ok(0);
        }
        if self.slots.chats().iter().any(|slot| slot.common(&prompt.tokens) == common) {
            return Ok(count(common));
        }
        let index = self.settle(one, &prompt);
        if !self.read_all(index, &pauses, |_| {})? {
            return Ok(count(self.slots[index].cached));
        }
        if !self.rewinds() && one != other {
            self.checkpoint_draft(index);
        }
        Ok(count(common))
    }
}
