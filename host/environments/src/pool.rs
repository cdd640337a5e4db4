//! Which sessions have an instance. A session that waits longest makes room for one that wants to run: it is snapshotted,
//! and comes back when it is called again. Nobody is refused.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rlf_sandbox::{BoxFuture, LimitReached, PoolLevel, Stopped};
use serde::Serialize;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The unit in which memory is set aside.
const UNIT: u64 = 64 << 10;
/// Bytes counted for a session that waits, beside what it has grown by.
const IDLE_BYTES: u64 = 512 << 10;

/// Interval between checks for a free place.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Counts of what the pool did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SessionCounts {
    /// Sessions that were opened.
    pub opened: u64,
    /// Sessions that have an instance now.
    pub live: u64,
    /// Instances that were freed with a snapshot in their place.
    pub evicted: u64,
    /// Sessions that came back from a snapshot, or were played again from their origin.
    pub revived: u64,
    /// Sessions that came back because a call had broken their instance.
    pub recovered: u64,
}

/// A session, as the pool sees it: something that can make room for others.
pub(crate) trait Evictable: fmt::Debug + Send + Sync {
    /// Since when it has an instance that nobody uses.
    fn waiting_since(&self) -> Option<Instant>;

    /// The memory set aside for it while it waits, in the pool's units.
    fn held_units(&self) -> usize;

    /// Snapshots it and frees its instance, if it waits; whether it did.
    fn evict(&self) -> BoxFuture<'_, bool>;
}

/// Places and memory of all sessions.
#[derive(Debug)]
pub(crate) struct SessionPool {
    level: PoolLevel,
    idle: Duration,
    places: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    slots: Mutex<HashMap<u64, Weak<dyn Evictable>>>,
    next: AtomicU64,
    /// Notified when a session stops running, and so can be evicted.
    freed: Notify,
    pub(crate) opened: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) revived: AtomicU64,
    pub(crate) recovered: AtomicU64,
}

/// See [`SessionPool::note_idle_at_the_end`].
pub(crate) struct NoteIdle<'a>(&'a SessionPool);

impl Drop for NoteIdle<'_> {
    fn drop(&mut self) {
        self.0.note_idle();
    }
}

/// A session's hold on a place and on the memory that it has while it waits.
#[derive(Debug)]
pub(crate) struct Reservation {
    _place: OwnedSemaphorePermit,
    memory: OwnedSemaphorePermit,
    /// Memory of the instance when it was new, in bytes.
    pub(crate) baseline: u64,
}

impl Reservation {
    /// The memory that it has set aside, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.memory.num_permits() as u64 * UNIT
    }
}

