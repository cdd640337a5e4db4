//! Rows that task files may hold as they are: our own, verl's and Search-R1's, questions, and programming problems.

use rlf_dialogue::{Task, TaskError};
use serde_json::Value;

use crate::field::Row;
use crate::format::Place;

/// How [`Task::from_row`] names rows that have no name, and their source.
const NAMELESS: &str = "row";

pub(crate) fn task(row: Row, place: &Place) -> Result<Task, String> {
    let mut task = Task::from_row(Value::Object(row), place.line).map_err(|error| match error {
        TaskError::Row { message, .. } => message,
        other => other.to_string(),
    })?;
    if task.id == format!("{NAMELESS}-{}", place.line) {
        task.id = place.id();
    }
    if task.source == NAMELESS {
        place.stem.clone_into(&mut task.source);
    }
    if task.environment.is_none() {
        task.environment.clone_from(&place.options.environment);
    }
    Ok(task)
}
