//! One query on a connection that can only read, within limits.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rusqlite::{
    Connection, ErrorCode,
    hooks::{AuthAction, AuthContext, Authorization},
    limits::Limit,
    types::{Value, ValueRef},
};

use crate::{compare::Table, sql};

/// The limits of one query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Steps of SQLite's virtual machine.
    pub(crate) steps: u64,
    pub(crate) rows: usize,
    /// Size of the result.
    pub(crate) bytes: usize,
    /// Size of one value at any point of the query.
    pub(crate) value_bytes: usize,
}

/// The reason why a query gave no result.
#[derive(Debug, PartialEq)]
pub(crate) enum Stopped {
    /// It is not a query that may run here, or not a query.
    Refused(String),
    /// It ran longer than its limit.
    Steps(u64),
    /// It gave this many rows, more than its limit.
    Rows(usize),
    /// Its result is larger than its limit.
    Bytes(usize),
    /// One value in it is larger than its limit.
    ValueBytes(usize),
    /// It sorts, groups or keeps more data than SQLite may hold.
    Memory,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "{why}"),
            Self::Steps(limit) => write!(f, "runs longer than max_steps = {limit}"),
            Self::Rows(rows) => write!(f, "gives {rows} rows, which is more than max_rows allows"),
            Self::Bytes(limit) => write!(f, "gives a result larger than max_bytes = {limit}"),
            Self::ValueBytes(limit) => {
                write!(
                    f,
                    "makes a value larger than the {limit} bytes it may have (max_bytes)"
                )
            }
            Self::Memory => write!(
                f,
                "needs more memory than there is for sorting and grouping"
            ),
        }
    }
}

/// Steps between two checks of the limit.
const STRIDE: u64 = 1000;

/// Limits of SQLite that are large enough for every query. A function is one step however long it takes, and nested
/// queries and expressions are compiled by recursion, on the sandbox's stack.
const FIXED: [(Limit, i32); 5] = [
    // `LIKE` takes time proportional to the pattern's length times the text's.
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 250),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 127),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 250),
    (Limit::SQLITE_LIMIT_PARSER_DEPTH, 500),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
];

/// Sets the limits of a connection.
pub(crate) fn limit(connection: &mut Connection, limits: &Limits) -> rusqlite::Result<()> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, limits.value_bytes as i32)?;
    for (limit, value) in FIXED {
        connection.set_limit(limit, value)?;
    }
    let taken = Arc::new(AtomicU64::new(0));
    let most = limits.steps;
    connection.progress_handler(
        STRIDE as i32,
        Some(move || taken.fetch_add(STRIDE, Ordering::Relaxed) + STRIDE > most),
    )
}

/// Allows only reading: no writes, other databases, pragmas or extensions.
pub(crate) fn read_only(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.authorizer(Some(|context: AuthContext<'_>| match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => {
            Authorization::Allow
        }
        AuthAction::Function { function_name } if !is_dangerous(function_name) => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }))
}

/// True if a function reaches outside the query.
fn is_dangerous(function: &str) -> bool {
    [
        "load_extension",
        "fts3_tokenizer",
        "readfile",
        "writefile",
        "edit",
    ]
    .iter()
    .any(|name| function.eq_ignore_ascii_case(name))
}

/// Runs `sql` on a connection prepared by [`limit`] and [`read_only`].
pub(crate) fn run(connection: &Connection, sql: &str, limits: &Limits) -> Result<Table, Stopped> {
    if sql.contains('\0') {
        return Err(Stopped::Refused("holds a NUL character".to_owned()));
    }
    if sql::is_several(sql) {
        return Err(Stopped::Refused("is more than one statement".to_owned()));
    }
    let failed = |error: rusqlite::Error| stopped(&error, limits);
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let columns = statement.column_count();
    if columns == 0 || !statement.readonly() {
        return Err(Stopped::Refused("reads nothing".to_owned()));
    }
    if statement.parameter_count() > 0 {
        return Err(Stopped::Refused(
            "has a parameter that nobody gives a value".to_owned(),
        ));
    }
    let mut table = Table {
        columns,
        rows: Vec::new(),
    };
    let mut bytes = 0;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        if table.rows.len() >= limits.rows {
            return Err(Stopped::Rows(table.rows.len() + 1));
        }
        let mut values = Vec::with_capacity(columns);
        for column in 0..columns {
            let value = row.get_ref(column).map_err(failed)?;
            bytes += size_of::<Value>()
                + match value {
                    ValueRef::Text(data) | ValueRef::Blob(data) => data.len(),
                    _ => 0,
                };
            values.push(owned(value));
        }
        if bytes > limits.bytes {
            return Err(Stopped::Bytes(limits.bytes));
        }
        table.rows.push(values);
    }
    Ok(table)
}

/// Text that is not UTF-8 is kept as a blob: it equals no valid text, but can equal another such text.
fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(data) => match std::str::from_utf8(data) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Blob(data.to_vec()),
        },
        ValueRef::Blob(data) => Value::Blob(data.to_vec()),
    }
}

fn stopped(error: &rusqlite::Error, limits: &Limits) -> Stopped {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => Stopped::Steps(limits.steps),
        Some(ErrorCode::TooBig) => Stopped::ValueBytes(limits.value_bytes),
        Some(ErrorCode::OutOfMemory) => Stopped::Memory,
        _ => Stopped::Refused(format!("fails: {error}")),
    }
}
