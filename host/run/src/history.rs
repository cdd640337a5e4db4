//! Reads the records of a run from its folder: metrics, configuration and trajectories.

use std::collections::BTreeMap;
use std::path::Path;

use rlf_train::metrics::names;
use rlf_train::run::{config_path, machine_path, metrics_path, plugins_path, trajectory_files};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{RunFailure, SavedRunError};
use crate::folder::control_path;

/// The metrics and trajectories of a run.
pub struct RunHistory {
    /// Name of the run's folder. The report has it as its title.
    pub name: String,
    /// The resolved configuration.
    pub config: String,
    /// Version, processor and plugin hashes, as JSON.
    pub record: String,
    /// Every line of `metrics.jsonl`.
    pub lines: Vec<Map<String, Value>>,
    /// The newest trajectories that the run kept, as its files have them.
    pub trajectories: Vec<Value>,
}

/// Maximum number of trajectories that are kept: those of the last step, then of the steps before it.
const MAX_TRAJECTORIES: usize = 60;

impl RunHistory {
    /// Reads the records in the folder `run`.
    pub fn read(run: &Path) -> Result<Self, RunFailure> {
        let metrics = metrics_path(run);
        SavedRunError::unless_run(run, &metrics)?;
        let mut lines: Vec<Map<_, _>> = json_lines(&metrics, usize::MAX)?;
        // The control's evaluations are shown beside the run's own.
        let control = metrics_path(&control_path(run));
        if control.exists() {
            let mut evaluations: Vec<Map<_, _>> = json_lines(&control, usize::MAX)?;
            evaluations.retain(|line| line.contains_key(names::MOMENT));
            lines.append(&mut evaluations);
        }
        let optional = |path| std::fs::read_to_string(path).unwrap_or_default();
        Ok(Self {
            name: run
                .file_name()
                .unwrap_or(run.as_os_str())
                .to_string_lossy()
                .into_owned(),
            config: optional(config_path(run)),
            record: format!(
                "{}\n{}",
                optional(machine_path(run)),
                optional(plugins_path(run))
            ),
            lines,
            trajectories: trajectories(run)?,
        })
    }

    /// The lines of one phase.
    pub fn phase<'a>(&'a self, phase: &'a str) -> impl Iterator<Item = &'a Map<String, Value>> {
        self.lines
            .iter()
            .filter(move |line| line.get(names::PHASE).and_then(Value::as_str) == Some(phase))
    }

    /// Every numeric key in the lines of `phase`, in order of appearance.
    pub fn numeric_keys(&self, phase: &str) -> Vec<String> {
        let mut keys = Vec::new();
        for line in self.phase(phase) {
            for (key, value) in line {
                let plain = value.is_number() && key != names::STEP && key != names::ELAPSED_S;
                if plain && !keys.contains(key) {
                    keys.push(key.clone());
                }
            }
        }
        keys
    }

    /// The evaluation lines of a split.
    pub fn evaluations(&self, split: &str) -> Vec<&Map<String, Value>> {
        self.lines
            .iter()
            .filter(|line| line.get(names::SPLIT).and_then(Value::as_str) == Some(split))
            .collect()
    }

    /// Calls by tool and ending over the whole run: `tool -> ending -> count`.
    pub fn calls(&self) -> BTreeMap<String, BTreeMap<String, f64>> {
        let mut calls: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        let per_tool = self
            .phase("rl")
            .filter_map(|line| line.get(names::CALLS)?.as_object());
        for (tool, endings) in per_tool.flatten() {
            for (ended, count) in endings.as_object().into_iter().flatten() {
                let total = calls
                    .entry(tool.clone())
                    .or_default()
                    .entry(ended.clone())
                    .or_default();
                *total += count.as_f64().unwrap_or(0.0);
            }
        }
        calls
    }
}

/// The last trajectories of a run, those of the newest step first.
fn trajectories(run: &Path) -> Result<Vec<Value>, RunFailure> {
    let mut kept = Vec::new();
    for (_, _, file) in trajectory_files(run)?.iter().rev() {
        if kept.len() == MAX_TRAJECTORIES {
            break;
        }
        kept.append(&mut json_lines(file, MAX_TRAJECTORIES - kept.len())?);
    }
    Ok(kept)
}

/// The first `count` lines of a file of a run. The error of a line that is not JSON has its number.
pub(crate) fn json_lines<T: DeserializeOwned>(
    file: &Path,
    count: usize,
) -> Result<Vec<T>, RunFailure> {
    let text = std::fs::read_to_string(file)
        .map_err(RunFailure::io(format!("cannot read {}", file.display())))?;
    let lines = text.lines().take(count).enumerate().map(|(index, line)| {
        serde_json::from_str(line).map_err(|source| SavedRunError::Line {
            path: file.to_owned(),
            line: index + 1,
            source,
        })
    });
    Ok(lines.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_not_taken_for_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| RunHistory::read(path).err().unwrap().to_string();
        assert!(refused(folder.path()).ends_with(" is not a run: it has no metrics.jsonl"));
        let none = folder.path().join("none");
        let missing = format!("there is no folder {}", none.display());
        assert_eq!(refused(&none), missing);
        let file = folder.path().join("config.toml");
        std::fs::write(&file, "").unwrap();
        assert!(refused(&file).ends_with("config.toml is a file; give the run's folder"));
    }

    #[test]
    fn a_damaged_line_is_named_in_every_file() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        let metrics = |run: &Path| {
            std::fs::create_dir_all(run).unwrap();
            std::fs::write(metrics_path(run), "{\"phase\": \"rl\"}\n").unwrap();
            metrics_path(run)
        };
        let trajectories = run.join("trajectories");
        std::fs::create_dir(&trajectories).unwrap();
        for file in [
            metrics(run),
            metrics(&control_path(run)),
            trajectories.join("rl-000002.jsonl"),
        ] {
            let whole = std::fs::read_to_string(&file).unwrap_or_default();
            RunHistory::read(run).unwrap();
            std::fs::write(&file, format!("{whole}{{}}\n{{\n")).unwrap();
            let error = RunHistory::read(run).err().unwrap().to_string();
            let line = whole.lines().count() + 2;
            let place = format!("{}:{line} is not JSON", file.display());
            assert!(error.starts_with(&place), "{error}");
            std::fs::write(&file, whole).unwrap();
        }
    }
}
