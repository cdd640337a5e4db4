//! All plugins of a run: found, admitted, loaded side by side, in one order whatever order they
//! finished loading in.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rlf_sandbox::{ComponentInfo, Sandbox};

use crate::discovery::{self, Candidate, Place};
use crate::grants::PluginGrants;
use crate::kind::Kinds;
use crate::loading;
use crate::manifest::{PluginKind, PluginManifest, is_valid_name};
use crate::plugin::Plugin;
use crate::problem::{Problem, ProblemKind};

/// Plugins are loaded by at most this many threads: each may hold a component being compiled.
const MAX_LOADERS: usize = 4;

/// The plugins of a run, and the problems of those that are not there.
pub struct Registry {
    plugins: Vec<Arc<Plugin>>,
    /// The source of each plugin, by its name.
    jobs: BTreeMap<String, Job>,
    /// To load plugins again that were replaced on disk.
    kinds: Kinds,
    problems: Vec<Problem>,
    refused_tools: BTreeMap<String, String>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("plugins", &self.plugins)
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

/// A plugin's component, and what its author asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginIdentity {
    /// The file.
    pub path: PathBuf,
    /// Its hash, which grants are bound to, and what it imports and exports.
    pub component: ComponentInfo,
    /// The author's manifest.
    pub manifest: PluginManifest,
}

/// A plugin that is to be loaded under a name.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    alias: String,
    directory: PathBuf,
    place: Place,
    grants: PluginGrants,
    /// Whether the operator's configuration says anything of it.
    is_named: bool,
}

impl Job {
    fn path(&self) -> PathBuf {
        self.place.path(&self.directory)
    }

    /// The plugin's own name, which its manifest and its component's file name refer to.
    fn own_name(&self) -> String {
        match &self.place {
            Place::Folder(name) if name == "." => self
                .directory
                .canonicalize()
                .ok()
                .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
                .unwrap_or_else(|| self.alias.clone()),
            place => place.name().to_owned(),
        }
    }

    /// The files as they are now, read and not run.
    pub(crate) fn candidate(&self) -> Result<Candidate, Problem> {
        let own_name = self.own_name();
        let problem = |kind, what: String, mend: &str| Problem {
            plugin: self.alias.clone(),
            path: self.path(),
            kind,
            what,
            mend: mend.into(),
        };
        if !is_valid_name(&self.alias) {
            return Err(problem(
                ProblemKind::Name,
                format!("{:?} cannot name a plugin", self.alias),
                "write 1 to 64 of a-z A-Z 0-9 _ -",
            ));
        }
        let directory = discovery::open(&self.directory).map_err(|error| {
            problem(
                ProblemKind::File,
                format!("cannot open it: {error}"),
                "correct the path",
            )
        })?;
        let read = discovery::read(&directory, &self.directory, &self.place, &own_name);
        read.map_err(|problem| Problem {
            plugin: self.alias.clone(),
            ..problem
        })
    }

    fn run(&self, kinds: Kinds, sandbox: &Sandbox) -> Result<Plugin, Problem> {
        let loaded = loading::load(&self.alias, self.candidate()?, &self.grants, kinds, sandbox);
        loaded.map(|mut plugin| {
            plugin.is_named = self.is_named;
            plugin
        })
    }
}

impl Job {
    /// Runs on a thread of its own: the caller's may belong to an async runtime.
    pub(crate) fn run_apart(&self, kinds: Kinds, sandbox: &Sandbox) -> Result<Plugin, Problem> {
        let mut loaded = run_all(std::slice::from_ref(self), kinds, sandbox);
        loaded
            .pop()
            .unwrap_or_else(|| unreachable!("one job has one result"))
    }
}

impl Registry {
    /// Loads every plugin of a directory, and those that grants name by path. What cannot be
    /// loaded is among the [problems](Self::problems); nothing here fails as a whole.
    ///
    /// Blocks while components compile: seconds where nothing is cached.
    pub fn load(
        directory: &Path,
        grants_by_name: &BTreeMap<String, PluginGrants>,
        kinds: Kinds,
        sandbox: &Sandbox,
    ) -> Self {
        Self::load_where(directory, grants_by_name, kinds, sandbox, |_| true)
    }

