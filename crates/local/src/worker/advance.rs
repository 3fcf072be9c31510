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
        if !self.pace.may_guess() || self.most_guesses() == 0 {
            return None;
        }
        self.pace.begin();
        Some(Guesses::of(&self.slots[index].tokens))
    }

    /// Guesses that can be taken back after they were evaluated.
    pub(super) fn most_guesses(&self) -> usize {
        if self.rewinds() { usize::MAX } else { self.context.rollback() }
    }

    /// What the model's own layer for it or the small model guesses, where the conversation gives nothing.
    pub(super) fn drafted(
        &mut self,
        index: usize,
        found: &[LlamaToken],
        room: usize,
    ) -> Option<Vec<LlamaToken>> {
        let tokens = &self.slots[index].tokens;
        // Neither sees an image.
        if !found.is_empty() || self.most_guesses() == 0 || tokens.iter().any(|token| is_cell(*token)) {
            return None;
        }
        let guesses = self.guesser.next(tokens, room);
        Some(guesses).filter(|guesses| !guesses.is_empty())
    }

    /// So many guesses of that kind were right.
    pub(super) fn judge(&mut self, guessed: usize, right: usize) {
        self.guesser.judge(guessed, right);
    }

    /// Tells the model's own layer for guesses what was evaluated in a slot, behind so many tokens.
    pub(super) fn tell_own(&mut self, index: usize, start: usize, batch: &[LlamaToken]) {
        if index == self.slots.side() {
            return;
        }
        let Some(own) = self.guesser.own() else { return };
        let before = &self.slots[index].tokens[..start];
        if before.iter().chain(batch).any(|token| is_cell(*token)) {
            return own.forget();
        }
        own.saw(before, batch, self.context.rows(batch.len(), own.width()));
    }

    /// Evaluates the last token of a slot and guesses. None when it was cancelled.
    pub(super) fn advance(
        &mut self,
        index: usize,
        guesses: Vec<LlamaToken>,
    ) -> Result<Option<Batch>, WorkerError> {
        self.drop_guesses(index);
        while self.slots[index].cached + 1 < self.slots[index].tokens.len() {
            // Guesses could not be taken back by themselves.
            if !self.step_to(index, self.slots[index].tokens.len() - 1)? {
                return Ok(None);
            }
        }
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
                self.tell_own(index, start, &tokens);
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
            let place = position(&self.slots[index].tokens[..cached]);
            if !self.context.forget_from(sequence(index), place) {
                self.undo(index, cached);
            }
        }
    }
}
