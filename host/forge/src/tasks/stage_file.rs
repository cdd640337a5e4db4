//! The file of a stage: one line for each candidate that reached it, appended as they are made.
//!
//! A line has the hash of the line that it was made from, in the file of the stage before. If somebody edits a line, the
//! later stages of its candidate do not fit it any more, and are made again.
//!
//! After a crash, a last line without an end is cut off, and the stage goes on from there.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rejection::{Rejection, Stage};
use crate::lines;

/// A file of a folder of tasks cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read or written.
    #[error("{path}: {source}{}", outlook(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A line is not what this program writes.
    #[error("{path}, line {line}: {source}; {}", mend(path))]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The reason.
        source: serde_json::Error,
    },
}

/// Advice on what was made before an error of a file. Nothing, if the same command would fail in the same way.
fn outlook(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::AlreadyExists
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::InvalidData => "",
        _ => "; everything made before is kept, and the same command goes on from there",
    }
}

/// The way to make a file anew that has a broken line.
fn mend(path: &Path) -> String {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let name = stem.and_then(|stem| stem.split_once('-'));
    let stage = Stage::ALL
        .into_iter()
        .find(|stage| name.is_some_and(|(_, name)| name == stage.as_str()));
    match stage {
        Some(stage) => format!("make it anew with --from {}", stage.as_str()),
        None => "`rlf-host forge tasks` writes it anew".to_owned(),
    }
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
    /// The hash of the line that this one was made from. None in the first stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    made: Option<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rejected: Option<Rejection>,
}

/// The hash of the line of each candidate.
#[derive(Debug, Default)]
pub(super) struct Hashes(BTreeMap<u64, String>);

impl Hashes {
    fn add(&mut self, candidate: u64, line: &[u8]) {
        let hash = blake3::hash(line).to_hex();
        self.0.insert(candidate, hash[..16].to_owned());
    }

    fn of(&self, candidate: u64) -> Option<String> {
        self.0.get(&candidate).cloned()
    }
}

/// A stage's results so far, and the file that keeps them.
#[derive(Debug)]
pub(super) struct StageFile<T> {
    path: PathBuf,
    results: BTreeMap<u64, Result<T, Rejection>>,
    /// The hashes of this stage's lines, for the stage after it.
    pub(super) hashes: Hashes,
}

impl<T: Serialize + DeserializeOwned> StageFile<T> {
    /// Opens the file, and reads the results that are there. `before` has the hashes of the stage before, and is empty for
    /// the first stage. Results that were made from another line than the present one are left out.
    pub(super) fn open(path: PathBuf, before: &Hashes) -> Result<Self, FileError> {
        Self::open_checked(path, before, |_| Ok(()))
    }

    /// Opens the file as [`Self::open`] does. A result that `check` refuses is an error with its line.
    pub(super) fn open_checked(
        path: PathBuf,
        before: &Hashes,
        check: impl Fn(&T) -> Result<(), &'static str>,
    ) -> Result<Self, FileError> {
        let bytes = lines::whole(&path).map_err(FileError::io(&path))?;
        let mut results = BTreeMap::new();
        let mut hashes = Hashes::default();
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
            if line.from == before.of(line.candidate) {
                hashes.add(line.candidate, text);
                results.insert(line.candidate, result);
            }
        }
        Ok(Self {
            path,
            results,
            hashes,
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

    /// Appends results. `before` has the hashes of the stage before.
    pub(super) fn append(
        &mut self,
        results: Vec<(u64, Result<T, Rejection>)>,
        before: &Hashes,
    ) -> Result<(), FileError> {
        let io = FileError::io(&self.path);
        let mut text = Vec::new();
        for (candidate, result) in &results {
            let start = text.len();
            let line = Line {
                candidate: *candidate,
                from: before.of(*candidate),
                made: result.as_ref().ok(),
                rejected: result.as_ref().err().cloned(),
            };
            if let Err(error) = lines::write(&mut text, &line) {
                return Err(io(error));
            }
            self.hashes.add(*candidate, text[start..].trim_ascii());
        }
        lines::append_text(&self.path, &text).map_err(io)?;
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
        let error = StageFile::<u32>::open(path, &Hashes::default()).unwrap_err();
        assert!(matches!(error, FileError::Line { line: 4, .. }), "{error}");
    }

    #[test]
    fn an_error_says_how_to_make_its_file_anew() {
        for (file, advice) in [
            ("1-chains.jsonl", "; make it anew with --from chains"),
            ("3-queries.jsonl", "; make it anew with --from queries"),
            ("tasks.jsonl", "; `rlf-host forge tasks` writes it anew"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(file);
            std::fs::write(&path, "{}\n").unwrap();
            let error = StageFile::<u32>::open(path, &Hashes::default()).unwrap_err();
            assert!(error.to_string().ends_with(advice), "{error}");
        }
    }

    #[test]
    fn only_an_error_that_can_pass_says_that_the_command_goes_on() {
        let goes_on = |kind: io::ErrorKind| {
            let error = FileError::io(Path::new("a"))(kind.into());
            error.to_string().contains("goes on from there")
        };
        assert!(goes_on(io::ErrorKind::StorageFull) && goes_on(io::ErrorKind::Interrupted));
        assert!(!goes_on(io::ErrorKind::NotADirectory) && !goes_on(io::ErrorKind::NotFound));
    }

    #[test]
    fn an_edited_line_takes_what_was_made_from_it_along() {
        let folder = tempfile::tempdir().unwrap();
        let none = Hashes::default();
        let place = |name: &str| folder.path().join(name);
        let mut first = StageFile::<u32>::open(place("1"), &none).unwrap();
        first.append(vec![(1, Ok(10)), (2, Ok(20))], &none).unwrap();
        let mut second = StageFile::<u32>::open(place("2"), &first.hashes).unwrap();
        let made = vec![(1, Ok(11)), (2, Ok(21))];
        second.append(made, &first.hashes).unwrap();

        let text = std::fs::read_to_string(place("1")).unwrap();
        std::fs::write(place("1"), text.replace("20", "30")).unwrap();
        let first = StageFile::<u32>::open(place("1"), &none).unwrap();
        assert_eq!(first.get(2), Some(&Ok(30)));
        let mut second = StageFile::<u32>::open(place("2"), &first.hashes).unwrap();
        assert_eq!((second.get(1), second.get(2)), (Some(&Ok(11)), None));

        second.append(vec![(2, Ok(31))], &first.hashes).unwrap();
        let second = StageFile::<u32>::open(place("2"), &first.hashes).unwrap();
        assert_eq!(second.get(2), Some(&Ok(31)));
    }
}
