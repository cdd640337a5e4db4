//! The identity of a run: its settings, plugins and machine, and their differences when it resumes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::error::RunError;
use super::json_file::read_json;
use super::layout::{config_path, plugins_path};
use super::machine::Machine;

/// The identity of a run: a resumed run must have the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunSpec {
    /// The resolved configuration as TOML, every default written out.
    pub config_toml: String,
    /// Hashes of the components, by alias, and of the data bound to them, by a name of the caller's
    /// choice.
    pub plugins: BTreeMap<String, String>,
    /// The binary and the machine.
    pub machine: Machine,
    /// The files that make a checkpoint loadable, by name: `tokenizer.json` and its configuration.
    pub assets: Vec<(String, Vec<u8>)>,
}

/// The differences between the plugins of the run in `run` and `now`, one sentence each.
pub fn plugin_changes(run: &Path, now: &BTreeMap<String, String>) -> Result<Vec<String>, RunError> {
    let before: BTreeMap<String, String> = read_json(&plugins_path(run))?;
    Ok(differences("plugin ", &before, now))
}

/// The differences between the settings and plugins of the run in `path` and those of `spec`, one
/// sentence each.
pub(super) fn changes(path: &Path, spec: &RunSpec) -> Result<Vec<String>, RunError> {
    let file = config_path(path);
    let before = rlf_files::read_text(&file, rlf_files::MAX_TEXT_BYTES)
        .map_err(|e| RunError::io("read", &file, e))?;
    let settings = |text: &str| -> Result<BTreeMap<String, String>, RunError> {
        let mut table: toml::Table =
            text.parse()
                .map_err(|e: toml::de::Error| RunError::Damaged {
                    path: file.clone(),
                    reason: e.to_string(),
                })?;
        // A run that was moved is still the same run.
        table.remove("output");
        // The number of threads changes no result.
        table.remove("workers");
        for phase in ["sft", "rl"] {
            if let Some(toml::Value::Table(phase)) = table.get_mut(phase) {
                phase.remove("workers");
            }
        }
        let mut flat = BTreeMap::new();
        flatten("", &toml::Value::Table(table), &mut flat);
        Ok(flat)
    };
    let mut changes = differences("", &settings(&before)?, &settings(&spec.config_toml)?);
    changes.extend(plugin_changes(path, &spec.plugins)?);
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
