//! The errors of making rows.

use std::io;
use std::path::{Path, PathBuf};

use super::verification::ExecutionError;
use crate::ask::AskError;
use crate::ask::prompts::PromptError;

/// The reason why rows could not be made. What was made before stays, and the next run continues from it.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}; what was made before is kept, and the same command continues from it", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A line cannot be used.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The mistake, with advice to mend it.
        problem: String,
    },
    /// A file without anything that can be used.
    #[error("{}: {problem}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// The thing that the file lacks.
        problem: &'static str,
    },
    /// A question has no steps, and no model is configured that could find them.
    #[error(
        "{}:{line}: the question has no `steps`; write them, or name a language model that finds them with --url and --model, or with \
         `url` and `model` of a table [writer] in the file of --config", path.display()
    )]
    NoSteps {
        /// The file.
        path: PathBuf,
        /// The line of the first one, from 1.
        line: usize,
    },
    /// A prompt is wrong.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The language model gave no answer.
    #[error("{0}; all answers so far are kept, and the same command goes on from there")]
    Ask(#[from] AskError),
    /// Another process makes rows in the folder.
    #[error("another process makes rows in {}; wait for its end, or name another folder with --output", .0.display())]
    InUse(PathBuf),
    /// The folder was made with other options.
    #[error(
        "the rows in {} were made with another value of {names}; name another folder with --output, or replace them with --restart",
        folder.display()
    )]
    OtherOptions {
        /// The folder.
        folder: PathBuf,
        /// The options that differ.
        names: String,
    },
    /// The folder has files, and no manifest that says what they were made from.
    #[error(
        "{} has files that were not made here, or whose manifest.json is lost; name another folder with --output",
        .0.display()
    )]
    NoManifest(PathBuf),
    /// The manifest cannot be read.
    #[error("{}: {problem}; name another folder with --output, or delete this one", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The mistake.
        problem: String,
    },
    /// Options that contradict each other.
    #[error("{0}")]
    Options(String),
    /// A row could not be executed.
    #[error("{0}; what was verified before is kept, and the same command continues from it")]
    Execution(#[from] ExecutionError),
}

impl RowsError {
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn line(path: &Path, line: usize, problem: &dyn std::fmt::Display) -> Self {
        Self::Line {
            path: path.to_owned(),
            line,
            problem: problem.to_string(),
        }
    }
}
