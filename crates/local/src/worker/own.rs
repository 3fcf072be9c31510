//! The model's own layer that predicts one token more (multi-token prediction), as somebody who guesses.
//!
//! The layer reads each token together with what the model made of the one before, so it has to be told of all that the
//! model evaluates. It keeps one text: that of the last conversation. What it has not seen of a text (a state from a
//! file, another conversation's beginning) it does without, which costs guesses and nothing else.
//! Invariant: as with every guess, only what is evaluated together depends on it, never the text.

use std::sync::atomic::AtomicBool;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::slots::common_prefix;
use super::trust::{Trust, likeliest};
use crate::native::{ContextOptions, DecodeError, NativeError, Predictor, Tile};

/// Tokens that are guessed at once: a layer that was trained for the next token but one is soon wrong farther on.
pub(crate) const GUESSES: u32 = 3;

/// The layer, what it has read, and what the model made of the last batch.
pub(super) struct Own<'model> {
    predictor: Predictor<'model>,
    words: usize,
    trust: Trust,
    /// Tokens from the beginning of the text to the end of the last batch, wrong guesses included.
    seen: Vec<LlamaToken>,
    /// Tokens of it that the layer has read, as far as it will.
    read: usize,
    /// Where the last batch began.
    start: usize,
    /// A row for each of its tokens.
    rows: Vec<f32>,
}

impl<'model> Own<'model> {
    pub(super) fn new(
        model: &'model LlamaModel,
        options: ContextOptions,
        abort: &'static AtomicBool,
    ) -> Result<Self, NativeError> {
        let predictor = Predictor::new(model, ContextOptions { tile: Tile::None, ..options }, abort)?;
        let words = usize::try_from(model.n_vocab()).unwrap_or(0);
        let trust = Trust::new();
        Ok(Self { predictor, words, trust, seen: Vec::new(), read: 0, start: 0, rows: Vec::new() })
    }

    /// Numbers of a row.
    pub(super) fn width(&self) -> usize {
        self.predictor.width()
    }

    /// The model evaluated a batch behind this text, and made these rows of it.
    pub(super) fn saw(&mut self, before: &[LlamaToken], batch: &[LlamaToken], rows: &[f32]) {
        let Some(first) = batch.first() else { return };
        let start = before.len();
        let text: Vec<LlamaToken> = before.iter().chain([first]).copied().collect();
        self.keep(&text);
        if self.seen.len() < start {
            // What the model made of the tokens between is not known.
            self.predictor.forget_from(0);
            self.read = start;
        }
        if self.read_to(&text).is_err() {
            return self.forget();
        }
        self.seen.clear();
        self.seen.extend(before.iter().chain(batch));
        (self.start, self.rows) = (start, rows.to_vec());
    }

    /// What follows this text as the layer sees it; nothing while it pauses, is not sure, or did not see the end of it.
    pub(super) fn next(&mut self, text: &[LlamaToken], room: usize) -> Vec<LlamaToken> {
        let Some(last) = text.len().checked_sub(1) else { return Vec::new() };
        if self.trust.pauses() {
            return Vec::new();
        }
        self.keep(text);
        if self.seen.len() < last || !self.has_row_before(last) {
            return Vec::new();
        }
        // The newest token is read again if it was read already, for what the layer says of the next.
        self.forget_from(last);
        let mut out = Vec::new();
        if self.read_to(text).is_err() {
            self.forget();
            return out;
        }
        let most = room.min(GUESSES as usize);
        while out.len() < most {
            let Some(token) = likeliest(self.predictor.logits(self.words)) else { break };
            out.push(token);
            if out.len() < most {
                let row = self.predictor.row();
                if self.predictor.read(last + out.len(), &[token], &row).is_err() {
                    break;
                }
            }
        }
        self.predictor.forget_from(last + 1);
        out
    }

    /// So many of its guesses were right.
    pub(super) fn judge(&mut self, guessed: usize, right: usize) {
        self.trust.judge(guessed, right);
    }

    /// Forgets the text.
    pub(super) fn forget(&mut self) {
        self.predictor.forget_from(0);
        self.seen.clear();
        self.rows.clear();
        (self.read, self.start) = (0, 0);
    }

    /// Keeps only what belongs to this text.
    fn keep(&mut self, text: &[LlamaToken]) {
        let same = common_prefix(&self.seen, text);
        self.seen.truncate(same);
        self.rows.truncate(same.saturating_sub(self.start) * self.width());
        self.forget_from(same);
    }

    fn forget_from(&mut self, place: usize) {
        if self.read > place {
            self.predictor.forget_from(place);
            self.read = place;
        }
    }

    /// Whether it is known what the model made of the token before this place.
    fn has_row_before(&self, place: usize) -> bool {
        place > self.start && (place - self.start) * self.width() <= self.rows.len()
    }

    /// Reads on to the end of this text. A token whose row is not known is read with an empty one: the first of a text
    /// has none, and the first after what was not seen.
    fn read_to(&mut self, text: &[LlamaToken]) -> Result<(), DecodeError> {
        let width = self.width();
        while self.read < text.len() {
            let end = text.len().min(self.read + self.predictor.batch_size());
            let mut rows = vec![0.0; (end - self.read) * width];
            for (place, row) in (self.read..end).zip(rows.chunks_exact_mut(width)) {
                if self.has_row_before(place) {
                    let from = (place - 1 - self.start) * width;
                    row.copy_from_slice(&self.rows[from..from + width]);
                }
            }
            self.predictor.read(self.read, &text[self.read..end], &rows)?;
            self.read = end;
        }
        if self.seen.len() < text.len() {
            self.seen.push(text[text.len() - 1]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
