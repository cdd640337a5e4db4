//! The file of a stage: one line for each candidate that reached it, appended as they are made.
//!
//! After a crash, a last line without an end is cut off, and the stage goes on from there.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rejection::Rejection;

/// A file of a folder of tasks cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read or written.
    #[error(
        "{path}: {source}; everything made before is kept, and the same command goes on from there"
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A line is not what this program writes.
    #[error("{path}, line {line}: {source}; make it anew with --from chains")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The reason.
        source: serde_json::Error,
    },
}

impl FileError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// The line of a candidate: the thing that the stage made, or the reason why not.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<T> {
    candidate: u64,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    made: Option<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rejected: Option<Rejection>,
}

/// A stage's results so far, and the file that keeps them.
#[derive(Debug)]
pub(super) struct StageFile<T> {
    path: PathBuf,
    file: Option<File>,
    results: BTreeMap<u64, Result<T, Rejection>>,
}

impl<T: Serialize + DeserializeOwned> StageFile<T> {
    /// Reads what is there.
    pub(super) fn open(path: PathBuf) -> Result<Self, FileError> {
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(FileError::io(&path)(error)),
        };
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        if whole < bytes.len() {
            let file = OpenOptions::new().write(true).open(&path);
            file.and_then(|file| file.set_len(whole as u64))
                .map_err(FileError::io(&path))?;
        }
        let mut results = BTreeMap::new();
        let lines = bytes[..whole].split(|byte| *byte == b'\n');
        for (number, line) in lines.filter(|line| !line.is_empty()).enumerate() {
            let line: Line<T> = rlf_json::from_slice(line).map_err(|source| FileError::Line {
                path: path.clone(),
                line: number + 1,
                source,
            })?;
            let result = match (line.made, line.rejected) {
                (Some(made), _) => Ok(made),
                (None, Some(rejected)) => Err(rejected),
                (None, None) => continue,
            };
            results.insert(line.candidate, result);
        }
        Ok(Self {
            path,
            file: None,
            results,
        })
    }

    /// The result for a candidate, if the stage was there.
    pub(super) fn get(&self, candidate: u64) -> Option<&Result<T, Rejection>> {
        self.results.get(&candidate)
    }

    /// All results, in the order of the candidates.
    pub(super) fn results(&self) -> impl Iterator<Item = (u64, &Result<T, Rejection>)> {
        self.results
            .iter()
            .map(|(candidate, result)| (*candidate, result))
    }

    /// Appends results.
    pub(super) fn append(
        &mut self,
        results: Vec<(u64, Result<T, Rejection>)>,
    ) -> Result<(), FileError> {
        let fail = FileError::io(&self.path);
        let mut text = Vec::new();
        for (candidate, result) in &results {
            let line = Line {
                candidate: *candidate,
                made: result.as_ref().ok(),
                rejected: result.as_ref().err().cloned(),
            };
            if let Err(error) = serde_json::to_writer(&mut text, &line) {
                return Err(fail(error.into()));
            }
            text.push(b'\n');
        }
        let path = &self.path;
        let write = |file: &mut Option<File>| {
            if file.is_none() {
                *file = Some(OpenOptions::new().create(true).append(true).open(path)?);
            }
            match file {
                Some(file) => file.write_all(&text),
                None => Ok(()),
            }
        };
        write(&mut self.file).map_err(fail)?;
        self.results.extend(results);
        Ok(())
    }
}
