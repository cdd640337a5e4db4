//! Artefacts on disk: JSON lines. The first line says the schema, its version, and the key of what the artefact was made
//! from. Every other line has an item, or the rejection of one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::RowsError;
use super::rejection::Rejection;

/// Version of all schemas. An artefact of another version is made again.
pub const VERSION: u32 = 1;

/// The first line of an artefact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// `rlf-forge/rows/NAME`.
    pub schema: String,
    /// [`VERSION`].
    pub version: u32,
    /// A hash of the options and of the artefacts that it was made from.
    pub key: String,
}

impl Header {
    pub(crate) fn new(name: &str, key: String) -> Self {
        Self {
            schema: format!("rlf-forge/rows/{name}"),
            version: VERSION,
            key,
        }
    }
}

/// A line of an artefact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line<T> {
    /// An item that passed.
    Item(T),
    /// An item that did not.
    Rejected(Rejection),
}

/// The header of an artefact. None if there is no file, or its first line is no header.
pub(crate) fn header(path: &Path) -> Option<Header> {
    let mut first = String::new();
    BufReader::new(File::open(path).ok()?)
        .read_line(&mut first)
        .ok()?;
    serde_json::from_str(&first).ok()
}

/// The lines of an artefact after its header.
pub(crate) fn lines<T: DeserializeOwned>(
    path: &Path,
) -> Result<impl Iterator<Item = Result<Line<T>, RowsError>> + use<T>, RowsError> {
    let place = path.to_owned();
    let reader = BufReader::new(File::open(path).map_err(|source| RowsError::read(path, source))?);
    let numbered = (1..).zip(reader.lines()).skip(1);
    Ok(numbered.map(move |(number, line)| {
        let line = line.map_err(|source| RowsError::read(&place, source))?;
        serde_json::from_str(&line).map_err(|error| RowsError::line(&place, number, &error))
    }))
}

/// Writes an artefact whole: a run that is interrupted leaves the old one, or none.
pub(crate) fn write<T: Serialize>(
    path: &Path,
    header: &Header,
    lines: impl Iterator<Item = Result<Line<T>, RowsError>>,
) -> Result<(), RowsError> {
    let mut failed = None;
    let written = rlf_files::write_with(path, |out| {
        line(out, header)?;
        for one in lines {
            match one {
                Ok(one) => line(out, &one)?,
                Err(error) => {
                    failed = Some(error);
                    return Err(io::ErrorKind::Other.into());
                }
            }
        }
        Ok(())
    });
    match (failed, written) {
        (Some(error), _) => Err(error),
        (None, written) => written.map_err(|source| RowsError::write(path, source)),
    }
}

/// Writes one JSON line.
pub(crate) fn line(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// The hash of a file's content.
pub(crate) fn hash(path: &Path) -> Result<String, RowsError> {
    let mut hasher = blake3::Hasher::new();
    let file = File::open(path).map_err(|source| RowsError::read(path, source))?;
    hasher
        .update_reader(file)
        .map_err(|source| RowsError::read(path, source))?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// The hash of several texts.
pub(crate) fn key(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// The file of an artefact.
pub(crate) fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.jsonl"))
}
