//! Runs a guest to its end: its meter, its deadline, and how it ended.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::ResourceTableError;
use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::meter::{CpuMeter, Metered};
use crate::record::Record;
use crate::report::{Clock, Ending, LimitReached, Stopped};

/// Polls a guest's future under its meter until it ends or its time is up, and reads how it ended. Of its time `wall`, it
/// has spent `queued` already.
pub(crate) async fn supervise<R>(
    record: &Arc<Record>,
    meter: Arc<CpuMeter>,
    wall: Duration,
    queued: Duration,
    called: impl Future<Output = wasmtime::Result<R>>,
) -> Result<R, Stopped> {
    let metered = Metered::new(called, Arc::clone(&meter), Arc::clone(record));
    match tokio::time::timeout(wall.saturating_sub(queued), metered).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(stopped_by(&error, record)),
        Err(_) => {
            // A guest that computed for most of its time was not delayed by others.
            let (clock, doing) = if meter.used() * 2 > record.limits().wall {
                (Clock::Cpu, "computing")
            } else if record.in_host() {
                (Clock::Host, "waiting for the host")
            } else {
                (Clock::Wall, "running")
            };
            let allowed = wall.as_millis() as u64;
            let limit = LimitReached::new("wall_ms", allowed, allowed);
            Err(Stopped::by_limit(
                Ending::Timeout { clock },
                format!("out of time while {doing} ({limit})"),
                limit,
            ))
        }
    }
}

/// Reads an error that came out of the guest. The order matters: first the error of a host function, then an exit, then a
/// limit that the guest reached before it broke.
fn stopped_by(error: &wasmtime::Error, record: &Record) -> Stopped {
    let backtrace = error
        .downcast_ref::<WasmBacktrace>()
        .map(ToString::to_string);
    if let Some(stopped) = error.downcast_ref::<Stopped>() {
        return Stopped {
            backtrace,
            ..stopped.clone()
        };
    }
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return Stopped::new(
            Ending::Exited { code: exit.0 },
            format!("the plugin left by exit({})", exit.0),
        );
    }
    let reason = error.root_cause().to_string();
    if let Some(limit) = record.refused_growth() {
        let what = if limit.name == "table_elements" {
            "table elements"
        } else {
            "memory"
        };
        let reason = format!("the plugin needed more {what} than it may have ({limit})");
        return Stopped {
            backtrace,
            ..Stopped::by_limit(Ending::MemoryLimit, reason, limit)
        };
    }
    if let Some(stopped) = stopped_by_host_limit(error, &reason, record) {
        return Stopped {
            backtrace,
            ..stopped
        };
    }
    let reason = match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => {
            "the plugin's recursion is too deep (call stack exhausted)".to_owned()
        }
        Some(trap) => format!("the plugin trapped: {trap}"),
        None => format!("the plugin trapped: {reason}"),
    };
    Stopped {
        backtrace,
        ..Stopped::new(Ending::Trap, reason)
    }
}

/// Endings by limits that wasmtime enforces and reports with its own errors.
fn stopped_by_host_limit(
    error: &wasmtime::Error,
    reason: &str,
    record: &Record,
) -> Option<Stopped> {
    let limits = record.limits();
    // Private types in wasmtime: only their text can be recognised (tests/host_memory.rs).
    if reason.contains("fuel allocated for hostcalls has been exhausted") {
        let limit = LimitReached::new(
            "hostcall_bytes",
            limits.hostcall_bytes,
            limits.hostcall_bytes,
        );
        let reason = format!("the plugin handed over too much at once ({limit})");
        return Some(Stopped::by_limit(Ending::OutputLimit, reason, limit));
    }
    let handles = if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
        LimitReached::new(
            "resources",
            u64::from(limits.resources),
            u64::from(limits.resources),
        )
    } else if reason.contains("store handle limit exceeded") {
        let handles = u64::from(limits.component_handles);
        LimitReached::new("component_handles", handles, handles)
    } else {
        return None;
    };
    let reason = format!("the plugin holds too many handles ({handles})");
    Some(Stopped::by_limit(Ending::MemoryLimit, reason, handles))
}
