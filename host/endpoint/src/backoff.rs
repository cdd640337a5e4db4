//! Waits before an endpoint is asked again.

use std::time::Duration;

use rlf_random::Key;

/// Maximum wait as a result of doubling.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Maximum wait that an endpoint may ask for.
const MAX_ASKED_WAIT: Duration = Duration::from_mins(1);

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
    fn two_that_failed_together_come_back_apart() {
        let first = Duration::from_millis(500);
        assert_ne!(wait(first, 1, None, 1), wait(first, 1, None, 2));
    }
}
