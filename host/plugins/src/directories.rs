//! Several plugin directories at once: decides which plugin and which tool of a name wins.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::discovery::{self, Place};
use crate::grants::PluginGrants;
use crate::job::{Job, assign_names};
use crate::plugin::Plugin;
use crate::problem::Problem;
use crate::script::ScriptLanguage;

/// The plugins of several directories.
pub(crate) struct PluginDirectories {
    /// The first directory.
    pub(crate) first: PathBuf,
    places: Vec<Place>,
}

impl PluginDirectories {
    /// Looks for plugins in directories. A plugin of a later directory is left out if an earlier one has its name, or
    /// if the configuration names another path for it.
    pub(crate) fn find(
        directories: &[PathBuf],
        grants_by_name: &BTreeMap<String, PluginGrants>,
        mut unreadable: impl FnMut(&Path, io::Error),
    ) -> Self {
        let mut places: Vec<Place> = Vec::new();
        for (index, directory) in directories.iter().enumerate() {
            let mut found = discovery::places(directory).unwrap_or_else(|error| {
                unreadable(directory, error);
                Vec::new()
            });
            if index > 0 {
                found.retain(|place| {
                    let grants = grants_by_name.get(&place.name);
                    let is_elsewhere = grants.is_some_and(|grants| grants.path.is_some());
                    !is_elsewhere && places.iter().all(|earlier| earlier.name != place.name)
                });
            }
            places.extend(found);
        }
        Self {
            first: directories.first().cloned().unwrap_or_default(),
            places,
        }
    }

    /// The loading jobs of the plugins, as [`assign_names`] makes them, each with the interpreters for source files.
    pub(crate) fn jobs(
        &self,
        grants_by_name: &BTreeMap<String, PluginGrants>,
        problems: &mut Vec<Problem>,
    ) -> Vec<Job> {
        let interpreters: BTreeMap<ScriptLanguage, PathBuf> = (ScriptLanguage::ALL.into_iter())
            .filter_map(|language| Some((language, self.interpreter(language, grants_by_name)?)))
            .collect();
        let mut jobs = assign_names(&self.first, &self.places, grants_by_name, problems);
        for job in &mut jobs {
            job.interpreters.clone_from(&interpreters);
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
        let place = self.places.iter().find(|place| place.name == name)?;
        Some(place.path())
    }
}

/// Removes tools of later directories whose names are taken by tools of earlier directories.
pub(crate) fn remove_shadowed_tools(plugins: &mut [Plugin], jobs: &[Job], directories: &[PathBuf]) {
    let rank = |plugin: &Plugin| {
        let job = jobs.iter().find(|job| job.alias == plugin.name);
        let directory = |job: &Job| {
            directories
                .iter()
                .position(|one| *one == job.place.directory)
        };
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
            let jobs = places.jobs(&grants_by_name, &mut problems).into_iter();
            let jobs = jobs
                .map(|job| (job.alias.clone(), job.place.path()))
                .collect();
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
