//! Nested calls: their depth, and the call whose time and space they use.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use super::cpu::CpuMeter;
use super::room::Room;
use crate::limits::Limits;
use crate::report::{Ending, LimitReached, Stopped};

/// A call that makes another one. The nested call is charged to its budget, ends at its deadline, and takes a place on
/// the next level of the pools, so it never waits for the calls that made it.
#[derive(Clone)]
pub struct Caller {
    /// Its level, from 0: see [`LEVELS`](crate::LEVELS).
    pub(crate) level: usize,
    pub(crate) deadline: Instant,
    pub(crate) meter: Arc<CpuMeter>,
    /// Memory of the calls that it makes.
    memory: Room,
    /// Files that they leave.
    files: Arc<FilesLeft>,
}

/// The size of the files that the calls of one call have left.
struct FilesLeft {
    most: u64,
    bytes: AtomicU64,
    /// Those of the call that made this one. Files are charged there as well.
    outer: Option<Arc<FilesLeft>>,
}

impl Caller {
    /// A call with these limits and this CPU time, made by `caller` if it is nested.
    pub(crate) fn new(
        caller: Option<Self>,
        deadline: Instant,
        cpu: Duration,
        limits: &Limits,
    ) -> Self {
        let level = Self::level_below(caller.as_ref());
        let (meter, files) = caller.map(|caller| (caller.meter, caller.files)).unzip();
        Self {
            level,
            deadline,
            meter: CpuMeter::new(cpu, meter),
            memory: Room::new(limits.nested_bytes),
            files: Arc::new(FilesLeft {
                most: limits.nested_file_bytes,
                bytes: AtomicU64::new(0),
                outer: files,
            }),
        }
    }

    /// Sets aside, for a call that this one makes, what that call may hold: its memory with `files` bytes of scratch files.
    /// Waits for other calls that this one made, until the deadline.
    pub(crate) async fn set_aside(
        &self,
        limits: &Limits,
        files: u64,
        deadline: Instant,
    ) -> Result<OwnedSemaphorePermit, Stopped> {
        let parts = [
            limits.memory_bytes,
            files,
            limits.output_bytes.saturating_mul(2),
            limits.result_bytes,
        ];
        let wanted = parts.into_iter().fold(0, u64::saturating_add);
        let most = self.memory.bytes();
        if wanted > most {
            let limit = LimitReached::new("nested_bytes", most, wanted);
            let reason = format!(
                "it may need more memory than its caller has for calls ({limit}); raise `limits.nested_bytes` of the caller"
            );
            return Err(Stopped::by_limit(Ending::Denied, reason, limit));
        }
        self.memory.take(wanted, deadline).await.ok_or_else(|| {
            let limit =
                LimitReached::new("nested_bytes", most, self.memory.in_use() + wanted);
            let reason = format!(
                "other calls of its caller held the memory for calls ({limit}); raise `limits.nested_bytes` of the caller"
            );
            Stopped::by_limit(Ending::Unavailable, reason, limit)
        })
    }

    /// Charges files that a call made by this one leaves. Returns the end of that call if they are too many; then nothing is
    /// charged.
    pub fn charge_files(&self, bytes: u64) -> Result<(), Stopped> {
        let levels = || std::iter::successors(Some(&self.files), |files| files.outer.as_ref());
        for (charged, files) in levels().enumerate() {
            let before = files.bytes.fetch_add(bytes, Ordering::Relaxed);
            let sum = before.saturating_add(bytes);
            if sum > files.most {
                for files in levels().take(charged + 1) {
                    files.bytes.fetch_sub(bytes, Ordering::Relaxed);
                }
                return Err(Stopped::limited("nested_file_bytes", files.most, sum));
            }
        }
        Ok(())
    }

    /// The level of a call that `caller` makes. Calls of the host are on the first.
    pub(crate) fn level_below(caller: Option<&Self>) -> usize {
        caller.map_or(0, |caller| caller.level + 1)
    }

    /// The level of the calls that this one makes.
    pub fn next_level(&self) -> usize {
        self.level + 1
    }

    /// True on the thread that is polling this call: what it awaits is polled inside.
    pub(crate) fn is_polled_here(&self) -> bool {
        self.meter.is_polled_here()
    }

    /// The instant at which it is dropped, with the calls that it made.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("level", &self.level)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(caller: Option<Caller>, nested_file_bytes: u64) -> Caller {
        let limits = Limits {
            nested_file_bytes,
            ..Limits::default()
        };
        Caller::new(caller, Instant::now(), Duration::from_secs(1), &limits)
    }

    #[test]
    fn files_count_for_every_call_around_the_one_that_leaves_them() {
        let outer = call(None, 100);
        let inner = call(Some(outer.clone()), 60);
        assert_eq!(inner.charge_files(60), Ok(()));
        let limit = inner.charge_files(1).unwrap_err().limit.unwrap();
        assert_eq!(
            (limit.name.as_str(), limit.value, limit.used),
            ("nested_file_bytes", 60, 61)
        );
        // What is refused is not charged.
        assert!(call(Some(inner.clone()), 60).charge_files(50).is_err());
        assert_eq!(outer.charge_files(40), Ok(()));
        let limit = call(Some(outer), 60)
            .charge_files(1)
            .unwrap_err()
            .limit
            .unwrap();
        assert_eq!((limit.value, limit.used), (100, 101));
    }
}
