//! Equality of results.

use std::cmp::Ordering;

use rusqlite::types::Value;

/// The result of a query.
#[derive(Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) columns: usize,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Table {
    /// Bytes of its longest text or blob.
    pub(crate) fn longest(&self) -> usize {
        let values = self.rows.iter().flatten();
        let bytes = values.map(|value| match value {
            Value::Text(text) => text.len(),
            Value::Blob(blob) => blob.len(),
            Value::Null | Value::Integer(_) | Value::Real(_) => 0,
        });
        bytes.max().unwrap_or_default()
    }
}

/// Fractions may differ by this share of the larger one, because sums in another order do.
const RELATIVE: f64 = 1e-6;

/// Fractions may also differ by this much, for values that should be 0.
const ABSOLUTE: f64 = 1e-9;

/// Maximum number of rows whose partners are searched one by one, if sorting did not pair them.
const MATCHED: usize = 500;

/// True if columns and rows are equal; in the same order, if `ordered`.
pub(crate) fn equal(expected: &Table, found: &Table, ordered: bool) -> bool {
    if expected.columns != found.columns || expected.rows.len() != found.rows.len() {
        return false;
    }
    let (expected, found) = (&expected.rows, &found.rows);
    if ordered {
        return expected.iter().zip(found).all(|(a, b)| same_row(a, b));
    }
    let mut left: Vec<&Vec<Value>> = expected.iter().collect();
    let mut right: Vec<&Vec<Value>> = found.iter().collect();
    left.sort_by(|a, b| order(a, b));
    right.sort_by(|a, b| order(a, b));
    if left.iter().zip(&right).all(|(a, b)| same_row(a, b)) {
        return true;
    }
    // Fractions that count as equal may have been sorted apart, and their rows with them.
    let fractions = |rows: &[Vec<Value>]| {
        rows.iter()
            .flatten()
            .any(|value| matches!(value, Value::Real(_)))
    };
    left.len() <= MATCHED && (fractions(expected) || fractions(found)) && matched(&left, &right)
}

/// True if every row can have a different partner: augmenting paths (Kuhn 1955).
fn matched(left: &[&Vec<Value>], right: &[&Vec<Value>]) -> bool {
    let edges: Vec<Vec<usize>> = left
        .iter()
        .map(|a| {
            (0..right.len())
                .filter(|&b| same_row(a, right[b]))
                .collect()
        })
        .collect();
    let mut partner: Vec<Option<usize>> = vec![None; right.len()];
    (0..left.len()).all(|row| assign(row, &edges, &mut partner, &mut vec![false; right.len()]))
}

fn assign(
    row: usize,
    edges: &[Vec<usize>],
    partner: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for &other in &edges[row] {
        if std::mem::replace(&mut seen[other], true) {
            continue;
        }
        if partner[other].is_none_or(|taken| assign(taken, edges, partner, seen)) {
            partner[other] = Some(row);
            return true;
        }
    }
    false
}

fn same_row(a: &[Value], b: &[Value]) -> bool {
    a.iter().zip(b).all(|(a, b)| same(a, b))
}

fn same(a: &Value, b: &Value) -> bool {
    let close =
        |a: f64, b: f64| a == b || (a - b).abs() <= (RELATIVE * a.abs().max(b.abs())).max(ABSOLUTE);
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Integer(a), Value::Integer(b)) => a == b,
        (Value::Real(a), Value::Real(b)) => close(*a, *b),
        (Value::Integer(a), Value::Real(b)) | (Value::Real(b), Value::Integer(a)) => {
            close(*a as f64, *b)
        }
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Blob(a), Value::Blob(b)) => a == b,
        _ => false,
    }
}

/// A total order of NULL, numbers, texts and blobs. Any order works if equal values are neighbours.
fn order(a: &[Value], b: &[Value]) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Integer(_) | Value::Real(_) => 1,
        Value::Text(_) => 2,
        Value::Blob(_) => 3,
    };
    let number = |value: &Value| match value {
        Value::Integer(value) => *value as f64,
        Value::Real(value) => *value,
        _ => 0.0,
    };
    let one = |a: &Value, b: &Value| match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Blob(a), Value::Blob(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)).then(number(a).total_cmp(&number(b))),
    };
    let mut unequal = a.iter().zip(b).map(|(a, b)| one(a, b));
    unequal
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}
