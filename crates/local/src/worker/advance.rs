//! Evaluating the newest token of a reply together with guesses of what follows it, and taking wrong ones back.
//!
//! Invariant: a slot never counts a guess as cached before the sampler has chosen it.

use std::time::Instant;

use llama_cpp_2::token::LlamaToken;

use super::cells::{is_cell, position};
use super::guess::Guesses;
use super::reply::Batch;
use super::session::{Session, sequence};
use crate::native::DecodeError;
use crate::protocol::WorkerError;

impl Session<'_> {
    /// Where the next tokens of this slot may be found; none when this model cannot take a guess back.
    pub(super) fn guesses(&mut self, index: usize) -> Option<Guesses> {
        if !self.pace.may_guess() || self.model.is_recurrent() || self.model.is_hybrid() {
            return None;
        }
        self.pace.begin();
        Some(Guesses::of(&self.slots[index].tokens))
    }

    /// What the small model guesses, where the conversation gives nothing.
    pub(super) fn drafted(
        &mut self,
        index: usize,
        found: &[LlamaToken],
        room: usize,
    ) -> Option<Vec<LlamaToken>> {
        if !found.is_empty() || !self.rewinds() {
            return None;
        }
        let tokens = &self.slots[index].tokens;
        if tokens.iter().any(|token| is_cell(*token)) {
            // It sees nothing.
            return None;
        }
        self.draft.as_mut().map(|draft| draft.next(tokens, room)).filter(|guesses| !guesses.is_empty())
    }

    /// Evaluates the last token of a slot and guesses. None when it was cancelled.
    pub(super) fn advance(
        &mut self,
        index: usize,
        guesses: Vec<LlamaToken>,
    ) -> Result<Option<Batch>, WorkerError> {
        self.drop_guesses(index);
        let room = (self.context_size() as usize).saturating_sub(self.slots[index].tokens.len());
        if guesses.is_empty() || guesses.len() > room {
            return Ok(self.step(index)?.then(Batch::default));
        }
        let slot = &self.slots[index];
        let start = slot.cached;
        let tokens: Vec<LlamaToken> = slot.tokens[start..].iter().chain(&guesses).copied().collect();
        let began = Instant::now();
        self.unsure = true;
        let place = position(&slot.tokens[..start]);
        match self.context.decode_each(sequence(index), place, &tokens) {
            Ok(()) => {
                self.pace.took(tokens.len(), began.elapsed());
                self.slots[index].cached += 1;
                Ok(Some(Batch::of(guesses)))
            }
            Err(DecodeError::Aborted) => {
                self.undo(index, start);
                Ok(None)
            }
            // Alone it may have room, and fails with the right reason if not.
            Err(DecodeError::Full | DecodeError::Failed(_)) => {
                self.undo(index, start);
                Ok(self.step(index)?.then(Batch::default))
            }
        }
    }

    /// Forgets guesses that were not chosen.
    pub(super) fn drop_guesses(&mut self, index: usize) {
        if std::mem::take(&mut self.unsure) {
            let cached = self.slots[index].cached;
            self.undo(index, cached);
        }
    }
}
