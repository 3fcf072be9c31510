//! Who guesses the next tokens where the conversation itself gives nothing.
//!
//! Invariant: as with every guess, only what is evaluated together depends on it, never the text.

use llama_cpp_2::token::LlamaToken;

use super::draft::Draft;
use super::own::Own;

/// Who guesses.
pub(super) enum Guesser<'model> {
    /// Nobody.
    None,
    /// The model's own layer for that.
    Own(Own<'model>),
    /// A small model.
    Draft(Draft<'model>),
}

impl<'model> Guesser<'model> {
    /// The model's own layer, where it guesses.
    pub(super) fn own(&mut self) -> Option<&mut Own<'model>> {
        match self {
            Self::Own(own) => Some(own),
            Self::None | Self::Draft(_) => None,
        }
    }

    /// What follows this text; nothing when nobody is sure.
    pub(super) fn next(&mut self, text: &[LlamaToken], room: usize) -> Vec<LlamaToken> {
        match self {
            Self::None => Vec::new(),
            Self::Own(own) => own.next(text, room),
            Self::Draft(draft) => draft.next(text, room),
        }
    }

    /// So many of the guesses were right.
    pub(super) fn judge(&mut self, guessed: usize, right: usize) {
        match self {
            Self::None => {}
            Self::Own(own) => own.judge(guessed, right),
            Self::Draft(draft) => draft.judge(guessed, right),
        }
    }
}
