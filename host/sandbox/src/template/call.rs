//! One call: a fresh instance under a deadline, a budget and a meter, and its report.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use wasmtime::Store;
use wasmtime::component::Instance;

use super::loaded::{Loaded, Template};
use super::pace::{Pace, note_turn, take_turns};
use crate::engine::{LEVELS, NotAdmitted};
use crate::guest::{Deadlines, Guest, State, supervise};
use crate::limits::Limits;
use crate::meter::Caller;
use crate::prepare::describe;
use crate::record::Record;
use crate::report::{Ending, FilesReport, LimitReached, Logs, Output, Stopped, Tee};
use crate::wasi::files::Files;

pub use futures_util::future::BoxFuture;

/// Differences between one call of a template and another.
#[derive(Debug, Clone, Default)]
pub struct CallSpec {
    /// Names the call in logs.
    pub label: String,
    /// Seed of everything random in the guest.
    pub seed: u64,
    /// Limits instead of the template's.
    pub limits: Option<Limits>,
    /// Deadline that is earlier than the limit `wall` allows.
    pub deadline: Option<Instant>,
    /// The call that makes this one, if it is nested: see [`State::as_caller`].
    pub caller: Option<Caller>,
    /// Value for the template's gates: see [`State::context`].
    pub context: Option<Arc<dyn Any + Send + Sync>>,
    /// Limit of virtual time instead of the limit `wall`.
    pub virtual_time: Option<Duration>,
    /// Observer of its output while it is printed.
    pub tee: Option<Tee>,
    /// Limit of the total size of its scratch files, if it is less than the grant allows.
    pub file_bytes: Option<u64>,
}

/// The value of a call, of any type.
type AnyValue = Box<dyn Any + Send>;

/// The body of a call, with its value of any type.
type Body = Box<
    dyn for<'a> FnOnce(&'a mut Store<State>, Instance) -> BoxFuture<'a, wasmtime::Result<AnyValue>>
        + Send,
>;

/// Report of a finished call.
#[derive(Debug, Clone)]
pub struct CallReport<R> {
    /// The value, or the reason why there is none.
    pub outcome: Result<R, Stopped>,
    /// Its standard output, even if it was stopped.
    pub stdout: Output,
    /// Its standard error: a panic's message, for instance.
    pub stderr: Output,
    /// Its log lines.
    pub logs: Logs,
    /// The files that it left, if it was granted any.
    pub files: FilesReport,
    /// CPU time of the guest and the host functions it called.
    pub cpu: Duration,
    /// Wall-clock time, queueing included.
    pub wall: Duration,
    /// Time until it got an instance.
    pub queued: Duration,
    /// Peak size of its memories and tables, in bytes.
    pub memory_peak: u64,
}

