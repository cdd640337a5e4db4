//! The runtime and the sandbox of this process. Both are started once and live as long as the process.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use rlf_environments::EnvironmentLoader;
use rlf_interpreters::InterpreterLoader;
use rlf_plugins::kind::Kinds;
use rlf_rewards::RewardLoader;
use rlf_sandbox::{Sandbox, SandboxConfig, user_cache};
use rlf_tools::ToolLoader;
use tokio::runtime::Runtime;

use crate::error::{Failure, from_json, to_json};
use crate::fork::{self, check_not_forked};
use crate::room::Room;
use crate::shutdown::Answers;
use crate::signals::TrapSignals;

/// The kinds of plugins that this process loads.
pub(crate) const KINDS: Kinds = &[
    &ToolLoader,
    &RewardLoader,
    &InterpreterLoader,
    &EnvironmentLoader,
];

/// The runtime and the sandbox, and how much they may be given at once.
pub(crate) struct Process {
    pub(crate) runtime: Runtime,
    pub(crate) sandbox: Sandbox,
    pub(crate) answers: Answers,
    pub(crate) signals: TrapSignals,
    /// Room for calls.
    pub(crate) calls: Room,
    /// Room for programs and open notebooks.
    pub(crate) programs: Room,
}

static PROCESS: OnceLock<Process> = OnceLock::new();
/// Held while the process starts.
static STARTING: Mutex<()> = Mutex::new(());

/// Starts the sandbox of this process, unless it runs already. `config` is the table `[sandbox]` as JSON.
#[pyfunction]
pub(crate) fn start(py: Python<'_>, config: &str, preparer: Option<PathBuf>) -> PyResult<()> {
    check_not_forked()?;
    if PROCESS.get().is_some() {
        return Ok(());
    }
    let mut config: SandboxConfig = from_json(config, "sandbox")?;
    (config.validate()).map_err(|error| Failure::Value(error.to_string()))?;
    config.cache = config.cache.or_else(user_cache);
    config.preparer = preparer;
    py.detach(|| {
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        if PROCESS.get().is_none() {
            fork::starts_here();
            let _ = PROCESS.set(Process::new(&config)?);
        }
        Ok::<_, Failure>(())
    })?;
    Ok(())
}

/// Describes the sandbox of this process as JSON: the sizes of its pools.
#[pyfunction]
pub(crate) fn describe() -> PyResult<String> {
    Ok(to_json(&process()?.sandbox.pools())?)
}

impl Process {
    fn new(config: &SandboxConfig) -> Result<Self, Failure> {
        let threads =
            |error: std::io::Error| Failure::Load(format!("cannot start threads: {error}"));
        let sandbox = Sandbox::new(config).map_err(|error| Failure::Load(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("rlf_host")
            .enable_all()
            .build()
            .map_err(threads)?;
        let pools = sandbox.pools();
        Ok(Self {
            answers: Answers::start().map_err(threads)?,
            signals: TrapSignals::installed(),
            calls: Room::new(pools.levels[0]),
            programs: Room::new(pools.programs),
            runtime,
            sandbox,
        })
    }
}

/// The runtime and the sandbox of this process.
pub(crate) fn process() -> PyResult<&'static Process> {
    check_not_forked()?;
    let started = PROCESS.get();
    started.ok_or_else(|| Failure::Other("the sandbox was not started".into()).into())
}
