//! tau-bench's tasks: a customer's wish, the calls that fulfil it, and the database's hash after them.

use rlf_dialogue::Task;
use serde_json::{Value, json};

use crate::error::RowError;
use crate::field::{Row, label, list, needed, text};
use crate::row_context::RowContext;

const ENVIRONMENT: &str = "tau-retail";

pub(crate) fn task(row: &Row, context: &RowContext) -> Result<Task, RowError> {
    let instruction = text(row, "instruction")?;
    if instruction.trim().is_empty() {
        return Err(RowError::field("instruction", "it is empty"));
    }
    let actions = list(row, "actions")?;
    for (at, action) in actions.iter().enumerate() {
        let named = action.get("name").is_some_and(Value::is_string);
        if !named || !action.get("kwargs").is_some_and(Value::is_object) {
            return Err(RowError::field(
                format!("actions[{at}]"),
                "it must be {name, kwargs}",
            ));
        }
    }
    let outputs = list(row, "outputs")?;
    if !outputs.iter().all(Value::is_string) {
        return Err(RowError::field("outputs", "it must hold texts"));
    }
    // Without the hash, no reward could decide whether the task was solved.
    let gold_hash = needed(row, "gold_hash").map_err(|_| RowError::Missing {
        field: "gold_hash".into(),
        hint: "; it is the hash of the database after the actions",
    })?;
    if !gold_hash.is_string() {
        return Err(RowError::field(
            "gold_hash",
            "it must be text; it is the hash of the database after the actions",
        ));
    }
    let id = match (label(row, "split"), label(row, "i")) {
        (Some(split), Some(i)) => format!("{ENVIRONMENT}-{split}-{i}"),
        _ => context.id(),
    };
    let mut extra = Row::new();
    for name in ["split", "user_id"] {
        if let Ok(value) = needed(row, name) {
            extra.insert(name.into(), value.clone());
        }
    }
    Ok(Task {
        id,
        source: ENVIRONMENT.into(),
        prompt: Vec::new(),
        tools: None,
        reference: json!({"gold_hash": gold_hash, "outputs": outputs, "actions": actions}),
        environment: Some(context.environment(ENVIRONMENT)),
        setup: json!({"instruction": instruction, "user": context.options.user.as_str()}),
        extra,
    })
}
