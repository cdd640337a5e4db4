//! Queues: a limited number of places, given in order of arrival, with a limit on how long a request waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The time that one request may still wait, for everything that it waits for together.
#[derive(Debug)]
pub(crate) struct WaitBudget {
    left: Duration,
    waited: Duration,
}

/// The wait budget was used up before a place was free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitTimedOut;

impl WaitBudget {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            left: limit,
            waited: Duration::ZERO,
        }
    }

    /// Waits for something within the time that is left.
    pub(crate) async fn wait_for<T>(
        &mut self,
        awaited: impl Future<Output = T>,
    ) -> Result<T, WaitTimedOut> {
        let began = Instant::now();
        let came = timeout(self.left, awaited).await;
        let waited = began.elapsed();
        self.waited += waited;
        self.left = self.left.saturating_sub(waited);
        came.map_err(|_| WaitTimedOut)
    }

    /// Time waited so far.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }
}

/// A number of places, or of units of memory, that requests hold while they need them.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    places: Arc<Semaphore>,
}

impl Queue {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Waits for `number` places, behind the requests that are already waiting.
    pub(crate) async fn take(
        &self,
        number: u32,
        wait: &mut WaitBudget,
    ) -> Result<OwnedSemaphorePermit, WaitTimedOut> {
        let places = Arc::clone(&self.places);
        let taken = wait.wait_for(places.acquire_many_owned(number)).await?;
        // The semaphore is never closed.
        taken.map_err(|_| WaitTimedOut)
    }

    #[cfg(test)]
    fn free(&self) -> usize {
        self.places.available_permits()
    }
}

/// An upper bound of the CPU time that the programs waiting or running in a queue may still use.
#[derive(Debug, Clone)]
pub(crate) struct Backlog {
    milliseconds: Arc<AtomicU64>,
    places: u64,
}

/// One program's share of a [`Backlog`], until it is dropped.
#[derive(Debug)]
pub(crate) struct BacklogShare {
    backlog: Backlog,
    milliseconds: u64,
}

impl Backlog {
    /// Creates a backlog that is worked off by this number of places.
    pub(crate) fn new(places: usize) -> Self {
        Self {
            milliseconds: Arc::default(),
            places: (places as u64).max(1),
        }
    }

    /// Adds a program that may use `time`.
    pub(crate) fn add(&self, time: Duration) -> BacklogShare {
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX >> 16);
        self.milliseconds.fetch_add(milliseconds, Ordering::Relaxed);
        BacklogShare {
            backlog: self.clone(),
            milliseconds,
        }
    }

    /// The time until everything in it is done, if every program uses all of its time.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_millis(self.milliseconds.load(Ordering::Relaxed) / self.places)
    }
}

impl Drop for BacklogShare {
    fn drop(&mut self) {
        self.backlog
            .milliseconds
            .fetch_sub(self.milliseconds, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_too_long_leaves_and_the_next_one_gets_the_place() {
        let queue = Queue::new(1);
        let mut first = WaitBudget::new(Duration::from_secs(1));
        let held = queue.take(1, &mut first).await.unwrap();
        let mut second = WaitBudget::new(Duration::from_millis(1));
        assert_eq!(queue.take(1, &mut second).await.unwrap_err(), WaitTimedOut);
        drop(held);
        assert_eq!(queue.free(), 1);
        let mut third = WaitBudget::new(Duration::from_secs(1));
        assert!(queue.take(1, &mut third).await.is_ok());
    }

    #[tokio::test]
    async fn a_request_has_one_time_to_wait_for_all_its_turns() {
        let mut wait = WaitBudget {
            left: Duration::ZERO,
            waited: Duration::from_secs(3),
        };
        let full = Queue::new(0);
        assert_eq!(full.take(1, &mut wait).await.unwrap_err(), WaitTimedOut);
        // A free place is taken even if the wait budget is used up.
        assert!(Queue::new(1).take(1, &mut wait).await.is_ok());
        assert!(wait.waited() >= Duration::from_secs(3));
    }

    #[test]
    fn a_backlog_is_the_time_of_all_its_programs_over_its_places() {
        let backlog = Backlog::new(2);
        let first = backlog.add(Duration::from_secs(10));
        let second = backlog.add(Duration::from_secs(2));
        assert_eq!(backlog.duration(), Duration::from_secs(6));
        drop(first);
        assert_eq!(backlog.duration(), Duration::from_secs(1));
        drop(second);
        assert_eq!(backlog.duration(), Duration::ZERO);
    }
}
