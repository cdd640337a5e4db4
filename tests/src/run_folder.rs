//! The files that a run leaves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The folder of a run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path as an argument.
    pub fn as_str(&self) -> &str {
        self.path
            .to_str()
            .expect("temporary folders have plain names")
    }

    /// A checkpoint, such as `rl-000004`.
    pub fn checkpoint(&self, name: &str) -> PathBuf {
        self.path.join("checkpoints").join(name)
    }

    /// The lines of `metrics.jsonl`.
    pub fn metrics(&self) -> Vec<Value> {
        json_lines(&self.path.join("metrics.jsonl"))
    }

    /// The lines of `metrics.jsonl` about the steps of a phase.
    pub fn steps(&self, phase: &str) -> Vec<Value> {
        let mut lines = self.metrics();
        lines.retain(|line| line["phase"] == phase && line.get("split").is_none());
        lines
    }

    /// The numbers of a phase's steps, in the order in which they were recorded.
    pub fn step_numbers(&self, phase: &str) -> Vec<u64> {
        let steps = self.steps(phase);
        let numbers = steps.iter().map(|line| line["step"].as_u64());
        numbers.map(|step| step.expect("is a number")).collect()
    }

    /// Every trajectory of the run, by file and line.
    pub fn trajectories(&self) -> BTreeMap<String, Vec<Value>> {
        names(&self.path.join("trajectories"))
            .into_iter()
            .map(|name| {
                let lines = json_lines(&self.path.join("trajectories").join(&name));
                (name, lines)
            })
            .collect()
    }

    /// The bytes of every weight and every optimiser state, by checkpoint and file.
    pub fn weights(&self) -> BTreeMap<String, Vec<u8>> {
        let folder = self.path.join("checkpoints");
        let mut weights = BTreeMap::new();
        for checkpoint in names(&folder) {
            // `latest` is another name of one of them.
            if checkpoint == "latest" {
                continue;
            }
            for name in names(&folder.join(&checkpoint)) {
                if name.ends_with(".safetensors") {
                    let path = folder.join(&checkpoint).join(&name);
                    let bytes = fs::read(&path).expect("weights can be read");
                    weights.insert(format!("{checkpoint}/{name}"), bytes);
                }
            }
        }
        weights
    }

    /// Fails the test unless `other` has, bit for bit, the same weights, optimiser states, trajectories and metrics.
    #[track_caller]
    pub fn assert_same(&self, other: &Self) {
        let (weights, others) = (self.weights(), other.weights());
        assert!(!weights.is_empty(), "{} has no weights", self.as_str());
        assert_eq!(
            weights.keys().collect::<Vec<_>>(),
            others.keys().collect::<Vec<_>>()
        );
        for (name, bytes) in &weights {
            assert!(*bytes == others[name], "{name} differs");
        }
        let without = |run: &Self| -> BTreeMap<String, Vec<Value>> {
            let files = run.trajectories().into_iter();
            files
                .map(|(name, lines)| (name, lines.into_iter().map(without_times).collect()))
                .collect()
        };
        let (trajectories, others) = (without(self), without(other));
        assert!(!trajectories.is_empty(), "no trajectory was written");
        assert_eq!(
            trajectories.keys().collect::<Vec<_>>(),
            others.keys().collect::<Vec<_>>()
        );
        for (name, lines) in &trajectories {
            assert_eq!(*lines, others[name], "{name} differs");
        }
        let without =
            |run: &Self| -> Vec<Value> { run.metrics().into_iter().map(without_times).collect() };
        assert_eq!(without(self), without(other));
    }
}

/// A record without times, and without counts that depend on them: everything else is a function of the seed.
pub fn without_times(mut record: Value) -> Value {
    drop_times(&mut record);
    record
}

fn drop_times(record: &mut Value) {
    let is_time = |key: &str| {
        key.ends_with("_s")
            || matches!(
                key,
                "wall-us"
                    | "cpu-us"
                    | "tool_wait_share"
                    | "decode_busy_share"
                    | "cache_evicted"
                    | "cache_preempted"
                    | "cache_read_again"
            )
    };
    match record {
        Value::Object(fields) => {
            fields.retain(|key, _| !is_time(key));
            fields.values_mut().for_each(drop_times);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_times),
        _ => {}
    }
}

fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()));
    assert!(
        text.ends_with('\n'),
        "{} ends within a line",
        path.display()
    );
    text.lines()
        .map(|line| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{}: {error}: {line}", path.display()))
        })
        .collect()
}

/// The names in a folder, in order; none if it is not a folder.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .map(|entry| {
            let name = entry.expect("a folder's entry can be read").file_name();
            name.to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names
}
