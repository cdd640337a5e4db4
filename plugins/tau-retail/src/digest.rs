//! The hash of a database that differs from the bound one in only a few records.
//!
//! tau-bench hashes one long text: the whole database, printed by Python as nested tuples. `init` keeps that text,
//! the position of each record in it, and the state of SHA-256 every few kilobytes. A session's hash starts at the
//! state before its first changed record and continues through the rest of the text, with changed records replaced.

use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::python;
use crate::table::Table;

/// Bytes between two kept states, which take 100 bytes each: less than the text that is hashed anyway.
const STRIDE: usize = 16 << 10;

/// The printed database.
#[derive(Debug)]
pub(crate) struct Printed {
    text: String,
    orders: Vec<Range<usize>>,
    users: Vec<Range<usize>>,
    /// States after 0, 1, 2, .. strides.
    states: Vec<Sha256>,
    unchanged: String,
}

impl Printed {
    pub(crate) fn new(orders: &Table, products: &Table, users: &Table) -> Self {
        let mut text = String::from("(('orders', ");
        let order_spans = print_table(&mut text, orders);
        text.push_str("), ('products', ");
        print_table(&mut text, products);
        text.push_str("), ('users', ");
        let user_spans = print_table(&mut text, users);
        text.push_str("))");

        let mut hasher = Sha256::new();
        let mut states = Vec::with_capacity(text.len() / STRIDE + 1);
        for stride in text.as_bytes().chunks(STRIDE) {
            states.push(hasher.clone());
            hasher.update(stride);
        }
        Self {
            text,
            orders: order_spans,
            users: user_spans,
            states,
            unchanged: hex(hasher),
        }
    }

    /// The printed form of an order; the row must exist.
    pub(crate) fn order(&self, row: usize) -> &str {
        &self.text[self.orders[row].clone()]
    }

    /// The printed form of a user; the row must exist.
    pub(crate) fn user(&self, row: usize) -> &str {
        &self.text[self.users[row].clone()]
    }

    /// The hash with some records replaced: rows in ascending order, each with its new text.
    pub(crate) fn hash(&self, orders: &[(usize, String)], users: &[(usize, String)]) -> String {
        let at = |spans: &[Range<usize>], row: usize| spans[row].clone();
        let changed = orders
            .iter()
            .map(|(row, text)| (at(&self.orders, *row), text))
            .chain(
                users
                    .iter()
                    .map(|(row, text)| (at(&self.users, *row), text)),
            );

        let mut state: Option<(Sha256, usize)> = None;
        for (span, replacement) in changed {
            let (mut hasher, from) = state.unwrap_or_else(|| {
                let stride = span.start / STRIDE;
                (self.states[stride].clone(), stride * STRIDE)
            });
            hasher.update(&self.text.as_bytes()[from..span.start]);
            hasher.update(replacement);
            state = Some((hasher, span.end));
        }
        match state {
            None => self.unchanged.clone(),
            Some((mut hasher, from)) => {
                hasher.update(&self.text.as_bytes()[from..]);
                hex(hasher)
            }
        }
    }
}

/// Prints the pairs of a table; returns the position of each row's record.
fn print_table(text: &mut String, table: &Table) -> Vec<Range<usize>> {
    let mut spans = Vec::with_capacity(table.len());
    text.push('(');
    for (row, (id, record)) in table.sorted().enumerate() {
        text.push_str(python::separator(row));
        text.push('(');
        python::write_text(text, id);
        text.push_str(", ");
        let start = text.len();
        python::write_tuple(text, record);
        spans.push(start..text.len());
        text.push(')');
    }
    text.push_str(python::closing(table.len()));
    spans
}

fn hex(hasher: Sha256) -> String {
    format!("{:x}", hasher.finalize())
}
