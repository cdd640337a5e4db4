//! Snapshots: `init` runs once, and the memory that it leaves is kept.
//!
//! This code handles untrusted bytes before any limit of a call applies. It is one function from bytes to bytes, so
//! that it can run in a child process.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use wasmtime::Store;
use wasmtime::component::{Component, ComponentNamedList, Instance, Lift, WasmList};
use wasmtime_wizer::{ComponentInstanceState, Wizer};

use super::error::LoadError;
use super::job::{InitMode, Job};
use crate::bindings::GuestIndices;
use crate::bindings::rlf::plugin::types::Error as PluginError;
use crate::cache::CompiledCode;
use crate::engine::InitEngine;
use crate::guest::{Deadlines, Guest, State, supervise, with_grants};
use crate::report::{Ending, LimitReached, safe_text, shortened};

/// The component that calls start from.
pub(crate) struct Prepared<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    pub(crate) init: InitMode,
    /// The component that `init` ran in, if it was compiled for that.
    pub(crate) init_code: Option<Component>,
}

/// Seed of `init`. Calls of every seed share the state that it leaves.
const INIT_SEED: u64 = 0;

/// Start of the line on standard error in which an `init` names the cause of handles that it leaves open.
const NO_SNAPSHOT: &str = "no snapshot: ";

/// Runs `init` and keeps its memory, or says why that cannot be kept. `init_code` is the compiled component that `init`
/// ran in earlier, if that is known.
///
/// Runs on its own thread: the caller may be inside a runtime, where blocking is not allowed, and wizer may panic on an
/// unexpected component.
pub(crate) fn prepare<'a>(
    engine: &InitEngine,
    guests: &Handle,
    job: &Job<'a>,
    init_code: Option<&CompiledCode>,
) -> Result<Prepared<'a>, LoadError> {
    let broken = || LoadError::Compile {
        reason: "the snapshot tool panicked on this component".to_owned(),
    };
    std::thread::scope(|scope| {
        let prepared = scope.spawn(|| prepare_here(engine, guests, job, init_code));
        prepared.join().unwrap_or_else(|_| Err(broken()))
    })
}

fn prepare_here<'a>(
    engine: &InitEngine,
    guests: &Handle,
    job: &Job<'a>,
    init_code: Option<&CompiledCode>,
) -> Result<Prepared<'a>, LoadError> {
    let compile = |bytes: &[u8]| {
        Component::new(&engine.engine, bytes).map_err(|error| LoadError::compile(&error))
    };
    let per_call = |reason: String| Prepared {
        bytes: Cow::Borrowed(job.bytes),
        init: InitMode::PerCall { reason },
        init_code: None,
    };
    let mut wizer = Wizer::new();
    wizer.keep_init_func(true);
    let (shape, instrumented) = match wizer.instrument_component(job.bytes) {
        Ok((shape, instrumented)) => (shape, instrumented),
        Err(error) => {
            // `init` must still work. Its failure is reported now, not in every call.
            let reason = format!("its code cannot be snapshotted: {error:#}");
            initialise(engine, guests, job, &compile(job.bytes)?, async |_, _| ())?;
            return Ok(per_call(reason));
        }
    };
    // Code of another engine is refused, and compiled again.
    let earlier = init_code.and_then(|code| code.component(&engine.engine).ok());
    let is_compiled = earlier.is_none();
    let component = match earlier {
        Some(component) => component,
        None => compile(&instrumented)?,
    };
    let snapshot = initialise(engine, guests, job, &component, async |store, instance| {
        if store.data().holds_handles() {
            let printed = job.record.take_output()[1].captured().text;
            return Err(handles_left_open(&printed));
        }
        // A snapshot reads the whole memory at once.
        store.set_hostcall_fuel(usize::MAX);
        let mut reader = Reader {
            store,
            instance,
            failure: None,
        };
        let bytes = wizer
            .snapshot_component(&shape, &mut reader)
            .await
            .map_err(|error| format!("{error:#}"))?;
        reader.failure.map_or(Ok(bytes), Err)
    })?;
    Ok(match snapshot {
        Ok(bytes) => Prepared {
            bytes: Cow::Owned(bytes),
            init: InitMode::Snapshot,
            init_code: is_compiled.then_some(component),
        },
        Err(reason) => per_call(reason),
    })
}

/// The reason why handles left open by `init` forbid a snapshot, with the cause if `init` printed it.
fn handles_left_open(printed: &str) -> String {
    let cause = printed
        .lines()
        .find_map(|line| line.strip_prefix(NO_SNAPSHOT));
    match cause {
        Some(cause) => format!(
            "{}; handles do not survive a snapshot",
            shortened(safe_text(cause.as_bytes()), 300)
        ),
        None => {
            "`init` opened a stream, file or timer, or printed; handles do not survive a snapshot. \
                 Use `data` and `log` there"
                .to_owned()
        }
    }
}

