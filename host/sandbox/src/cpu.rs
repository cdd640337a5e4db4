//! CPU time of a call: what its thread used over the polls of its future.
//!
//! Epoch ticks are wall time, and many guests share a thread; only the thread's own clock, read
//! around every poll, gives a guest the same budget alone and beside a thousand busy ones.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wasmtime::{Store, UpdateDeadline};

use crate::ended::{Clock, Ended, LimitReached, Stopped};
use crate::record::Record;
use crate::state::State;

/// CPU time that the current thread has used since it began.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Shared by the future that is metered and the interrupt that asks how much is left.
#[derive(Default)]
pub(crate) struct CpuMeter {
    /// Of the polls that are over.
    before_ns: AtomicU64,
    /// The thread's clock when the running poll began.
    poll_began_ns: AtomicU64,
}

impl CpuMeter {
    fn begin(&self) {
        self.poll_began_ns
            .store(nanoseconds(thread_cpu()), Ordering::Relaxed);
    }

    /// Used up to now; only meaningful on the thread that polls.
    fn used(&self) -> Duration {
        let running =
            nanoseconds(thread_cpu()).saturating_sub(self.poll_began_ns.load(Ordering::Relaxed));
        Duration::from_nanos(self.before_ns.load(Ordering::Relaxed) + running)
    }

    fn end(&self) -> Duration {
        let used = self.used();
        self.before_ns.store(nanoseconds(used), Ordering::Relaxed);
        used
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A future whose polls are metered.
pub(crate) struct Metered<F> {
    future: Pin<Box<F>>,
    meter: Arc<CpuMeter>,
    record: Arc<Record>,
}

impl<F> Metered<F> {
    pub(crate) fn new(future: F, meter: Arc<CpuMeter>, record: Arc<Record>) -> Self {
        Self {
            future: Box::pin(future),
            meter,
            record,
        }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.meter.begin();
        let outcome = self.future.as_mut().poll(context);
        self.record.set_cpu(self.meter.end());
        outcome
    }
}

/// Makes every epoch tick of a running guest a place where its budget is checked and where others
/// get the thread. A guest that has none left ends there.
pub(crate) fn interrupt_by_budget(
    store: &mut Store<State>,
    meter: Arc<CpuMeter>,
    budget: Duration,
) {
    // The default deadline of 0 would trap at once.
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        let used = meter.used();
        if used < budget {
            // Not `Yield`: that only wakes itself, and tokio looks at its timers every 61 polls.
            return Ok(UpdateDeadline::YieldCustom(
                1,
                Box::pin(tokio::task::yield_now()),
            ));
        }
        let limit = LimitReached::new("cpu_ms", budget.as_millis() as u64, used.as_millis() as u64);
        let reason = format!("the plugin computed longer than it may ({limit})");
        Err(Stopped::by_limit(Ended::Timeout { clock: Clock::Cpu }, reason, limit).into())
    });
}
