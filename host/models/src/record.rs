//! Recorded answers: JSON lines, appended as they arrive.
//!
//! A line has the hash of everything that the answer depends on. If the same question comes again with the same seed, it
//! gets the recorded answer. The file is read once, when it is opened; only places are kept in memory.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rlf_endpoint::{ChatMessage, Completion, Sampling, Usage};
use serde::{Deserialize, Serialize};

/// An answer as a line of the file.
#[derive(Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// The hash of the question.
    identity: String,
    pub(crate) text: String,
    pub(crate) cut_short: bool,
    pub(crate) usage: Usage,
    pub(crate) seconds: f64,
}

/// The question, for people who read the file.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    answer: &'a Recorded,
    sampling: Sampling,
    messages: &'a [ChatMessage],
}

impl Recorded {
    pub(crate) fn completion(self) -> Completion {
        Completion {
            text: self.text,
            cut_short: self.cut_short,
            usage: Some(self.usage),
        }
    }
}

/// A file of recorded answers.
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
    /// Place and length of each line.
    places: HashMap<String, (u64, usize)>,
}

impl Record {
    /// Opens a file to read and append. It is made if it does not exist. A last line without an end is cut off.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path)?;
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
        #[derive(Deserialize)]
        struct Key {
            identity: String,
        }
        let mut places = HashMap::new();
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
            let key: Key = serde_json::from_slice(&line).map_err(|error| {
                let what = format!("line {number} is no recorded answer ({error}); remove it");
                io::Error::other(what)
            })?;
            places.insert(key.identity, (length, read));
            length += read as u64;
        }
        Ok(Self {
            path: path.to_owned(),
            inner: Mutex::new(Inner {
                file,
                length,
                places,
            }),
            is_read_only,
        })
    }

    /// The recorded answer to a question.
    pub(crate) fn get(&self, identity: &str) -> io::Result<Option<Recorded>> {
        let inner = self.lock();
        let Some((place, length)) = inner.places.get(identity).copied() else {
            return Ok(None);
        };
        let mut line = vec![0; length];
        inner.file.read_exact_at(&mut line, place)?;
        drop(inner);
        let recorded = serde_json::from_slice(&line);
        recorded.map(Some).map_err(|error| {
            let what = format!("the answer at byte {place} cannot be read: {error}");
            io::Error::other(what)
        })
    }

    /// Keeps an answer.
    pub(crate) fn put(
        &self,
        identity: &str,
        answer: &Completion,
        usage: Usage,
        seconds: f64,
        question: (&[ChatMessage], Sampling),
    ) -> io::Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        let recorded = Recorded {
            identity: identity.to_owned(),
            text: answer.text.clone(),
            cut_short: answer.cut_short,
            usage,
            seconds,
        };
        let mut line = serde_json::to_vec(&Line {
            answer: &recorded,
            sampling: question.1,
            messages: question.0,
        })?;
        line.push(b'\n');
        let mut inner = self.lock();
        // A write that failed half-way must not damage the next line.
        if let Err(error) = inner.file.write_all(&line) {
            inner.file.set_len(inner.length).ok();
            return Err(error);
        }
        let place = (inner.length, line.len());
        inner.places.insert(identity.to_owned(), place);
        inner.length += line.len() as u64;
        Ok(())
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

    #[test]
    fn an_answer_is_found_again_even_after_a_write_that_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/judge.jsonl");
        let answer = |text: &str| Completion {
            text: text.to_owned(),
            cut_short: false,
            usage: None,
        };
        let put = |record: &Record, identity, text| {
            let question = (&[ChatMessage::user("?")][..], Sampling::default());
            record.put(identity, &answer(text), Usage::default(), 0.5, question)
        };
        let record = Record::open(&path).unwrap();
        put(&record, "1", "one").unwrap();
        put(&record, "2", "two").unwrap();
        drop(record);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();

        let record = Record::open(&path).unwrap();
        let text = |identity| record.get(identity).unwrap().map(|found| found.text);
        assert_eq!(text("1").as_deref(), Some("one"));
        assert_eq!(text("2"), None);
        put(&record, "2", "zwei").unwrap();
        assert_eq!(text("2").as_deref(), Some("zwei"));
        let read = Record::open_to_read(&path).unwrap();
        assert_eq!(read.get("2").unwrap().unwrap().text, "zwei");

        std::fs::write(&path, "{}\n").unwrap();
        let error = Record::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
    }
}
