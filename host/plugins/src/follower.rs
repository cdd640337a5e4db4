//! Plugins that are replaced on disk while calls run.
//!
//! Calls that are under way end on the component they began with. The new component serves later calls if three
//! conditions hold: it loads, the operator's pin allows it, and it offers exactly the same tools. Models were shown
//! those names, descriptions and schemas, and are in the middle of a conversation. Otherwise the old component
//! continues to serve, and the log says why. Rewards stay as they were when the run began, because the trajectories of
//! a step are compared with each other.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rlf_sandbox::Sandbox;

use crate::files::FileStamps;
use crate::job::Job;
use crate::kind::Kinds;
use crate::manifest::PluginKind;
use crate::plugin::Plugin;
use crate::registry::Registry;

/// Interval between checks of the files.
const EVERY: Duration = Duration::from_secs(1);

/// Watches the files of a registry's plugins until it is dropped.
#[derive(Debug)]
pub struct Follower {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Follower {
    /// Starts a thread that checks the files once a second.
    pub fn start(registry: &Registry, sandbox: &Sandbox) -> io::Result<Self> {
        let mut watch = FileWatch::new(registry, sandbox);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let looking = move || {
            loop {
                thread::park_timeout(EVERY);
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                for change in watch.check() {
                    tracing::warn!(plugin = change.plugin, "{}", change.what);
                }
            }
        };
        let thread = thread::Builder::new()
            .name("rlf-follow".to_owned())
            .spawn(looking)?;
        Ok(Self { stop, thread })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The thread is not joined: it may be compiling a component that will never be called.
        self.thread.thread().unpark();
    }
}

/// The result of a change in a plugin's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginChange {
    /// Its name.
    pub plugin: String,
    /// The component that serves from now on, or the reason why the old one still serves.
    pub what: String,
}

/// The state of the files of a registry's plugins at the last check.
pub struct FileWatch {
    kinds: Kinds,
    sandbox: Sandbox,
    plugins: Vec<Watched>,
}

struct Watched {
    /// The plugin as it was first loaded. Calls ask it for [`Plugin::latest`].
    plugin: Arc<Plugin>,
    job: Job,
    known: Option<FileStamps>,
    /// A change that was seen once. A file that is still being written looks different at the next check.
    changed: Option<FileStamps>,
}

impl FileWatch {
    /// Remembers the current state of the files of all plugins.
    pub fn new(registry: &Registry, sandbox: &Sandbox) -> Self {
        let tools = registry
            .with_jobs()
            .filter(|(plugin, _)| plugin.kind() != PluginKind::Reward);
        let plugins = tools.map(|(plugin, job)| {
            let files = plugin.files.stamps();
            // The plugin may have been replaced while others were loaded.
            let is_the_same =
                (job.candidate()).is_ok_and(|found| found.info().hash == plugin.hash());
            Watched {
                plugin: Arc::clone(plugin),
                job: job.clone(),
                known: is_the_same.then_some(files),
                changed: None,
            }
        });
        Self {
            kinds: registry.kinds(),
            sandbox: sandbox.clone(),
            plugins: plugins.collect(),
        }
    }

    /// Checks all files. A changed plugin is loaded once its files look the same twice in a row. Blocks while it loads.
    pub fn check(&mut self) -> Vec<PluginChange> {
        let (kinds, sandbox) = (self.kinds, &self.sandbox);
        self.plugins
            .iter_mut()
            .filter_map(|watched| {
                let what = watched.check(kinds, sandbox)?;
                Some(PluginChange {
                    plugin: watched.plugin.name().to_owned(),
                    what,
                })
            })
            .collect()
    }
}

impl Watched {
    fn check(&mut self, kinds: Kinds, sandbox: &Sandbox) -> Option<String> {
        let files = self.plugin.files.stamps();
        if self.known.as_ref() == Some(&files) {
            self.changed = None;
            return None;
        }
        if self.changed.as_ref() != Some(&files) {
            self.changed = Some(files);
            return None;
        }
        self.known = self.changed.take();
        let serving = self.plugin.latest();
        match self.load(&serving, kinds, sandbox) {
            Ok(plugin) if plugin.fingerprint() == serving.fingerprint() => None,
            Ok(plugin) => {
                let what = format!(
                    "its files were replaced: later calls are served by {} in place of {}; to keep what a \
                     run began with, pin `hash` in [plugins.{}] or write `reload = false` in [tools]",
                    plugin.hash(),
                    serving.hash(),
                    plugin.name(),
                );
                self.plugin.replace_by(Arc::new(plugin));
                Some(what)
            }
            Err(why) => Some(format!(
                "its files changed, but {why}; {} goes on serving",
                serving.hash()
            )),
        }
    }

    /// Loads the plugin from its current files, if it can replace the one that serves.
    fn load(&self, serving: &Plugin, kinds: Kinds, sandbox: &Sandbox) -> Result<Plugin, String> {
        let plugin = self
            .job
            .run_on_own_thread(kinds, sandbox)
            .map_err(|problem| problem.to_string())?;
        if !serving.grants().trusts(plugin.hash()) {
            return Err(format!(
                "[plugins.{}] pins another component than {}",
                plugin.name(),
                plugin.hash()
            ));
        }
        let definitions = |plugin: &Plugin| {
            let tools = plugin.tools().iter();
            tools
                .map(|tool| (tool.own_name.clone(), tool.definition.clone()))
                .collect::<Vec<_>>()
        };
        if plugin.kind() != serving.kind() || definitions(&plugin) != definitions(serving) {
            return Err(
                "it offers other tools than models were shown; start anew to use them".into(),
            );
        }
        Ok(plugin)
    }
}
