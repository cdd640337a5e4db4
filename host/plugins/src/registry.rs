//! All plugins of a run: found, admitted and loaded side by side. Their order does not depend on which finished loading
//! first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rlf_sandbox::{ComponentInfo, Sandbox};

use crate::candidate;
use crate::directories::{PluginDirectories, remove_shadowed_tools};
use crate::discovery;
use crate::files::PluginFiles;
use crate::grants::PluginGrants;
use crate::job::{Job, run_all};
use crate::kind::Kinds;
use crate::manifest::{PluginKind, PluginManifest};
use crate::plugin::Plugin;
use crate::problem::{BUILD_SHIPPED, LoadRefusal, Problem, ProblemKind};

/// The cure for a directory that cannot be read.
const NAME_DIRECTORY: &str =
    "give one with --plugins DIR, or build ours with `cargo xtask plugins`";

/// The plugins of a run, and the problems of those that were not loaded. The default has none.
#[derive(Default)]
pub struct Registry {
    plugins: Vec<Arc<Plugin>>,
    /// The source of each plugin, by its name.
    jobs: BTreeMap<String, Job>,
    /// The kinds, for loading plugins again that were replaced on disk.
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

/// A plugin as its files describe it. None of its code has run.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginOnDisk {
    /// Its files.
    pub files: PluginFiles,
    /// Its kind: what its manifest says, or else what its code is.
    pub kind: Option<PluginKind>,
    /// The hash of its code, which grants are bound to, and the imports and exports of the component that runs it.
    pub component: ComponentInfo,
    /// The author's manifest.
    pub manifest: PluginManifest,
}

impl Registry {
    /// Loads every plugin of a directory, and those that grants name by path. Plugins that cannot be loaded are among
    /// the [problems](Self::problems). Loading never fails as a whole.
    ///
    /// Blocks while components compile, which takes seconds if nothing is cached.
    pub fn load(
        directory: &Path,
        grants_by_name: &BTreeMap<String, PluginGrants>,
        kinds: Kinds,
        sandbox: &Sandbox,
    ) -> Self {
        Self::load_where(directory, grants_by_name, kinds, sandbox, |_| true)
    }

    /// Loads the plugins of a directory for whose names `wanted` is true, and ignores the others.
    pub fn load_where(
        directory: &Path,
        grants_by_name: &BTreeMap<String, PluginGrants>,
        kinds: Kinds,
        sandbox: &Sandbox,
        wanted: impl Fn(&str) -> bool,
    ) -> Self {
        Self::load_from(
            &[directory.to_owned()],
            grants_by_name,
            kinds,
            sandbox,
            wanted,
        )
    }

