//! Waiting one's turn: so many at once, first come first served, and nobody waits beyond a deadline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long one request may wait in all, for whatever it waits.
#[derive(Debug)]
pub(crate) struct WaitBudget {
    left: Duration,
    waited: Duration,
}

/// The deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitTimedOut;

impl WaitBudget {
    pub(crate) fn new(most: Duration) -> Self {
        Self {
            left: most,
            waited: Duration::ZERO,
        }
    }

    /// How long it has waited so far.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }
}

/// A number of places, or of bytes, that requests hold for as long as they need them.
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

    /// Waits for `number` places, behind those that wait already.
    pub(crate) async fn take(
        &self,
        number: u32,
        wait: &mut WaitBudget,
    ) -> Result<OwnedSemaphorePermit, WaitTimedOut> {
        let began = Instant::now();
        let taken = timeout(
            wait.left,
            Arc::clone(&self.places).acquire_many_owned(number),
        )
        .await;
        let waited = began.elapsed();
        wait.waited += waited;
        wait.left = wait.left.saturating_sub(waited);
        // Nothing closes the semaphore.
        taken.ok().and_then(Result::ok).ok_or(WaitTimedOut)
    }

    #[cfg(test)]
    fn free(&self) -> usize {
        self.places.available_permits()
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
    async fn patience_is_spent_once_over_all_that_is_waited_for() {
        let mut wait = WaitBudget {
            left: Duration::ZERO,
            waited: Duration::from_secs(3),
        };
        let full = Queue::new(0);
        assert_eq!(full.take(1, &mut wait).await.unwrap_err(), WaitTimedOut);
        // A place that is free is taken even then.
        assert!(Queue::new(1).take(1, &mut wait).await.is_ok());
        assert!(wait.waited() >= Duration::from_secs(3));
    }
}
