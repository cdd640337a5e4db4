//! CPU time of a call: the time of its thread over the polls of its future.
//!
//! Epoch ticks measure wall-clock time, and many guests share a thread. Only the thread's own clock, read around every
//! poll, gives a guest the same budget alone and beside a thousand busy ones.

use std::cell::Cell;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wasmtime::{Store, UpdateDeadline};

use crate::record::Record;
use crate::report::{Clock, Ending, LimitReached, Stopped};

/// CPU time that the current thread has used since it began.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// CPU time that one call has used of its budget, with the calls that it makes. Shared by the metered future, the
/// interrupt that checks the budget, and the meters of those calls.
pub(crate) struct CpuMeter {
    budget_ns: AtomicU64,
    /// Time used before the budget was last renewed.
    spent_ns: AtomicU64,
    /// Meter of the call that made this one. Time used here is charged there as well.
    caller: Option<Arc<CpuMeter>>,
    /// Time of finished polls.
    before_ns: AtomicU64,
    /// The thread's clock when the running poll began, plus the time of calls that were polled inside it.
    poll_began_ns: AtomicU64,
    /// True if the running poll is inside a poll of the caller, on the same thread.
    is_inside: AtomicBool,
    /// Time of finished polls of calls that this one made.
    nested_ns: AtomicU64,
}

impl CpuMeter {
    pub(crate) fn new(budget: Duration, caller: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            budget_ns: AtomicU64::new(nanoseconds(budget)),
            spent_ns: AtomicU64::new(0),
            caller,
            before_ns: AtomicU64::new(0),
            poll_began_ns: AtomicU64::new(0),
            is_inside: AtomicBool::new(false),
            nested_ns: AtomicU64::new(0),
        })
    }

    fn begin(&self) {
        self.poll_began_ns
            .store(nanoseconds(thread_cpu()), Ordering::Relaxed);
    }

    /// True on the thread that is polling this call.
    pub(crate) fn is_polled_here(&self) -> bool {
        ptr::eq(POLLED.get(), self)
    }

    /// Time of the running poll. Only meaningful on the thread that polls.
    fn running_ns(&self) -> u64 {
        nanoseconds(thread_cpu()).saturating_sub(self.poll_began_ns.load(Ordering::Relaxed))
    }

    /// Ends a poll and returns the time that the call itself has used.
    fn end(&self) -> Duration {
        let running = self.running_ns();
        let mut caller = self.caller.as_ref();
        let mut is_inside = self.is_inside.load(Ordering::Relaxed);
        while let Some(meter) = caller {
            meter.nested_ns.fetch_add(running, Ordering::Relaxed);
            if is_inside {
                // Not counted a second time.
                meter.poll_began_ns.fetch_add(running, Ordering::Relaxed);
            }
            is_inside = is_inside && meter.is_inside.load(Ordering::Relaxed);
            caller = meter.caller.as_ref();
        }
        Duration::from_nanos(self.before_ns.fetch_add(running, Ordering::Relaxed) + running)
    }

    /// Time that this call and its nested calls have used, up to the end of its last poll.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_nanos(
            self.before_ns.load(Ordering::Relaxed) + self.nested_ns.load(Ordering::Relaxed),
        )
    }

    /// Replaces the rest of the budget by `budget`. Must run on the thread that polls.
    pub(crate) fn renew(&self, budget: Duration) {
        let used = nanoseconds(self.used()) + self.running_ns();
        self.spent_ns.store(used, Ordering::Relaxed);
        self.budget_ns.store(nanoseconds(budget), Ordering::Relaxed);
    }

    /// Time used since the last [`renew`](Self::renew). Must run on the thread that polls.
    pub(crate) fn used_of_budget(&self) -> Duration {
        let used = nanoseconds(self.used()) + self.running_ns();
        Duration::from_nanos(used.saturating_sub(self.spent_ns.load(Ordering::Relaxed)))
    }

    /// The ending of a call that cannot begin because one of these budgets is used up.
    pub(crate) fn refusal(&self) -> Option<Stopped> {
        self.exhausted(0)
            .map(|(budget, used)| out_of_cpu(budget, used))
    }

    /// The first budget of this call and its callers that is used up, and the time used of it, `running` included.
    fn exhausted(&self, running: u64) -> Option<(Duration, Duration)> {
        let mut meter = Some(self);
        while let Some(this) = meter {
            let over =
                this.before_ns.load(Ordering::Relaxed) + this.nested_ns.load(Ordering::Relaxed);
            let spent = this.spent_ns.load(Ordering::Relaxed);
            let used = (over + running).saturating_sub(spent);
            let budget = this.budget_ns.load(Ordering::Relaxed);
            if used >= budget {
                return Some((Duration::from_nanos(budget), Duration::from_nanos(used)));
            }
            meter = this.caller.as_deref();
        }
        None
    }
}

