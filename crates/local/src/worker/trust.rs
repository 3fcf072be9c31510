//! How far guesses of a model are believed.

use llama_cpp_2::token::LlamaToken;

/// It guesses on as long as it is so sure of a token.
const SURE: f32 = 0.5;
/// Of its last guesses so many have to be right, or it pauses.
const WORTH: f32 = 0.35;
/// Tokens of a pause.
const PAUSE: u32 = 24;
const NEWEST: f32 = 0.08;

/// Whether somebody who guesses is worth asking.
#[derive(Debug)]
pub(super) struct Trust {
    right: f32,
    pause: u32,
}

impl Trust {
    pub(super) fn new() -> Self {
        Self { right: 1.0, pause: 0 }
    }

    /// Whether this time nobody is asked.
    pub(super) fn pauses(&mut self) -> bool {
        let pauses = self.pause > 0;
        self.pause = self.pause.saturating_sub(1);
        pauses
    }

    /// So many of the guesses were right.
    pub(super) fn judge(&mut self, guessed: usize, right: usize) {
        for guess in 0..guessed.min(right + 1) {
            self.right += (f32::from(u8::from(guess < right)) - self.right) * NEWEST;
        }
        if self.right < WORTH {
            self.pause = PAUSE;
            // A few more tries after the pause.
            self.right = WORTH + NEWEST;
        }
    }
}

/// The likeliest next token, if it is sure enough.
pub(super) fn likeliest(logits: &[f32]) -> Option<LlamaToken> {
    let (best, top) = logits.iter().copied().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let all: f32 = logits.iter().map(|logit| (logit - top).exp()).sum();
    (1.0 / all >= SURE).then(|| LlamaToken(i32::try_from(best).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_guesses_lead_to_a_pause_and_few_more_tries() {
        let mut trust = Trust::new();
        let mut asked = 0;
        while !trust.pauses() {
            trust.judge(1, 0);
            asked += 1;
            assert!(asked < 100, "it never pauses");
        }
        let pause = 1 + (0..).take_while(|_| trust.pauses()).count();
        assert_eq!(pause, PAUSE as usize);
        (0..3).for_each(|_| trust.judge(1, 0));
        assert!(trust.pauses(), "the tries failed, too");
    }

    #[test]
    fn only_what_is_likelier_than_all_others_is_guessed() {
        assert_eq!(likeliest(&[0.0, 9.0, 0.0]), Some(LlamaToken(1)));
        assert_eq!(likeliest(&[0.0, 0.1, 0.0]), None);
        assert_eq!(likeliest(&[]), None);
        assert_eq!(likeliest(&[f32::NAN, 1.0]), None);
    }
}
