//! Finds a run's plugins, and opens the sandbox in which they run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rlf_config::nearest;
use rlf_environments::EnvironmentLoader;
use rlf_interpreters::InterpreterLoader;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::kind::Kinds;
use rlf_plugins::problem::Problem;
use rlf_plugins::registry::{PluginOnDisk, Registry};
use rlf_rewards::RewardLoader;
use rlf_sandbox::{Sandbox, SandboxConfig, SandboxError, user_cache};
use rlf_tools::ToolLoader;

use crate::error::RunFailure;
use crate::reporter::RunReporter;

/// The kinds of plugins that this program loads.
pub const KINDS: Kinds = &[
    &ToolLoader,
    &RewardLoader,
    &InterpreterLoader,
    &EnvironmentLoader,
];

/// Time after which loading is reported as slow.
const SLOW: Duration = Duration::from_secs(3);

/// The environment variable that names the directory of shipped plugins; empty for none.
pub const SHIPPED_VARIABLE: &str = "RLF_PLUGINS";

/// Directories of shipped plugins, relative to the program's directory: in an archive of a release, in a build, and when
/// installed.
const BESIDE_THE_PROGRAM: [&str; 4] = [
    "plugins",
    "../plugins",
    "../lib/rlf-host/plugins",
    "../share/rlf-host/plugins",
];

/// The directory of shipped plugins if none is beside the program, relative to the working directory.
const FALLBACK: &str = "target/plugins";

/// File in a run's folder that names the plugin directories it started with, apart from the shipped one.
const RECORD: &str = "plugin-directories.json";

/// The directories of plugins, and whether components are prepared in a separate process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginSources {
    /// Directories of plugins: every `*/plugin.toml`, `*.wasm` or `*.py` in them. Plugins and tools of an earlier directory
    /// replace those of the same name in a later one.
    pub directories: Vec<PathBuf>,
    /// The directory of shipped plugins, which comes last. `None` leaves them out.
    pub shipped: Option<PathBuf>,
    /// The program that compiles components in a separate process with limits on memory and time, as
    /// [`SandboxConfig::preparer`]. Without it, an untrusted component can take any amount of memory and time while it is
    /// compiled.
    /// It also supervises agents that are processes: started with the argument [`rlf_agents::supervisor::ARGUMENT`], it
    /// calls [`rlf_agents::supervisor::supervise`]. Without it, a process that left the process group of its agent survives.
    pub preparer: Option<PathBuf>,
}

impl PluginSources {
    /// Uses the plugins of one directory, compiled in this process.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directories: vec![directory.into()],
            shipped: None,
            preparer: None,
        }
    }

    /// Uses the plugins of `added`, and then the shipped ones. These are in the directory that the
    /// environment variable [`SHIPPED_VARIABLE`] names, or, if it is not set, beside the running program.
    pub fn with_shipped(added: &[PathBuf]) -> Self {
        let shipped = match std::env::var_os(SHIPPED_VARIABLE) {
            Some(named) if named.is_empty() => None,
            Some(named) => Some(PathBuf::from(named)),
            None => beside_the_program().or_else(|| {
                let fallback = PathBuf::from(FALLBACK);
                // A missing fallback directory is kept only if there is no other, so that a message can name it.
                (added.is_empty() || fallback.is_dir()).then_some(fallback)
            }),
        };
        Self {
            directories: added.to_vec(),
            shipped,
            preparer: None,
        }
    }

    /// All directories, in order of precedence. The shipped directory is never listed twice.
    pub fn all(&self) -> Vec<PathBuf> {
        let same = |a: &Path, b: &Path| {
            a == b
                || a.canonicalize()
                    .is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
        };
        let mut all: Vec<PathBuf> = Vec::new();
        for directory in self.directories.iter().chain(&self.shipped) {
            if !all.iter().any(|known| same(known, directory)) {
                all.push(directory.clone());
            }
        }
        all
    }

    /// The path of a configuration: `named` if there is such a file, else the shipped configuration of that name. The
    /// shipped ones are beside the shipped plugins, or, in a clone, beside the folder of the build.
    pub fn configuration(&self, named: &Path) -> PathBuf {
        if named.components().count() != 1 || named.exists() {
            return named.to_owned();
        }
        let name = named.to_string_lossy();
        let file = format!("{}.toml", name.strip_suffix(".toml").unwrap_or(&name));
        let mut shipped = self.configurations().map(|folder| folder.join(&file));
        shipped
            .find(|file| file.is_file())
            .unwrap_or_else(|| named.to_owned())
    }

    /// The name of a shipped configuration that resembles the name of the file `named`.
    pub fn nearest_configuration(&self, named: &Path) -> Option<String> {
        let entries = self
            .configurations()
            .filter_map(|folder| folder.read_dir().ok());
        let files = entries
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()));
        let names: Vec<String> = files
            .filter(|file| file.extension().is_some_and(|found| found == "toml"))
            .filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned()))
            .collect();
        let name = named.file_name()?.to_str()?;
        let name = name.strip_suffix(".toml").unwrap_or(name);
        nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
    }

    /// The folders that may hold the shipped configurations.
    fn configurations(&self) -> impl Iterator<Item = PathBuf> {
        let shipped = self.shipped.iter();
        let folders = shipped.flat_map(|shipped| shipped.ancestors().skip(1).take(2));
        folders.map(|folder| folder.join("configs"))
    }

    /// The directories, formatted for messages.
    pub fn display(&self) -> String {
        let all = self.all();
        if all.is_empty() {
            return "the empty list of plugin directories".to_owned();
        }
        let all: Vec<String> = all.iter().map(|path| path.display().to_string()).collect();
        all.join(" and ")
    }

    /// These directories and those that the run in the folder `run` started with, as far as they still exist.
    pub(crate) fn with_recorded(&self, run: &Path) -> Self {
        let recorded = std::fs::read_to_string(run.join(RECORD)).unwrap_or_default();
        let recorded: Vec<PathBuf> = serde_json::from_str(&recorded).unwrap_or_default();
        let mut sources = self.clone();
        (sources.directories).extend(recorded.into_iter().filter(|path| path.is_dir()));
        sources
    }

    /// Records the directories in the folder of a new run.
    pub(crate) fn record(&self, run: &Path) -> Result<(), RunFailure> {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let directories: Vec<PathBuf> = self.directories.iter().map(absolute).collect();
        let file = run.join(RECORD);
        let write = || std::fs::write(&file, serde_json::to_string(&directories)?);
        write().map_err(RunFailure::io(format!("cannot write {}", file.display())))
    }

    /// Opens the sandbox. If the configuration names no cache folder, the user's is used.
    pub fn sandbox(&self, config: &SandboxConfig) -> Result<Sandbox, SandboxError> {
        let mut config = config.clone();
        config.cache = config.cache.or_else(user_cache);
        config.preparer.clone_from(&self.preparer);
        Sandbox::new(&config)
    }

    /// Loads all plugins. Components new to this machine are compiled, which takes seconds.
    pub fn load(
        &self,
        grants: &BTreeMap<String, PluginGrants>,
        sandbox: &Sandbox,
        reporter: &dyn RunReporter,
    ) -> Registry {
        self.load_where(grants, sandbox, reporter, |_| true)
    }

    /// Loads the plugins whose names `wanted` accepts.
    pub fn load_where(
        &self,
        grants: &BTreeMap<String, PluginGrants>,
        sandbox: &Sandbox,
        reporter: &dyn RunReporter,
        wanted: impl Fn(&str) -> bool,
    ) -> Registry {
        let directories = self.all();
        report_if_slow(reporter, || {
            Registry::load_from(&directories, grants, KINDS, sandbox, wanted)
        })
    }

    /// Describes the plugin `name` from its files, without running it.
    pub fn identify(
        &self,
        grants: &BTreeMap<String, PluginGrants>,
        name: &str,
    ) -> Result<PluginOnDisk, Problem> {
        Registry::identify(&self.all(), grants, name)
    }
}

