//! Requests to stop a training run, from another thread such as a handler of signals.

use std::future::Future;
use std::pin::pin;

use futures_util::future::{Either, select};
use tokio::sync::watch;

/// Requests to stop a training run. Clones are handles on the same requests.
///
/// After the first request, the run finishes its step, saves and stops. After the second one, it stops at once:
///
/// - A rollout is broken off, and its step is repeated when the run resumes.
/// - A step of RL that has begun its updates ends before the next one. Its updates are discarded, and the step is repeated
///   as a whole.
/// - An evaluation is broken off and repeated. The step before it is saved.
/// - A step of SFT is one update and is always finished.
///
/// ```
/// let interruption = rlf_run::Interruption::default();
/// let handle = interruption.clone();
/// assert_eq!(handle.request(), 1);
/// assert_eq!(interruption.requests(), 1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Interruption(watch::Sender<u32>);

/// Number of requests after which work under way is not finished.
const ABANDONS: u32 = 2;

impl Interruption {
    /// Adds a request. Returns the number of requests so far.
    pub fn request(&self) -> u32 {
        let mut requests = 0;
        self.0.send_modify(|count| {
            *count = count.saturating_add(1);
            requests = *count;
        });
        requests
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u32 {
        *self.0.borrow()
    }

    /// Completes after the second request.
    pub(crate) async fn abandoned(&self) {
        // The receiver alone would not do for a caller that polls once: it may pause for the sake of other tasks.
        if self.requests() < ABANDONS {
            let mut requests = self.0.subscribe();
            // It cannot fail: this handle keeps the channel open.
            let _ = requests.wait_for(|count| *count >= ABANDONS).await;
        }
    }

    /// Runs `work` to its end, or until the second request. None if it was broken off.
    pub(crate) async fn unless_abandoned<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match select(pin!(work), pin!(self.abandoned())).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_second_request_breaks_off_what_is_under_way() {
        let interruption = Interruption::default();
        let mut waiting = Box::pin(interruption.unless_abandoned(std::future::pending::<()>()));
        interruption.request();
        assert_eq!(waiting.as_mut().now_or_never(), None);
        interruption.clone().request();
        assert_eq!(waiting.now_or_never(), Some(None));
        // Work that needs no time is done all the same.
        let done = interruption.unless_abandoned(std::future::ready(1));
        assert_eq!(done.now_or_never(), Some(Some(1)));
    }
}
