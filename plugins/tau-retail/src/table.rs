//! One file of the database: records by id.

use std::fmt;

use rlf_plugin::serde_json::{self, Map, Value};

/// True if a record can be read.
pub(crate) type Check = fn(&Value) -> Result<(), serde_json::Error>;

/// Records sorted by id; a record is referred to by its row.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Row>,
    /// Rows in the order of the file, which is the order of a search.
    order: Vec<usize>,
}

#[derive(Debug)]
struct Row {
    id: String,
    record: Value,
}

/// The reason why a file is not a valid table.
#[derive(Debug)]
pub(crate) struct TableError {
    id: Option<String>,
    error: serde_json::Error,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "the record {id}: {}", self.error),
            None => self.error.fmt(f),
        }
    }
}

impl Table {
    /// Reads a JSON object of records, all of which `check` must accept.
    pub(crate) fn parse(json: &str, check: Check) -> Result<Self, TableError> {
        let records = serde_json::from_str::<Map<String, Value>>(json);
        let records = records.map_err(|error| TableError { id: None, error })?;
        let mut rows = Vec::with_capacity(records.len());
        for (position, (id, record)) in records.into_iter().enumerate() {
            if let Err(error) = check(&record) {
                let id = Some(id);
                return Err(TableError { id, error });
            }
            rows.push((position, Row { id, record }));
        }
        rows.sort_unstable_by(|(_, one), (_, other)| one.id.cmp(&other.id));
        let mut order = vec![0; rows.len()];
        for (row, (position, _)) in rows.iter().enumerate() {
            order[*position] = row;
        }
        let rows = rows.into_iter().map(|(_, row)| row).collect();
        Ok(Self { rows, order })
    }

    pub(crate) fn row(&self, id: &str) -> Option<usize> {
        self.rows
            .binary_search_by(|row| row.id.as_str().cmp(id))
            .ok()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The id of a row, which must exist.
    pub(crate) fn id(&self, row: usize) -> &str {
        &self.rows[row].id
    }

    /// The record of a row, which must exist.
    pub(crate) fn record(&self, row: usize) -> &Value {
        &self.rows[row].record
    }

    /// Ids and records, sorted by id.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.rows.iter().map(|row| (row.id.as_str(), &row.record))
    }

    /// Rows and records in the order of the file.
    pub(crate) fn as_filed(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.order.iter().map(|row| (*row, self.record(*row)))
    }
}
