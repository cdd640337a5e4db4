//! Programming problems with tests: MBPP's `text, test_list`, HumanEval's `prompt, entry_point, test`.

use rlf_dialogue::{Message, Role, Task};
use serde_json::Value;

use crate::error::RowError;
use crate::field::{Row, number_or_text};

/// Makes a task whose prompt is the problem. Its reference is the row itself without the solution.
pub(super) fn task(mut row: Row, stem: &str, line: usize) -> Result<Task, RowError> {
    let text_in = |row: &Row, fields: &[&str]| -> Result<String, RowError> {
        let found = fields.iter().find_map(|field| row.get(*field));
        let text = found.and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty())
            .map(str::to_owned)
            .ok_or_else(|| RowError::field(fields[0], "the problem's text is missing"))
    };
    let id = number_or_text(row.get("task_id")).unwrap_or_else(|| format!("{stem}-{line}"));
    let prompt = if let Some(tests) = row.get("test_list").cloned() {
        let text = text_in(&row, &["text", "prompt"])?;
        // The first test shows the function's name; the others stay hidden.
        let example = tests
            .get(0)
            .and_then(Value::as_str)
            .ok_or_else(|| RowError::field("test_list", "it needs at least one test, as text"))?;
        format!("{text}\n\nFor example, this has to hold:\n```python\n{example}\n```")
    } else {
        if !row.get("test").is_some_and(Value::is_string) {
            return Err(RowError::field("test", "the tests' text is missing"));
        }
        let text = text_in(&row, &["prompt"])?;
        format!("Complete this function:\n```python\n{text}\n```")
    };
    // Only demonstrations may use the solution.
    let solution = ["canonical_solution", "solution"]
        .iter()
        .find_map(|field| row.remove(*field));
    let mut extra = Row::new();
    if let Some(solution) = solution {
        extra.insert("solution".into(), solution);
    }
    Ok(Task {
        id,
        source: stem.to_owned(),
        prompt: vec![Message::text(Role::User, prompt)],
        tools: None,
        reference: Value::Object(row),
        environment: None,
        setup: Value::Null,
        extra,
    })
}
