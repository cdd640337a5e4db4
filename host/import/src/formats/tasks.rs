//! Rows that task files may hold as they are: our own, verl's and Search-R1's, questions, and programming problems.

use rlf_dialogue::Task;
use serde_json::Value;

use super::{programming, questions, verl};
use crate::error::RowError;
use crate::field::Row;
use crate::row_context::RowContext;

/// Reads a row as a task in the environment that the import's options name.
pub(crate) fn task(row: Row, context: &RowContext) -> Result<Task, RowError> {
    let mut task = from_row(Value::Object(row), context.stem, context.line)?;
    if task.environment.is_none() {
        task.environment.clone_from(&context.options.environment);
    }
    Ok(task)
}

/// True if a row is of a format whose ids need not be unique in a file.
pub(crate) fn ids_may_repeat(row: &Value) -> bool {
    ["reward_model", "question", "task_id"]
        .iter()
        .any(|field| row.get(field).is_some())
}

/// Reads a row of any of these formats. `stem`, the file's name without its ending, and `line` name a row without an id.
pub(crate) fn from_row(row: Value, stem: &str, line: usize) -> Result<Task, RowError> {
    let Value::Object(row) = row else {
        return Err(RowError::Row("a row must be a JSON object".into()));
    };
    if row.contains_key("reward_model") {
        return verl::task(row, stem, line);
    }
    if row.contains_key("question") {
        return questions::task(row, stem, line);
    }
    if row.contains_key("test_list") || row.contains_key("entry_point") {
        return programming::task(row, stem, line);
    }
    for field in ["id", "source", "prompt", "reference"] {
        if !row.contains_key(field) {
            return Err(RowError::Missing {
                field: field.into(),
                hint: "; a row is {id, source, prompt, reference, ..}, {data_source, prompt, reward_model, ..}, \
                       {question, answer, ..}, {text, test_list, ..} or {prompt, entry_point, test, ..}",
            });
        }
    }
    let task: Task = serde_path_to_error::deserialize(Value::Object(row))
        .map_err(|error| RowError::from_type(&error))?;
    if task.prompt.is_empty() && task.environment.is_none() {
        return Err(RowError::field(
            "prompt",
            "it needs at least one message, or an `environment` that says it",
        ));
    }
    Ok(task)
}
