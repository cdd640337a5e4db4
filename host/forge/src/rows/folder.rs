//! The folder of a run: locked while rows are made, with a record of the options, so that other options never replace rows
//! by accident.

use std::fs;
use std::io;
use std::path::Path;

use rlf_files::{FolderLock, LOCK_FILE, LockError};
use serde::{Deserialize, Serialize};

use super::artefact;
use super::error::RowsError;
use super::options::{Complexity, RowOptions, Scenario};
use super::pipeline::Input;
use super::results;
use super::stage::Stage;

/// The file of the record.
const MANIFEST: &str = "manifest.json";
/// Version of the form of records.
const SCHEMA: u32 = 1;

/// The record of what a folder of rows was made from. It leaves out the number of rows, because a larger number
/// continues a smaller one. It also leaves out the content of files, because an artefact is made again if its file has
/// changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    schema: u32,
    source: Source,
    seed: u64,
    scenarios: Vec<Scenario>,
    max_calls: usize,
    complexity: Complexity,
}

/// The source of the questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    Generated,
    Facts,
    Questions,
}

impl Manifest {
    fn new(input: &Input<'_>, options: &RowOptions) -> Self {
        let RowOptions {
            count: _,
            seed,
            scenarios,
            max_calls,
            complexity,
        } = options;
        Self {
            schema: SCHEMA,
            source: match input {
                Input::Generated => Source::Generated,
                Input::Facts(_) => Source::Facts,
                Input::Questions { .. } => Source::Questions,
            },
            seed: *seed,
            scenarios: scenarios.clone(),
            max_calls: *max_calls,
            complexity: *complexity,
        }
    }

    /// The options that differ, by their names on the command line.
    fn differences(&self, other: &Self) -> Vec<&'static str> {
        let parts = [
            ("--questions or --facts", self.source != other.source),
            ("--seed", self.seed != other.seed),
            ("--scenario", self.scenarios != other.scenarios),
            ("--max-calls", self.max_calls != other.max_calls),
            ("--complexity", self.complexity != other.complexity),
        ];
        let differing = parts.into_iter().filter(|(_, differs)| *differs);
        differing.map(|(name, _)| name).collect()
    }
}

/// Begins a folder, or continues one that was made with the same options. It is locked until the result is dropped. With
/// `restart`, rows of other options are replaced. A folder with files that were not made here is refused.
pub fn begin(
    folder: &Path,
    input: &Input<'_>,
    options: &RowOptions,
    restart: bool,
) -> Result<FolderLock, RowsError> {
    fs::create_dir_all(folder).map_err(|source| RowsError::write(folder, source))?;
    let lock = FolderLock::take(folder).map_err(|error| match error {
        LockError::Held { .. } => RowsError::InUse(folder.to_owned()),
        LockError::Io(source) => RowsError::write(&folder.join(LOCK_FILE), source),
    })?;
    rlf_files::remove_partial(folder).map_err(|source| RowsError::write(folder, source))?;
    let manifest = Manifest::new(input, options);
    match read(folder)? {
        Some(before) if before == manifest => return Ok(lock),
        // A run that failed before its first artefact made nothing that could be lost.
        Some(before) if !restart && artefact::file(folder, Stage::Facts).exists() => {
            return Err(RowsError::OtherOptions {
                folder: folder.to_owned(),
                names: manifest.differences(&before).join(", "),
            });
        }
        Some(_) => {}
        None => {
            if !rlf_files::is_unused(folder).map_err(|source| RowsError::read(folder, source))? {
                return Err(RowsError::NoManifest(folder.to_owned()));
            }
        }
    }
    // First, so that an interruption leaves no results beside the manifest of other options.
    results::remove(folder)?;
    let path = folder.join(MANIFEST);
    let text = serde_json::to_vec_pretty(&manifest).map_err(io::Error::from);
    let written = text.and_then(|text| rlf_files::write(&path, &text));
    written.map_err(|source| RowsError::write(&path, source))?;
    Ok(lock)
}

fn read(folder: &Path) -> Result<Option<Manifest>, RowsError> {
    let path = folder.join(MANIFEST);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(RowsError::Read { path, source }),
    };
    let manifest: Manifest = rlf_json::from_slice(&bytes).map_err(|error| RowsError::Manifest {
        path: path.clone(),
        problem: error.to_string(),
    })?;
    if manifest.schema != SCHEMA {
        let problem = format!("it has version {}, not {SCHEMA}", manifest.schema);
        return Err(RowsError::Manifest { path, problem });
    }
    Ok(Some(manifest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_removes_old_results_before_the_manifest_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let begin = |seed: u64| {
            let options = RowOptions {
                seed,
                ..RowOptions::default()
            };
            begin(folder, &Input::Generated, &options, true).map(drop)
        };
        let seed = || read(folder).unwrap().unwrap().seed;
        let results = ["rows.jsonl", "tasks-train.jsonl", "demonstrations.jsonl"];
        let write = || {
            for name in results {
                fs::write(folder.join(name), "{}\n").unwrap();
            }
        };
        begin(0).unwrap();
        write();
        begin(0).unwrap();
        assert!(results.iter().all(|name| folder.join(name).exists()));
        begin(1).unwrap();
        assert!(!results.iter().any(|name| folder.join(name).exists()));
        // Results that cannot be removed keep their manifest.
        fs::create_dir_all(folder.join("rows.jsonl")).unwrap();
        assert!(matches!(begin(2), Err(RowsError::Write { .. })));
        assert_eq!(seed(), 1);
    }
}
