//! Room in one pool of the sandbox: for so many operations at once, with so much memory together.
//!
//! The sandbox has the same bounds, but there an operation that waits spends its deadline. Here it has not begun.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use rlf_sandbox::PoolLevel;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Failure;

/// Interval between checks whether a wait cannot end, because open notebooks hold what it waits for.
const LOOK: Duration = Duration::from_secs(1);

/// The places and the memory of one sandbox pool, as operations of this Python process may take them.
pub(crate) struct Room {
    places: Arc<Semaphore>,
    /// One permit for each MiB.
    memory: Arc<Semaphore>,
    mebibytes: u32,
    /// The share of open notebooks.
    notebooks: Arc<Notebooks>,
}

#[derive(Default)]
struct Notebooks {
    places: AtomicU32,
    mebibytes: AtomicU32,
}

/// The place and the memory of one operation, until it is dropped.
pub(crate) struct Place {
    _permits: [OwnedSemaphorePermit; 2],
    mebibytes: u32,
}

/// The place of an open notebook, which it may keep for any time.
pub(crate) struct NotebookPlace {
    place: Place,
    notebooks: Arc<Notebooks>,
}

impl Room {
    pub(crate) fn new(pool: PoolLevel) -> Self {
        let mebibytes = u32::try_from(pool.memory_bytes >> 20)
            .unwrap_or(u32::MAX)
            .max(1);
        Self {
            places: Arc::new(Semaphore::new(pool.places as usize)),
            memory: Arc::new(Semaphore::new(mebibytes as usize)),
            mebibytes,
            notebooks: Arc::default(),
        }
    }

    /// Waits for a place with this much memory. Fails if open notebooks hold so much that it can never become free.
    pub(crate) async fn place(&self, memory_bytes: u64) -> Result<Place, Failure> {
        let wanted = u32::try_from(memory_bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX);
        let wanted = wanted.clamp(1, self.mebibytes);
        let acquire = async {
            let place = Arc::clone(&self.places).acquire_owned().await?;
            let memory = Arc::clone(&self.memory).acquire_many_owned(wanted).await?;
            Ok::<_, tokio::sync::AcquireError>(Place {
                _permits: [place, memory],
                mebibytes: wanted,
            })
        };
        tokio::pin!(acquire);
        loop {
            if let Ok(place) = tokio::time::timeout(LOOK, &mut acquire).await {
                return place.map_err(|error| Failure::Other(error.to_string()));
            }
            let kept = self.notebooks.mebibytes.load(SeqCst);
            if kept.saturating_add(wanted) > self.mebibytes {
                let open = self.notebooks.places.load(SeqCst);
                return Err(Failure::Unavailable(format!(
                    "{open} open notebooks have {kept} MiB of the {} MiB for programs, and this needs {wanted}; close \
                     some, give them a smaller memory_bytes, or allow more with \
                     configure(program_memory_budget_bytes=..) before the first use",
                    self.mebibytes
                )));
            }
        }
    }

    /// Waits for the place of a notebook.
    pub(crate) async fn notebook_place(&self, memory_bytes: u64) -> Result<NotebookPlace, Failure> {
        let place = self.place(memory_bytes).await?;
        let notebooks = Arc::clone(&self.notebooks);
        notebooks.places.fetch_add(1, SeqCst);
        notebooks.mebibytes.fetch_add(place.mebibytes, SeqCst);
        Ok(NotebookPlace { place, notebooks })
    }
}

impl Drop for NotebookPlace {
    fn drop(&mut self) {
        self.notebooks.places.fetch_sub(1, SeqCst);
        (self.notebooks.mebibytes).fetch_sub(self.place.mebibytes, SeqCst);
    }
}
