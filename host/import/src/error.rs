//! What can go wrong with a file of rows.

use std::path::PathBuf;

/// Why a file could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A row that fits no format, or not the one it is of.
    #[error("{}:{line}: {message}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// Where the row begins, from 1; in a Parquet file, which row it is.
        line: usize,
        /// Which field is wrong, and how to mend it.
        message: String,
    },
    /// There is no row at all.
    #[error("{}: no rows in it; it needs one JSON object a line, or one array of objects", .0.display())]
    Empty(PathBuf),
    /// There is no task at all.
    #[error("{}: no tasks in it; it needs one JSON object a line, or one array of objects", .0.display())]
    NoTasks(PathBuf),
    /// A run that kept nothing to learn from.
    #[error(
        "{}: no trajectories in it that count; name a run's folder or a file of its folder `trajectories` \
         (a run keeps some where checkpoint.trajectories_every is not 0)",
        .0.display()
    )]
    NoTrajectories(PathBuf),
    /// A Parquet file that is not one.
    #[error("{}: not a Parquet file that can be read: {message}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A format's name that is none.
    #[error("there is no format {name:?}; the formats are {known}")]
    UnknownFormat {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
}

impl ImportError {
    /// Whether the rows behind it can still be read.
    pub fn is_of_a_row(&self) -> bool {
        matches!(self, Self::Row { .. })
    }
}
