//! The file of a stage: one line for each candidate that reached it, appended as they are made.
//!
//! After a crash, a last line without an end is cut off, and the stage goes on from there.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rejection::Rejection;
use crate::lines;

/// A file of a folder of tasks cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read or written.
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

/// Ignores the error of deleting something that did not exist.
pub(super) fn remove(removed: io::Result<()>, path: &Path) -> Result<(), FileError> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FileError::io(path)(error)),
        _ => Ok(()),
    }
}

/// The lines of a file, parsed.
pub(super) fn parsed<T: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
) -> impl Iterator<Item = Result<T, FileError>> {
    lines::numbered(bytes).map(|(line, text)| {
        rlf_json::from_slice(text).map_err(|source| FileError::Line {
            path: path.to_owned(),
            line,
            source,
        })
    })
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
    results: BTreeMap<u64, Result<T, Rejection>>,
}

impl<T: Serialize + DeserializeOwned> StageFile<T> {
    /// Opens the file, and reads the results that are there.
    pub(super) fn open(path: PathBuf) -> Result<Self, FileError> {
        Self::open_checked(path, |_| Ok(()))
    }

    /// Opens the file, and reads the results that are there. A result that `check` refuses is an error with its line.
    pub(super) fn open_checked(
        path: PathBuf,
        check: impl Fn(&T) -> Result<(), &'static str>,
    ) -> Result<Self, FileError> {
        let bytes = lines::whole(&path).map_err(FileError::io(&path))?;
        let mut results = BTreeMap::new();
        for (number, text) in lines::numbered(&bytes) {
            let wrong = |source| FileError::Line {
                path: path.clone(),
                line: number,
                source,
            };
            let line: Line<T> = rlf_json::from_slice(text).map_err(wrong)?;
            if let Some(made) = &line.made {
                check(made).map_err(|why| wrong(serde::de::Error::custom(why)))?;
            }
            let result = match (line.made, line.rejected) {
                (Some(made), _) => Ok(made),
                (None, Some(rejected)) => Err(rejected),
                (None, None) => continue,
            };
            results.insert(line.candidate, result);
        }
        Ok(Self { path, results })
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
        let made = results.iter().map(|(candidate, result)| Line {
            candidate: *candidate,
            made: result.as_ref().ok(),
            rejected: result.as_ref().err().cloned(),
        });
        lines::append(&self.path, made).map_err(FileError::io(&self.path))?;
        self.results.extend(results);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_line_even_after_empty_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stage.jsonl");
        std::fs::write(&path, "{\"candidate\":1,\"made\":2}\n\n\n{}\n").unwrap();
        let error = StageFile::<u32>::open(path).unwrap_err();
        assert!(matches!(error, FileError::Line { line: 4, .. }), "{error}");
    }
}
