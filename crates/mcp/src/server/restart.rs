//! When a broken server is started again, and when it is given up.
//!
//! Invariant: pure but for the jitter; every streak of failures ends, and a server that would only fail the same way
//! again is not started again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::status::FailureCode;

/// How often a broken server is started again by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Starts in a row after it died while it was ready.
    pub after_death: u32,
    /// Starts in a row when it was never ready.
    pub at_start: u32,
    /// The pause before the first of them; each further one is twice as long.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// How long it must have been ready so that the count begins anew.
    pub healthy_after: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            after_death: 5,
            at_start: 2,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(8),
            healthy_after: Duration::from_secs(60),
        }
    }
}

impl RestartPolicy {
    /// Never starts anything again by itself.
    pub fn never() -> Self {
        Self { after_death: 0, at_start: 0, ..Self::default() }
    }
}

/// A start that is to follow a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    /// From 1.
    pub(super) attempt: u32,
    pub(super) of: u32,
    pub(super) pause: Duration,
}

/// Failures in a row.
#[derive(Debug, Default)]
pub(super) struct Streak {
    restarts: u32,
    was_ready: bool,
}

impl Streak {
    /// What follows a failure: another start, or nothing. `ready_for` is how long the server was ready before it.
    pub(super) fn after(
        &mut self,
        policy: &RestartPolicy,
        code: FailureCode,
        ready_for: Option<Duration>,
    ) -> Option<Planned> {
        if ready_for.is_some_and(|ready| ready >= policy.healthy_after) {
            *self = Self::default();
        }
        self.was_ready |= ready_for.is_some();
        let of = if self.was_ready { policy.after_death } else { policy.at_start };
        if !code.may_pass() || self.restarts >= of {
            return None;
        }
        let doubled = policy.first_pause.saturating_mul(1 << self.restarts.min(20));
        self.restarts += 1;
        let pause = jittered(doubled.min(policy.longest_pause));
        Some(Planned { attempt: self.restarts, of, pause })
    }

    /// How often it was started again in vain.
    pub(super) fn restarts(&self) -> u32 {
        self.restarts
    }
}

/// Up to a fifth more or less, so that servers that died of the same cause do not come back at the same moment.
fn jittered(pause: Duration) -> Duration {
    // Each state of the standard library's hasher is seeded at random.
    let per_mille = RandomState::new().hash_one(0_u8) % 401 + 800;
    pause * u32::try_from(per_mille).unwrap_or(1_000) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(pause: Duration, wanted_ms: u64) -> bool {
        (wanted_ms * 8 / 10..=wanted_ms * 12 / 10).contains(&u64::try_from(pause.as_millis()).unwrap())
    }

    #[test]
    fn pauses_double_to_a_limit_and_then_it_is_given_up() {
        let policy = RestartPolicy { after_death: 6, ..RestartPolicy::default() };
        let mut streak = Streak::default();
        let first = streak.after(&policy, FailureCode::Died, Some(Duration::from_secs(1))).unwrap();
        assert!((first.attempt, first.of) == (1, 6) && about(first.pause, 500), "{first:?}");
        for (attempt, ms) in [(2, 1_000), (3, 2_000), (4, 4_000), (5, 8_000), (6, 8_000)] {
            let next = streak.after(&policy, FailureCode::ExitedAtStart, None).unwrap();
            assert!((next.attempt, next.of) == (attempt, 6) && about(next.pause, ms), "{next:?}");
        }
        assert_eq!(streak.after(&policy, FailureCode::ExitedAtStart, None), None);
        // A call may start it all the same; that alone is no reason for patience.
        assert_eq!(streak.after(&policy, FailureCode::Died, Some(Duration::from_secs(1))), None);
        let healthy = streak.after(&policy, FailureCode::Died, Some(policy.healthy_after)).unwrap();
        assert_eq!(healthy.attempt, 1);
    }

    #[test]
    fn what_would_only_fail_again_is_not_tried_again() {
        let policy = RestartPolicy::default();
        for (code, tried_again) in [
            (FailureCode::CommandNotFound, false),
            (FailureCode::NotExecutable, false),
            (FailureCode::BadWorkingFolder, false),
            (FailureCode::StartTimeout, false),
            (FailureCode::Handshake, false),
            (FailureCode::ListTools, false),
            (FailureCode::Spawn, true),
            (FailureCode::ExitedAtStart, true),
            (FailureCode::Died, true),
        ] {
            let planned = Streak::default().after(&policy, code, None);
            assert_eq!(planned.is_some(), tried_again, "{code:?}");
        }
        assert_eq!(Streak::default().after(&RestartPolicy::never(), FailureCode::Died, None), None);
    }
}
