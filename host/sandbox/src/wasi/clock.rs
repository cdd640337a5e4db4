//! Virtual time: `wasi:clocks` and the waiting half of `wasi:io/poll`.
//!
//! A call starts at a fixed instant. Time moves a little with every reading of a clock. If the guest waits
//! for nothing but time, it jumps to the next deadline: sleeping is free and deterministic. Virtual time
//! still counts against the call's deadline, so `sleep(1000)` under a limit of ten seconds is a timeout
//! at once.
//!
//! If the operator grants the machine's clock, time is real after `init`: the wall clock is the machine's, the steady
//! clock continues in real time, and sleeping really sleeps. None of this is deterministic.
//!
//! wasmtime-wasi uses its clocks only for `now` and always sleeps in real time. So these three interfaces are linked
//! instead of wasmtime-wasi's.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wasmtime::Result;
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::{self, Datetime};
use wasmtime_wasi::p2::bindings::io::poll;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::record::Record;
use crate::report::{Clock, Ending, LimitReached, Stopped};

/// Start of every call, in seconds since 1970: 2024-01-01T00:00:00Z.
const START_SECONDS: u64 = 1_704_067_200;
/// The same instant, since 1970.
pub(crate) const START: Duration = Duration::from_secs(START_SECONDS);
/// The monotonic clock's first reading, in nanoseconds: a day, as on a machine that has been up for
/// a while, so that "an hour ago" exists.
const START_MONOTONIC: u64 = 86_400 * 1_000_000_000;
/// Virtual time of one reading of a clock, in nanoseconds. It lets programs that wait by polling a clock make progress.
const READING: u64 = 1_000;

/// Time of one call, in nanoseconds since it started: virtual, unless it is made real.
pub(crate) struct GuestClock {
    elapsed: AtomicU64,
    /// The instant at which it was made real.
    real: OnceLock<Instant>,
    /// The last instant that it may see, and the time that it was given.
    deadline: AtomicU64,
    allowed: AtomicU64,
    /// Timers found unexpired since the last [`begin_wait`](Self::begin_wait), and the earliest.
    waiting: AtomicU32,
    earliest: AtomicU64,
}

impl GuestClock {
    pub(crate) fn new(deadline: Duration) -> Arc<Self> {
        Arc::new(Self {
            elapsed: AtomicU64::new(0),
            real: OnceLock::new(),
            deadline: AtomicU64::new(nanoseconds(deadline)),
            allowed: AtomicU64::new(nanoseconds(deadline)),
            waiting: AtomicU32::new(0),
            earliest: AtomicU64::new(u64::MAX),
        })
    }

    /// Uses the machine's time from now on.
    pub(crate) fn make_real(&self) {
        self.real.get_or_init(Instant::now);
    }

    fn elapsed(&self) -> u64 {
        let before = self.elapsed.load(Ordering::Relaxed);
        self.real.get().map_or(before, |since| {
            before.saturating_add(nanoseconds(since.elapsed()))
        })
    }

    /// Adds one reading to virtual time and returns the sum.
    fn read(&self) -> Result<u64> {
        if self.real.get().is_some() {
            return Ok(self.elapsed());
        }
        self.jump_to(self.elapsed().saturating_add(READING))
    }

    /// Reads the wall clock, since 1970.
    pub(crate) fn wall(&self) -> Result<Duration> {
        if self.real.get().is_some() {
            // WASI has no instants before 1970.
            return Ok(SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default());
        }
        Ok(START + Duration::from_nanos(self.read()?))
    }

    /// Reads the steady clock, in nanoseconds.
    pub(crate) fn monotonic(&self) -> Result<u64> {
        Ok(START_MONOTONIC.saturating_add(self.read()?))
    }

    /// Sleeps for `ns` nanoseconds. Returns at once if time is virtual.
    pub(crate) async fn sleep(&self, ns: u64, record: &Record) -> Result<()> {
        let until = self.elapsed().saturating_add(ns);
        if self.real.get().is_none() {
            return self.jump_to(until).map(drop);
        }
        // A sleep past the deadline is the guest's own timeout.
        self.within_deadline(until)?;
        record.set_in_host(true);
        tokio::time::sleep(Duration::from_nanos(ns)).await;
        record.set_in_host(false);
        Ok(())
    }

    /// Replaces the rest of the guest's time by `time`.
    pub(crate) fn renew(&self, time: Duration) {
        let deadline = self.elapsed().saturating_add(nanoseconds(time));
        self.deadline.store(deadline, Ordering::Relaxed);
        self.allowed.store(nanoseconds(time), Ordering::Relaxed);
    }

    /// Time used since the last [`renew`](Self::renew).
    pub(crate) fn used(&self) -> Duration {
        let deadline = self.deadline.load(Ordering::Relaxed);
        let allowed = self.allowed.load(Ordering::Relaxed);
        let began = deadline - allowed.min(deadline);
        Duration::from_nanos(self.elapsed().saturating_sub(began))
    }

    /// Moves virtual time to `target`. Past the deadline it stops there and ends the call.
    fn jump_to(&self, target: u64) -> Result<u64> {
        let now = target.max(self.elapsed());
        let deadline = self.deadline.load(Ordering::Relaxed);
        self.elapsed.store(now.min(deadline), Ordering::Relaxed);
        self.within_deadline(now)
    }