impl SessionPool {
    pub(crate) fn new(level: PoolLevel, idle: Duration) -> Arc<Self> {
        let units = usize::try_from(level.memory_bytes / UNIT).unwrap_or(usize::MAX);
        Arc::new(Self {
            level,
            idle,
            places: Arc::new(Semaphore::new(level.places as usize)),
            memory: Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))),
            slots: Mutex::default(),
            next: AtomicU64::new(0),
            freed: Notify::new(),
            opened: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            revived: AtomicU64::new(0),
            recovered: AtomicU64::new(0),
        })
    }

    /// Time that a session may wait before its instance is freed.
    pub(crate) fn idle(&self) -> Duration {
        self.idle
    }

    pub(crate) fn counts(&self) -> SessionCounts {
        SessionCounts {
            opened: self.opened.load(Relaxed),
            live: u64::from(self.level.places) - self.places.available_permits() as u64,
            evicted: self.evicted.load(Relaxed),
            revived: self.revived.load(Relaxed),
            recovered: self.recovered.load(Relaxed),
        }
    }

    /// Makes a session known, so that it can make room for others.
    pub(crate) fn enter(&self, slot: &Arc<impl Evictable + 'static>) -> u64 {
        let number = self.next.fetch_add(1, Relaxed);
        self.opened.fetch_add(1, Relaxed);
        let slot = Arc::downgrade(slot);
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(number, slot);
        number
    }

    pub(crate) fn leave(&self, number: u64) {
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&number);
    }

    /// Wakes waiting sessions, because one stopped running.
    pub(crate) fn note_idle(&self) {
        self.freed.notify_waiters();
    }

    /// Wakes waiting sessions when it is dropped. It is made before a session is locked, so that they find it unlocked.
    pub(crate) fn note_idle_at_the_end(&self) -> NoteIdle<'_> {
        NoteIdle(self)
    }

    /// A place and the memory of a session that waits.
    pub(crate) async fn hold(&self, wall: Duration) -> Result<Reservation, Stopped> {
        let deadline = Instant::now() + wall;
        let place = self
            .acquire(&self.places, 1, deadline)
            .await
            .ok_or_else(|| Self::full("sessions", self.level.places.into()))?;
        let memory = self.set_aside(IDLE_BYTES, deadline).await?;
        Ok(Reservation {
            _place: place,
            memory,
            baseline: 0,
        })
    }

    /// Memory for the time that a session runs.
    pub(crate) async fn room(
        &self,
        bytes: u64,
        wall: Duration,
    ) -> Result<OwnedSemaphorePermit, Stopped> {
        self.set_aside(bytes, Instant::now() + wall).await
    }

    /// The units that a number of bytes has.
    pub(crate) fn units(bytes: u64) -> usize {
        units(bytes) as usize
    }

    /// Brings what a session holds while it waits to what it has grown to, as far as it is to be had.
    pub(crate) fn settle(&self, held: &mut Reservation, memory: u64) {
        let wanted = units(IDLE_BYTES + memory.saturating_sub(held.baseline)) as usize;
        let has = held.memory.num_permits();
        if wanted > has {
            let more = u32::try_from(wanted - has).unwrap_or(u32::MAX);
            if let Ok(more) = Arc::clone(&self.memory).try_acquire_many_owned(more) {
                held.memory.merge(more);
            }
        }
    }

    async fn set_aside(
        &self,
        bytes: u64,
        deadline: Instant,
    ) -> Result<OwnedSemaphorePermit, Stopped> {
        let most = u32::try_from(self.level.memory_bytes / UNIT).unwrap_or(u32::MAX);
        self.acquire(&self.memory, units(bytes).min(most), deadline)
            .await
            .ok_or_else(|| Self::full("session_memory_budget_bytes", self.level.memory_bytes))
    }

    fn full(name: &str, value: u64) -> Stopped {
        let limit = LimitReached {
            name: name.into(),
            value,
            used: value,
        };
        Stopped {
            limit: Some(limit.clone()),
            ..Stopped::unavailable(format!("no room for the session to run in ({limit})"))
        }
    }

    async fn acquire(
        &self,
        semaphore: &Arc<Semaphore>,
        permits: u32,
        deadline: Instant,
    ) -> Option<OwnedSemaphorePermit> {
        let is_memory = Arc::ptr_eq(semaphore, &self.memory);
        loop {
            // Before looking: what is freed meanwhile is not missed.
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if let Ok(permit) = Arc::clone(semaphore).try_acquire_many_owned(permits) {
                return Some(permit);
            }
            let missing = (permits as usize).saturating_sub(semaphore.available_permits());
            if self.evict_one(if is_memory { missing } else { 0 }).await {
                continue;
            }
            tokio::select! {
                permit = Arc::clone(semaphore).acquire_many_owned(permits) => return permit.ok(),
                () = freed => {}
                // Others who wait may have been given a part of what is missing, and give it back.
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                () = tokio::time::sleep_until(deadline.into()) => return None,
            }
        }
    }

    /// Frees the instance of the session that has waited longest; false where all that have one run, or where what those that
    /// wait have of memory together is less than `units`: they would make no room that suffices.
    async fn evict_one(&self, units: usize) -> bool {
        let mut waiting: Vec<(Instant, Arc<dyn Evictable>)> = {
            let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots
                .values()
                .filter_map(Weak::upgrade)
                .filter_map(|slot| Some((slot.waiting_since()?, slot)))
                .collect()
        };
        let held: usize = waiting.iter().map(|(_, slot)| slot.held_units()).sum();
        if held < units {
            return false;
        }
        waiting.sort_unstable_by_key(|(since, _)| *since);
        for (_, slot) in waiting {
            if slot.evict().await {
                return true;
            }
        }
        false
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}
