//! Where a run's plugins are found, and the sandbox that they run in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rlf_plugins::policy::PluginPolicy;
use rlf_plugins::registry::Registry;
use rlf_sandbox::{Sandbox, SandboxConfig};

use crate::reporter::RunReporter;

/// Time after which loading is reported as slow.
const SLOW: Duration = Duration::from_secs(3);

/// The folder of plugins, and how they are prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginSources {
    /// Directory of plugins: every `*/plugin.toml` or `*.wasm` in it.
    pub directory: PathBuf,
    /// Compiles components in a process of its own, with limits on memory and time. That process is the program that
    /// runs now, started with the argument [`rlf_sandbox::prepare_process::ARGUMENT`]: set this only in a program whose
    /// `main` then calls [`rlf_sandbox::prepare_process::prepare_from_stdin`]. Without it, a component that nobody has
    /// checked can take any amount of memory and time while it is compiled.
    pub prepare_elsewhere: bool,
}

impl PluginSources {
    /// The plugins of a directory, compiled in this process.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            prepare_elsewhere: false,
        }
    }

    /// The sandbox of this machine, with the user's cache folder where the configuration names none.
    pub fn sandbox(&self, config: &SandboxConfig) -> anyhow::Result<Sandbox> {
        let mut config = config.clone();
        config.cache = config.cache.or_else(component_cache);
        config.prepare_elsewhere = self.prepare_elsewhere;
        Ok(Sandbox::new(&config)?)
    }

    /// Loads all plugins. Components that are new on this machine are compiled, which takes seconds.
    pub fn load(
        &self,
        grants: &BTreeMap<String, PluginPolicy>,
        sandbox: &Sandbox,
        reporter: &dyn RunReporter,
    ) -> Registry {
        self.load_where(grants, sandbox, reporter, |_| true)
    }

    /// Loads the plugins whose names are `wanted`.
    pub fn load_where(
        &self,
        grants: &BTreeMap<String, PluginPolicy>,
        sandbox: &Sandbox,
        reporter: &dyn RunReporter,
        wanted: impl Fn(&str) -> bool,
    ) -> Registry {
        report_if_slow(reporter, || {
            Registry::load_where(&self.directory, grants, sandbox, wanted)
        })
    }
}

/// The user's folder for compiled components; none if `HOME` is not set.
pub fn component_cache() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(home)?;
    cache
        .is_absolute()
        .then(|| cache.join("rlf-host").join("components"))
}

/// Loads plugins, and reports that it takes long.
pub fn report_if_slow<T>(reporter: &dyn RunReporter, load: impl FnOnce() -> T) -> T {
    let (done, waits) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if waits.recv_timeout(SLOW) == Err(RecvTimeoutError::Timeout) {
                reporter.loading_slowly();
            }
        });
        let loaded = load();
        drop(done);
        loaded
    })
}