/// The directory of plugins shipped with the running program.
fn beside_the_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.canonicalize().ok()?;
    beside(program.parent()?)
}

/// The directory of plugins shipped with a program in the directory `programs`.
fn beside(programs: &Path) -> Option<PathBuf> {
    let mut places = BESIDE_THE_PROGRAM.iter().map(|place| programs.join(place));
    places.find(|place| place.is_dir())?.canonicalize().ok()
}

/// Loads plugins, and reports if that takes long.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_plugins_are_beside_the_program_as_built_as_packed_and_as_installed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let programs = root.join("bin");
        std::fs::create_dir(&programs).unwrap();
        assert_eq!(beside(&programs), None);
        for place in [
            "share/rlf-host/plugins",
            "lib/rlf-host/plugins",
            "plugins",
            "bin/plugins",
        ] {
            std::fs::create_dir_all(root.join(place)).unwrap();
            assert_eq!(beside(&programs), Some(root.join(place)));
        }
    }

    #[test]
    fn a_configuration_that_ships_is_found_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let configs = folder.path().join("configs");
        std::fs::create_dir(&configs).unwrap();
        std::fs::write(configs.join("quickstart.toml"), "").unwrap();
        let sources = PluginSources {
            directories: Vec::new(),
            shipped: Some(folder.path().join("plugins")),
            preparer: None,
        };
        let found = |named: &str| sources.configuration(Path::new(named));
        assert_eq!(found("quickstart"), configs.join("quickstart.toml"));
        assert_eq!(found("quickstart.toml"), configs.join("quickstart.toml"));
        let in_a_clone = PluginSources {
            shipped: Some(folder.path().join("target/plugins")),
            ..sources.clone()
        };
        let named = in_a_clone.configuration(Path::new("quickstart"));
        assert_eq!(named, configs.join("quickstart.toml"));
        assert_eq!(found("quick"), Path::new("quick"));
        let near = |named: &str| sources.nearest_configuration(Path::new(named));
        assert_eq!(near("quickstrat").as_deref(), Some("quickstart"));
        assert_eq!(
            near("configs/quickstrat.toml").as_deref(),
            Some("quickstart")
        );
        assert_eq!(near("mine.toml"), None);
        assert_eq!(found("other/quickstart"), Path::new("other/quickstart"));
    }

    #[test]
    fn a_run_knows_the_directories_that_it_was_begun_with() {
        let run = tempfile::tempdir().unwrap();
        let own = tempfile::tempdir().unwrap();
        PluginSources::new(own.path()).record(run.path()).unwrap();
        let shipped = PluginSources {
            directories: Vec::new(),
            shipped: Some("shipped".into()),
            preparer: None,
        };
        let all = shipped.with_recorded(run.path()).all();
        assert_eq!(all, [own.path().to_owned(), "shipped".into()]);
        // Directories that no longer exist are left out.
        drop(own);
        let all = shipped.with_recorded(run.path()).all();
        assert_eq!(all, [PathBuf::from("shipped")]);
        assert_eq!(shipped.with_recorded(&run.path().join("none")), shipped);
    }
}