    /// Loads the plugins of a directory whose names are `wanted`, and leaves the others alone.
    pub fn load_where(
        directory: &Path,
        grants_by_name: &BTreeMap<String, PluginGrants>,
        kinds: Kinds,
        sandbox: &Sandbox,
        wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let mut problems = Vec::new();
        let places = match discovery::open(directory).and_then(|open| discovery::places(&open)) {
            Ok(places) => places,
            Err(error) => {
                problems.push(Problem {
                    plugin: "*".into(),
                    path: directory.to_owned(),
                    kind: ProblemKind::File,
                    what: format!("cannot read the plugin directory: {error}"),
                    mend: "give one with --plugins DIR, or build ours with `cargo xtask plugins`"
                        .into(),
                });
                Vec::new()
            }
        };
        let mut jobs = plan(directory, &places, grants_by_name, &mut problems);
        jobs.retain(|job| wanted(&job.alias));
        problems.retain(|problem| problem.plugin == "*" || wanted(&problem.plugin));
        let mut plugins = Vec::new();
        for loaded in run_all(&jobs, kinds, sandbox) {
            match loaded {
                Ok(plugin) => plugins.push(plugin),
                Err(problem) => problems.push(problem),
            }
        }
        let refused_tools = refuse_ambiguous_tools(&mut plugins, &mut problems);
        problems.sort_by(|a, b| (&a.plugin, &a.path).cmp(&(&b.plugin, &b.path)));
        for problem in &problems {
            tracing::debug!(%problem, "a plugin was not loaded");
        }
        Self {
            plugins: plugins.into_iter().map(Arc::new).collect(),
            jobs: jobs
                .into_iter()
                .map(|job| (job.alias.clone(), job))
                .collect(),
            kinds,
            problems,
            refused_tools,
        }
    }

    /// The kinds of plugins that it loads.
    pub(crate) fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// Every loaded plugin, with the job that loads it again.
    pub(crate) fn with_jobs(&self) -> impl Iterator<Item = (&Arc<Plugin>, &Job)> {
        self.plugins
            .iter()
            .filter_map(|plugin| Some((plugin, self.jobs.get(plugin.name())?)))
    }

    /// Loads one plugin by its path: a folder, or a bare `.wasm`. Its name is the folder's or the
    /// file's.
    pub fn load_one(
        path: &Path,
        grants: &PluginGrants,
        kinds: Kinds,
        sandbox: &Sandbox,
    ) -> Result<Arc<Plugin>, Problem> {
        let (directory, place) = discovery::place_of(path);
        let mut job = Job {
            alias: "plugin".into(),
            directory,
            place,
            grants: grants.clone(),
            is_named: true,
        };
        job.alias = job.own_name();
        job.run_apart(kinds, sandbox).map(Arc::new)
    }

    /// Identifies the plugin `name` of a directory, from its files alone: nothing of it is
    /// compiled or run, whatever it is granted.
    pub fn identify(
        directory: &Path,
        grants_by_name: &BTreeMap<String, PluginGrants>,
        name: &str,
    ) -> Result<PluginIdentity, Problem> {
        let problem = |path: &Path, kind, what: String, mend: String| Problem {
            plugin: name.to_owned(),
            path: path.to_owned(),
            kind,
            what,
            mend,
        };
        let unreadable = |path: &Path, error: &dyn std::fmt::Display| {
            problem(
                path,
                ProblemKind::File,
                format!("cannot read it: {error}"),
                "correct the path".into(),
            )
        };
        let places = discovery::open(directory)
            .and_then(|open| discovery::places(&open))
            .map_err(|error| unreadable(directory, &error))?;
        let mut problems = Vec::new();
        let jobs = plan(directory, &places, grants_by_name, &mut problems);
        let Some(job) = jobs.iter().find(|job| job.alias == name) else {
            let names: Vec<&str> = jobs.iter().map(|job| job.alias.as_str()).collect();
            let mend = match rlf_config::nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are: {}", names.join(", ")),
            };
            let known = problems.into_iter().find(|problem| problem.plugin == name);
            return Err(known.unwrap_or_else(|| {
                problem(
                    directory,
                    ProblemKind::Grants,
                    "there is no such plugin".into(),
                    mend,
                )
            }));
        };
        let open =
            discovery::open(&job.directory).map_err(|error| unreadable(&job.directory, &error))?;
        let found = discovery::read(&open, &job.directory, &job.place, &job.own_name())?;
        let component = ComponentInfo::read(&found.component).map_err(|error| {
            problem(
                &found.component_path,
                ProblemKind::Component,
                error.to_string(),
                String::new(),
            )
        })?;
        Ok(PluginIdentity {
            path: found.component_path,
            component,
            manifest: found.manifest,
        })
    }

    /// Every loaded plugin, sorted by name.
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// Every plugin that was not loaded, with the reason, sorted by name. Tools refused for their name are here too.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The plugin of this name.
    pub fn plugin(&self, name: &str) -> Option<&Arc<Plugin>> {
        self.plugins.iter().find(|plugin| plugin.name() == name)
    }

    /// Tools that are not there because several plugins offer one of that name, with which.
    pub fn refused_tools(&self) -> &BTreeMap<String, String> {
        &self.refused_tools
    }

    /// Explains why there is no plugin of this name, as the end of a sentence: what was wrong with it, or
    /// what there is instead.
    pub fn explain_missing(&self, name: &str, kind: PluginKind) -> String {
        let about = |problem: &&Problem| problem.plugin == name || problem.plugin == "*";
        if let Some(problem) = self.problems.iter().find(about) {
            return format!(", because it was not loaded: {problem}");
        }
        let names: Vec<&str> = self
            .plugins
            .iter()
            .filter(|plugin| plugin.kind() == kind)
            .map(|plugin| plugin.name())
            .collect();
        if let Some(near) = rlf_config::nearest(name, names.iter().copied()) {
            return format!("; did you mean `{near}`?");
        }
        match names.as_slice() {
            [] => format!("; no {} is loaded", kind.as_str()),
            names => format!("; there are: {}", names.join(", ")),
        }
    }

    /// Names under which there is no tool, with the reason: those that two plugins offer, and those
    /// of plugins that were not loaded (a plugin with one tool is mostly called like it).
    pub fn missing_tools(&self) -> BTreeMap<String, String> {
        let mut missing: BTreeMap<String, String> = self
            .problems
            .iter()
            .map(|problem| (problem.plugin.clone(), problem.to_string()))
            .collect();
        missing.extend(self.refused_tools.clone());
        missing
    }
}

