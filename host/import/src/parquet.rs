//! Reads the rows of a Parquet file as JSON. Lists and structs become arrays and objects. Null members are left out,
//! because a column has every member that any row has.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use parquet::errors::Result;
use parquet::file::reader::SerializedFileReader;
use parquet::record::reader::RowIter;
use serde_json::Value;

use crate::error::ImportError;

pub(crate) fn rows(path: &Path, file: File) -> std::result::Result<ParquetRows, ImportError> {
    let open = || {
        Ok(RowIter::from_file_into(Box::new(
            SerializedFileReader::new(file)?,
        )))
    };
    let rows = guarded(open).map_err(|message| ImportError::Parquet {
        path: path.to_owned(),
        message,
    })?;
    Ok(ParquetRows {
        path: path.to_owned(),
        rows: Some(rows),
        row: 0,
    })
}

pub(crate) struct ParquetRows {
    path: PathBuf,
    /// The rows; none after the file turned out to be broken, because nothing more can be read.
    rows: Option<RowIter<'static>>,
    row: usize,
}

impl Iterator for ParquetRows {
    type Item = std::result::Result<(usize, Value), ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.rows.as_mut()?;
        let read = guarded(|| {
            let row = rows.next().transpose()?;
            Ok(row.map(|row| without_nulls(row.to_json_value())))
        });
        match read {
            Ok(row) => {
                self.row += 1;
                row.map(|row| Ok((self.row, row)))
            }
            Err(message) => {
                self.rows = None;
                let message = format!("row {}: {message}", self.row + 1);
                Some(Err(ImportError::Parquet {
                    path: self.path.clone(),
                    message,
                }))
            }
        }
    }
}

/// Catches panics of the library, which trusts some promises of a file's header.
fn guarded<T>(read: impl FnOnce() -> Result<T>) -> std::result::Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err("its pages are not what its header says".into()),
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name, without_nulls(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}