thread_local! {
    /// The meter of the call that this thread is polling.
    static POLLED: Cell<*const CpuMeter> = const { Cell::new(ptr::null()) };
}

/// A poll that is under way. It ends when this is dropped, even by a panic.
struct Polling(*const CpuMeter);

impl Polling {
    fn begin(meter: &CpuMeter) -> Self {
        let caller = meter.caller.as_ref();
        let is_inside = caller.is_some_and(|caller| caller.is_polled_here());
        meter.is_inside.store(is_inside, Ordering::Relaxed);
        meter.begin();
        Self(POLLED.replace(meter))
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        POLLED.set(self.0);
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Future whose polls are metered.
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
        let meter = Arc::clone(&self.meter);
        let _polling = Polling::begin(&meter);
        let outcome = self.future.as_mut().poll(context);
        self.record.set_cpu(self.meter.end());
        outcome
    }
}

/// Maximum of the CPU time in one poll below which a guest is not interrupted.
const JUST_BEGUN: Duration = Duration::from_micros(2_500);

/// Checks a running guest's budget at every epoch tick, and lets others use the thread unless the guest has only just begun:
/// in this poll, it has computed for less than half a tick, at most 2.5 ms. Ticks come at fixed times, so the first one
/// comes at any moment after a poll began. A guest without budget ends there.
pub(crate) fn interrupt_by_budget<T: 'static>(
    store: &mut Store<T>,
    meter: Arc<CpuMeter>,
    tick: Duration,
) {
    let just_begun = nanoseconds(JUST_BEGUN.min(tick / 2));
    // The default deadline of 0 would trap at once.
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        let running = meter.running_ns();
        let Some((budget, used)) = meter.exhausted(running) else {
            if running < just_begun {
                return Ok(UpdateDeadline::Continue(1));
            }
            // Not `Yield`: that only wakes itself, and tokio looks at its timers every 61 polls.
            return Ok(UpdateDeadline::YieldCustom(
                1,
                Box::pin(tokio::task::yield_now()),
            ));
        };
        Err(out_of_cpu(budget, used).into())
    });
}

fn out_of_cpu(budget: Duration, used: Duration) -> Stopped {
    let limit = LimitReached::new("cpu_ms", budget.as_millis() as u64, used.as_millis() as u64);
    let reason = format!("the plugin computed longer than it may ({limit})");
    Stopped::by_limit(Ending::Timeout { clock: Clock::Cpu }, reason, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(time: Duration) {
        let began = thread_cpu();
        while thread_cpu().saturating_sub(began) < time {}
    }

    #[test]
    fn the_time_of_a_call_that_is_polled_inside_its_caller_counts_once() {
        let budget = Duration::from_secs(1);
        let outer = CpuMeter::new(budget, None);
        let inner = CpuMeter::new(budget, Some(Arc::clone(&outer)));
        let computing = Duration::from_millis(20);
        {
            let _outer = Polling::begin(&outer);
            assert!(outer.is_polled_here() && !inner.is_polled_here());
            let polling = Polling::begin(&inner);
            assert!(inner.is_polled_here());
            compute(computing);
            inner.end();
            drop(polling);
            assert!(outer.is_polled_here());
            outer.end();
        }
        assert!(!outer.is_polled_here());
        assert!(inner.used() >= computing && outer.used() >= inner.used());
        assert!(outer.used() < computing * 2, "{:?}", outer.used());
    }

    #[test]
    fn the_time_of_a_call_that_is_polled_elsewhere_counts_beside_its_callers() {
        let budget = Duration::from_secs(1);
        let outer = CpuMeter::new(budget, None);
        let inner = CpuMeter::new(budget, Some(Arc::clone(&outer)));
        let computing = Duration::from_millis(20);
        let _outer = Polling::begin(&outer);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _inner = Polling::begin(&inner);
                compute(computing);
                inner.end();
            });
        });
        compute(computing);
        outer.end();
        assert!(outer.used() >= computing * 2, "{:?}", outer.used());
    }
}
