//! Rows that task files may hold as they are: our own, verl's and Search-R1's, questions, and programming problems.

use rlf_dialogue::Task;
use serde_json::Value;

use super::{programming, questions, verl};
use crate::field::Row;
use crate::row_context::RowContext;

/// Reads a row as a task in the environment that the import's options name.
pub(crate) fn task(row: Row, context: &RowContext) -> Result<Task, String> {
    let mut task = from_row(Value::Object(row), context.stem, context.line)?;
    if task.environment.is_none() {
        task.environment.clone_from(&context.options.environment);
    }
    Ok(task)
}

/// Whether a row is of a format whose ids need not be unique in a file.
pub(crate) fn ids_may_repeat(row: &Value) -> bool {
    ["reward_model", "question", "task_id"]
        .iter()
        .any(|field| row.get(field).is_some())
}

/// Reads a row of any of these formats. `stem`, the file's name without its ending, and `line` name a row without an id.
pub(crate) fn from_row(row: Value, stem: &str, line: usize) -> Result<Task, String> {
    let Value::Object(row) = row else {
        return Err("a row must be a JSON object".into());
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
            return Err(format!(
                "field `{field}` is missing; a row is {{id, source, prompt, reference, ..}}, \
                 {{data_source, prompt, reward_model, ..}}, {{question, answer, ..}}, {{text, test_list, ..}} or \
                 {{prompt, entry_point, test, ..}}"
            ));
        }
    }
    let task: Task = serde_path_to_error::deserialize(Value::Object(row)).map_err(|error| {
        match error.path().to_string().as_str() {
            // The message of an unknown or missing field names it.
            "." => format!("field {}", error.inner()),
            path => format!("field `{path}`: {}", error.inner()),
        }
    })?;
    if task.prompt.is_empty() && task.environment.is_none() {
        return Err(
            "field `prompt`: it needs at least one message, or an `environment` that says it"
                .into(),
        );
    }
    Ok(task)
}
