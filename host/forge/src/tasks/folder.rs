//! The files of a folder of tasks.
//!
//! | file | has |
//! |---|---|
//! | `manifest.json` | the options and the hashes of the environments |
//! | `environments/` | the environments, so that the folder can be used alone |
//! | `observed.json` | what was observed of environments in Python |
//! | `stages/1-chains.jsonl` to `stages/5-replays.jsonl` | the stages |
//! | `stages/6-texts.jsonl` | what became of the words that a language model wrote |
//! | `answers/` | the answers of a language model |
//! | `tasks.jsonl` | the tasks that were kept |
//! | `rejected.jsonl` | the candidates that were rejected, each with its stage and reason |

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::PipelineError;
use super::options::TaskOptions;
use super::record::{SCHEMA, TaskRecord};
use super::rejection::{Rejected, Stage};
use super::stage_file::{FileError, parsed};
use super::suite::Suite;
use crate::lines;

/// The record of what a folder of tasks was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the form of records.
    pub schema: u32,
    /// The options that tasks were made with.
    pub options: TaskOptions,
    /// Hash and domain of each environment.
    pub environments: BTreeMap<String, (String, String)>,
    /// True if the tasks were replayed in the sandbox.
    pub replayed: bool,
}

impl Manifest {
    /// The manifest of tasks that are made with these options in these environments.
    pub fn new(suite: &Suite, options: &TaskOptions, replayed: bool) -> Self {
        let environments = suite.environments().iter().map(|environment| {
            let known = (environment.hash.clone(), environment.domain.clone());
            (environment.name.clone(), known)
        });
        Self {
            schema: SCHEMA,
            options: options.clone(),
            environments: environments.collect(),
            replayed,
        }
    }
}

/// A folder of tasks, and the places of its files.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at a path, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The manifest.
    pub fn manifest(&self) -> PathBuf {
        self.0.join("manifest.json")
    }

    /// The environments.
    pub fn environments(&self) -> PathBuf {
        self.0.join("environments")
    }

    /// The answers of a language model.
    pub fn answers(&self) -> PathBuf {
        self.0.join("answers")
    }

    /// The record of environments in Python: what was observed of them.
    pub fn observed(&self) -> PathBuf {
        self.0.join("observed.json")
    }

    /// The file of a stage.
    pub fn stage(&self, stage: Stage) -> PathBuf {
        let number = stage as usize + 1;
        self.0
            .join("stages")
            .join(format!("{number}-{}.jsonl", stage.as_str()))
    }

    /// The tasks that were kept.
    pub fn tasks(&self) -> PathBuf {
        self.0.join("tasks.jsonl")
    }

    /// The candidates that were rejected.
    pub fn rejected(&self) -> PathBuf {
        self.0.join("rejected.jsonl")
    }

    /// Deletes the files of a stage and of all after it.
    pub fn forget(&self, from: Stage) -> Result<(), FileError> {
        let stages = Stage::ALL.into_iter().filter(|stage| *stage >= from);
        let files = stages.map(|stage| self.stage(stage));
        for file in files.chain([self.tasks(), self.rejected()]) {
            remove(fs::remove_file(&file), &file)?;
        }
        Ok(())
    }

    /// Deletes everything that making tasks leaves here. Rows for training stay.
    pub fn clear(&self) -> Result<(), FileError> {
        self.forget(Stage::Chains)?;
        for file in [self.manifest(), self.observed()] {
            remove(fs::remove_file(&file), &file)?;
        }
        remove(
            fs::remove_dir_all(self.environments()),
            &self.environments(),
        )
    }

    /// The tasks of a folder.
    pub fn read_tasks(&self) -> Result<Vec<TaskRecord>, FileError> {
        read_lines(&self.tasks())
    }

    /// The rejected candidates of a folder.
    pub fn read_rejected(&self) -> Result<Vec<Rejected>, FileError> {
        read_lines(&self.rejected())
    }

    /// Begins a folder, or goes on with one that was made from the same.
    pub fn begin(&self, manifest: &Manifest) -> Result<(), PipelineError> {
        let file = self.manifest();
        match fs::read(&file) {
            Ok(bytes) => {
                let there: Manifest =
                    rlf_json::from_slice(&bytes).map_err(|source| FileError::Line {
                        path: file,
                        line: 1,
                        source,
                    })?;
                let what = if there.environments != manifest.environments {
                    "environments"
                } else if there != *manifest {
                    "options"
                } else {
                    return Ok(());
                };
                Err(PipelineError::OtherManifest {
                    folder: self.0.clone(),
                    what,
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let stages = self.0.join("stages");
                fs::create_dir_all(&stages).map_err(FileError::io(&stages))?;
                let text = serde_json::to_vec_pretty(manifest).map_err(io::Error::from);
                text.and_then(|text| rlf_files::write(&file, &text))
                    .map_err(FileError::io(&file))?;
                Ok(())
            }
            Err(error) => Err(FileError::io(&file)(error).into()),
        }
    }
}

/// The outcome of deleting something that need not be there.
pub(super) fn remove(removed: io::Result<()>, path: &Path) -> Result<(), FileError> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FileError::io(path)(error)),
        _ => Ok(()),
    }
}

fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, FileError> {
    let bytes = fs::read(path).map_err(FileError::io(path))?;
    parsed(path, &bytes).collect()
}

/// Writes rows as JSON lines.
pub(super) fn write_lines<T: Serialize>(path: &Path, rows: &[T]) -> Result<(), FileError> {
    let write = |out: &mut dyn io::Write| rows.iter().try_for_each(|row| lines::write(out, row));
    rlf_files::write_with(path, write).map_err(FileError::io(path))
}
