//! Admission: a call gets a place in the pool and a share of memory before its instance is made.
//!
//! A call waits for both within its deadline, so the pool never overflows. A guest may use its whole memory limit, so
//! all of it is reserved when the call is admitted. Nested calls (a tool that calls a tool) have their own places and
//! memory on each level. A call waits only for others of its own level, and those wait only for deeper ones, so nested
//! calls cannot block each other for ever.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::meter::{Room, acquire};
use crate::report::LimitReached;

/// Levels of nested calls: a call, one that it makes, and one that this makes.
pub const LEVELS: usize = 3;

/// Pool that calls take their places from. Calls of one pool never wait for those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// Tools and rewards, level by level: they may make calls themselves.
    #[default]
    Calls,
    /// Programs in interpreters. They make no calls, so waiting for one never means waiting for another call.
    Programs,
    /// Environment sessions, which keep an instance for as long as they live and mostly wait. They take a place and no
    /// memory: the owner of the sessions knows the size of each, and sets memory aside for those that run.
    Sessions,
}

/// Places and memory of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PoolLevel {
    /// Maximum number of calls at once.
    pub places: u32,
    /// Maximum sum of the memory limits of these calls, in bytes.
    pub memory_bytes: u64,
}

impl PoolLevel {
    /// The levels of a sandbox with `places` for calls of the host. Each level of nested calls gets a quarter as many
    /// places in addition. Calls of the host have half of the memory and each deeper level a quarter, but every level
    /// has enough for one call of `largest` bytes.
    pub(crate) fn shares(places: u32, memory_bytes: u64, largest: u64) -> [Self; LEVELS] {
        let level = |places: u32, memory_bytes: u64| Self {
            places: places.max(1),
            memory_bytes: memory_bytes.max(largest),
        };
        let nested = level(places / 4, memory_bytes / 4);
        [level(places, memory_bytes / 2), nested, nested]
    }
}

/// The places and the memory of all pools.
pub(crate) struct Admission {
    calls: [Places; LEVELS],
    programs: Places,
    sessions: Places,
}

struct Places {
    level: PoolLevel,
    free: Arc<Semaphore>,
    memory: Room,
}

impl Places {
    fn new(level: PoolLevel) -> Self {
        Self {
            level,
            free: Arc::new(Semaphore::new(level.places as usize)),
            memory: Room::new(level.memory_bytes),
        }
    }
}

/// A place and memory, given back when it is dropped.
pub(crate) struct Admitted {
    _place: OwnedSemaphorePermit,
    _memory: OwnedSemaphorePermit,
}

/// The reason why a call was not admitted.
pub(crate) enum NotAdmitted {
    /// Calls may not nest more deeply.
    TooDeep,
    /// No place or no memory was free within its time.
    Full(LimitReached),
}

impl Admission {
    pub(crate) fn new(
        calls: [PoolLevel; LEVELS],
        programs: PoolLevel,
        sessions: PoolLevel,
    ) -> Self {
        Self {
            calls: calls.map(Places::new),
            programs: Places::new(programs),
            sessions: Places::new(sessions),
        }
    }

    /// Waits until the deadline for a place and `memory_bytes` of memory, on the level `depth` of a pool.
    pub(crate) async fn admit(
        &self,
        pool: Pool,
        depth: usize,
        memory_bytes: u64,
        deadline: Instant,
    ) -> Result<Admitted, NotAdmitted> {
        let found = match pool {
            Pool::Calls => self.calls.get(depth).ok_or(NotAdmitted::TooDeep)?,
            Pool::Programs => &self.programs,
            Pool::Sessions => &self.sessions,
        };
        let memory_bytes = if pool == Pool::Sessions {
            0
        } else {
            memory_bytes
        };
        let Places {
            level,
            free: places,
            memory,
        } = found;
        let number = u64::from(level.places);
        let place = acquire(places, 1, deadline)
            .await
            .ok_or_else(|| NotAdmitted::Full(LimitReached::new("instances", number, number)))?;
        let memory = memory.take(memory_bytes, deadline).await.ok_or_else(|| {
            let (most, used) = (memory.bytes(), memory.in_use() + memory_bytes);
            NotAdmitted::Full(LimitReached::new("memory_budget_bytes", most, used))
        })?;
        Ok(Admitted {
            _place: place,
            _memory: memory,
        })
    }

    /// Places taken in all pools.
    pub(crate) fn places_in_use(&self) -> usize {
        self.all()
            .map(|all| all.level.places as usize - all.free.available_permits())
            .sum()
    }

    /// Memory set aside in all pools, in bytes.
    pub(crate) fn memory_in_use(&self) -> u64 {
        self.all().map(|all| all.memory.in_use()).sum()
    }

    fn all(&self) -> impl Iterator<Item = &Places> {
        self.calls.iter().chain([&self.programs, &self.sessions])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_has_room_for_the_largest_call() {
        for (places, memory) in [(1, 1 << 20), (16, 1 << 30), (512, 64 << 30)] {
            for level in PoolLevel::shares(places, memory, 256 << 20) {
                assert!(
                    level.places >= 1 && level.memory_bytes >= 256 << 20,
                    "{level:?}"
                );
            }
        }
        let [calls, nested, deepest] = PoolLevel::shares(256, 12 << 30, 256 << 20);
        assert_eq!((calls.places, nested.places, deepest.places), (256, 64, 64));
        assert_eq!(calls.memory_bytes, 6 << 30);
    }
}