/// Which plugin is loaded under which name with which grants. Names that two would have are
/// refused; both.
fn plan(
    directory: &Path,
    places: &[Place],
    grants_by_name: &BTreeMap<String, PluginGrants>,
    problems: &mut Vec<Problem>,
) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut governed = BTreeSet::new();
    for (alias, grants) in grants_by_name {
        let job = |directory: PathBuf, place| Job {
            alias: alias.clone(),
            directory,
            place,
            grants: grants.clone(),
            is_named: true,
        };
        if let Some(path) = &grants.path {
            if grants.enabled {
                let (directory, place) = discovery::place_of(path);
                jobs.push(job(directory, place));
            }
            continue;
        }
        let folder = grants.folder(alias);
        governed.insert(folder);
        let found: Vec<&Place> = places
            .iter()
            .filter(|place| place.name() == folder)
            .collect();
        if !grants.enabled {
            continue;
        }
        if found.is_empty() {
            let names: Vec<&str> = places.iter().map(Place::name).collect();
            let mend = match rlf_config::nearest(folder, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "the directory has no plugins".into(),
                None => format!("there are: {}", names.join(", ")),
            };
            problems.push(Problem {
                plugin: alias.clone(),
                path: directory.to_owned(),
                kind: ProblemKind::Grants,
                what: format!("[plugins.{alias}] is about `{folder}`, which is not there"),
                mend,
            });
        }
        jobs.extend(
            found
                .into_iter()
                .map(|place| job(directory.to_owned(), place.clone())),
        );
    }
    jobs.extend(
        places
            .iter()
            .filter(|place| !governed.contains(place.name()))
            .map(|place| Job {
                alias: place.name().to_owned(),
                directory: directory.to_owned(),
                place: place.clone(),
                grants: PluginGrants::default(),
                is_named: false,
            }),
    );
    jobs.sort_by(|a, b| (&a.alias, a.path()).cmp(&(&b.alias, b.path())));

    let mut by_name: BTreeMap<String, Vec<Job>> = BTreeMap::new();
    for job in jobs {
        by_name.entry(job.alias.clone()).or_default().push(job);
    }
    let mut unique = Vec::new();
    for (alias, mut jobs) in by_name {
        if jobs.len() == 1 {
            unique.append(&mut jobs);
            continue;
        }
        let paths: Vec<String> = jobs
            .iter()
            .map(|job| job.path().display().to_string())
            .collect();
        problems.extend(jobs.iter().map(|job| Problem {
            plugin: alias.clone(),
            path: job.path(),
            kind: ProblemKind::Name,
            what: format!(
                "{} plugins are called `{alias}`: {}",
                jobs.len(),
                paths.join(", ")
            ),
            mend:
                "rename one, or give one another name with `[plugins.<name>] path = \"…\"`".into(),
        }));
    }
    unique
}

/// Loads on a few threads; the results are in the order of the jobs.
fn run_all(jobs: &[Job], kinds: Kinds, sandbox: &Sandbox) -> Vec<Result<Plugin, Problem>> {
    let slots: Vec<Mutex<Option<Result<Plugin, Problem>>>> =
        jobs.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_LOADERS);
    thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else { break };
                    let loaded = job.run(kinds, sandbox);
                    *slots[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(loaded);
                }
            });
        }
    });
    slots
        .into_iter()
        .filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

