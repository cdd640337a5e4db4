//! Recorded outcomes of questions: JSON lines, appended as they arrive.
//!
//! A line has the hash of the question, which contains its seed, and the answer or the reason why there is none. If the same
//! question comes again, it ends in the same way. The file is read once, when it is opened; only places are kept in memory.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rlf_endpoint::{ChatMessage, Sampling, Usage};
use rlf_plugins::gates::{AnswerSchema, ModelQuestion};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The end of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// The model answered.
    Answered {
        text: String,
        cut_short: bool,
        usage: Usage,
        seconds: f64,
    },
    /// The model refused the question.
    Refused(String),
    /// A budget of a call or a trajectory was spent.
    OverBudget(String),
}

impl Outcome {
    fn is_answer(&self) -> bool {
        matches!(self, Self::Answered { .. })
    }
}

/// A line of the file.
#[derive(Serialize)]
struct Line<'a> {
    identity: &'a str,
    #[serde(flatten)]
    outcome: &'a Outcome,
    sampling: Sampling,
    messages: &'a [ChatMessage],
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a Value>,
}

/// A line, without the question, which is for people who read the file.
#[derive(Deserialize)]
struct Kept {
    identity: String,
    #[serde(flatten)]
    outcome: Outcome,
}

/// A file of recorded outcomes.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    inner: Mutex<Inner>,
    is_read_only: bool,
}

#[derive(Debug)]
struct Inner {
    file: File,
    length: u64,
    lines: HashMap<String, Place>,
}

/// The place of a line in the file.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: u64,
    length: usize,
    is_answer: bool,
}

/// Keeps a line, unless there is an answer already: the first answer is the one that was given.
fn keep(lines: &mut HashMap<String, Place>, identity: String, place: Place) {
    let kept = lines.entry(identity).or_insert(place);
    if !kept.is_answer {
        *kept = place;
    }
}

impl Record {
    /// Opens a file to read and append. It is made if it does not exist, and a last line without an end is cut off. If another
    /// process appends to it, it is only read.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path_shown = path.display();
                tracing::warn!(
                    "another process records answers in {path_shown}; this one records none"
                );
                return Self::read(path, file, true);
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let record = Self::read(path, file, false)?;
        {
            let inner = record.lock();
            inner.file.set_len(inner.length)?;
        }
        Ok(record)
    }

    /// Opens a file to read.
    pub(crate) fn open_to_read(path: &Path) -> io::Result<Self> {
        Self::read(path, File::open(path)?, true)
    }

    fn read(path: &Path, file: File, is_read_only: bool) -> io::Result<Self> {
        let mut lines = HashMap::new();
        let mut reader = BufReader::new(&file);
        let (mut length, mut number) = (0, 0_usize);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line)?;
            number += 1;
            if line.last() != Some(&b'\n') {
                break;
            }
            let kept: Kept = rlf_json::from_slice(&line).map_err(|error| {
                let what = format!("line {number} is no recorded answer ({error}); remove it");
                io::Error::other(what)
            })?;
            let place = Place {
                start: length,
                length: read,
                is_answer: kept.outcome.is_answer(),
            };
            keep(&mut lines, kept.identity, place);
            length += read as u64;
        }
        Ok(Self {
            path: path.to_owned(),
            inner: Mutex::new(Inner {
                file,
                length,
                lines,
            }),
            is_read_only,
        })
    }

    /// True if the end of a question is recorded.
    pub(crate) fn has(&self, identity: &str) -> bool {
        self.lock().lines.contains_key(identity)
    }

    /// The recorded end of a question.
    pub(crate) fn get(&self, identity: &str) -> io::Result<Option<Outcome>> {
        let inner = self.lock();
        let Some(place) = inner.lines.get(identity).copied() else {
            return Ok(None);
        };
        let mut line = vec![0; place.length];
        inner.file.read_exact_at(&mut line, place.start)?;
        drop(inner);
        let kept = rlf_json::from_slice(&line).map_err(|error| {
            let what = format!("the answer at byte {} cannot be read: {error}", place.start);
            io::Error::other(what)
        })?;
        let Kept { outcome, .. } = kept;
        Ok(Some(outcome))
    }

    /// Keeps the end of a question. If it was kept meanwhile, because the same question was asked twice at once, returns that
    /// one.
    pub(crate) fn put(
        &self,
        identity: &str,
        outcome: Outcome,
        question: ModelQuestion<'_>,
    ) -> io::Result<Outcome> {
        if self.is_read_only {
            return Ok(outcome);
        }
        let mut line = serde_json::to_vec(&Line {
            identity,
            outcome: &outcome,
            sampling: question.sampling,
            messages: question.messages,
            schema: question.schema.map(AnswerSchema::value),
        })?;
        line.push(b'\n');
        let mut inner = self.lock();
        if inner.lines.get(identity).is_some_and(|kept| kept.is_answer) {
            drop(inner);
            return Ok(self.get(identity)?.unwrap_or(outcome));
        }
        // A write that failed half-way must not damage the next line.
        if let Err(error) = inner.file.write_all(&line) {
            inner.file.set_len(inner.length).ok();
            return Err(error);
        }
        let place = Place {
            start: inner.length,
            length: line.len(),
            is_answer: outcome.is_answer(),
        };
        keep(&mut inner.lines, identity.to_owned(), place);
        inner.length += line.len() as u64;
        Ok(outcome)
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: &str) -> Outcome {
        Outcome::Answered {
            text: text.to_owned(),
            cut_short: false,
            usage: Usage::default(),
            seconds: 0.5,
        }
    }

    fn put(record: &Record, identity: &str, outcome: Outcome) -> Outcome {
        let question = ModelQuestion {
            messages: &[ChatMessage::user("?")],
            sampling: Sampling::default(),
            schema: None,
        };
        record.put(identity, outcome, question).unwrap()
    }

    #[test]
    fn an_answer_is_found_again_even_after_a_write_that_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/judge.jsonl");
        let record = Record::open(&path).unwrap();
        put(&record, "1", answered("one"));
        put(&record, "2", Outcome::Refused("no".into()));
        drop(record);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();

        let record = Record::open(&path).unwrap();
        assert_eq!(record.get("1").unwrap(), Some(answered("one")));
        assert_eq!(record.get("2").unwrap(), None);
        put(&record, "2", Outcome::OverBudget("spent".into()));
        let kept = record.get("2").unwrap();
        assert_eq!(kept, Some(Outcome::OverBudget("spent".into())));
        let read = Record::open_to_read(&path).unwrap();
        assert_eq!(read.get("2").unwrap(), kept);
    }

    #[test]
    fn the_first_answer_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("judge.jsonl");
        let record = Record::open(&path).unwrap();
        put(&record, "1", answered("one"));
        assert_eq!(put(&record, "1", answered("eins")), answered("one"));
        put(&record, "2", Outcome::Refused("no".into()));
        put(&record, "2", answered("two"));
        assert_eq!(record.get("2").unwrap(), Some(answered("two")));
        drop(record);
        let record = Record::open(&path).unwrap();
        assert_eq!(record.get("2").unwrap(), Some(answered("two")));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn two_processes_do_not_write_into_one_file_and_a_foreign_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("judge.jsonl");
        let first = Record::open(&path).unwrap();
        let second = Record::open(&path).unwrap();
        put(&second, "3", answered("three"));
        assert_eq!(Record::open_to_read(&path).unwrap().get("3").unwrap(), None);
        drop((first, second));
        std::fs::write(&path, "{}\n").unwrap();
        let error = Record::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
    }
}
