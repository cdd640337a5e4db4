//! The order of the operations on one notebook or session: that in which Python asked for them.

use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

/// Places for the operations, in order.
#[derive(Default)]
pub(crate) struct Queue(Mutex<Option<oneshot::Receiver<()>>>);

/// The place of one operation. Dropping it lets the next one begin.
pub(crate) struct Place {
    before: Option<oneshot::Receiver<()>>,
    _ended: oneshot::Sender<()>,
}

impl Queue {
    /// The next place.
    pub(crate) fn place(&self) -> Place {
        let (ended, next) = oneshot::channel();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Place {
            before: last.replace(next),
            _ended: ended,
        }
    }
}

impl Place {
    /// Waits until the operations before it have ended.
    pub(crate) async fn reached(&mut self) {
        if let Some(before) = self.before.take() {
            // The sender is dropped and never sends.
            let _ = before.await;
        }
    }
}
