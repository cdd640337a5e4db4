//! Reads the records of a run from its folder: metrics, configuration and trajectories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::{RunFailure, SavedRunError};

/// The metrics and trajectories of a run.
pub struct RunHistory {
    /// Title of the report.
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

/// Largest number of trajectories: those of the last step, then of the steps before it.
const MAX_TRAJECTORIES: usize = 60;

impl RunHistory {
    /// Reads the records in the folder `run`.
    pub fn read(run: &Path) -> Result<Self, RunFailure> {
        if run.is_file() {
            return Err(SavedRunError::IsAFile(run.to_owned()).into());
        }
        let metrics = run.join("metrics.jsonl");
        let text = std::fs::read_to_string(&metrics).map_err(RunFailure::io(format!(
            "{} is not a run: cannot read {}",
            run.display(),
            metrics.display()
        )))?;
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let parsed = serde_json::from_str(line).map_err(|source| SavedRunError::Metrics {
                path: metrics.clone(),
                line: index + 1,
                source,
            })?;
            lines.push(parsed);
        }
        // The control's evaluations are shown beside the run's own.
        if let Ok(text) = std::fs::read_to_string(run.join("control").join("metrics.jsonl")) {
            let parsed = text
                .lines()
                .filter_map(|line| serde_json::from_str::<Map<_, _>>(line).ok());
            lines.extend(parsed.filter(|line| line.contains_key("moment")));
        }
        let optional = |name: &str| std::fs::read_to_string(run.join(name)).unwrap_or_default();
        Ok(Self {
            name: run
                .file_name()
                .unwrap_or(run.as_os_str())
                .to_string_lossy()
                .into_owned(),
            config: optional("config.toml"),
            record: format!("{}\n{}", optional("machine.json"), optional("plugins.json")),
            lines,
            trajectories: trajectories(&run.join("trajectories"))?,
        })
    }

    /// The lines of one phase.
    pub fn phase<'a>(&'a self, phase: &'a str) -> impl Iterator<Item = &'a Map<String, Value>> {
        self.lines
            .iter()
            .filter(move |line| line.get("phase").and_then(Value::as_str) == Some(phase))
    }

    /// Every numeric key in the lines of `phase`, in order of appearance.
    pub fn numeric_keys(&self, phase: &str) -> Vec<String> {
        let mut keys = Vec::new();
        for line in self.phase(phase) {
            for (key, value) in line {
                let plain = value.is_number() && key != "step" && key != "elapsed_s";
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
            .filter(|line| line.get("split").and_then(Value::as_str) == Some(split))
            .collect()
    }

    /// Calls by tool and ending over the whole run: `tool -> ending -> count`.
    pub fn calls(&self) -> BTreeMap<String, BTreeMap<String, f64>> {
        let mut calls: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        let per_tool = self
            .phase("rl")
            .filter_map(|line| line.get("calls")?.as_object());
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
fn trajectories(directory: &Path) -> Result<Vec<Value>, RunFailure> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Ok(Vec::new());
    };
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    // Files named `<phase>-<step>.jsonl` are sorted by number, not by letter.
    let step = |path: &PathBuf| -> Option<u64> {
        path.file_stem()?.to_str()?.rsplit_once('-')?.1.parse().ok()
    };
    files.sort_by_key(step);
    let mut kept = Vec::new();
    for file in files.iter().rev() {
        let text = std::fs::read_to_string(file)
            .map_err(RunFailure::io(format!("cannot read {}", file.display())))?;
        for line in text.lines() {
            if kept.len() == MAX_TRAJECTORIES {
                return Ok(kept);
            }
            if let Ok(value) = serde_json::from_str(line) {
                kept.push(value);
            }
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_not_taken_for_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| RunHistory::read(path).err().unwrap().to_string();
        assert!(refused(folder.path()).contains(" is not a run: "));
        let file = folder.path().join("config.toml");
        std::fs::write(&file, "").unwrap();
        assert!(refused(&file).ends_with("config.toml is a file; give the run's folder"));
    }
}
