//! Finds and loads plugins, in the same way for every command.

use std::path::PathBuf;

use rlf_run::PluginSources;
use rlf_run::plugins::report_if_slow;
use rlf_sandbox::{Sandbox, SandboxConfig, SandboxError, prepare_process};

use crate::progress::Progress;

/// The shipped plugins and those of `--plugins`. Components are prepared in a separate process, which this program
/// starts: see `Command::Prepare`. It also starts the supervisors of agents: see `Command::Supervise`.
pub(crate) fn sources(added: &[PathBuf]) -> PluginSources {
    PluginSources {
        preparer: Some(prepare_process::this_program()),
        ..PluginSources::with_shipped(added)
    }
}

/// The sandbox of this machine.
pub(crate) fn sandbox(config: &SandboxConfig) -> Result<Sandbox, SandboxError> {
    sources(&[]).sandbox(config)
}

/// Loads plugins, and says so on a terminal if loading takes a while.
pub(crate) fn loading<T>(load: impl FnOnce() -> T) -> T {
    report_if_slow(&Progress::new(), load)
}
