//! The identity of a run: its settings, plugins, task files and machine, and their differences when it resumes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::RunError;
use super::json_file::{read_json, write_json};
use super::layout::{config_path, plugins_path, tasks_path};
use super::machine::Machine;

/// Everything that a new run writes into its folder to be recognised. A resumed run must have the same configuration
/// (apart from `output` and `workers`), plugins and task files. Another machine causes a warning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunSpec {
    /// The resolved configuration as TOML, every default written out.
    pub config_toml: String,
    /// Hashes of the components, by alias, and of the data bound to them, by a name of the caller's
    /// choice.
    pub plugins: BTreeMap<String, String>,
    /// The task files, by the key of the configuration that names them, such as `tasks.train`.
    pub tasks: BTreeMap<String, TaskFile>,
    /// The binary and the machine.
    pub machine: Machine,
    /// The files that make a checkpoint loadable, by name: `tokenizer.json` and its configuration.
    pub assets: Vec<(String, Vec<u8>)>,
}

/// A task file and its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFile {
    /// Its path when the run began. A file that was moved is still the same.
    pub path: PathBuf,
    /// Its content, as [`file_digest`](super::file_digest) gives it.
    pub blake3: String,
}

impl RunSpec {
    /// Writes the hashes of plugins and task files into the folder of a run.
    pub(super) fn write_hashes(&self, run: &Path) -> Result<(), RunError> {
        write_json(&plugins_path(run), &self.plugins)?;
        write_json(&tasks_path(run), &self.tasks)
    }
}

/// The differences between the plugins and task files of the run in `run` and these ones, one sentence each. A task file
/// that only one of the two has is a difference of their configurations.
pub fn content_changes(
    run: &Path,
    plugins: &BTreeMap<String, String>,
    tasks: &BTreeMap<String, TaskFile>,
) -> Result<Vec<String>, RunError> {
    let mut changes = differences("plugin ", &read_json(&plugins_path(run))?, plugins);
    if has_task_hashes(run) {
        let before: BTreeMap<String, TaskFile> = read_json(&tasks_path(run))?;
        for (key, now) in tasks {
            if let Some(before) = before.get(key).filter(|file| file.blake3 != now.blake3) {
                changes.push(format!(
                    "{key}: the content of {} has changed: BLAKE3 was {}, is {}",
                    now.path.display(),
                    before.blake3,
                    now.blake3
                ));
            }
        }
    }
    Ok(changes)
}

/// True if the run in `run` has hashes of its task files. Earlier versions wrote none.
pub(super) fn has_task_hashes(run: &Path) -> bool {
    tasks_path(run).exists()
}

/// The differences between the settings, plugins and task files of the run in `path` and those of `spec`, one
/// sentence each.
pub(super) fn changes(path: &Path, spec: &RunSpec) -> Result<Vec<String>, RunError> {
    let file = config_path(path);
    let before = rlf_files::read_text(&file, rlf_files::MAX_TEXT_BYTES)
        .map_err(|e| RunError::io("read", &file, e))?;
    let settings = |text: &str| -> Result<BTreeMap<String, String>, RunError> {
        let mut table: toml::Table =
            text.parse()
                .map_err(|e: toml::de::Error| RunError::UnreadableIdentity {
                    path: file.clone(),
                    reason: e.to_string(),
                })?;
        // A run that was moved is still the same run.
        table.remove("output");
        // The number of threads changes no result.
        table.remove("workers");
        if let Some(toml::Value::Table(rl)) = table.get_mut("rl")
            && let Some(share) = rl.remove("max_dropped_groups")
        {
            // Its name in earlier versions.
            rl.insert("max_dropped_share".into(), share);
        }
        let mut flat = BTreeMap::new();
        flatten("", &toml::Value::Table(table), &mut flat);
        Ok(flat)
    };
    let mut changes = differences("", &settings(&before)?, &settings(&spec.config_toml)?);
    changes.extend(content_changes(path, &spec.plugins, &spec.tasks)?);
    Ok(changes)
}

fn flatten(key: &str, value: &toml::Value, flat: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                let key = if key.is_empty() {
                    name.clone()
                } else {
                    format!("{key}.{name}")
                };
                flatten(&key, value, flat);
            }
        }
        value => {
            flat.insert(key.to_owned(), value.to_string());
        }
    }
}

fn differences(
    what: &str,
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Vec<String> {
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    keys.into_iter()
        .filter_map(|key| match (before.get(key), now.get(key)) {
            (Some(before), Some(now)) if before == now => None,
            (Some(before), Some(now)) => Some(format!("{what}{key}: was {before}, is {now}")),
            (Some(before), None) => Some(format!("{what}{key}: was {before}, is gone")),
            (None, now) => Some(format!("{what}{key}: is new, {}", now.map_or("", |v| v))),
        })
        .collect()
}
