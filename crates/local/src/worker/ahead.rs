//! Reads the beginning of a prompt that is not whole yet: the history, and the words that are typed already.
//!
//! Invariant: only what two ways to go on have in common is evaluated, so nothing of it has to be taken back but for an
//! edit. A model that cannot take anything back is only loaded.

use super::cells::whole;
use super::no_model;
use super::schemas::Detail;
use super::session::{Session, count};
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
        if !self.rewinds() {
            return Ok(0);
        }
        self.renderer.images.take_in(&one.images)?;
        let teller = self.teller(one);
        let mut prompt = self.renderer.prompt(one, &teller, Detail::Given)?;
        let second = self.renderer.prompt(other, &teller, Detail::Given)?;
        let common = prompt.tokens.iter().zip(&second.tokens).take_while(|(one, other)| one == other).count();
        let common = whole(&prompt.tokens, common);
        prompt.tokens.truncate(common);
        if prompt.tokens.is_empty() || count(common) >= self.context_size() {
            return Ok(0);
        }
        let index = self.settle(one, &prompt);
        while self.slots[index].cached < self.slots[index].tokens.len() && self.step(index)? {}
        Ok(count(self.slots[index].cached))
    }
}
