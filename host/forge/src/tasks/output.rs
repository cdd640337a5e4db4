//! Rows for training, from records of tasks.
//!
//! | format | rows | read by |
//! |---|---|---|
//! | `tasks` | one for each turn: the conversation before it, and its goal | `[tasks]` of a configuration |
//! | `demonstrations` | one for each task, and one more for each mistake: the conversation with all gold calls | `tasks.demonstrations` |
//! | `alpaca` | one for each turn of the model, with what was said before it | trainers that read Alpaca's rows |
//! | `verl` | one for each turn, in the form of EnvFactory's rows for RL | verl, with EnvFactory's environments |
//!
//! Each format has a file for each split, and one for the tasks of [practised](Practised) environments. Every row can be
//! imported again, and replays to its goal. A turn that is [context only](super::record::Turn::context_only) has no row
//! of `tasks` and `verl`.

mod alpaca;
mod conversation;
mod practised;
mod sub_answers;
mod tasks;
mod verl;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use rlf_dialogue::split::Split;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::record::TaskRecord;
use super::stage_file::{FileError, remove};
use super::suite::Suite;
use crate::lines;

pub use practised::Practised;
pub use tasks::rows as task_rows;

/// Name of the file with the tasks of practised environments, beside those of the splits.
pub(super) const PRACTICE: &str = "practice";

/// The settings of rows in every format. A folder of tasks keeps them, so that formats that are written later are split
/// in the same way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowSettings {
    /// Name of the environment in the configuration that reads the rows.
    pub environment: String,
    /// Share of the training environments that are [practised](Practised).
    pub practice: f64,
}

impl Default for RowSettings {
    fn default() -> Self {
        Self {
            environment: "servers".to_owned(),
            practice: 0.0,
        }
    }
}

/// A format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Tasks in our own format.
    Tasks,
    /// Demonstrations in our own format.
    Demonstrations,
    /// Alpaca's rows for SFT.
    Alpaca,
    /// EnvFactory's rows for RL.
    Verl,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Tasks, Self::Demonstrations, Self::Alpaca, Self::Verl];

    /// The name on the command line, and of its folder.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Demonstrations => "demonstrations",
            Self::Alpaca => "alpaca",
            Self::Verl => "verl",
        }
    }

    /// The rows of a task.
    pub fn rows(self, suite: &Suite, task: &TaskRecord, naming: &Naming) -> Vec<Value> {
        match self {
            // All keys of a row are texts, so every row has a JSON form.
            Self::Tasks => task_rows(suite, task, naming)
                .iter()
                .map(|row| json!(row))
                .collect(),
            Self::Demonstrations => conversation::demonstrations(suite, task, naming),
            Self::Alpaca => alpaca::rows(suite, task),
            Self::Verl => verl::rows(suite, task, naming),
        }
    }
}

/// Names that rows have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    /// Name of the environment in the configuration of a run: `[plugins.NAME]`.
    pub environment: String,
    /// Name of the data set.
    pub source: String,
}

impl Default for Naming {
    fn default() -> Self {
        Self {
            environment: "servers".to_owned(),
            source: "forge".to_owned(),
        }
    }
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub path: PathBuf,
    /// Number of its rows.
    pub rows: usize,
}

/// Writes the rows of a format to `FOLDER/FORMAT/SPLIT.jsonl`, and those of training in practised environments to
/// `FOLDER/FORMAT/practice.jsonl`. A file without rows is not written, and an older one of its name is removed.
pub fn write(
    suite: &Suite,
    tasks: &[TaskRecord],
    format: Format,
    naming: &Naming,
    practised: &Practised,
    folder: &Path,
) -> Result<Vec<Written>, FileError> {
    let folder = folder.join(format.as_str());
    fs::create_dir_all(&folder).map_err(FileError::io(&folder))?;
    let part = |task: &TaskRecord| {
        if practised.has(task) {
            PRACTICE
        } else {
            task.split.as_str()
        }
    };
    let mut written = Vec::new();
    for name in Split::ALL.map(Split::as_str).into_iter().chain([PRACTICE]) {
        let path = folder.join(format!("{name}.jsonl"));
        let mut rows = 0;
        let mut of_part = tasks.iter().filter(|task| part(task) == name).peekable();
        if of_part.peek().is_none() {
            remove(fs::remove_file(&path), &path)?;
            continue;
        }
        let fill = |out: &mut dyn Write| {
            for task in of_part {
                for row in format.rows(suite, task, naming) {
                    lines::write(out, &row)?;
                    rows += 1;
                }
            }
            Ok(())
        };
        rlf_files::write_with(&path, fill).map_err(FileError::io(&path))?;
        written.push(Written { path, rows });
    }
    Ok(written)
}
