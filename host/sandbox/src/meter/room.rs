//! Memory that calls share: each sets a part of it aside while it runs.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Unit in which memory is set aside, so that budgets of terabytes fit a semaphore.
const UNIT_BYTES: u64 = 64 << 10;

/// Memory of which calls set parts aside. Calls that find too little wait for others to end.
#[derive(Clone)]
pub(crate) struct Room {
    bytes: u64,
    free: Arc<Semaphore>,
}

impl Room {
    pub(crate) fn new(bytes: u64) -> Self {
        // Rounded as parts are, so that one of all the memory fits.
        let units = usize::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(usize::MAX);
        Self {
            bytes,
            free: Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// All of it, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets `bytes` aside, as soon as they are free, until the value is dropped. `None` if the deadline passes first.
    pub(crate) async fn take(&self, bytes: u64, deadline: Instant) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        acquire(&self.free, units, deadline).await
    }

    /// The memory that is set aside, in bytes.
    pub(crate) fn in_use(&self) -> u64 {
        let free = self.free.available_permits() as u64;
        self.bytes.div_ceil(UNIT_BYTES).saturating_sub(free) * UNIT_BYTES
    }
}

/// Waits for permits until the deadline.
pub(crate) async fn acquire(
    semaphore: &Arc<Semaphore>,
    permits: u32,
    deadline: Instant,
) -> Option<OwnedSemaphorePermit> {
    // There are usually some, and then no timer is needed.
    if let Ok(permit) = Arc::clone(semaphore).try_acquire_many_owned(permits) {
        return Some(permit);
    }
    let waiting = Arc::clone(semaphore).acquire_many_owned(permits);
    tokio::time::timeout_at(deadline.into(), waiting)
        .await
        .ok()
        .and_then(Result::ok)
}