    /// Loads the plugins of several directories for whose names `wanted` is true. Earlier directories win: if two
    /// plugins have the same name, only the earlier one is loaded, and a tool with the name of an earlier tool is left
    /// out.
    pub fn load_from(
        directories: &[PathBuf],
        grants_by_name: &BTreeMap<String, PluginGrants>,
        kinds: Kinds,
        sandbox: &Sandbox,
        wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let mut problems = Vec::new();
        let places = PluginDirectories::find(directories, grants_by_name, |directory, error| {
            problems.push(Problem {
                plugin: None,
                path: directory.to_owned(),
                kind: ProblemKind::File,
                what: format!("cannot read the plugin directory: {error}"),
                mend: NAME_DIRECTORY.into(),
            });
        });
        let mut jobs = places.jobs(grants_by_name, &mut problems);
        jobs.retain(|job| wanted(&job.alias));
        problems.retain(|problem| problem.plugin.as_deref().is_none_or(&wanted));
        let mut plugins = Vec::new();
        for loaded in run_all(&jobs, kinds, sandbox) {
            match loaded {
                Ok(plugin) => plugins.push(plugin),
                Err(problem) => problems.push(problem),
            }
        }
        remove_shadowed_tools(&mut plugins, &jobs, directories);
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

    /// The kinds of plugins that this registry loads.
    pub(crate) fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// Every loaded plugin, with the job that can load it again.
    pub(crate) fn with_jobs(&self) -> impl Iterator<Item = (&Arc<Plugin>, &Job)> {
        self.plugins
            .iter()
            .filter_map(|plugin| Some((plugin, self.jobs.get(plugin.name())?)))
    }

    /// True if a directory holds anything that can be a plugin.
    pub fn finds_any(directory: &Path) -> io::Result<bool> {
        Ok(!discovery::places(directory)?.is_empty())
    }

    /// Loads one plugin by its path: a folder, or a bare component or source file. Its name is that of the folder or the
    /// file. The first of `directories` that has the interpreter of a source file provides it.
    pub fn load_one(
        path: &Path,
        directories: &[PathBuf],
        grants: &PluginGrants,
        kinds: Kinds,
        sandbox: &Sandbox,
    ) -> Result<Arc<Plugin>, Problem> {
        let job = Job::at(path, directories, grants);
        job.run_on_own_thread(kinds, sandbox).map(Arc::new)
    }

    /// Describes the plugin `name` of several directories from its files alone. Its code is neither compiled nor run,
    /// whatever it is granted.
    pub fn identify(
        directories: &[PathBuf],
        grants_by_name: &BTreeMap<String, PluginGrants>,
        name: &str,
    ) -> Result<PluginOnDisk, Problem> {
        let mut unreadable = None;
        let places = PluginDirectories::find(directories, grants_by_name, |directory, error| {
            unreadable.get_or_insert_with(|| {
                let what = format!("cannot read it: {error}");
                let refusal = LoadRefusal::new(ProblemKind::File, what, NAME_DIRECTORY);
                refusal.about(name, directory)
            });
        });
        if let Some(problem) = unreadable {
            return Err(problem);
        }
        let mut problems = Vec::new();
        let jobs = places.jobs(grants_by_name, &mut problems);
        let Some(job) = jobs.iter().find(|job| job.alias == name) else {
            let known = problems.into_iter().find(|problem| problem.concerns(name));
            return Err(known.unwrap_or_else(|| {
                let names: Vec<&str> = jobs.iter().map(|job| job.alias.as_str()).collect();
                let mend = match rlf_config::nearest(name, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are: {}", names.join(", ")),
                };
                let what = "there is no such plugin";
                LoadRefusal::new(ProblemKind::Grants, what, mend).about(name, &places.first)
            }));
        };
        let found = job.candidate()?;
        Ok(PluginOnDisk {
            kind: found.kind(),
            component: found.info(),
            files: found.files,
            manifest: found.contents.manifest,
        })
    }

    /// The names of the plugins whose manifests list any of these packages. Nothing is loaded.
    pub fn with_packages(
        directories: &[PathBuf],
        grants_by_name: &BTreeMap<String, PluginGrants>,
        packages: &BTreeSet<&str>,
    ) -> BTreeSet<String> {
        if packages.is_empty() {
            return BTreeSet::new();
        }
        let places = PluginDirectories::find(directories, grants_by_name, |_, _| {});
        let jobs = places.jobs(grants_by_name, &mut Vec::new()).into_iter();
        jobs.filter(|job| {
            let mut listed = candidate::packages(&job.place).into_iter();
            listed.any(|package| packages.contains(package.as_str()))
        })
        .map(|job| job.alias)
        .collect()
    }

    /// Every loaded plugin, sorted by name.
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// Every plugin that was not loaded, with the reason, sorted by name. Tools refused for their name are here too.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The first problem that explains why the plugin of this name is missing.
    pub fn problem_of(&self, name: &str) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.concerns(name))
    }

    /// The plugin of this name.
    pub fn plugin(&self, name: &str) -> Option<&Arc<Plugin>> {
        self.plugins.iter().find(|plugin| plugin.name() == name)
    }

    /// Tools that were refused because several plugins offer one of that name, with the names of those plugins.
    pub fn refused_tools(&self) -> &BTreeMap<String, String> {
        &self.refused_tools
    }

    /// Explains, as the end of a sentence, why there is no plugin of this name: its problem, or the names that exist.
    pub fn explain_missing(&self, name: &str, kind: PluginKind) -> String {
        if let Some(problem) = self.problem_of(name) {
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
            [] => format!("; no {} is loaded; {BUILD_SHIPPED}", kind.as_str()),
            names => format!("; there are: {}; {BUILD_SHIPPED}", names.join(", ")),
        }
    }

    /// Names of missing tools, with the reason: tools that two plugins offer, and plugins that were not loaded (a
    /// plugin with one tool usually has the tool's name).
    pub fn missing_tools(&self) -> BTreeMap<String, String> {
        let mut missing: BTreeMap<String, String> = self
            .problems
            .iter()
            .filter_map(|problem| Some((problem.plugin.clone()?, problem.to_string())))
            .collect();
        missing.extend(self.refused_tools.clone());
        missing
    }
}

/// Removes every tool whose name another plugin's tool has, and reports it once for each plugin.
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
                let mend = mend(&tool.own_name, &plugin.name);
                let refusal = LoadRefusal::new(ProblemKind::Name, explain(name, owners), mend);
                problems.push(refusal.about(&plugin.name, plugin.path()));
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

    #[test]
    fn plugins_are_found_by_the_packages_that_their_manifests_list() {
        let folder = tempfile::tempdir().unwrap();
        for (name, manifest) in [
            ("python", ""),
            ("science", "packages = [\"numpy\", \"pandas\"]"),
            ("broken", "packages = 1"),
        ] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("plugin.toml"), manifest).unwrap();
        }
        let found = |packages: &[&str]| -> Vec<String> {
            let packages = packages.iter().copied().collect();
            let directories = [folder.path().to_owned()];
            let found = Registry::with_packages(&directories, &BTreeMap::new(), &packages);
            found.into_iter().collect()
        };
        assert_eq!(found(&["os", "numpy"]), ["science"]);
        assert_eq!(found(&["os"]), [""; 0]);
    }
}
