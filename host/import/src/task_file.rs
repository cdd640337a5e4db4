//! Task files: JSON lines or JSON arrays, in our own format or in one of those that data sets come in.

use std::collections::HashMap;
use std::path::Path;

use rlf_dialogue::Task;

use crate::error::{ImportError, RowError};
use crate::file_rows::{file_rows, stem};
use crate::formats::{from_row, ids_may_repeat};

/// Reads a whole task file. Rows may be in our own format, in Search-R1's and verl's
/// (`data_source, prompt, ability, reward_model, extra_info`), questions with answers
/// (`question, answer`: HotpotQA, MuSiQue, GSM8K), or programming problems with their tests (MBPP's
/// `text, test_list`, HumanEval's `prompt, entry_point, test`).
///
/// The first row that cannot be read is an error.
pub fn read_tasks(path: &Path) -> Result<Vec<Task>, ImportError> {
    let stem = stem(path);
    let mut lines: HashMap<String, usize> = HashMap::new();
    let mut tasks = Vec::new();
    for row in file_rows(path)? {
        let (line, row) = row?;
        let fail = |source| ImportError::Row {
            path: path.to_owned(),
            line,
            source,
        };
        let may_repeat = ids_may_repeat(&row);
        let mut task = from_row(row, &stem, line).map_err(fail)?;
        if may_repeat && lines.contains_key(&task.id) {
            // In concatenated data sets, each part counts from 0.
            task.id = format!("{}@{line}", task.id);
        }
        if let Some(first) = lines.insert(task.id.clone(), line) {
            let problem = format!("{:?} stands in line {first} already", task.id);
            return Err(fail(RowError::field("id", problem)));
        }
        tasks.push(task);
    }
    if tasks.is_empty() {
        Err(ImportError::NoTasks(path.to_owned()))
    } else {
        Ok(tasks)
    }
}
