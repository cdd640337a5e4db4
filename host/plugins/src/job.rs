//! Loading jobs: which plugin is loaded under which name with which grants. Several are loaded side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rlf_sandbox::{ComponentFile, Sandbox};

use crate::candidate::Candidate;
use crate::discovery::Place;
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
        let place = Place::at(path);
        Self {
            alias: place.name.clone(),
            place,
            grants: grants.clone(),
            is_named: true,
            interpreters: (ScriptLanguage::ALL.into_iter())
                .filter_map(|language| {
                    let mut folders = (directories.iter()).map(|one| one.join(language.id()));
                    Some((language, folders.find(|folder| folder.is_dir())?))
                })
                .collect(),
        }
    }

    /// The path of what is its own: of an environment in Python its files, and not the interpreter.
    fn source(&self) -> PathBuf {
        let environment = self.grants.environment.as_ref();
        let servers = environment.and_then(|environment| environment.servers.clone());
        servers.unwrap_or_else(|| self.place.path())
    }

    /// Reads the current files, without running anything.
    pub(crate) fn candidate(&self) -> Result<Candidate, Problem> {
        if !is_valid_name(&self.alias) {
            let what = format!("{:?} cannot name a plugin", self.alias);
            let mend = "write 1 to 64 of a-z A-Z 0-9 _ -";
            let refusal = LoadRefusal::new(ProblemKind::Name, what, mend);
            return Err(refusal.about(&self.alias, &self.place.path()));
        }
        let interpreter = |language| self.interpreter(language);
        Candidate::read(&self.place, &self.alias, interpreter)
    }

    /// Reads the component of the interpreter of `language`.
    pub(crate) fn interpreter(
        &self,
        language: ScriptLanguage,
    ) -> Result<ComponentFile, LoadRefusal> {
        let refused = |what: &str, mend: &str| {
            let what = format!("the {language} interpreter, which runs it, cannot be used: {what}");
            LoadRefusal::new(ProblemKind::File, what, mend)
        };
        let Some(folder) = self.interpreters.get(&language) else {
            return Err(refused("there is none", BUILD_SHIPPED));
        };
        let place = Place {
            name: language.id().to_owned(),
            ..Place::at(folder)
        };
        let wrong = "it is not an interpreter";
        let is_script = |_| Err(LoadRefusal::new(ProblemKind::File, wrong, BUILD_SHIPPED));
        match Candidate::read(&place, language.id(), is_script) {
            Ok(found) if found.bundle_hash.is_none() => Ok(found.component),
            Ok(_) => Err(refused(wrong, BUILD_SHIPPED)),
            Err(problem) => Err(refused(&problem.what, &problem.mend)),
        }
    }

    fn run(&self, kinds: Kinds, sandbox: &Sandbox) -> Result<Plugin, Problem> {
        let loaded = loading::load(&self.alias, self.candidate()?, &self.grants, kinds, sandbox);
        loaded.map(|mut plugin| {
            plugin.is_named = self.is_named;
            plugin
        })
    }

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
/// refused. `directory` is the path to show for a plugin that is not there.
pub(crate) fn assign_names(
    directory: &Path,
    places: &[Place],
    grants_by_name: &BTreeMap<String, PluginGrants>,
    problems: &mut Vec<Problem>,
) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut governed = BTreeSet::new();
    for (alias, grants) in grants_by_name {
        let job = |place| Job {
            alias: alias.clone(),
            place,
            grants: grants.clone(),
            is_named: true,
            interpreters: BTreeMap::new(),
        };
        if let Some(path) = &grants.path {
            if grants.enabled {
                jobs.push(job(Place::at(path)));
            }
            // A plugin of that name in the directory gives way.
            governed.insert(alias.as_str());
            continue;
        }
        let folder = grants.folder(alias);
        governed.insert(folder);
        if !grants.enabled {
            continue;
        }
        let found: Vec<&Place> = places.iter().filter(|place| place.name == folder).collect();
        if found.is_empty() {
            let names = places.iter().map(|place| place.name.as_str());
            let (kind, mend) = match rlf_config::nearest(folder, names) {
                Some(near) => (ProblemKind::Misspelt, format!("did you mean `{near}`?")),
                None => (ProblemKind::Grants, BUILD_SHIPPED.to_owned()),
            };
            let what = if folder == alias {
                "this directory has no such plugin".to_owned()
            } else {
                format!("it needs the plugin `{folder}`, which this directory does not have")
            };
            let refusal = LoadRefusal::new(kind, what, mend);
            problems.push(refusal.about(alias, directory));
        }
        jobs.extend(found.into_iter().cloned().map(job));
    }
    jobs.extend(
        places
            .iter()
            .filter(|place| !governed.contains(place.name.as_str()))
            .map(|place| Job {
                alias: place.name.clone(),
                place: place.clone(),
                grants: PluginGrants::default(),
                is_named: false,
                interpreters: BTreeMap::new(),
            }),
    );
    jobs.sort_by(|a, b| (&a.alias, a.place.path()).cmp(&(&b.alias, b.place.path())));

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
        let paths: Vec<PathBuf> = jobs.iter().map(Job::source).collect();
        let shown: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let what = format!(
            "{} plugins are called `{alias}`: {}",
            paths.len(),
            shown.join(", ")
        );
        let mend = "rename one, or give one another name with `[plugins.<name>] path = \"…\"`";
        let refusal = LoadRefusal::new(ProblemKind::Name, what, mend);
        problems.extend((paths.iter()).map(|path| refusal.clone().about(&alias, path)));
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
    use crate::discovery::Entry;

    fn planned(places: &[Place], grants_by_name: &str) -> (Vec<(String, String)>, Vec<String>) {
        let grants_by_name = rlf_config::parse(grants_by_name, "c.toml").unwrap();
        let mut problems = Vec::new();
        let jobs = assign_names(Path::new("dir"), places, &grants_by_name, &mut problems);
        let jobs = jobs
            .into_iter()
            .map(|job| (job.place.path().display().to_string(), job.alias));
        (
            jobs.map(|(path, alias)| (alias, path)).collect(),
            problems.iter().map(Problem::to_string).collect(),
        )
    }

    fn folder(name: &str) -> Place {
        place(name, Entry::Folder(name.into()))
    }

    fn file(name: &str) -> Place {
        place(name, Entry::File(format!("{name}.wasm")))
    }

    fn place(name: &str, entry: Entry) -> Place {
        Place {
            name: name.into(),
            directory: "dir".into(),
            entry,
        }
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(a, b)| ((*a).into(), (*b).into()))
            .collect()
    }

    #[test]
    fn without_grants_a_plugin_has_its_folders_name() {
        let (jobs, problems) = planned(&[folder("a"), file("b")], "");
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
        let places = [folder("a"), file("a"), folder("b")];
        let (jobs, problems) = planned(&places, "[c]\nplugin = \"b\"\n");
        assert_eq!(jobs, pairs(&[("c", "dir/b")]));
        assert_eq!(problems.len(), 2);
        assert!(
            problems[0].contains("2 plugins are called `a`: dir/a, dir/a.wasm"),
            "{}",
            problems[0]
        );
        let house = "[house]\nplugin = \"python\"\nenvironment.servers = \"rooms\"\n";
        let (_, problems) = planned(&[folder("python"), file("house")], house);
        assert!(
            problems[0].contains("2 plugins are called `house`: dir/house.wasm, rooms"),
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
