//! From the bound files to rows: CSV, JSON lines, or a JSON array of objects.

use std::fmt;

use rlf_plugin::serde_json::{self, Map, Value};

/// A table as it was read: columns in order of appearance, cells as text.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<String>,
    /// Each row is as long as `columns`, or shorter if columns appeared later.
    pub(crate) rows: Vec<Vec<String>>,
}

/// The reason why a file is not a table.
#[derive(Debug)]
pub(crate) struct ReadError {
    path: String,
    line: Option<u64>,
    reason: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data `table`, file {}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// Reads every file into one table.
pub(crate) fn rows(files: &[(String, String)]) -> Result<Rows, ReadError> {
    let mut table = Rows::default();
    for (path, text) in files {
        // The first character shows the format, whatever the file's name.
        let read = match text.trim_start().chars().next() {
            Some('[') => json_array(text, &mut table),
            Some('{') => json_lines(text, &mut table),
            _ => csv(text, &mut table),
        };
        read.map_err(|(line, reason)| ReadError {
            path: path.clone(),
            line,
            reason,
        })?;
    }
    Ok(table)
}

type Failure = (Option<u64>, String);

fn csv(text: &str, table: &mut Rows) -> Result<(), Failure> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let describe = |error: &csv::Error| {
        let line = error.position().map(csv::Position::line);
        (line, error.to_string())
    };
    let headers = reader.headers().map_err(|error| describe(&error))?;
    if let Some(twice) = (1..headers.len()).find(|at| {
        headers
            .iter()
            .take(*at)
            .any(|earlier| earlier == &headers[*at])
    }) {
        return Err((
            Some(1),
            format!("two columns are called `{}`", &headers[twice]),
        ));
    }
    let positions: Vec<usize> = headers
        .iter()
        .map(|header| table.position(header))
        .collect();
    let mut record = csv::StringRecord::new();
    while reader
        .read_record(&mut record)
        .map_err(|error| describe(&error))?
    {
        let mut row = vec![String::new(); table.columns.len()];
        for (position, cell) in positions.iter().zip(&record) {
            cell.clone_into(&mut row[*position]);
        }
        table.rows.push(row);
    }
    Ok(())
}

fn json_lines(text: &str, table: &mut Rows) -> Result<(), Failure> {
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let object: Map<String, Value> = serde_json::from_str(line)
            .map_err(|error| (Some(index as u64 + 1), error.to_string()))?;
        table.push(object);
    }
    Ok(())
}

fn json_array(text: &str, table: &mut Rows) -> Result<(), Failure> {
    let objects: Vec<Map<String, Value>> = serde_json::from_str(text)
        .map_err(|error| (Some(error.line() as u64), error.to_string()))?;
    for object in objects {
        table.push(object);
    }
    Ok(())
}

impl Rows {
    /// The position of a column, which is added if it is new.
    fn position(&mut self, column: &str) -> usize {
        self.columns
            .iter()
            .position(|known| known == column)
            .unwrap_or_else(|| {
                self.columns.push(column.to_owned());
                self.columns.len() - 1
            })
    }

    fn push(&mut self, object: Map<String, Value>) {
        let mut row = vec![String::new(); self.columns.len()];
        for (column, value) in object {
            let position = self.position(&column);
            row.resize(self.columns.len(), String::new());
            row[position] = shown(value);
        }
        self.rows.push(row);
    }
}

/// A value as the model reads it.
fn shown(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(truth) => if truth { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text,
        Value::Array(items) => items.into_iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