impl Template {
    /// Makes a fresh instance and lets `body` call it, under the limits of this template.
    ///
    /// Typed bindings are made once for a template and loaded in every call:
    ///
    /// ```no_run
    /// # mod bindings { wasmtime::component::bindgen!({ path: "../../wit", world: "tool-plugin", exports: { default: async } }); }
    /// # async fn example(template: rlf_sandbox::Template) -> Result<(), Box<dyn std::error::Error>> {
    /// use bindings::ToolPluginIndices;
    /// use rlf_sandbox::CallSpec;
    ///
    /// let indices = ToolPluginIndices::new(template.instance_pre())?;
    /// let report = template
    ///     .call(CallSpec::default(), move |store, instance| {
    ///         Box::pin(async move {
    ///             let plugin = indices.load(&mut *store, &instance)?;
    ///             plugin.rlf_plugin_tool().call_list_tools(&mut *store).await
    ///         })
    ///     })
    ///     .await;
    /// println!("{} tools", report.outcome?.len());
    /// # Ok(()) }
    /// ```
    ///
    /// The guest runs on the sandbox's own threads, independent of the caller's runtime. If recent calls of this
    /// template were brief, it begins on the caller's thread (see `pace.rs`). Dropping the future stops the guest
    /// within two epoch ticks, and gives back its instance, permit and memory.
    pub async fn call<R, F>(&self, spec: CallSpec, body: F) -> CallReport<R>
    where
        R: Send + 'static,
        F: for<'a> FnOnce(&'a mut Store<State>, Instance) -> BoxFuture<'a, wasmtime::Result<R>>
            + Send
            + 'static,
    {
        let body: Body = Box::new(move |store, instance| {
            let called = body(store, instance);
            Box::pin(async move { Ok(Box::new(called.await?) as AnyValue) })
        });
        let report = self.call_any(spec, body).await;
        CallReport {
            outcome: report.outcome.map(typed),
            stdout: report.stdout,
            stderr: report.stderr,
            logs: report.logs,
            files: report.files,
            cpu: report.cpu,
            wall: report.wall,
            queued: report.queued,
            memory_peak: report.memory_peak,
        }
    }

    /// Does the work of [`Template::call`]. It has no type parameters and returns a boxed future, so that it is compiled
    /// once and not in every crate that makes calls.
    fn call_any(&self, spec: CallSpec, body: Body) -> BoxFuture<'_, CallReport<AnyValue>> {
        Box::pin(self.make_call(spec, body))
    }

    async fn make_call(&self, spec: CallSpec, body: Body) -> CallReport<AnyValue> {
        let started = Instant::now();
        let limits = match &spec.limits {
            Some(limits) => Arc::new(limits.clone()),
            None => Arc::clone(&self.inner.limits),
        };
        let record = Record::new(limits, spec.tee.clone());
        let files = self.inner.files.open(spec.file_bytes);
        let guests = self.inner.sandbox.guests();
        // A nested call begins inside the poll of its caller, so it delays nobody else.
        let may_begin_here = spec.caller.as_ref().is_none_or(Caller::is_polled_here);
        let begins_here = may_begin_here && self.inner.pace.is_brief();
        let run = run(
            Arc::clone(&self.inner),
            Arc::clone(&record),
            files.clone(),
            spec,
            body,
        );
        let mut run = Box::pin(run);
        let begun = if begins_here {
            take_turns().await;
            let began = Instant::now();
            let begun = poll_once(run.as_mut(), guests).await;
            let wall = began.elapsed();
            note_turn(wall);
            // Recorded now, not at the end: the next call of the same turn is about to begin. Waiting without yielding,
            // such as for a slow disk, counts if it took longer than a tick.
            let mut took = record.cpu();
            if wall > Pace::TICK {
                took = took.max(wall);
            }
            if begun.is_pending() && !took.is_zero() && !record.in_host() {
                // An epoch tick interrupted it while it computed.
                took = Pace::TICK;
            }
            self.inner.pace.note(took);
            begun
        } else {
            Poll::Pending
        };
        let outcome = match begun {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => {
                let mut guest = StopOnDrop(guests.spawn(run));
                match (&mut guest.0).await {
                    Ok(outcome) => outcome,
                    Err(error) if error.is_cancelled() => {
                        Err(Stopped::new(Ending::Cancelled, "the sandbox was shut down"))
                    }
                    Err(_) => Err(host_broke()),
                }
            }
        };
        // A call that found no place says nothing about the pace.
        if !begins_here && record.cpu() > Duration::ZERO {
            self.inner.pace.note(record.cpu());
        }
        let [stdout, stderr] = record.take_output();
        CallReport {
            files: files.report(outcome.is_ok()),
            outcome,
            stdout,
            stderr,
            logs: record.take_logs(),
            cpu: record.cpu(),
            wall: started.elapsed(),
            queued: record.queued(),
            memory_peak: record.memory_peak(),
        }
    }
}

/// The value of a body that returns an `R`.
fn typed<R: 'static>(value: AnyValue) -> R {
    *value.downcast().expect("the body returns this type")
}