/// Takes away every tool whose name another plugin's tool has, and says so once for each plugin.
fn refuse_ambiguous_tools(
    plugins: &mut [Plugin],
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, String> {
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for plugin in plugins.iter() {
        for tool in &plugin.tools {
            owners
                .entry(tool.definition.name.clone())
                .or_default()
                .push(plugin.name.clone());
        }
    }
    owners.retain(|_, owners| owners.len() > 1);
    let explain = |tool: &str, owners: &[String]| {
        let owners: Vec<String> = owners.iter().map(|owner| format!("`{owner}`")).collect();
        format!(
            "the tool `{tool}` is offered by {} plugins: {}",
            owners.len(),
            owners.join(", ")
        )
    };
    let mend = |tool: &str, plugin: &str| {
        format!("give it another name: [plugins.{plugin}] rename.{tool} = \"…\"")
    };
    for plugin in plugins {
        for tool in &plugin.tools {
            let name = tool.definition.name.as_str();
            if let Some(owners) = owners.get(name) {
                problems.push(Problem {
                    plugin: plugin.name.clone(),
                    path: plugin.path.clone(),
                    kind: ProblemKind::Name,
                    what: explain(name, owners),
                    mend: mend(&tool.own_name, &plugin.name),
                });
            }
        }
        plugin
            .tools
            .retain(|tool| !owners.contains_key(&tool.definition.name));
    }
    owners
        .iter()
        .map(|(tool, owners)| (tool.clone(), explain(tool, owners)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(places: &[Place], grants_by_name: &str) -> (Vec<(String, String)>, Vec<String>) {
        let grants_by_name = rlf_config::parse(grants_by_name, "c.toml").unwrap();
        let mut problems = Vec::new();
        let jobs = plan(Path::new("dir"), places, &grants_by_name, &mut problems);
        let jobs = jobs
            .into_iter()
            .map(|job| (job.path().display().to_string(), job.alias));
        (
            jobs.map(|(path, alias)| (alias, path)).collect(),
            problems.iter().map(Problem::to_string).collect(),
        )
    }

    fn folder(name: &str) -> Place {
        Place::Folder(name.into())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(a, b)| ((*a).into(), (*b).into()))
            .collect()
    }

    #[test]
    fn without_a_policy_a_plugin_has_its_folders_name() {
        let (jobs, problems) = planned(&[folder("a"), Place::Bare("b.wasm".into())], "");
        assert_eq!(jobs, pairs(&[("a", "dir/a"), ("b", "dir/b.wasm")]));
        assert!(problems.is_empty());
    }

    #[test]
    fn one_plugin_may_stand_under_several_names_and_then_not_under_its_own() {
        let grants_by_name = "[left]\nplugin = \"search\"\n[right]\nplugin = \"search\"\n";
        let (jobs, problems) = planned(&[folder("search"), folder("z")], grants_by_name);
        assert_eq!(
            jobs,
            pairs(&[
                ("left", "dir/search"),
                ("right", "dir/search"),
                ("z", "dir/z")
            ])
        );
        assert!(problems.is_empty());
    }

    #[test]
    fn a_plugin_that_is_switched_off_is_not_loaded() {
        let (jobs, problems) = planned(&[folder("a"), folder("b")], "[a]\nenabled = false\n");
        assert_eq!(jobs, pairs(&[("b", "dir/b")]));
        assert!(problems.is_empty());
    }

    #[test]
    fn a_policy_for_what_is_not_there_names_what_is() {
        let (jobs, problems) = planned(&[folder("search")], "[serach]\n");
        assert_eq!(jobs, pairs(&[("search", "dir/search")]));
        assert_eq!(
            problems,
            [
                "plugin `serach` (dir): [plugins.serach] is about `serach`, which is not there; did \
              you mean `search`?"
            ]
        );
    }

    #[test]
    fn two_plugins_of_one_name_are_both_refused() {
        let places = [folder("a"), Place::Bare("a.wasm".into()), folder("b")];
        let (jobs, problems) = planned(&places, "[c]\nplugin = \"b\"\n");
        assert_eq!(jobs, pairs(&[("c", "dir/b")]));
        assert_eq!(problems.len(), 2);
        assert!(
            problems[0].contains("2 plugins are called `a`: dir/a, dir/a.wasm"),
            "{}",
            problems[0]
        );
    }

    #[test]
    fn a_stranger_cannot_take_the_name_of_a_plugin_that_is_given_by_path() {
        let (jobs, problems) = planned(&[folder("judge")], "[judge]\npath = \"/opt/judge.wasm\"\n");
        assert!(jobs.is_empty());
        assert_eq!(problems.len(), 2);
    }
}
