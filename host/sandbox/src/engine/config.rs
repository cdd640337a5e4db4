//! Settings of the sandbox.

use std::path::PathBuf;
use std::time::Duration;

use rlf_config::milliseconds;
use serde::{Deserialize, Serialize};

use crate::limits::MAX_DURATION;

/// Limit of `instances`, `programs` and `sessions`: no machine has mappings for more.
const MAX_INSTANCES: u32 = 20_000;
/// Limit of `workers`: more threads help on no machine.
const MAX_WORKERS: usize = 1_024;

/// Settings of the sandbox. Every field may be left out of a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// Number of calls that run at once. Further calls wait, within their deadline. Each of the two levels of nested
    /// calls has a quarter as many places in addition. Default: one per 64 MiB of the machine's memory, between 32 and
    /// 512, and at most what `vm.max_map_count` allows. Costs address space (4 GiB a memory), not memory.
    pub instances: Option<u32>,
    /// Maximum sum of the memory limits of all live calls. Calls beyond it wait, within their deadline. Default: half
    /// of the machine's memory.
    pub memory_budget_bytes: Option<u64>,
    /// Number of programs that run in interpreters at once. Further programs wait. Default: as `instances`.
    pub programs: Option<u32>,
    /// Maximum sum of the memory limits of all running programs. Programs beyond it wait. Programs share most of their
    /// memory until they write to it, so a machine that runs small programs can be given more than it has. Default: a
    /// quarter of the machine's memory.
    pub program_memory_budget_bytes: Option<u64>,
    /// Number of environment sessions that keep an instance at once. The sessions that have waited longest make room
    /// for others, and are later restored from a snapshot. Default: as `instances`.
    pub sessions: Option<u32>,
    /// Memory that sessions may have of their own: the growth of waiting ones, and the memory limits of those that
    /// run. Default: a quarter of the machine's memory.
    pub session_memory_budget_bytes: Option<u64>,
    /// Maximum size of one linear memory, even if a plugin's limits allow more. Default 512 MiB.
    pub max_memory_bytes: u64,
    /// Threads that run guests, apart from everything else the host does, so that a busy guest
    /// delays neither deadlines nor rollouts. Default: one per core, at most 4, at least 2.
    pub workers: Option<usize>,
    /// Interval at which the budget of running guests is checked. They are also interrupted then, so that others run,
    /// except those that began to compute less than half an interval ago, at most 2.5 ms. Shorter: finer budgets and
    /// quicker cancellation, more switches. Key `tick_ms`, default 5 ms.
    #[serde(rename = "tick_ms", with = "milliseconds")]
    pub tick: Duration,
    /// Maximum size of a component that is read, in bytes. Default 512 MiB.
    pub max_component_bytes: u64,
    /// Folder for compiled components; made with mode 0700, not used if others can enter it.
    /// Default: none, every load compiles.
    pub cache: Option<PathBuf>,
    /// Maximum total size of compiled components in that folder; the least recently used make room for new ones.
    /// Default 8 GiB: Python's code takes about 80 MiB once, and its memory 33 MiB for every file of an environment. 0
    /// keeps none.
    pub cache_bytes: u64,
    /// Limit of wall-clock and of CPU time for checking, snapshotting and compiling one component, without its `init`.
    /// A component gets this time once for each started 64 MiB of its size. Key `prepare_ms`, default 120,000 ms. It
    /// applies only if `preparer` is set.
    #[serde(rename = "prepare_ms", with = "milliseconds")]
    pub prepare: Duration,
    /// Memory that preparing one component may take, in addition to 16 times its size. Default 4 GiB. It applies only
    /// if `preparer` is set.
    pub prepare_memory_bytes: u64,
    /// The program that prepares components in a child process, started with
    /// [`prepare_process::ARGUMENT`](crate::prepare_process::ARGUMENT). It must come from the same build as this one. A
    /// program that handles that argument itself sets [`this_program`](crate::prepare_process::this_program).
    /// Not a key of a configuration. Default: none, so that components are prepared in this process, without limits.
    #[serde(skip)]
    pub preparer: Option<PathBuf>,
    /// True if compiled code is mapped from the cache instead of copied first, so that the process starts faster. Only
    /// for processes that end soon and may be killed: if another process opens such a file for writing, the kernel
    /// first ends this process with SIGKILL. rlf-host itself never writes to an existing file of the cache. Not a key
    /// of a configuration. Default: false.
    #[serde(skip)]
    pub is_short_lived: bool,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            instances: None,
            memory_budget_bytes: None,
            programs: None,
            program_memory_budget_bytes: None,
            sessions: None,
            session_memory_budget_bytes: None,
            max_memory_bytes: 512 << 20,
            workers: None,
            tick: Duration::from_millis(5),
            max_component_bytes: 512 << 20,
            cache: None,
            cache_bytes: 8 << 30,
            prepare: Duration::from_mins(2),
            prepare_memory_bytes: 4 << 30,
            preparer: None,
            is_short_lived: false,
        }
    }
}

/// The reason why the sandbox cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A setting is out of its range.
    #[error("sandbox.{key} = {value}: write {least} to {most}")]
    Range {
        /// The setting.
        key: &'static str,
        /// The configured value.
        value: u128,
        /// The minimum that is allowed.
        least: u128,
        /// The maximum that is allowed.
        most: u128,
    },
    /// The interval between interruptions is 0.
    #[error("sandbox.tick_ms = 0 would interrupt guests without end; give it at least 1")]
    NoTick,
    /// wasmtime refuses the machine.
    #[error(
        "sandbox: no WebAssembly engine with {instances} instances on this machine: {reason}; set `instances` lower"
    )]
    Engine {
        /// Number of instances in the last attempt.
        instances: u32,
        /// The error of wasmtime.
        reason: String,
    },
    /// The guests' threads cannot be started.
    #[error("sandbox: cannot start threads for guests: {0}")]
    Threads(#[from] std::io::Error),
}

impl SandboxError {
    /// The key of `[sandbox]` that is wrong; empty if the error is of something else.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Range { key, .. } => key,
            Self::NoTick => "tick_ms",
            Self::Engine { .. } => "instances",
            Self::Threads(_) => "",
        }
    }
}

impl SandboxConfig {
    /// Refuses settings that cannot work.
    pub fn validate(&self) -> Result<(), SandboxError> {
        let in_range = |key, value: Option<u128>, least: u128, most: u128| match value {
            Some(value) if !(least..=most).contains(&value) => Err(SandboxError::Range {
                key,
                value,
                least,
                most,
            }),
            _ => Ok(()),
        };
        for (key, value) in [
            ("instances", self.instances),
            ("programs", self.programs),
            ("sessions", self.sessions),
        ] {
            in_range(key, value.map(u128::from), 1, MAX_INSTANCES.into())?;
        }
        let workers = self.workers.map(|workers| workers as u128);
        in_range("workers", workers, 1, MAX_WORKERS as u128)?;
        if self.tick.is_zero() {
            return Err(SandboxError::NoTick);
        }
        // Limits are checked once a tick.
        in_range("tick_ms", Some(self.tick.as_millis()), 0, 1_000)?;
        let longest = MAX_DURATION.as_millis();
        in_range("prepare_ms", Some(self.prepare.as_millis()), 0, longest)
    }
}
