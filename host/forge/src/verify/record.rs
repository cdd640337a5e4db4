//! A record of verdicts, so that what was verified before and has not changed need not be verified again.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lines;

/// Maximum size of a record, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// A record cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot read or write the record {path}: {source}")]
pub struct RecordError {
    path: PathBuf,
    source: io::Error,
}

/// A file of JSON lines, each with a verdict and the key of what was verified. A line that was cut off by an interruption,
/// or that an older version wrote, is passed over.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    verdicts: BTreeMap<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct Line<T> {
    key: String,
    verdict: T,
}

impl Record {
    /// Opens a record, which is created if it does not exist.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let error = |source| RecordError {
            path: path.to_owned(),
            source,
        };
        let bytes = match rlf_files::read(path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(source) if source.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(error(source)),
        };
        let lines = lines::numbered(&bytes)
            .filter_map(|(_, line)| rlf_json::from_slice::<Line<Value>>(line).ok());
        let verdicts = lines.map(|Line { key, verdict }| (key, verdict)).collect();
        let mut options = OpenOptions::new();
        let mut file = options
            .create(true)
            .append(true)
            .open(path)
            .map_err(error)?;
        // What was cut off stays, because the operator may have named another file by mistake.
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            file.write_all(b"\n").map_err(error)?;
        }
        Ok(Self {
            path: path.to_owned(),
            verdicts,
        })
    }

    /// The key of something: the hash of its parts, and of this program's version. The parts are everything that the
    /// verdict depends on: the specification, the effort, the component that plays it, and the limits of the sandbox.
    pub fn key(parts: &[&str]) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in parts.iter().chain(&[env!("CARGO_PKG_VERSION")]) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// The recorded verdict for a key. None if there is none that can be read.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        T::deserialize(self.verdicts.get(key)?).ok()
    }

    /// Appends a verdict.
    pub fn add<T: Serialize>(&mut self, key: &str, verdict: &T) -> Result<(), RecordError> {
        let line = Line {
            key: key.to_owned(),
            verdict,
        };
        lines::append(&self.path, [line]).map_err(|source| RecordError {
            path: self.path.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_found_again_by_their_key_even_after_an_interruption() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("verified.jsonl");
        let (first, second) = (Record::key(&["a", "b"]), Record::key(&["ab"]));
        assert_ne!(first, second);
        let mut record = Record::open(&path).unwrap();
        assert_eq!(record.get::<u32>(&first), None);
        record.add(&first, &7).unwrap();
        // The program was stopped while it wrote a character of two bytes.
        let cut = [&std::fs::read(&path).unwrap(), &b"{\"key\":\"\xc3"[..]].concat();
        std::fs::write(&path, cut).unwrap();
        let mut record = Record::open(&path).unwrap();
        assert_eq!(record.get::<u32>(&first), Some(7));
        record.add(&second, &8).unwrap();
        let record = Record::open(&path).unwrap();
        assert_eq!(
            (record.get::<u32>(&first), record.get::<u32>(&second)),
            (Some(7), Some(8))
        );
        let error = Record::open(folder.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot read or write the record "),
            "{error}"
        );
    }
}
