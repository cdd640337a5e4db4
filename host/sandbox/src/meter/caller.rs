//! Nested calls: their depth, and the call whose time they use.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cpu::CpuMeter;

/// A call that makes another one. The nested call is charged to its budget, ends at its deadline, and takes a place on
/// the next level of the pools, so it never waits for the calls that made it.
#[derive(Clone)]
pub struct Caller {
    /// Its level, from 0: see [`LEVELS`](crate::LEVELS).
    pub(crate) level: usize,
    pub(crate) deadline: Instant,
    pub(crate) meter: Arc<CpuMeter>,
}

impl Caller {
    pub(crate) fn new(caller: Option<Self>, deadline: Instant, cpu: Duration) -> Self {
        let level = Self::level_below(caller.as_ref());
        let meter = CpuMeter::new(cpu, caller.map(|caller| caller.meter));
        Self {
            level,
            deadline,
            meter,
        }
    }

    /// The level of a call that `caller` makes. Calls of the host are on the first.
    pub(crate) fn level_below(caller: Option<&Self>) -> usize {
        caller.map_or(0, |caller| caller.level + 1)
    }

    /// The level of the calls that this one makes.
    pub fn next_level(&self) -> usize {
        self.level + 1
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
