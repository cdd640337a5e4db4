//! Reads a file's rows as tasks and demonstrations, and writes them to a file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rlf_dialogue::Task;
use serde::Serialize;
use serde_json::Value;

use crate::demonstration::Demonstration;
use crate::error::{ImportError, RowError};
use crate::file_rows::{FileRows, file_rows, stem};
use crate::format::Format;
use crate::formats::{self, Imported};
use crate::options::Options;
use crate::row_context::RowContext;

/// Reads a whole file. The first row that cannot be read is an error.
pub fn read(path: &Path, options: &Options) -> Result<Vec<Imported>, ImportError> {
    let imported: Vec<Imported> = rows(path, options)?.collect::<Result<_, _>>()?;
    if imported.is_empty() {
        return Err(ImportError::Empty(path.to_owned()));
    }
    Ok(imported)
}

/// Reads the rows of a file one after the other: JSON lines, JSON arrays, or Parquet (if the name ends in `.parquet`, with
/// the feature `parquet`). At most one row is in memory. After a row that cannot be read the iterator continues, unless
/// the file itself is broken ([`ImportError::is_of_a_row`]).
pub fn rows(path: &Path, options: &Options) -> Result<Rows, ImportError> {
    Ok(Rows {
        path: path.to_owned(),
        stem: stem(path),
        options: options.clone(),
        values: file_rows(path)?,
        seen: HashSet::new(),
        renamed: 0,
    })
}

/// Iterator over the imported rows of a file, made by [`rows`].
pub struct Rows {
    path: PathBuf,
    stem: String,
    options: Options,
    values: FileRows,
    /// The ids so far.
    seen: HashSet<String>,
    renamed: usize,
}

impl Rows {
    /// Number of rows so far whose id an earlier row has. The line number is appended to such an id.
    #[must_use]
    pub fn renamed(&self) -> usize {
        self.renamed
    }

    fn import(&mut self, line: usize, row: Value) -> Result<Imported, RowError> {
        let context = RowContext {
            options: &self.options,
            stem: &self.stem,
            line,
        };
        let (format, mut imported) = formats::import(row, &context)?;
        let is_own = matches!(format, Format::Tasks | Format::Demonstrations);
        if !is_own && self.seen.contains(imported.id()) {
            // In concatenated data sets, each part counts from 0.
            let id = format!("{}@{line}", imported.id());
            *imported.id_mut() = id;
            self.renamed += 1;
        }
        if !self.seen.insert(imported.id().to_owned()) {
            let problem = format!("{:?} stands before it already", imported.id());
            return Err(RowError::field("id", problem));
        }
        Ok(imported)
    }
}

impl Iterator for Rows {
    type Item = Result<Imported, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (line, row) = match self.values.next()? {
            Ok(row) => row,
            Err(error) => return Some(Err(error)),
        };
        Some(self.import(line, row).map_err(|source| ImportError::Row {
            path: self.path.clone(),
            line,
            source,
        }))
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Writes tasks as JSON lines, which [`read_tasks`](crate::read_tasks) reads. The file is written completely or not at
/// all.
pub fn write_tasks<'t>(
    path: &Path,
    tasks: impl IntoIterator<Item = &'t Task>,
) -> Result<(), ImportError> {
    write_lines(path, tasks)
}

/// Writes demonstrations as JSON lines, which [`read`] reads. The file is written completely or not at all.
pub fn write_demonstrations<'d>(
    path: &Path,
    demonstrations: impl IntoIterator<Item = &'d Demonstration>,
) -> Result<(), ImportError> {
    write_lines(path, demonstrations)
}

fn write_lines(path: &Path, rows: impl IntoIterator<Item: Serialize>) -> Result<(), ImportError> {
    let written = rlf_files::write_with(path, |out| {
        for (number, row) in rows.into_iter().enumerate() {
            let row = serde_json::to_string(&row)?;
            // Values that were JSON in a text may now be nested too deeply.
            serde_json::from_str::<Value>(&row).map_err(|error| {
                std::io::Error::other(format!(
                    "row {} could not be read again: {error}",
                    number + 1
                ))
            })?;
            out.write_all(row.as_bytes())?;
            out.write_all(b"\n")?;
        }
        Ok(())
    });
    written.map_err(|source| ImportError::Write {
        path: path.to_owned(),
        source,
    })
}
