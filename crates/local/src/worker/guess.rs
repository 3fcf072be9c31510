//! Guesses the next tokens from the conversation itself (prompt lookup): where the last few tokens stand in it
//! already, what followed them may follow again. A quoted note is written in a few large steps this way.
//!
//! Invariant: pure, and never right or wrong about the text: a guess only decides what is evaluated together. The
//! sampler chooses every token, guessed or not, in the same order and from the same chances.

mod pace;

use std::collections::HashMap;

use llama_cpp_2::token::LlamaToken;

pub(super) use pace::Pace;

use super::cells::is_cell;

/// Tokens that have to be the same before a guess is made.
const SHORTEST: usize = 2;
/// A longer match says no more.
const LONGEST: usize = 24;
/// Earlier places that are looked at for one guess.
const PLACES: usize = 48;

/// A text of tokens, and where it is likely to go on.
#[derive(Debug, Default)]
pub(super) struct Guesses {
    tokens: Vec<LlamaToken>,
    /// Where each pair of tokens ended last.
    last: HashMap<(i32, i32), usize>,
    /// Where the pair that ends here ended before.
    before: Vec<Option<usize>>,
    expected: Option<Expected>,
}

/// The next token is expected to be that at `place`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expected {
    place: usize,
    /// Tokens before `place` that are the same as the last ones.
    matched: usize,
}

impl Guesses {
    /// With this text so far.
    pub(super) fn of(tokens: &[LlamaToken]) -> Self {
        let mut new = Self::default();
        tokens.iter().for_each(|token| new.append(*token));
        new.expected = new.find();
        new
    }

    /// Takes in the next token; says how long a match it was guessed from, and whether rightly.
    pub(super) fn push(&mut self, token: LlamaToken) -> Option<(usize, bool)> {
        let expected = self.expected;
        let outcome = expected.map(|guess| (guess.matched, self.tokens[guess.place] == token));
        self.append(token);
        self.expected = match (expected, outcome) {
            (Some(guess), Some((_, true))) => {
                Some(Expected { place: guess.place + 1, matched: guess.matched + 1 })
            }
            _ => self.find(),
        };
        outcome
    }

    /// How many of the last tokens stand where the guess comes from; 0 when there is none.
    pub(super) fn matched(&self) -> usize {
        self.expected.map_or(0, |guess| guess.matched)
    }

    /// The next tokens as guessed, so many.
    pub(super) fn next(&self, count: usize) -> Vec<LlamaToken> {
        let Some(Expected { place, .. }) = self.expected else { return Vec::new() };
        let mut out: Vec<LlamaToken> = Vec::with_capacity(count);
        for at in place..place + count {
            // A text that repeats itself goes on repeating.
            let token = self.tokens.get(at).copied().or_else(|| out.get(at - self.tokens.len()).copied());
            // Images are not written.
            let Some(token) = token.filter(|token| !is_cell(*token)) else { break };
            out.push(token);
        }
        out
    }

    fn append(&mut self, token: LlamaToken) {
        let before = self.tokens.last().copied();
        self.tokens.push(token);
        let pair = before.map(|before| (before.0, token.0));
        let place = self.tokens.len() - 1;
        self.before.push(pair.and_then(|pair| self.last.insert(pair, place)));
    }

    /// The earlier place before which most of the last tokens stand; of equals the latest.
    fn find(&self) -> Option<Expected> {
        let end = self.tokens.len().checked_sub(1)?;
        let mut best: Option<Expected> = None;
        let mut place = self.before[end];
        for _ in 0..PLACES {
            let Some(at) = place else { break };
            let matched = self.matched_at(at, end);
            if matched >= SHORTEST && best.is_none_or(|best| matched > best.matched) {
                best = Some(Expected { place: at + 1, matched });
            }
            if matched >= LONGEST {
                break;
            }
            place = self.before[at];
        }
        best
    }

    fn matched_at(&self, at: usize, end: usize) -> usize {
        let pairs = self.tokens[..=at].iter().rev().zip(self.tokens[..=end].iter().rev());
        pairs.take(LONGEST).take_while(|(left, right)| left == right).count()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(ids: &[i32]) -> Vec<LlamaToken> {
        ids.iter().copied().map(LlamaToken).collect()
    }

    #[test]
    fn what_followed_before_is_guessed_again() {
        let guesses = Guesses::of(&tokens(&[1, 2, 3, 4, 5, 9, 2, 3]));
        assert_eq!((guesses.matched(), guesses.next(3)), (2, tokens(&[4, 5, 9])));
    }

    #[test]
    fn the_longest_match_wins_and_then_the_latest() {
        let guesses = Guesses::of(&tokens(&[7, 1, 2, 50, 8, 1, 2, 60, 7, 1, 2]));
        assert_eq!(guesses.next(1), tokens(&[50]));
        let guesses = Guesses::of(&tokens(&[7, 1, 2, 50, 8, 1, 2, 60, 9, 1, 2]));
        assert_eq!(guesses.next(1), tokens(&[60]));
    }

    #[test]
    fn a_repetition_is_guessed_beyond_its_end() {
        let guesses = Guesses::of(&tokens(&[1, 2, 3, 1, 2]));
        assert_eq!(guesses.next(7), tokens(&[3, 1, 2, 3, 1, 2, 3]));
    }

    #[test]
    fn a_right_guess_is_followed_and_a_wrong_one_left() {
        let mut guesses = Guesses::of(&tokens(&[1, 2, 3, 4, 5, 1, 2]));
        assert_eq!(guesses.push(LlamaToken(3)), Some((2, true)));
        assert_eq!((guesses.matched(), guesses.next(1)), (3, tokens(&[4])));
        assert_eq!(guesses.push(LlamaToken(9)), Some((3, false)));
        assert_eq!((guesses.matched(), guesses.next(1)), (0, vec![]));
        assert_eq!(guesses.push(LlamaToken(8)), None);
    }

    proptest! {
        #[test]
        fn a_guess_always_continues_an_equal_text(ids in prop::collection::vec(0..4i32, 0..60)) {
            let all = tokens(&ids);
            let mut guesses = Guesses::of(&all[..all.len() / 2]);
            for at in all.len() / 2..all.len() {
                let (matched, next) = (guesses.matched(), guesses.next(5));
                prop_assert_eq!(matched == 0, next.is_empty());
                if matched > 0 {
                    let matched = matched.min(at);
                    let suffix = &all[at - matched..at];
                    let found = (matched..at).any(|end| {
                        &all[end - matched..end] == suffix && all.get(end) == next.first()
                    });
                    prop_assert!(found, "{:?} does not stand before {:?} in {:?}", suffix, next, &all[..at]);
                }
                guesses.push(all[at]);
            }
        }
    }
}
