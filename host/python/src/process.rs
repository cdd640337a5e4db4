//! The runtime and the sandbox of this process. Both are started once and live as long as the process.
//!
//! A forked child inherits neither their threads nor locks that can be trusted. So it may use nothing of what its parent
//! started: every use checks the process first, and values of the parent are forgotten, not dropped.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rlf_environments::EnvironmentLoader;
use rlf_interpreters::InterpreterLoader;
use rlf_plugins::kind::Kinds;
use rlf_rewards::RewardLoader;
use rlf_sandbox::{Sandbox, SandboxConfig, user_cache};
use rlf_tools::ToolLoader;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use crate::error::{Failure, from_json, to_json};

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
    /// A place for each program that the sandbox runs at once. A program that waits here has not begun its deadline.
    pub(crate) programs: Semaphore,
    /// A place for each call that the sandbox runs at once, for the same reason.
    pub(crate) calls: Semaphore,
}

static PROCESS: OnceLock<Result<Process, String>> = OnceLock::new();
/// Id of the process that starts, or started, [`PROCESS`]. 0: none yet.
static STARTED_BY: AtomicU32 = AtomicU32::new(0);

/// Fails in a child that was forked after its parent started the sandbox.
fn check_not_forked() -> PyResult<()> {
    let by = STARTED_BY.load(SeqCst);
    if by == 0 || by == std::process::id() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "this process was forked from one that had used rlf_host, and has none of its threads; use rlf_host first in the \
         child, or start the child afresh: multiprocessing.get_context(\"spawn\")",
    ))
}

/// Starts the sandbox of this process, unless it runs already. `config` is the table `[sandbox]` as JSON.
#[pyfunction]
pub(crate) fn start(py: Python<'_>, config: &str, preparer: Option<PathBuf>) -> PyResult<()> {
    let _ = STARTED_BY.compare_exchange(0, std::process::id(), SeqCst, SeqCst);
    check_not_forked()?;
    if PROCESS.get().is_none() {
        let mut config: SandboxConfig = from_json(config, "sandbox")?;
        (config.validate()).map_err(|error| Failure::Value(error.to_string()))?;
        config.cache = config.cache.or_else(user_cache);
        config.preparer = preparer;
        py.detach(|| PROCESS.get_or_init(|| Process::new(&config)));
    }
    process().map(|_| ())
}

/// Describes the sandbox of this process as JSON: the sizes of its pools.
#[pyfunction]
pub(crate) fn describe() -> PyResult<String> {
    Ok(to_json(&process()?.sandbox.pools())?)
}

impl Process {
    fn new(config: &SandboxConfig) -> Result<Self, String> {
        let sandbox = Sandbox::new(config).map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("rlf_host")
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start threads: {error}"))?;
        let pools = sandbox.pools();
        Ok(Self {
            programs: Semaphore::new(pools.programs.places as usize),
            calls: Semaphore::new(pools.levels[0].places as usize),
            runtime,
            sandbox,
        })
    }
}

/// The runtime and the sandbox of this process.
pub(crate) fn process() -> PyResult<&'static Process> {
    check_not_forked()?;
    match PROCESS.get() {
        Some(Ok(process)) => Ok(process),
        Some(Err(reason)) => Err(Failure::Load(reason.clone()).into()),
        None => Err(Failure::Other("the sandbox was not started".into()).into()),
    }
}

/// A value that only the process that made it may use and drop.
pub(crate) struct OfProcess<T> {
    value: Option<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value) }
    }

    pub(crate) fn get(&self) -> PyResult<&T> {
        check_not_forked()?;
        (self.value.as_ref()).ok_or_else(|| PyRuntimeError::new_err("it is gone"))
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if check_not_forked().is_err() {
            std::mem::forget(self.value.take());
        }
    }
}