    /// The instant, or the end of the call if it is past the deadline.
    fn within_deadline(&self, now: u64) -> Result<u64> {
        let deadline = self.deadline.load(Ordering::Relaxed);
        if now <= deadline {
            return Ok(now);
        }
        let allowed = self.allowed.load(Ordering::Relaxed);
        let used = now - (deadline - allowed.min(deadline));
        let limit = LimitReached::new("wall_ms", allowed / 1_000_000, used / 1_000_000);
        let time = if self.real.get().is_some() {
            "real"
        } else {
            "virtual"
        };
        let reason = format!("the plugin waited longer than it may ({limit}, in {time} time)");
        Err(Stopped::by_limit(
            Ending::Timeout {
                clock: Clock::Virtual,
            },
            reason,
            limit,
        )
        .into())
    }

    fn begin_wait(&self) {
        self.waiting.store(0, Ordering::Relaxed);
        self.earliest.store(u64::MAX, Ordering::Relaxed);
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A pollable that is ready from an instant of the guest's time on.
struct Timer {
    clock: Arc<GuestClock>,
    when: u64,
}

#[async_trait::async_trait]
impl Pollable for Timer {
    async fn ready(&mut self) {
        poll_fn(|_| {
            if self.clock.elapsed() >= self.when {
                return Poll::Ready(());
            }
            self.clock.waiting.fetch_add(1, Ordering::Relaxed);
            self.clock.earliest.fetch_min(self.when, Ordering::Relaxed);
            // Nothing wakes it: `wait` moves the clock and polls again.
            Poll::Pending
        })
        .await;
    }
}

/// View of a store for the clock and poll interfaces.
pub(crate) struct TimeView<'a> {
    pub(crate) clock: &'a Arc<GuestClock>,
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) record: &'a Record,
}

/// Gives the linker access to [`TimeView`].
pub(crate) struct HasTime;

impl HasData for HasTime {
    type Data<'a> = TimeView<'a>;
}

impl TimeView<'_> {
    fn timer(&mut self, when: u64) -> Result<Resource<DynPollable>> {
        let timer = self.table.push(Timer {
            clock: self.clock.clone(),
            when,
        })?;
        subscribe(self.table, timer)
    }
}

impl wall_clock::Host for TimeView<'_> {
    fn now(&mut self) -> Result<Datetime> {
        let now = self.clock.wall()?;
        Ok(Datetime {
            seconds: now.as_secs(),
            nanoseconds: now.subsec_nanos(),
        })
    }

    fn resolution(&mut self) -> Result<Datetime> {
        Ok(Datetime {
            seconds: 0,
            nanoseconds: READING as u32,
        })
    }
}

impl monotonic_clock::Host for TimeView<'_> {
    fn now(&mut self) -> Result<u64> {
        self.clock.monotonic()
    }

    fn resolution(&mut self) -> Result<u64> {
        Ok(READING)
    }

    fn subscribe_instant(&mut self, when: u64) -> Result<Resource<DynPollable>> {
        self.timer(when.saturating_sub(START_MONOTONIC))
    }

    fn subscribe_duration(&mut self, duration: u64) -> Result<Resource<DynPollable>> {
        self.timer(self.clock.elapsed().saturating_add(duration))
    }
}

/// Waits for the first of `sources`. Virtual time jumps while all sources that are not ready are timers. If something
/// outside may become ready, or time is real, timers run in real time and the guest waits for the host.
async fn wait<T>(
    clock: &GuestClock,
    record: &Record,
    sources: usize,
    ready: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut ready = pin!(ready);
    loop {
        clock.begin_wait();
        let first = poll_fn(|context| Poll::Ready(ready.as_mut().poll(context))).await;
        if let Poll::Ready(outcome) = first {
            return outcome;
        }
        let earliest = clock.earliest.load(Ordering::Relaxed);
        let is_real = clock.real.get().is_some();
        let only_time = clock.waiting.load(Ordering::Relaxed) as usize == sources;
        if only_time && !is_real {
            clock.jump_to(earliest)?;
            continue;
        }
        if only_time {
            // Nothing else can wake it, so a sleep past the deadline is the guest's own timeout.
            clock.within_deadline(earliest)?;
        }
        record.set_in_host(true);
        let pause = Duration::from_nanos(earliest.saturating_sub(clock.elapsed()));
        let mut pause = pin!(async {
            if earliest == u64::MAX {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(pause).await;
        });
        let outcome = poll_fn(|context| match ready.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => pause.as_mut().poll(context).map(|()| None),
        })
        .await;
        record.set_in_host(false);
        if let Some(outcome) = outcome {
            return outcome;
        }
        if !is_real {
            clock.jump_to(earliest)?;
        }
    }
}

impl poll::Host for TimeView<'_> {
    async fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> Result<Vec<u32>> {
        let sources = pollables
            .iter()
            .map(Resource::rep)
            .collect::<BTreeSet<_>>()
            .len();
        wait(
            self.clock,
            self.record,
            sources,
            poll::Host::poll(self.table, pollables),
        )
        .await
    }
}

impl poll::HostPollable for TimeView<'_> {
    async fn block(&mut self, pollable: Resource<DynPollable>) -> Result<()> {
        wait(
            self.clock,
            self.record,
            1,
            poll::HostPollable::block(self.table, pollable),
        )
        .await
    }

    async fn ready(&mut self, pollable: Resource<DynPollable>) -> Result<bool> {
        // Counts as a reading, so that a program that polls in a loop makes progress.
        self.clock.read()?;
        poll::HostPollable::ready(self.table, pollable).await
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> Result<()> {
        poll::HostPollable::drop(self.table, pollable)
    }
}
