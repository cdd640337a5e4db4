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
//! | `rows.json` | the settings of the rows for training |

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rlf_dialogue::split::Split;
use rlf_files::{FolderLock, LOCK_FILE, LockError};
use rlf_plugins::python_environment::SCENARIOS_FILE;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::PipelineError;
use super::options::TaskOptions;
use super::output::{Format, PRACTICE, RowSettings};
use super::record::{SCHEMA, TaskRecord};
use super::rejection::{Rejected, Stage};
use super::stage_file::{FileError, parsed, remove};
use super::suite::Suite;
use crate::lines;

/// The endings of the files of environments.
const ENDINGS: [&str; 3] = ["toml", "json", "py"];
/// The record of the domains of environments that are specifications, beside their copies.
const DOMAINS: &str = "composed.jsonl";

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

    /// The options that differ, by their names on the command line.
    fn differing_options(&self, other: &Self) -> Vec<String> {
        let (mine, others) = (self.flat_options(), other.flat_options());
        let names: BTreeSet<&String> = mine.keys().chain(others.keys()).collect();
        let differing = names
            .into_iter()
            .filter(|name| mine.get(*name) != others.get(*name));
        let mut flags: Vec<String> = differing
            .map(|name| format!("--{}", name.replace('_', "-")))
            .collect();
        if self.replayed != other.replayed {
            flags.push("--no-replay".into());
        }
        flags
    }

    /// The options by name, those of the inventory among the others.
    fn flat_options(&self) -> Map<String, Value> {
        let table = |options| match options {
            Ok(Value::Object(table)) => table,
            _ => Map::new(),
        };
        let mut flat = table(serde_json::to_value(&self.options));
        flat.remove("inventory");
        flat.extend(table(serde_json::to_value(&self.options.inventory)));
        flat
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

    fn row_settings(&self) -> PathBuf {
        self.0.join("rows.json")
    }

    /// The candidates that were rejected.
    pub fn rejected(&self) -> PathBuf {
        self.0.join("rejected.jsonl")
    }

    /// Deletes the files of a stage and of all after it, and the rows that were written from them.
    pub fn forget(&self, from: Stage) -> Result<(), FileError> {
        let stages = Stage::ALL.into_iter().filter(|stage| *stage >= from);
        let files = stages.map(|stage| self.stage(stage));
        for file in files.chain([self.tasks(), self.rejected()]) {
            remove(fs::remove_file(&file), &file)?;
        }
        self.forget_rows()
    }

    /// Deletes the rows for training in every format.
    fn forget_rows(&self) -> Result<(), FileError> {
        for format in Format::ALL {
            for part in Split::ALL.map(Split::as_str).into_iter().chain([PRACTICE]) {
                let file = self.0.join(format.as_str()).join(format!("{part}.jsonl"));
                remove(fs::remove_file(&file), &file)?;
            }
        }
        Ok(())
    }

    /// Writes the tasks that were kept. If they are others than before, the rows of the earlier ones are deleted.
    pub(super) fn write_tasks(&self, tasks: &[TaskRecord]) -> Result<(), FileError> {
        let before = fs::read(self.tasks());
        write_lines(&self.tasks(), tasks)?;
        if before.is_ok_and(|before| fs::read(self.tasks()).is_ok_and(|now| now != before)) {
            self.forget_rows()?;
        }
        Ok(())
    }

    /// Takes the exclusive right to make tasks here, and deletes half-written files of an earlier process.
    pub fn lock(&self) -> Result<FolderLock, PipelineError> {
        fs::create_dir_all(&self.0).map_err(FileError::io(&self.0))?;
        let lock = FolderLock::take(&self.0).map_err(|error| match error {
            LockError::Held { .. } => PipelineError::InUse {
                folder: self.0.clone(),
            },
            LockError::Io(error) => FileError::io(&self.0.join(LOCK_FILE))(error).into(),
        })?;
        let rows = Format::ALL.map(|format| self.0.join(format.as_str()));
        for folder in [self.0.clone(), self.environments()].iter().chain(&rows) {
            rlf_files::remove_partial(folder).map_err(FileError::io(folder))?;
        }
        Ok(lock)
    }

    /// Begins a folder anew. Deletes everything that making tasks left here, rows for training too. Answers of a language
    /// model stay. A folder without a manifest has to be empty, because its files are somebody else's.
    pub fn restart(&self, manifest: &Manifest) -> Result<(), PipelineError> {
        match self.read_manifest()? {
            Some(before) => self.clear(&before)?,
            None => self.check_unused()?,
        }
        self.write_manifest(manifest)
    }

    fn clear(&self, manifest: &Manifest) -> Result<(), FileError> {
        self.forget(Stage::Chains)?;
        let beside = if self.observed().exists() {
            SCENARIOS_FILE
        } else {
            DOMAINS
        };
        let names = manifest.environments.keys();
        let copies = names.flat_map(|name| ENDINGS.map(|ending| format!("{name}.{ending}")));
        let copies: BTreeSet<String> = copies.chain([beside.to_owned()]).collect();
        for path in entries(&self.environments())? {
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| copies.contains(name)) {
                remove(fs::remove_file(&path), &path)?;
            }
        }
        for file in [self.observed(), self.row_settings()] {
            remove(fs::remove_file(&file), &file)?;
        }
        Ok(())
    }

    /// The settings that the folder's rows were written with, or the default ones.
    pub fn read_row_settings(&self) -> Result<RowSettings, PipelineError> {
        let path = self.row_settings();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(RowSettings::default());
            }
            Err(error) => return Err(FileError::io(&path)(error).into()),
        };
        let settings = rlf_json::from_slice(&bytes);
        settings.map_err(|source| PipelineError::RowSettings { path, source })
    }

    /// Keeps the settings of the folder's rows.
    pub fn write_row_settings(&self, settings: &RowSettings) -> Result<(), FileError> {
        let file = self.row_settings();
        let text = serde_json::to_vec_pretty(settings).map_err(io::Error::from);
        let written = text.and_then(|text| rlf_files::write(&file, &text));
        written.map_err(FileError::io(&file))
    }

    fn write_manifest(&self, manifest: &Manifest) -> Result<(), PipelineError> {
        let file = self.manifest();
        fs::create_dir_all(&self.0).map_err(FileError::io(&self.0))?;
        let text = serde_json::to_vec_pretty(manifest).map_err(io::Error::from);
        let written = text.and_then(|text| rlf_files::write(&file, &text));
        written.map_err(FileError::io(&file))?;
        self.make_stages()
    }

    /// Makes the folder of the stages, after the manifest: without a manifest, the folder would count as somebody
    /// else's.
    fn make_stages(&self) -> Result<(), PipelineError> {
        let stages = self.0.join("stages");
        Ok(fs::create_dir_all(&stages).map_err(FileError::io(&stages))?)
    }

    /// Refuses a folder that holds somebody else's files.
    fn check_unused(&self) -> Result<(), PipelineError> {
        if rlf_files::is_unused(&self.0).map_err(FileError::io(&self.0))? {
            return Ok(());
        }
        let folder = self.0.clone();
        Err(PipelineError::NoManifest { folder })
    }

    /// The manifest, if there is one.
    fn read_manifest(&self) -> Result<Option<Manifest>, PipelineError> {
        let path = self.manifest();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::io(&path)(error).into()),
        };
        let manifest = rlf_json::from_slice(&bytes);
        manifest.map_err(|source| PipelineError::Manifest { path, source })
    }

    /// Refuses environments that are not those that the tasks were made in.
    pub fn check_environments(&self, suite: &Suite) -> Result<(), PipelineError> {
        let Some(manifest) = self.read_manifest()? else {
            let folder = self.0.clone();
            return Err(PipelineError::NoManifest { folder });
        };
        for (name, (hash, _)) in &manifest.environments {
            let there = suite.environment(name);
            if there.is_none_or(|environment| environment.hash != *hash) {
                let (file, name) = (self.environments(), name.clone());
                return Err(PipelineError::OtherEnvironment { file, name });
            }
        }
        Ok(())
    }

    /// The tasks of a folder.
    pub fn read_tasks(&self) -> Result<Vec<TaskRecord>, FileError> {
        read_lines(&self.tasks())
    }

    /// The rejected candidates of a folder.
    pub fn read_rejected(&self) -> Result<Vec<Rejected>, FileError> {
        read_lines(&self.rejected())
    }

    /// Begins a folder, or continues one that was made with the same options and environments. A larger number of tasks
    /// continues a smaller one. If it allows more tasks of a template, the words are made again, and all stages after
    /// them, so that the folder is the same as if it had begun with the larger number.
    pub fn begin(&self, manifest: &Manifest) -> Result<(), PipelineError> {
        let Some(mut there) = self.read_manifest()? else {
            self.check_unused()?;
            return self.write_manifest(manifest);
        };
        let limit = there.options.template_limit();
        let grows = there.options.count < manifest.options.count;
        if grows {
            there.options.count = manifest.options.count;
        }
        let what = if there.environments != manifest.environments {
            "environments".to_owned()
        } else if there != *manifest {
            match manifest.differing_options(&there).join(", ") {
                names if names.is_empty() => "options".to_owned(),
                names => format!("options ({names})"),
            }
        } else if grows {
            if limit < manifest.options.template_limit() {
                self.forget(Stage::Queries)?;
            }
            return self.write_manifest(manifest);
        } else {
            return self.make_stages();
        };
        let folder = self.0.clone();
        Err(PipelineError::OtherManifest { folder, what })
    }
}

/// The files and folders in a folder, which need not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let listed = fs::read_dir(folder).and_then(|entries| {
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths.collect()
    });
    match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(FileError::io(folder)),
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