/// Instantiates, runs `init` under its limits, and looks at the instance that is left.
fn initialise<T>(
    engine: &InitEngine,
    guests: &Handle,
    job: &Job<'_>,
    component: &Component,
    then: impl AsyncFnOnce(&mut Store<State>, Instance) -> T,
) -> Result<T, LoadError> {
    let compile = |error: wasmtime::Error| LoadError::compile(&error);
    // Gates are linked, but not handed to the store, so they stay shut: all calls share the state that `init` leaves,
    // and it must not depend on anything outside.
    let linker = with_grants(&engine.linker, &job.files, &job.gates).map_err(compile)?;
    let template = linker.instantiate_pre(component).map_err(compile)?;
    let lifecycle = GuestIndices::new(&template).map_err(compile)?;
    let guest = Guest {
        plugin: Arc::clone(&job.plugin),
        label: "init".to_owned(),
        seed: INIT_SEED,
        data: Arc::clone(&job.data),
        files: job.files.open(None),
        gates: Arc::default(),
        context: None,
        caller: None,
        deadline: Instant::now() + job.record.limits().init,
    };
    let deadlines = Deadlines::for_init(job.record.limits());
    let (mut store, meter) =
        State::store(&engine.engine, guest, &job.record, deadlines, engine.tick);
    let run = async {
        let body = async {
            let instance = template.instantiate_async(&mut store).await?;
            let guest = lifecycle.load(&mut store, &instance)?;
            let outcome = guest
                .rlf_plugin_lifecycle()
                .call_init(&mut store, job.config_json)
                .await?;
            wasmtime::error::Ok((instance, outcome))
        };
        let instance = match supervise(
            &job.record,
            meter,
            deadlines.virtual_time,
            Duration::ZERO,
            body,
        )
        .await
        {
            Ok((instance, Ok(()))) => instance,
            Ok((_, Err(PluginError::InvalidArguments(reason)))) => {
                return Err(LoadError::config(reason, &job.record));
            }
            Ok((_, Err(error))) => return Err(LoadError::init(describe(error), &job.record)),
            Err(stopped) => {
                if let Some(backtrace) = &stopped.backtrace {
                    tracing::debug!(plugin = &*job.plugin, "init stopped at\n{backtrace}");
                }
                // The time limit of `init` has its own key.
                let reason = match (stopped.ended, stopped.limit) {
                    (Ending::Timeout { .. }, Some(limit)) => {
                        let name = "init_ms".to_owned();
                        let limit = LimitReached { name, ..limit };
                        format!("it took longer than it may ({limit})")
                    }
                    _ => stopped.reason,
                };
                return Err(LoadError::init(reason, &job.record));
            }
        };
        Ok(then(&mut store, instance).await)
    };
    guests.block_on(run)
}

/// One line for a plugin's own error.
pub(crate) fn describe(error: PluginError) -> String {
    match error {
        PluginError::InvalidArguments(text) => format!("invalid arguments: {text}"),
        PluginError::NotFound(text) => format!("not found: {text}"),
        PluginError::Denied(text) => format!("denied: {text}"),
        PluginError::Exhausted(text) => format!("exhausted: {text}"),
        PluginError::Unavailable(text) => format!("unavailable: {text}"),
        PluginError::Cancelled => "cancelled".to_owned(),
        PluginError::Internal(text) => text,
    }
}

/// Lets wizer read the memories and globals of an instance in a store of this crate. Wizer's own reader panics on
/// failures; this one notes the first failure and returns empty values.
struct Reader<'a> {
    store: &'a mut Store<State>,
    instance: Instance,
    failure: Option<String>,
}

impl Reader<'_> {
    async fn read<R, T>(
        &mut self,
        instance: &str,
        function: &str,
        with: impl FnOnce(&Store<State>, R) -> T,
    ) -> Option<T>
    where
        R: Lift + Send + Sync + 'static,
        (R,): ComponentNamedList,
    {
        let called: wasmtime::Result<T> = async {
            let missing = || wasmtime::format_err!("no accessor {instance}#{function}");
            let found = self
                .instance
                .get_export_index(&mut *self.store, None, instance)
                .ok_or_else(missing)?;
            let found = self
                .instance
                .get_export_index(&mut *self.store, Some(&found), function)
                .ok_or_else(missing)?;
            let accessor = self
                .instance
                .get_typed_func::<(), (R,)>(&mut *self.store, found)?;
            let (value,) = accessor.call_async(&mut *self.store, ()).await?;
            Ok(with(self.store, value))
        }
        .await;
        called
            .map_err(|error| self.failure = Some(format!("its memory cannot be read: {error:#}")))
            .ok()
    }
}

impl ComponentInstanceState for Reader<'_> {
    async fn call_func_ret_list_u8(
        &mut self,
        instance: &str,
        func: &str,
        contents: impl FnOnce(&[u8]) + Send,
    ) {
        self.read(instance, func, |store, list: WasmList<u8>| {
            contents(list.as_le_slice(store));
        })
        .await;
    }

    async fn call_func_ret_s32(&mut self, instance: &str, func: &str) -> i32 {
        self.read(instance, func, |_, value| value)
            .await
            .unwrap_or_default()
    }

    async fn call_func_ret_s64(&mut self, instance: &str, func: &str) -> i64 {
        self.read(instance, func, |_, value| value)
            .await
            .unwrap_or_default()
    }

    async fn call_func_ret_f32(&mut self, instance: &str, func: &str) -> u32 {
        self.read(instance, func, |_, value: f32| value.to_bits())
            .await
            .unwrap_or_default()
    }

    async fn call_func_ret_f64(&mut self, instance: &str, func: &str) -> u64 {
        self.read(instance, func, |_, value: f64| value.to_bits())
            .await
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::handles_left_open;

    #[test]
    fn the_cause_that_init_prints_is_part_of_why_there_is_no_snapshot() {
        let cause = handles_left_open("noise\nno snapshot: A.py:3 opens a file\n");
        assert_eq!(
            cause,
            "A.py:3 opens a file; handles do not survive a snapshot"
        );
        let unknown = handles_left_open("noise: no snapshot: here\n");
        assert!(unknown.starts_with("`init` opened a stream"), "{unknown}");
    }
}
