//! The errors of reading and writing files of rows.

use std::path::PathBuf;

/// The reason why a file could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file asked for.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file asked for.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A row that fits no format, or not its own.
    #[error("{}:{line}: {source}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// Line in which the row begins, from 1; in a Parquet file, the number of the row.
        line: usize,
        /// The wrong field, and how to fix it.
        source: RowError,
    },
    /// A file without rows.
    #[error("{}: no rows in it; it needs one JSON object a line, or one array of objects", .0.display())]
    Empty(PathBuf),
    /// A task file without tasks.
    #[error("{}: no tasks in it; it needs one JSON object a line, or one array of objects", .0.display())]
    NoTasks(PathBuf),
    /// A run without trajectories that count.
    #[error(
        "{}: no trajectories in it that count; name a run's folder or a file of its folder `trajectories` \
         (a run keeps some where checkpoint.trajectories_every is not 0)",
        .0.display()
    )]
    NoTrajectories(PathBuf),
    /// A task without FTRL's sub-answers, of which no step-level samples can be made.
    #[error("task {task:?}: {message}")]
    NotFtrl {
        /// The task's id.
        task: String,
        /// The wrong field.
        message: String,
    },
    /// A Parquet file that cannot be read.
    #[error("{}: not a Parquet file that can be read: {message}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The problem.
        message: String,
    },
    /// An unknown name of a format.
    #[error("there is no format {name:?}; the formats are {known}")]
    UnknownFormat {
        /// The name asked for.
        name: String,
        /// The known names.
        known: String,
    },
}

impl ImportError {
    /// True if the rows after it can still be read.
    pub fn is_of_a_row(&self) -> bool {
        matches!(self, Self::Row { .. })
    }
}

/// The reason why a row, or the demonstration made of it, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// A field is missing.
    #[error("field `{field}` is missing{hint}")]
    Missing {
        /// The field: `given`, or `tools[0].name` inside another.
        field: String,
        /// The rest of the message: what belongs there. Mostly empty.
        hint: &'static str,
    },
    /// A field has a value that cannot be used.
    #[error("field `{field}`: {problem}")]
    Field {
        /// The field, or an item of it, such as `messages[3]`.
        field: String,
        /// The problem, and how to fix it.
        problem: String,
    },
    /// A problem of the whole row: it is not JSON, not an object, or not of a known format.
    #[error("{0}")]
    Row(String),
    /// An error in a row whose format was recognised or given.
    #[error("{source} (read as {format})")]
    ReadAs {
        /// The name of the row's format.
        format: &'static str,
        /// The error.
        source: Box<RowError>,
    },
}

impl RowError {
    pub(crate) fn missing(field: impl Into<String>) -> Self {
        Self::Missing {
            field: field.into(),
            hint: "",
        }
    }

    pub(crate) fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field {
            field: field.into(),
            problem: problem.into(),
        }
    }

    /// The error of a row that does not fit the type that it is read as.
    pub(crate) fn from_type(error: &serde_path_to_error::Error<serde_json::Error>) -> Self {
        match error.path().to_string().as_str() {
            // The message of an unknown or missing field names it.
            "." => Self::Row(error.inner().to_string()),
            path => Self::field(path, error.inner().to_string()),
        }
    }
}
