//! Pace of calls: brief ones begin on the caller's thread, others on the guests' threads.
//!
//! Guests have their own threads so that none of them delays a deadline or a rollout. But handing a call over and being
//! woken when it is done costs tens of microseconds, many times as long as a calculator computes. So if the calls of a
//! template are brief, the next one begins on the caller's thread. It is handed over after all if it waits for
//! something, or if an epoch tick interrupts it: the first tick, or the second one if the first comes when it has only
//! just begun. After a call that computed that long, several calls are handed over at once. In this way a guest can take
//! at most one and a half ticks in eighteen calls from the caller's thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A call of this much CPU time is short compared with a tick, and handing it over still costs a noticeable share.
const BRIEF: Duration = Duration::from_micros(500);
/// Time of calls on the caller's thread after which other tasks on that thread run.
const TURN: Duration = Duration::from_millis(1);
/// The weight of a call in the average is one over this.
const WEIGHT: u32 = 8;

thread_local! {
    /// Time of calls that began on this thread since it last let other tasks run.
    static TURN_TAKEN: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Lets other tasks on this thread run if calls have taken a whole turn of it. Callers that never have to wait need this.
pub(crate) async fn take_turns() {
    if TURN_TAKEN.get() >= TURN {
        TURN_TAKEN.set(Duration::ZERO);
        tokio::task::yield_now().await;
    } else {
        tokio::task::coop::consume_budget().await;
    }
}

/// Counts the time of a call that began on this thread.
pub(crate) fn note_turn(took: Duration) {
    TURN_TAKEN.set(TURN_TAKEN.get() + took);
}

/// Average CPU time of one template's calls. The latest ones weigh most.
pub(crate) struct Pace {
    average_ns: AtomicU32,
}

impl Default for Pace {
    /// The pace of a template whose calls are not known yet: its first calls do not count as brief.
    fn default() -> Self {
        Self {
            average_ns: AtomicU32::new(Self::TICK.as_nanos() as u32),
        }
    }
}

impl Pace {
    /// The default tick. A longer call counts as one tick.
    pub(crate) const TICK: Duration = Duration::from_millis(5);

    /// True if the next call may begin on its caller's thread.
    pub(crate) fn is_brief(&self) -> bool {
        self.average() < BRIEF
    }

    fn average(&self) -> Duration {
        Duration::from_nanos(self.average_ns.load(Ordering::Relaxed).into())
    }

    /// Counts a call with its CPU time up to its end, or until it was handed over.
    pub(crate) fn note(&self, cpu: Duration) {
        let before = self.average_ns.load(Ordering::Relaxed);
        let after = if cpu >= Self::TICK {
            // After one long call the template has to prove again that its calls are brief.
            Self::TICK.as_nanos() as u32
        } else {
            before - before / WEIGHT + cpu.as_nanos() as u32 / WEIGHT
        };
        // A count lost to another thread makes no difference.
        self.average_ns.store(after, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of calls of `micros` microseconds until the next one begins on the caller's thread.
    fn until_brief(pace: &Pace, micros: u64) -> usize {
        let mut calls = 0;
        while !pace.is_brief() {
            pace.note(Duration::from_micros(micros));
            calls += 1;
        }
        calls
    }

    #[test]
    fn a_template_shows_that_it_is_brief_and_a_long_call_takes_the_trust_away() {
        let pace = Pace::default();
        assert_eq!(until_brief(&pace, 20), 18);
        for _ in 0..8 {
            pace.note(Duration::from_micros(20));
        }
        pace.note(Duration::from_micros(1_500));
        assert!(pace.is_brief(), "one that was held up is no reason");
        pace.note(Duration::from_secs(2));
        assert_eq!(until_brief(&pace, 20), 18);
    }

    #[test]
    fn no_mixture_of_long_and_brief_calls_begins_more_than_one_long_call_in_eighteen() {
        for brief_calls in 0..64 {
            let pace = Pace::default();
            let (mut begun, mut calls) = (0, 0);
            while calls < 10_000 {
                begun += usize::from(pace.is_brief());
                pace.note(Pace::TICK);
                for _ in 0..brief_calls {
                    pace.note(Duration::ZERO);
                }
                calls += 1 + brief_calls;
            }
            assert!(begun * 18 <= calls, "{begun} of {calls} with {brief_calls}");
        }
    }
}
