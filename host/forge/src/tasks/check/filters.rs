//! Tasks that are not worth doing: trivial ones, ones that are solved by doing nothing, and repeated ones.

use std::collections::{BTreeMap, HashMap};

use serde_json::json;

use crate::tasks::record::{Origin, TaskRecord};
use crate::tasks::rejection::{Reason, Rejection};
use crate::tasks::suite::Suite;

/// Checks that something has to be done, and that it takes more than copying words into one call.
pub(super) fn worth_doing(
    suite: &Suite,
    task: &TaskRecord,
    origins: &[Vec<BTreeMap<String, Origin>>],
    keep_trivial: bool,
) -> Result<(), Rejection> {
    let calls: Vec<_> = task.turns.iter().flat_map(|turn| &turn.calls).collect();
    let mut origins = origins.iter().flatten().flat_map(BTreeMap::values);
    let is_copied = origins.all(|origin| !matches!(origin, Origin::Result { .. }));
    if calls.len() <= 1 && is_copied && !keep_trivial {
        let detail = "one call solves it, and its arguments are copied from the text";
        return Err(Rejection::new(Reason::Trivial, detail));
    }
    let asks = calls
        .iter()
        .any(|call| call.requested && suite.is_read_only(&call.tool));
    let changes = task.turns.iter().any(|turn| turn.goal != task.initial);
    if !asks && !changes {
        let detail = "the state is the same after every turn, and nothing is asked";
        return Err(Rejection::new(Reason::NothingToDo, detail));
    }
    Ok(())
}

/// The tasks that were kept so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    tasks: HashMap<[u8; 32], u64>,
}

impl Seen {
    /// Adds a task. An error names the earlier task with the same text, or with the same calls in the same state.
    pub fn add(&mut self, task: &TaskRecord) -> Result<(), Rejection> {
        let texts: Vec<&str> = task.turns.iter().map(|turn| turn.query.as_str()).collect();
        let calls: Vec<_> = task
            .turns
            .iter()
            .map(|turn| {
                let calls = turn
                    .calls
                    .iter()
                    .map(|call| json!([call.tool, call.arguments]));
                calls.collect::<Vec<_>>()
            })
            .collect();
        let marks = [
            ("text", json!([texts, task.initial])),
            ("calls", json!([calls, task.initial])),
            ("words", json!(texts)),
        ];
        let marks = marks.map(|(what, mark)| {
            let hash = blake3::hash(format!("{what} {mark}").as_bytes());
            (what, *hash.as_bytes())
        });
        for (what, mark) in &marks {
            if let Some(other) = self.tasks.get(mark) {
                let detail = format!("candidate {other} has the same {what}");
                return Err(Rejection::new(Reason::Duplicate, detail));
            }
        }
        for (_, mark) in marks {
            self.tasks.insert(mark, task.candidate);
        }
        Ok(())
    }
}
