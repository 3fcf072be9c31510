//! How fast bytes arrive, and how long the rest takes.
//!
//! Invariant: pure; the caller's clock is one that only goes forward, so that a changed wall clock changes nothing.

use std::time::{Duration, Instant};

/// Speed of the last seconds counts; what is older fades with this time.
const MEMORY: Duration = Duration::from_secs(5);
/// Shorter times say nothing about speed.
const SHORTEST: Duration = Duration::from_millis(200);

/// A smoothed speed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Speed {
    last: Option<(Instant, u64)>,
    per_second: Option<f64>,
}

impl Speed {
    /// Tells how many bytes there are by now.
    pub fn tell(&mut self, at: Instant, bytes: u64) {
        let Some((then, before)) = self.last else {
            self.last = Some((at, bytes));
            return;
        };
        let passed = at.saturating_duration_since(then);
        if passed < SHORTEST {
            return;
        }
        self.last = Some((at, bytes));
        // A file that starts anew has fewer bytes than before.
        let Some(arrived) = bytes.checked_sub(before) else { return };
        let now = arrived as f64 / passed.as_secs_f64();
        let share = 1.0 - (-passed.as_secs_f64() / MEMORY.as_secs_f64()).exp();
        self.per_second = Some(self.per_second.map_or(now, |old| old + share * (now - old)));
    }

    /// Bytes in a second; none before anything is known.
    pub fn per_second(&self) -> Option<u64> {
        self.per_second.map(|speed| speed.round() as u64)
    }

    /// How long `left` bytes take at this speed; none when nothing moves.
    pub fn seconds_for(&self, left: u64) -> Option<u64> {
        let speed = self.per_second.filter(|speed| *speed >= 1.0)?;
        Some((left as f64 / speed).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_has_its_speed_and_a_burst_fades() {
        let (begin, mut speed) = (Instant::now(), Speed::default());
        for second in 0..=20 {
            speed.tell(begin + Duration::from_secs(second), second * 1_000_000);
        }
        assert_eq!(speed.per_second(), Some(1_000_000));
        assert_eq!(speed.seconds_for(10_000_000), Some(10));
        speed.tell(begin + Duration::from_secs(21), 30_000_000);
        let burst = speed.per_second().unwrap();
        assert!((2_000_000..4_000_000).contains(&burst), "{burst}");
        for second in 22..=60 {
            speed.tell(begin + Duration::from_secs(second), 30_000_000);
        }
        assert!(speed.per_second().unwrap() < 2_000, "{speed:?}");
    }

    #[test]
    fn a_file_that_starts_anew_has_no_negative_speed() {
        let (begin, mut speed) = (Instant::now(), Speed::default());
        speed.tell(begin, 5_000);
        speed.tell(begin + Duration::from_secs(1), 0);
        assert_eq!(speed.per_second(), None);
        speed.tell(begin + Duration::from_secs(2), 100);
        assert_eq!(speed.per_second(), Some(100));
    }
}
