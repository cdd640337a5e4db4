//! Requests to stop a training run, from another thread such as a handler of signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Requests to stop a training run. Clones are handles on the same requests.
///
/// After the first request, the run finishes its step, saves and stops. After the second one, RL stops before the next
/// update and discards the step, which a resumed run repeats as a whole. A step of SFT is one update and is always finished.
///
/// ```
/// let interruption = rlf_run::Interruption::default();
/// let handle = interruption.clone();
/// assert_eq!(handle.request(), 1);
/// assert_eq!(interruption.requests(), 1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Interruption(Arc<AtomicU32>);

impl Interruption {
    /// Adds a request. Returns the number of requests so far.
    pub fn request(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst).saturating_add(1)
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}
