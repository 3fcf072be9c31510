//! How many tokens are worth guessing: what a larger batch costs on this machine, and how often guesses were right.
//!
//! Invariant: no clock of its own; without a measured gain nothing is guessed.

use std::time::Duration;

use crate::speed::Lookup;

/// The largest batch that is measured.
const LARGEST: usize = 64;
/// Tokens that are guessed at once at most, unless the settings say otherwise.
const USUAL_GUESSES: usize = 24;
/// What is guessed when guessing is always on.
const ALWAYS: usize = 8;
/// Weight of the newest measurement.
const NEWEST: f32 = 0.25;
/// Weight of the newest guess.
const NEWEST_GUESS: f32 = 0.1;
/// What is gained has to be this much, for measurements are noisy.
const MARGIN: f32 = 1.03;
/// Before anything is measured: what one more token in a batch costs, against the first one.
const COST_OF_ONE_MORE: f32 = 0.2;
/// How likely the next token is guessed rightly after a match of 2, of 3 to 4, of 5 to 8 and of more.
const USUAL_CHANCES: [f32; 4] = [0.35, 0.6, 0.8, 0.92];

/// What guessing costs and brings.
#[derive(Clone, Debug)]
pub(in crate::worker) struct Pace {
    lookup: Lookup,
    most: usize,
    /// Milliseconds of a batch of so many tokens.
    times: [Option<f32>; LARGEST + 1],
    chances: [f32; 4],
}

impl Pace {
    /// Nothing is measured yet.
    pub(in crate::worker) fn new(lookup: Lookup, guesses: Option<u32>) -> Self {
        let most = guesses.map_or(USUAL_GUESSES, |most| most as usize);
        Self { lookup, most: most.min(LARGEST - 1), times: [None; LARGEST + 1], chances: USUAL_CHANCES }
    }

    /// Whether it may ever guess.
    pub(in crate::worker) fn may_guess(&self) -> bool {
        self.lookup != Lookup::Off && self.most > 0
    }

    /// Another text begins: what was learned of the last one counts half.
    pub(in crate::worker) fn begin(&mut self) {
        for (chance, usual) in self.chances.iter_mut().zip(USUAL_CHANCES) {
            *chance = f32::midpoint(*chance, usual);
        }
    }

    /// A batch of so many tokens took so long.
    pub(in crate::worker) fn took(&mut self, tokens: usize, time: Duration) {
        let millis = time.as_secs_f32() * 1000.0;
        if let Some(known) = self.times.get_mut(tokens) {
            *known = Some(known.map_or(millis, |old| old + (millis - old) * NEWEST));
        }
    }

    /// The next token was expected after a match of this length, rightly or not.
    pub(in crate::worker) fn guessed(&mut self, matched: usize, right: bool) {
        let chance = &mut self.chances[class(matched)];
        *chance += (f32::from(u8::from(right)) - *chance) * NEWEST_GUESS;
    }

    /// How many tokens to guess after a match of this length.
    pub(in crate::worker) fn worth(&self, matched: usize, room: usize) -> usize {
        let most = self.most.min(room);
        if matched == 0 || !self.may_guess() {
            return 0;
        }
        match self.lookup {
            Lookup::Off => 0,
            Lookup::On => most.min(ALWAYS),
            Lookup::Auto => self.best(matched, most),
        }
    }

    /// The number of guesses with the most tokens in a second.
    fn best(&self, matched: usize, most: usize) -> usize {
        // The first token of a reply says what one costs.
        let Some(single) = self.times[1] else { return 0 };
        let (mut best, mut best_rate) = (0, MARGIN / single.max(f32::MIN_POSITIVE));
        let (mut tokens, mut chance) = (1.0, 1.0);
        for count in 1..=most {
            chance *= self.chances[class(matched + count - 1)];
            tokens += chance;
            let rate = tokens / self.time(count + 1, single);
            if rate > best_rate {
                (best, best_rate) = (count, rate);
            }
        }
        best
    }

    /// Milliseconds of a batch, from the nearest ones that were measured.
    fn time(&self, tokens: usize, single: f32) -> f32 {
        if let Some(known) = self.times[tokens] {
            return known.max(single);
        }
        let known = |at: usize| self.times[at].map(|time| (at as f32, time));
        let below = (1..tokens).rev().find_map(known).unwrap_or((1.0, single));
        let slope = match (tokens + 1..=LARGEST).find_map(known) {
            Some(above) => (above.1 - below.1) / (above.0 - below.0),
            None => single * COST_OF_ONE_MORE,
        };
        (below.1 + slope.max(0.0) * (tokens as f32 - below.0)).max(single)
    }
}

fn class(matched: usize) -> usize {
    match matched {
        0..=2 => 0,
        3..=4 => 1,
        5..=8 => 2,
        9.. => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn measured(single: u64, chunk: u64) -> Pace {
        let mut pace = Pace::new(Lookup::Auto, None);
        pace.took(1, millis(single));
        pace.took(64, millis(chunk));
        pace
    }

    #[test]
    fn without_a_measurement_nothing_is_guessed() {
        assert_eq!(Pace::new(Lookup::Auto, None).worth(9, 64), 0);
        assert_eq!(Pace::new(Lookup::On, None).worth(9, 64), ALWAYS);
        assert_eq!(Pace::new(Lookup::Off, None).worth(9, 64), 0);
    }

    #[test]
    fn cheap_batches_are_used_and_dear_ones_are_not() {
        let cheap = measured(30, 300);
        assert!(cheap.worth(9, 64) >= 8, "{}", cheap.worth(9, 64));
        assert!(cheap.worth(2, 64) < cheap.worth(9, 64));
        assert_eq!(cheap.worth(9, 3), 3, "no further than there is room");
        assert_eq!(measured(30, 64 * 30).worth(9, 64), 0, "a batch that costs as much as its tokens");
    }

    #[test]
    fn wrong_guesses_switch_it_off_and_right_ones_on_again() {
        let mut pace = measured(30, 400);
        (0..40).for_each(|_| pace.guessed(2, false));
        assert_eq!(pace.worth(2, 64), 0);
        (0..40).for_each(|_| pace.guessed(2, true));
        assert!(pace.worth(2, 64) > 0);
    }

    #[test]
    fn a_measured_batch_counts_more_than_a_line_through_others() {
        let mut pace = measured(30, 100);
        for tokens in 2..64 {
            (0..20).for_each(|_| pace.took(tokens, millis(30 * tokens as u64)));
        }
        assert_eq!(pace.worth(9, 60), 0);
    }
}
