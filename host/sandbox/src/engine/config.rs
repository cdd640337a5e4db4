//! Settings of the sandbox.

use std::path::PathBuf;
use std::time::Duration;

use rlf_config::milliseconds;
use serde::{Deserialize, Serialize};

use crate::limits::MAX_DURATION;

/// More live instances than any machine has mappings for.
const MAX_INSTANCES: u32 = 20_000;
/// More threads for guests than help on any machine.
const MAX_WORKERS: usize = 1_024;

/// How the sandbox is set up. Every field may be left out of a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// The most calls that run at once; more wait inside their deadline. Calls that calls make have a
    /// quarter as many places on top, for each of two levels. Default: one per 64 MiB of the machine's
    /// memory, between 32 and 512, and at most what `vm.max_map_count` allows. Costs address space (4 GiB a memory), not memory.
    pub instances: Option<u32>,
    /// The most that the memory limits of all live calls may sum to; calls beyond it wait inside their
    /// deadline. Default: half of the machine's memory.
    pub memory_budget_bytes: Option<u64>,
    /// The most programs that run in interpreters at once; more wait. Default: as `instances`.
    pub programs: Option<u32>,
    /// The most that the memory limits of all running programs may sum to; programs beyond it wait. Much of
    /// what a program has is shared with all others until it writes there, so a machine that is known to run small
    /// programs can be given more than it has. Default: a quarter of the machine's memory.
    pub program_memory_budget_bytes: Option<u64>,
    /// The most environment sessions that keep an instance at once; those that wait longest make room for others, and come
    /// back from a snapshot. Default: as `instances`.
    pub sessions: Option<u32>,
    /// The most memory that sessions may have of their own: what waiting ones have grown by, and the memory limits of
    /// those that run. Default: a quarter of the machine's memory.
    pub session_memory_budget_bytes: Option<u64>,
    /// The most that one linear memory may grow to, whatever a policy says. Default 256 MiB.
    pub max_memory_bytes: u64,
    /// Threads that run guests, apart from everything else the host does, so that a busy guest
    /// delays neither deadlines nor rollouts. Default: one per core, at most 4, at least 2.
    pub workers: Option<usize>,
    /// How often running guests are interrupted to check their budget and to let others run.
    /// Key `tick_ms`, default 5 ms. Shorter: finer budgets and quicker cancellation, more switches.
    #[serde(rename = "tick_ms", with = "milliseconds")]
    pub tick: Duration,
    /// Larger components are refused unread. Default 256 MiB.
    pub max_component_bytes: u64,
    /// Folder for compiled components; made with mode 0700, not used if others can enter it.
    /// Default: none, every load compiles.
    pub cache: Option<PathBuf>,
    /// Bytes that compiled components may take there; those that were not used for longest make room for new ones.
    /// Default 8 GiB: an interpreter with its memory takes about 60 MiB, for every file of an environment. 0 keeps none.
    pub cache_bytes: u64,
    /// What checking, snapshotting and compiling one component may take, of wall-clock and of CPU time,
    /// beside its `init`. Key `prepare_ms`, default 120,000 ms. Kept where `prepare_elsewhere` is set.
    #[serde(rename = "prepare_ms", with = "milliseconds")]
    pub prepare: Duration,
    /// The most memory that preparing one component may take. Default 4 GiB. Kept where
    /// `prepare_elsewhere` is set.
    pub prepare_memory_bytes: u64,
    /// Prepare components in a process of its own, which is this program started with
    /// [`prepare_process::ARGUMENT`](crate::prepare_process::ARGUMENT). Not a setting: the program
    /// says that it can.
    #[serde(skip)]
    pub prepare_elsewhere: bool,
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
            max_memory_bytes: 256 << 20,
            workers: None,
            tick: Duration::from_millis(5),
            max_component_bytes: 256 << 20,
            cache: None,
            cache_bytes: 8 << 30,
            prepare: Duration::from_mins(2),
            prepare_memory_bytes: 4 << 30,
            prepare_elsewhere: false,
        }
    }
}

/// The sandbox cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A setting that cannot work.
    #[error("sandbox: {0}")]
    Config(String),
    /// wasmtime refuses the machine.
    #[error(
        "sandbox: no WebAssembly engine with {instances} instances on this machine: {reason}; set `instances` lower"
    )]
    Engine {
        /// How many were asked for in the last attempt.
        instances: u32,
        /// What wasmtime said.
        reason: String,
    },
    /// The guests' threads cannot be started.
    #[error("sandbox: cannot start threads for guests: {0}")]
    Threads(#[from] std::io::Error),
}

impl SandboxConfig {
    /// Refuses settings that cannot work.
    pub(super) fn check(&self) -> Result<(), SandboxError> {
        if self.tick.is_zero() {
            return Err(SandboxError::Config(
                "tick_ms = 0 would interrupt guests without end; give it at least 1".into(),
            ));
        }
        if [self.instances, self.programs, self.sessions].contains(&Some(0))
            || self.workers == Some(0)
        {
            return Err(SandboxError::Config(
                "instances, programs, sessions and workers must be at least 1".into(),
            ));
        }
        let at_most = |name: &str, value: u128, most: u128| {
            if value <= most {
                return Ok(());
            }
            let text = format!("{name} = {value} is too much; write {most} at the most");
            Err(SandboxError::Config(text))
        };
        at_most(
            "instances",
            self.instances.unwrap_or_default().into(),
            MAX_INSTANCES.into(),
        )?;
        at_most(
            "programs",
            self.programs.unwrap_or_default().into(),
            MAX_INSTANCES.into(),
        )?;
        at_most(
            "sessions",
            self.sessions.unwrap_or_default().into(),
            MAX_INSTANCES.into(),
        )?;
        at_most(
            "workers",
            self.workers.unwrap_or_default() as u128,
            MAX_WORKERS as u128,
        )?;
        // Guests are looked at once a tick, and so are their limits.
        at_most("tick_ms", self.tick.as_millis(), 1_000)?;
        at_most(
            "prepare_ms",
            self.prepare.as_millis(),
            MAX_DURATION.as_millis(),
        )
    }
}
