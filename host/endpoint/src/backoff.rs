//! Waits before an endpoint is asked again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rlf_random::Key;

/// Maximum wait as a result of doubling.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Maximum wait that an endpoint may ask for.
const MAX_ASKED_WAIT: Duration = Duration::from_mins(1);
/// Minimum time between two warnings that an endpoint is asked again.
const BETWEEN_WARNINGS: Duration = Duration::from_mins(1);

/// The time of the last warning that an endpoint is asked again. Hundreds of questions may wait for it at once.
#[derive(Debug, Default)]
pub(crate) struct LastWarning(Mutex<Option<Instant>>);

impl LastWarning {
    /// True for the first wait, and then at most once a minute.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due =
            last.is_none_or(|last| now.saturating_duration_since(last) >= BETWEEN_WARNINGS);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

/// The wait after `failed` attempts, at least 1. `asked` is the wait that the endpoint asked for.
///
/// Up to half of it is added, depending on `draw`, so that clients that failed together do not retry together.
pub(crate) fn wait(first: Duration, failed: u32, asked: Option<Duration>, draw: u64) -> Duration {
    let doubled = 2_u32.saturating_pow(failed.saturating_sub(1).min(20));
    let own = first.saturating_mul(doubled).min(MAX_WAIT);
    let wait = own.max(asked.unwrap_or_default().min(MAX_ASKED_WAIT));
    let share = Key::from_value(draw).uniform(u64::from(failed).wrapping_sub(1));
    wait + wait.mul_f64(share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_doubles_up_to_an_end_and_is_never_half_as_long_again() {
        let first = Duration::from_millis(500);
        for (failed, least) in [(1, 500), (2, 1000), (3, 2000), (10, 30_000), (90, 30_000)] {
            for draw in 0..100 {
                let wait = wait(first, failed, None, draw).as_millis();
                assert!(
                    (least..least + least / 2).contains(&wait),
                    "{failed}: {wait}"
                );
            }
        }
    }

    #[test]
    fn an_endpoint_may_ask_for_a_longer_wait_but_not_for_ever() {
        let first = Duration::from_millis(500);
        let asked = |seconds| Some(Duration::from_secs(seconds));
        assert!(wait(first, 1, asked(7), 3) >= Duration::from_secs(7));
        assert!(wait(first, 1, asked(1_000_000), 3) < Duration::from_secs(90));
    }

    #[test]
    fn a_busy_endpoint_is_reported_at_once_and_then_once_a_minute() {
        let last = LastWarning::default();
        let begun = Instant::now();
        let due = [0, 1, 59, 60, 61, 119, 120].map(|s| last.is_due(begun + Duration::from_secs(s)));
        assert_eq!(due, [true, false, false, true, false, false, true]);
    }

    #[test]
    fn two_that_failed_together_come_back_apart() {
        let first = Duration::from_millis(500);
        assert_ne!(wait(first, 1, None, 1), wait(first, 1, None, 2));
    }
}
