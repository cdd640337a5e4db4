//! The reward `reward-sql-result`: the answer's query gives the same result as the reference query, on the same
//! database.
//!
//! | term | is |
//! |---|---|
//! | `match` | 1 if both results are equal, else 0 |
//! | `executes` | 1 if the query is one statement that reads, and ran within its limits, else 0 |
//!
//! Results are equal if they have the same number of columns, whatever their names, and the same rows, each as often.
//! The order of rows counts if the reference query orders its result (an ORDER BY outside all parentheses). NULL
//! equals NULL, text is compared character for character, `1` equals `1.0`, and fractions may differ by a millionth
//! of their size. The text `'1'` is not the number `1`.
//!
//! A task's reference is an object with the reference query under `sql`, and its database: under `schema` a script
//! that makes it, or under `database` the name of a database in the data slot `databases` (`NAME`, `NAME.sqlite`,
//! `NAME.db`, `NAME.sql`, or one of these in a folder `NAME`). The query is the last block fenced as `sql` in the
//! answer; without one, the last block fenced without a language, or else the whole answer. No answer scores 0 on
//! both terms.
//!
//! Each query sees its own copy of the database, in memory, and can only read: SQLite asks for permission for every
//! action, and gets it for reading only. A query that would run without end is stopped, and scores 0. A reference
//! query that fails or is stopped is an error, which excludes the group, and so is a task without a database.
//!
//! SQLite counts steps of its virtual machine, and one step can be a function that takes long. So values in the
//! answer's query are limited: to twice the length of the database or of the longest value of the expected result,
//! whichever is longer, but always to at least 64 KiB and never to more than `max_bytes`. A query that still exhausts
//! the call's CPU time or memory scores 0 as well: `[beyond_limits]` in `plugin.toml` tells the host so.
//!
//! ```toml
//! [plugins.reward-sql-result.config]   # every key may be left out
//! max_steps = 2_000_000   # of SQLite's virtual machine, for one query
//! max_rows = 10_000       # of the reference's result
//! max_bytes = 4_194_304   # of a result, and of one value of the reference query
//! ```
//!
//! A group's queries share the budget of one call. More steps need a larger `limits.cpu_ms`; a larger database needs
//! a larger `limits.memory_bytes`, which must hold two copies of it and 64 MiB.

mod answer;
mod compare;
mod database;
mod query;
mod sql;

use rlf_plugin::serde::Deserialize;
use rlf_plugin::serde_json::Value;
use rlf_plugin::{Task, Terms, Trajectory, plugin, reward};

use crate::{
    compare::{Table, equal},
    database::Database,
    query::{Limits, Stopped},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, crate = "rlf_plugin::serde")]
struct Config {
    max_steps: u64,
    max_rows: usize,
    max_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_steps: 2_000_000,
            max_rows: 10_000,
            max_bytes: 4 << 20,
        }
    }
}

fn init(config: Config) -> Result<Limits, String> {
    for (key, value) in [
        ("max_steps", config.max_steps),
        ("max_rows", config.max_rows as u64),
        ("max_bytes", config.max_bytes as u64),
    ] {
        if value == 0 {
            return Err(format!("configuration: with {key} = 0 no query could run"));
        }
    }
    Ok(Limits {
        steps: config.max_steps,
        rows: config.max_rows,
        bytes: config.max_bytes.min(i32::MAX as usize),
        value_bytes: config.max_bytes.min(i32::MAX as usize),
    })
}

/// A task's reference.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, crate = "rlf_plugin::serde")]
struct Reference {
    sql: String,
    #[serde(default)]
    database: Option<String>,
    #[serde(default)]
    schema: Option<String>,
}

/// Compares the answer's query with the reference query.
#[reward]
fn sql_result(task: &Task, group: &[Trajectory], limits: &Limits) -> Vec<Result<Terms, String>> {
    match Expected::new(task, limits) {
        Ok(expected) => group
            .iter()
            .map(|trajectory| Ok(expected.grade(trajectory, limits)))
            .collect(),
        Err(error) => group.iter().map(|_| Err(error.clone())).collect(),
    }
}

/// Bytes that a value of the answer's query may always have, if `max_bytes` is not smaller.
const VALUE_BYTES: usize = 64 << 10;

/// The result of the reference query, computed once for a group.
struct Expected {
    database: Database,
    result: Table,
    ordered: bool,
}

impl Expected {
    fn new(task: &Task, limits: &Limits) -> Result<Self, String> {
        let reference = reference(task)?;
        let database = Database::new(&reference, limits).map_err(|why| wrong(task, &why))?;
        let result = database
            .query(&reference.sql, limits)
            .map_err(|stopped| wrong(task, &format!("its reference query {stopped}")))?;
        let ordered = sql::orders(&reference.sql);
        Ok(Self {
            database,
            result,
            ordered,
        })
    }

    fn grade(&self, trajectory: &Trajectory, limits: &Limits) -> Terms {
        let expected = self.result.rows.len();
        // Twice, because text in UTF-16 can become longer.
        let values = 2 * self.result.longest().max(self.database.bytes());
        let limits = Limits {
            // One more row proves that the result differs.
            rows: expected,
            value_bytes: values.max(VALUE_BYTES).min(limits.value_bytes),
            ..*limits
        };
        let found = match answer::query(trajectory.answer.as_deref().unwrap_or_default()) {
            None => Err(Stopped::Refused("is empty".to_owned())),
            Some(query) => self.database.query(query, &limits),
        };
        let (matches, executes, rows) = match &found {
            Ok(result) => (
                equal(&self.result, result, self.ordered),
                true,
                result.rows.len(),
            ),
            // It ran well until it gave more rows than the reference.
            Err(Stopped::Rows(rows)) => (false, true, *rows),
            Err(_) => (false, false, 0),
        };
        let truth = |holds: bool| if holds { 1.0 } else { 0.0 };
        Terms::new()
            .term("match", truth(matches))
            .term("executes", truth(executes))
            .metric("rows", rows as f64)
            .metric("expected_rows", expected as f64)
    }
}

fn reference(task: &Task) -> Result<Reference, String> {
    let value: Value = rlf_plugin::serde_json::from_str(&task.reference)
        .map_err(|error| wrong(task, &format!("its reference is not JSON: {error}")))?;
    rlf_plugin::serde_json::from_value(value).map_err(|error| {
        wrong(
            task,
            &format!(
                "its reference is not {{\"sql\": .., \"schema\": ..}} or {{\"sql\": .., \"database\": ..}}: {error}"
            ),
        )
    })
}

fn wrong(task: &Task, why: &str) -> String {
    format!("task {}: {why}", task.id)
}

plugin!(init: init, reward: sql_result);

#[cfg(test)]
mod tests;
