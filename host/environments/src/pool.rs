//! The pool of sessions limits how many of them have an instance. If another session needs room, the one that has
//! waited longest is snapshotted and loses its instance. It gets a new one when it is called again. No session is
//! refused.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rlf_sandbox::{BoxFuture, LimitReached, PoolLevel, Stopped};
use serde::Serialize;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::error::SessionError;

/// Unit of reserved memory, in bytes.
const UNIT: u64 = 64 << 10;
/// Bytes reserved for a waiting session, in addition to its growth.
const IDLE_BYTES: u64 = 512 << 10;

/// Interval between checks for a free place.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Counts of the pool's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SessionCounts {
    /// Sessions that were opened.
    pub opened: u64,
    /// Sessions that have an instance now.
    pub live: u64,
    /// Instances that were freed and replaced by a snapshot.
    pub evicted: u64,
    /// Sessions that were restored from a snapshot or replayed from their origin.
    pub revived: u64,
    /// Sessions that were restored because a call had broken their instance.
    pub recovered: u64,
}

/// A session as the pool sees it: it can make room for others.
pub(crate) trait Evictable: fmt::Debug + Send + Sync {
    /// The time since which the session has waited with an instance.
    fn waiting_since(&self) -> Option<Instant>;

    /// The memory reserved for the session while it waits, in the pool's units.
    fn held_units(&self) -> usize;

    /// Snapshots the session and frees its instance, if it is waiting. Returns whether it did.
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
    /// Notified when a session stops running and can be evicted.
    freed: Notify,
    /// Requests that an infrastructure failure ended, after all retries.
    unserved: AtomicU64,
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

/// A session's reservation of a place, and of its memory while it waits.
#[derive(Debug)]
pub(crate) struct Reservation {
    _place: OwnedSemaphorePermit,
    memory: OwnedSemaphorePermit,
    /// Memory of the instance when it was new, in bytes.
    pub(crate) baseline: u64,
}

impl Reservation {
    /// The reserved memory, in bytes.
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
            unserved: AtomicU64::new(0),
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

    /// Counts a request's answer if an infrastructure failure ended the request.
    pub(crate) fn note<T>(&self, answer: &Result<T, SessionError>) {
        if answer.as_ref().is_err_and(SessionError::is_infrastructure) {
            self.unserved.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn unserved(&self) -> u64 {
        self.unserved.load(Relaxed)
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

    /// Registers a session, so that the pool can evict it when others need room.
    pub(crate) fn register(&self, slot: &Arc<impl Evictable + 'static>) -> u64 {
        let number = self.next.fetch_add(1, Relaxed);
        self.opened.fetch_add(1, Relaxed);
        let slot = Arc::downgrade(slot);
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(number, slot);
        number
    }

    pub(crate) fn unregister(&self, number: u64) {
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&number);
    }

    /// Wakes the sessions that wait for room, because one stopped running.
    pub(crate) fn note_idle(&self) {
        self.freed.notify_waiters();
    }

    /// Returns a guard. When it is dropped, it wakes the sessions that wait for room. Create it before locking a
    /// session, so that they find the session unlocked.
    pub(crate) fn note_idle_at_the_end(&self) -> NoteIdle<'_> {
        NoteIdle(self)
    }

    /// Reserves a place, and the memory of a waiting session.
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

    /// Reserves memory for the time that a session runs.
    pub(crate) async fn room(
        &self,
        bytes: u64,
        wall: Duration,
    ) -> Result<OwnedSemaphorePermit, Stopped> {
        self.set_aside(bytes, Instant::now() + wall).await
    }

    /// Converts bytes to units, rounded up.
    pub(crate) fn units(bytes: u64) -> usize {
        units(bytes) as usize
    }

    /// Increases a waiting session's reservation to its actual memory, if that much is available.
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
            // Registered before the check, so that no notification is missed.
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
                // Other waiting sessions may have been given a part of the missing units, and give it back.
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
                () = tokio::time::sleep_until(deadline.into()) => return None,
            }
        }
    }

    /// Frees the instance of the session that has waited longest. Returns false if no session is waiting, or if all
    /// waiting sessions together hold less than `units`, which would not make enough room.
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
