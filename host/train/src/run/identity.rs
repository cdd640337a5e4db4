//! The identity of a run: its settings, plugins, inputs and machine, and their differences when it resumes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::digests::{file_digest, folder_digest};
use super::error::RunError;
use super::json_file::{read_json, write_json};
use super::layout::{config_path, inputs_path, plugins_path};
use super::machine::Machine;
use crate::phase::Phase;

/// Everything that a new run writes into its folder to be recognised. A resumed run must have the same configuration
/// (apart from `output` and `workers`), plugins and inputs. Another machine causes a warning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunSpec {
    /// The resolved configuration as TOML, every default written out.
    pub config_toml: String,
    /// Hashes of the components, by alias, and of the data bound to them, by a name of the caller's
    /// choice.
    pub plugins: BTreeMap<String, String>,
    /// The files and folders that the run reads, by the key of the configuration that names them, such as `tasks.train`.
    pub inputs: BTreeMap<String, Input>,
    /// The binary and the machine.
    pub machine: Machine,
    /// The files that make a checkpoint loadable, by name: `tokenizer.json` and its configuration.
    pub assets: Vec<(String, Vec<u8>)>,
}

/// A file or a folder that a run reads: tasks, or the weights of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Its path when the run began, for messages.
    pub path: PathBuf,
    /// The digest of its content, or a note that it has none.
    pub blake3: String,
}

impl Input {
    /// The input at `path`, as it is now. Of a folder, the files that make a checkpoint or adapters count: weights,
    /// settings, tokenizer and template. What comes from a pipe has no digest, because it cannot be read twice.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let blake3 = if path.is_dir() {
            folder_digest(path)?
        } else if path.is_file() {
            file_digest(path).map_err(|e| RunError::io("read", path, e))?
        } else {
            "unknown, because it is no regular file".to_owned()
        };
        let path = path.to_owned();
        Ok(Self { path, blake3 })
    }
}

impl RunSpec {
    /// Writes the hashes of plugins and inputs into the folder of a run.
    pub(super) fn write_hashes(&self, run: &Path) -> Result<(), RunError> {
        write_json(&plugins_path(run), &self.plugins)?;
        write_json(&inputs_path(run), &self.inputs)
    }
}

/// The differences between the plugins and inputs of the run in `run` and these ones, one sentence each. An input that
/// only one of the two has is a difference of their configurations.
pub fn content_changes(
    run: &Path,
    plugins: &BTreeMap<String, String>,
    inputs: &BTreeMap<String, Input>,
) -> Result<Vec<String>, RunError> {
    let mut changes = differences("plugin ", &read_json(&plugins_path(run))?, plugins);
    if has_input_hashes(run) {
        let before: BTreeMap<String, Input> = read_json(&inputs_path(run))?;
        for (key, now) in inputs {
            if let Some(before) = before.get(key).filter(|input| input.blake3 != now.blake3) {
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

/// True if the run in `run` has hashes of its inputs. Earlier versions wrote none, or only those of task files.
pub(super) fn has_input_hashes(run: &Path) -> bool {
    inputs_path(run).exists()
}

/// The differences between the settings, plugins and inputs of the run in `path` and those of `spec`, one
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
        for phase in Phase::ALL {
            let Some(toml::Value::Table(phase)) = table.get_mut(phase.as_str()) else {
                continue;
            };
            // Layers that are computed again have the same results.
            phase.remove("activation_checkpointing");
        }
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
    changes.extend(content_changes(path, &spec.plugins, &spec.inputs)?);
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
