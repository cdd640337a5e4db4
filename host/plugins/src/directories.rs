//! Several plugin directories at once: decides which plugin and which tool of a name wins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::discovery::{self, Place};
use crate::grants::PluginGrants;
use crate::job::{Job, plan};
use crate::plugin::Plugin;
use crate::problem::Problem;
use crate::script::ScriptLanguage;

/// The plugins of several directories.
pub(crate) struct PluginDirectories {
    /// The first directory.
    pub(crate) directory: PathBuf,
    all: Vec<Place>,
    /// The directory of each plugin that comes from a later directory, by the plugin's name.
    later: BTreeMap<String, PathBuf>,
}

impl PluginDirectories {
    /// Looks for plugins in directories. A plugin of a later directory is left out if an earlier one has its name, or
    /// if the configuration names another path for it.
    pub(crate) fn find(
        directories: &[PathBuf],
        grants_by_name: &BTreeMap<String, PluginGrants>,
        mut unreadable: impl FnMut(&Path, std::io::Error),
    ) -> Self {
        let mut found = Self {
            directory: directories.first().cloned().unwrap_or_default(),
            all: Vec::new(),
            later: BTreeMap::new(),
        };
        for (index, directory) in directories.iter().enumerate() {
            let opened = discovery::open(directory).and_then(|open| discovery::places(&open));
            let mut places = opened.unwrap_or_else(|error| {
                unreadable(directory, error);
                Vec::new()
            });
            if index > 0 {
                let is_elsewhere = |name: &str| {
                    grants_by_name
                        .get(name)
                        .is_some_and(|grants| grants.path.is_some())
                };
                let is_earlier = |name: &str| found.all.iter().any(|place| place.name() == name);
                places.retain(|place| !is_elsewhere(place.name()) && !is_earlier(place.name()));
                let named = places.iter().map(|place| place.name().to_owned());
                (found.later).extend(named.map(|name| (name, directory.clone())));
            }
            found.all.extend(places);
        }
        found
    }

    /// The loading jobs of the plugins, as [`plan`] makes them.
    pub(crate) fn plan(
        &self,
        grants_by_name: &BTreeMap<String, PluginGrants>,
        problems: &mut Vec<Problem>,
    ) -> Vec<Job> {
        let mut jobs = plan(&self.directory, &self.all, grants_by_name, problems);
        let interpreters: BTreeMap<ScriptLanguage, PathBuf> = (ScriptLanguage::ALL.into_iter())
            .filter_map(|language| Some((language, self.interpreter(language, grants_by_name)?)))
            .collect();
        for job in &mut jobs {
            job.interpreters.clone_from(&interpreters);
        }
        for job in jobs.iter_mut().filter(|job| job.grants.path.is_none()) {
            if let Some(later) = self.later.get(job.place.name()) {
                job.directory.clone_from(later);
            }
        }
        jobs
    }

    /// The folder of a language's interpreter: the one that the configuration names, by its path or by its name, or the first
    /// of the directories.
    fn interpreter(
        &self,
        language: ScriptLanguage,
        grants_by_name: &BTreeMap<String, PluginGrants>,
    ) -> Option<PathBuf> {
        let configured = grants_by_name.get(language.id());
        if let Some(path) = configured.and_then(|grants| grants.path.clone()) {
            return Some(path);
        }
        let plugin = configured.and_then(|grants| grants.plugin.as_deref());
        let name = plugin.unwrap_or(language.id());
        let place = (self.all.iter()).find(|place| place.name() == name)?;
        let directory = self.later.get(name).unwrap_or(&self.directory);
        Some(place.path(directory))
    }
}

/// Removes tools of later directories whose names are taken by tools of earlier directories.
pub(crate) fn remove_shadowed_tools(plugins: &mut [Plugin], jobs: &[Job], directories: &[PathBuf]) {
    let rank = |plugin: &Plugin| {
        let job = jobs.iter().find(|job| job.alias == plugin.name);
        let directory = |job: &Job| directories.iter().position(|one| *one == job.directory);
        job.and_then(directory).unwrap_or_default()
    };
    let mut earliest: BTreeMap<String, usize> = BTreeMap::new();
    for plugin in plugins.iter() {
        for tool in &plugin.tools {
            let first = earliest.entry(tool.definition.name.clone());
            let first = first.or_insert(usize::MAX);
            *first = rank(plugin).min(*first);
        }
    }
    for plugin in plugins {
        let own = rank(plugin);
        plugin
            .tools
            .retain(|tool| earliest.get(&tool.definition.name) == Some(&own));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

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

    #[test]
    fn a_plugin_of_an_earlier_directory_wins_over_one_of_its_name() {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let directories = folders.each_ref().map(|folder| folder.path().to_owned());
        for (directory, names) in directories.iter().zip([["a", "b"], ["b", "c"]]) {
            for name in names {
                let folder = directory.join(name);
                std::fs::create_dir(&folder).unwrap();
                std::fs::write(folder.join("plugin.toml"), "").unwrap();
            }
        }
        let planned = |grants_by_name: &str| -> Vec<(String, PathBuf)> {
            let grants_by_name = rlf_config::parse(grants_by_name, "c.toml").unwrap();
            let places = PluginDirectories::find(&directories, &grants_by_name, |_, error| {
                panic!("{error}")
            });
            let mut problems = Vec::new();
            let jobs = places.plan(&grants_by_name, &mut problems).into_iter();
            let jobs = jobs.map(|job| (job.alias.clone(), job.path())).collect();
            assert_eq!(problems, []);
            jobs
        };
        let [first, second] = &directories;
        let at = |alias: &str, path: PathBuf| (alias.to_owned(), path);
        assert_eq!(
            planned(""),
            [
                at("a", first.join("a")),
                at("b", first.join("b")),
                at("c", second.join("c"))
            ]
        );
        // A configuration that names another path for a plugin wins as well.
        assert_eq!(
            planned("[c]\npath = \"/elsewhere/c\"\n[b]\nenabled = false\n")[1..],
            [at("c", "/elsewhere/c".into())]
        );
    }
}