/// Stops a guest when its caller is dropped.
struct StopOnDrop(JoinHandle<Result<AnyValue, Stopped>>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn host_broke() -> Stopped {
    Stopped::unavailable("the host broke while serving this call")
}

/// Polls a call once on the caller's thread: to its end if it is brief, else until it first waits or an epoch tick
/// interrupts it. Its timers already belong to the guests' runtime.
async fn poll_once(
    mut run: Pin<&mut impl Future<Output = Result<AnyValue, Stopped>>>,
    guests: &Handle,
) -> Poll<Result<AnyValue, Stopped>> {
    poll_fn(|context| {
        let _guests = guests.enter();
        let polled = catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(context)));
        Poll::Ready(polled.unwrap_or_else(|_| Poll::Ready(Err(host_broke()))))
    })
    .await
}

async fn run(
    template: Arc<Loaded>,
    record: Arc<Record>,
    files: Files,
    spec: CallSpec,
    body: Body,
) -> Result<AnyValue, Stopped> {
    let sandbox = &template.sandbox;
    let limits = Arc::clone(record.limits());
    limits
        .check(sandbox.pools.max_memory_bytes)
        .map_err(|error| Stopped::unavailable(error.to_string()))?;
    let started = Instant::now();
    let level = Caller::level_below(spec.caller.as_ref());
    let callers = spec.caller.as_ref().map(Caller::deadline);
    let wall = (spec.deadline.into_iter().chain(callers))
        .map(|deadline| deadline.saturating_duration_since(started))
        .fold(limits.wall, Duration::min);

    // Before a place is taken, so that calls which wait for each other's memory hold none.
    let _set_aside = match &spec.caller {
        Some(caller) => {
            let files = files.scratch().map_or(0, |scratch| scratch.grant().bytes);
            Some(caller.set_aside(&limits, files, started + wall).await?)
        }
        None => None,
    };
    // Before instantiating, so that the pool itself never runs out.
    let admitted = sandbox
        .admission
        .admit(template.pool, level, limits.memory_bytes, started + wall)
        .await;
    let queued = started.elapsed();
    record.set_queued(queued);
    let _admitted = match admitted {
        Ok(admitted) => admitted,
        Err(NotAdmitted::TooDeep) => {
            let (most, wanted) = (LEVELS as u64, level as u64 + 1);
            let limit = LimitReached::new("nesting", most, wanted);
            let reason = format!("calls nest no deeper ({limit})");
            return Err(Stopped::by_limit(Ending::Denied, reason, limit));
        }
        Err(NotAdmitted::Full(limit)) => {
            let reason = format!("no room within {} ms ({limit})", wall.as_millis());
            return Err(Stopped::by_limit(Ending::Unavailable, reason, limit));
        }
    };

    // Calls that end inside a tick are never interrupted, so the sum over many of them is checked here.
    if let Some(stopped) = spec
        .caller
        .as_ref()
        .and_then(|caller| caller.meter.refusal())
    {
        return Err(stopped);
    }
    let guest = Guest {
        plugin: Arc::clone(&template.name),
        label: spec.label,
        seed: spec.seed,
        data: Arc::clone(&template.data),
        files,
        gates: template.gates.opened(),
        context: spec.context,
        caller: spec.caller,
        deadline: started + wall,
    };
    let mut deadlines = Deadlines::for_call(&limits);
    deadlines.virtual_time = spec.virtual_time.unwrap_or(deadlines.virtual_time);
    let tick = sandbox.config.tick;
    let (mut store, meter) = State::store(&sandbox.engine, guest, &record, deadlines, tick);
    let called = async {
        let instance = template.instances.instantiate_async(&mut store).await?;
        if let Some((lifecycle, config_json)) = &template.init_per_call {
            let lifecycle = lifecycle.load(&mut store, &instance)?;
            if let Err(error) = lifecycle
                .rlf_plugin_lifecycle()
                .call_init(&mut store, config_json)
                .await?
            {
                // It worked when the plugin was loaded, so something that it depends on has changed since.
                return Err(
                    Stopped::unavailable(format!("its init failed: {}", describe(error))).into(),
                );
            }
        }
        store.data_mut().make_real(template.real);
        store.data_mut().open_gates();
        body(&mut store, instance).await
    };
    supervise(&record, meter, wall, queued, called).await
    // The store is dropped before the permit, so the next owner of the permit finds room in the pool.
}
