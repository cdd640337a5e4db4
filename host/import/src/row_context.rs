//! Everything that the reader of one row knows, apart from the row.

use crate::options::Options;

/// The import's options, and where the row is.
pub(crate) struct RowContext<'a> {
    pub(crate) options: &'a Options,
    /// The file's name without its ending, for the ids of rows that have none.
    pub(crate) stem: &'a str,
    pub(crate) line: usize,
}

impl RowContext<'_> {
    /// The id of a row that has none.
    pub(crate) fn id(&self) -> String {
        format!("{}-{}", self.stem, self.line)
    }

    /// The environment asked for, or the format's own.
    pub(crate) fn environment(&self, default: &str) -> String {
        let asked = self.options.environment.clone();
        asked.unwrap_or_else(|| default.to_owned())
    }
}
