//! The one place where the core reads the time.
//!
//! Invariant: nothing else in the core asks the system for the time, so that a paused tokio clock governs all durations.

use crate::Timestamp;

/// Now, in whole milliseconds: what events and the store keep.
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

/// Measures how long something takes.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(tokio::time::Instant);

impl Stopwatch {
    /// Starts it.
    pub fn start() -> Self {
        Self(tokio::time::Instant::now())
    }

    /// Milliseconds since the start.
    pub fn millis(&self) -> u32 {
        u32::try_from(self.0.elapsed().as_millis()).unwrap_or(u32::MAX)
    }
}
