//! Artefacts on disk: JSON lines. The first line says the schema, its version, and the key of what the artefact was made
//! from. Every other line has an item, or the rejection of one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::error::RowsError;
use super::rejection::{Finding, Rejection};
use super::stage::Stage;
use crate::lines;

/// Version of all schemas. An artefact of another version is made again.
const VERSION: u32 = 1;

/// The first line of an artefact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// `rlf-forge/rows/NAME`.
    pub schema: String,
    /// Version of the schema.
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
    /// An item that did not pass.
    Rejected(Rejection),
}

impl<T> Line<T> {
    /// The line of an item that a stage made or rejected.
    pub(crate) fn new(made: Result<T, Finding>, id: String, stage: Stage) -> Self {
        match made {
            Ok(item) => Self::Item(item),
            Err(finding) => Self::Rejected(finding.rejects(id, stage)),
        }
    }
}

/// The header of an artefact. None if there is no file, or if its first line is not a header.
pub(crate) fn header(path: &Path) -> Option<Header> {
    let mut first = String::new();
    BufReader::new(File::open(path).ok()?)
        .read_line(&mut first)
        .ok()?;
    serde_json::from_str(&first).ok()
}

/// One line of a file, not yet read as JSON.
pub(crate) struct Raw {
    pub(crate) text: String,
    /// Its number, from 1.
    number: usize,
}

impl Raw {
    /// The line as JSON. `path` is its file.
    pub(crate) fn parse<T: DeserializeOwned>(&self, path: &Path) -> Result<T, RowsError> {
        serde_json::from_str(&self.text).map_err(|error| RowsError::line(path, self.number, &error))
    }

    /// The item of the line, which must not have a rejection.
    pub(crate) fn item<T: DeserializeOwned>(&self, path: &Path) -> Result<T, RowsError> {
        match self.parse(path)? {
            Line::Item(item) => Ok(item),
            Line::Rejected(_) => Err(RowsError::line(path, self.number, &"it has no item")),
        }
    }
}

/// The lines of a file after its header.
pub(crate) fn raw_lines(
    path: &Path,
) -> Result<impl Iterator<Item = Result<Raw, RowsError>> + use<>, RowsError> {
    let place = path.to_owned();
    let reader = BufReader::new(File::open(path).map_err(|source| RowsError::read(path, source))?);
    let numbered = (1..).zip(reader.lines()).skip(1);
    Ok(numbered.map(move |(number, text)| match text {
        Ok(text) => Ok(Raw { text, number }),
        Err(source) => Err(RowsError::read(&place, source)),
    }))
}

/// The lines of an artefact after its header.
pub(crate) fn lines<T: DeserializeOwned>(
    path: &Path,
) -> Result<impl Iterator<Item = Result<Line<T>, RowsError>> + use<T>, RowsError> {
    let place = path.to_owned();
    Ok(raw_lines(path)?.map(move |line| line?.parse(&place)))
}

/// The lines of an artefact that have an item, as they are in the file.
pub(crate) fn raw_items(
    path: &Path,
) -> Result<impl Iterator<Item = Result<Raw, RowsError>> + use<>, RowsError> {
    let place = path.to_owned();
    let is_item = move |line: &Raw| {
        let line = line.parse::<Line<IgnoredAny>>(&place);
        line.map(|line| matches!(line, Line::Item(_)))
    };
    Ok(raw_lines(path)?.filter_map(move |line| {
        let kept = line.and_then(|line| Ok(is_item(&line)?.then_some(line)));
        kept.transpose()
    }))
}

/// Writes a whole artefact at once. An interrupted run leaves the old artefact, or none.
pub(crate) fn write<T: Serialize>(
    path: &Path,
    header: &Header,
    lines: impl Iterator<Item = Result<Line<T>, RowsError>>,
) -> Result<(), RowsError> {
    write_with(path, |out| {
        lines::write(out, header).map_err(|source| RowsError::write(path, source))?;
        for one in lines {
            lines::write(out, &one?).map_err(|source| RowsError::write(path, source))?;
        }
        Ok(())
    })
}

/// Writes a file whole. If `fill` fails, the old file stays.
pub(crate) fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), RowsError>,
) -> Result<(), RowsError> {
    let mut failed = None;
    let written = rlf_files::write_with(path, |out| {
        fill(out).map_err(|error| {
            failed = Some(error);
            io::ErrorKind::Other.into()
        })
    });
    match failed {
        Some(error) => Err(error),
        None => written.map_err(|source| RowsError::write(path, source)),
    }
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
pub(crate) fn file(folder: &Path, stage: Stage) -> PathBuf {
    folder.join(format!("{}.jsonl", stage.artefact()))
}
