//! Calls that calls make: how deep they are, and whose time they take.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cpu::CpuMeter;

/// A call that makes another one. The other is charged to its budget, ends at its deadline, and takes
/// its place on the next level of the pools, so that it never waits for those that it is made by.
#[derive(Clone)]
pub struct Caller {
    /// From 0: see [`LEVELS`](crate::LEVELS).
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

    /// The level of a call that `caller` makes; the host's own are on the first.
    pub(crate) fn level_below(caller: Option<&Self>) -> usize {
        caller.map_or(0, |caller| caller.level + 1)
    }

    /// The level of the calls that this one makes.
    pub fn next_level(&self) -> usize {
        self.level + 1
    }

    /// When it is dropped, and what it called with it.
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
