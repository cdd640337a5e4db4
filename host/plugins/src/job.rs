//! Loading jobs: which plugin is loaded under which name. Several are loaded side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rlf_sandbox::{ComponentFile, Sandbox};

use crate::candidate::Candidate;
use crate::discovery::{self, Code, MAX_COMPONENT_BYTES, Place};
use crate::grants::PluginGrants;
use crate::kind::Kinds;
use crate::loading;
use crate::manifest::is_valid_name;
use crate::plugin::Plugin;
use crate::problem::{BUILD_SHIPPED, LoadRefusal, Problem, ProblemKind};
use crate::script::ScriptLanguage;

/// Maximum number of threads that load plugins: each may hold a component that is being compiled.
const MAX_LOADERS: usize = 4;

/// A plugin that is to be loaded under a name.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) alias: String,
    pub(crate) directory: PathBuf,
    pub(crate) place: Place,
    pub(crate) grants: PluginGrants,
    /// True if the operator's configuration mentions it.
    pub(crate) is_named: bool,
    /// The folders of the interpreters, which run plugins that are source files.
    pub(crate) interpreters: BTreeMap<ScriptLanguage, PathBuf>,
}

impl Job {
    /// The plugin at `path`: a folder, or a bare component or source file. Its name is that of the folder or the file. The
    /// first of `directories` that has the interpreter of a source file provides it.
    pub(crate) fn at(path: &Path, directories: &[PathBuf], grants: &PluginGrants) -> Self {
        let (directory, place) = discovery::locate(path);
        let mut job = Self {
            alias: "plugin".into(),
            directory,
            place,
            grants: grants.clone(),
            is_named: true,
            interpreters: (ScriptLanguage::ALL.into_iter())
                .filter_map(|language| {
                    let mut folders = (directories.iter()).map(|one| one.join(language.id()));
                    Some((language, folders.find(|folder| folder.is_dir())?))
                })
                .collect(),
        };
        job.alias = job.own_name();
        job
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.place.path(&self.directory)
    }

    /// The plugin's own name, which its manifest and the file name of its component refer to.
    pub(crate) fn own_name(&self) -> String {
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

    /// The packages that its manifest lists; none if the manifest cannot be read. Its code is not read.
    pub(crate) fn packages(&self) -> Vec<String> {
        discovery::packages(&self.directory, &self.place)
    }

    /// Reads the current files, without running anything.
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
        let found = discovery::read(&directory, &self.directory, &self.place, &own_name);
        let found = found.map_err(|problem| Problem {
            plugin: self.alias.clone(),
            ..problem
        })?;
        let whole = |file| ComponentFile::read(file, MAX_COMPONENT_BYTES);
        let (mut script, mut environment, mut bundle_hash) = (None, None, None);
        let component = match found.code {
            Code::Component(file) => whole(file),
            Code::Script(file) => {
                let interpreter = self.interpreter(file.language)?;
                script = Some(file);
                whole(interpreter)
            }
            Code::Bundle(bundle) => {
                script = bundle.contents.script;
                environment = bundle.contents.environment;
                let read = ComponentFile::read_before(bundle.file, &bundle.attached);
                read.map(|(component, hash)| {
                    bundle_hash = Some(hash);
                    component
                })
            }
        };
        Ok(Candidate {
            component: component
                .map_err(|error| LoadRefusal::from(&error).about(&self.alias, &found.code_path))?,
            path: found.path,
            manifest: found.manifest,
            code_path: found.code_path,
            script,
            environment,
            bundle_hash,
        })
    }

    /// Opens the component of the interpreter of `language`.
    pub(crate) fn interpreter(&self, language: ScriptLanguage) -> Result<File, Problem> {
        let problem = |what: String, mend: &str| Problem {
            plugin: self.alias.clone(),
            path: self.path(),
            kind: ProblemKind::File,
            what: format!("the {language} interpreter, which runs it, cannot be used: {what}"),
            mend: mend.to_owned(),
        };
        let Some(folder) = self.interpreters.get(&language) else {
            return Err(problem("there is none".to_owned(), BUILD_SHIPPED));
        };
        let directory = discovery::open(folder)
            .map_err(|error| problem(error.to_string(), "correct the path"))?;
        let place = Place::Folder(".".to_owned());
        let found = discovery::read(&directory, folder, &place, language.id());
        match found.map(|found| found.code) {
            Ok(Code::Component(component)) => Ok(component),
            Ok(Code::Script(_) | Code::Bundle(_)) => {
                Err(problem("it is no interpreter".to_owned(), BUILD_SHIPPED))
            }
            Err(error) => Err(problem(error.what, &error.mend)),
        }
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
    /// Runs on a thread of its own, because the caller's thread may belong to an async runtime.
    pub(crate) fn run_on_own_thread(
        &self,
        kinds: Kinds,
        sandbox: &Sandbox,
    ) -> Result<Plugin, Problem> {
        let mut loaded = run_all(std::slice::from_ref(self), kinds, sandbox);
        loaded
            .pop()
            .unwrap_or_else(|| unreachable!("one job has one result"))
    }
}

/// Decides which plugin is loaded under which name with which grants. If two plugins would have the same name, both are
/// refused.
pub(crate) fn plan(
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
            interpreters: BTreeMap::new(),
        };
        if let Some(path) = &grants.path {
            if grants.enabled {
                let (directory, place) = discovery::locate(path);
                jobs.push(job(directory, place));
            }
            // A plugin of that name in the directory gives way.
            governed.insert(alias.as_str());
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
                None => BUILD_SHIPPED.to_owned(),
            };
            problems.push(Problem {
                plugin: alias.clone(),
                path: directory.to_owned(),
                kind: ProblemKind::Grants,
                what: if folder == alias {
                    "this directory has no such plugin".to_owned()
                } else {
                    format!("it needs the plugin `{folder}`, which this directory does not have")
                },
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
                interpreters: BTreeMap::new(),
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

/// Loads the plugins on a few threads. The results are in the order of the jobs.
pub(crate) fn run_all(
    jobs: &[Job],
    kinds: Kinds,
    sandbox: &Sandbox,
) -> Vec<Result<Plugin, Problem>> {
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
    fn without_grants_a_plugin_has_its_folders_name() {
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
    fn grants_for_what_is_not_there_name_what_is() {
        let (jobs, problems) = planned(&[folder("search")], "[serach]\n");
        assert_eq!(jobs, pairs(&[("search", "dir/search")]));
        assert_eq!(
            problems,
            ["plugin `serach` (dir): this directory has no such plugin; did you mean `search`?"]
        );
    }

    #[test]
    fn a_plugin_that_was_not_built_is_named_with_the_command_that_builds_it() {
        let (_, problems) = planned(&[folder("search")], "[Gym]\nplugin = \"python\"\n");
        assert_eq!(
            problems,
            [
                "plugin `Gym` (dir): it needs the plugin `python`, which this directory does not have; \
                 `cargo xtask plugins` builds those that ship with rlf-host"
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
        assert_eq!(jobs, pairs(&[("judge", "/opt/judge.wasm")]));
        assert!(problems.is_empty());
    }
}
