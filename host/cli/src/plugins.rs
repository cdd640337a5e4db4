//! Plugins as every command finds and loads them.

use std::path::Path;

use rlf_run::PluginSources;
use rlf_run::plugins::report_if_slow;
use rlf_sandbox::{Sandbox, SandboxConfig};

use crate::progress::Progress;

/// The plugins of a directory. This program prepares components in a process of its own: see `Command::Prepare`.
pub(crate) fn sources(directory: &Path) -> PluginSources {
    PluginSources {
        prepare_elsewhere: true,
        ..PluginSources::new(directory)
    }
}

/// The sandbox of this machine.
pub(crate) fn sandbox(config: &SandboxConfig) -> anyhow::Result<Sandbox> {
    sources(Path::new("")).sandbox(config)
}

/// Loads plugins, and says so on a terminal if it takes a while.
pub(crate) fn loading<T>(load: impl FnOnce() -> T) -> T {
    report_if_slow(&Progress::new(), load)
}
