//! Reads the rows of a file as JSON values, for every kind of file.

use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use serde_json::Value;

use crate::error::ImportError;
use crate::json_rows::{JsonRows, NoRow};

/// The rows of a file as JSON, each with its line.
pub(crate) type FileRows = Box<dyn Iterator<Item = Result<(usize, Value), ImportError>>>;

/// Opens a file by the ending of its name.
pub(crate) fn file_rows(path: &Path) -> Result<FileRows, ImportError> {
    let fail = |source| ImportError::Read {
        path: path.to_owned(),
        source,
    };
    let file = open(path).map_err(fail)?;
    if path
        .extension()
        .is_some_and(|extension| extension == "parquet")
    {
        return parquet(path, file);
    }
    let path = path.to_owned();
    let rows = JsonRows::new(BufReader::with_capacity(1 << 16, file));
    Ok(Box::new(rows.map(move |row| {
        row.map_err(|error| match error {
            NoRow::Io(source) => ImportError::Read {
                path: path.clone(),
                source,
            },
            NoRow::Bad(line, source) => ImportError::Row {
                path: path.clone(),
                line,
                source,
            },
        })
    })))
}

/// Opens a regular file or a pipe. Another device may never end.
fn open(path: &Path) -> std::io::Result<File> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        let problem = "it is a device, which may never end; name a file or a pipe";
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            problem,
        ));
    }
    Ok(file)
}

#[cfg(feature = "parquet")]
fn parquet(path: &Path, file: File) -> Result<FileRows, ImportError> {
    Ok(Box::new(crate::parquet::rows(path, file)?))
}

#[cfg(not(feature = "parquet"))]
fn parquet(path: &Path, _: File) -> Result<FileRows, ImportError> {
    Err(ImportError::Parquet {
        path: path.to_owned(),
        message:
            "this build has no feature `parquet`; build with it, or write the rows as JSON lines \
                  (pandas: read_parquet(..).to_json(.., orient=\"records\", lines=True))"
                .into(),
    })
}

/// The file's name without its ending, which names rows that have no name.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}
