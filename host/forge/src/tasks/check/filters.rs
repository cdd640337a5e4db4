//! Tasks that are not worth doing: trivial ones, ones that are solved by doing nothing, and repeated ones.

use std::collections::{BTreeMap, HashMap};

use serde_json::json;

use crate::tasks::record::{Origin, TaskRecord};
use crate::tasks::rejection::{Reason, Rejection};
use crate::tasks::suite::Suite;

/// Checks for each turn that something has to be done, and that it takes more than copying the turn's words into one
/// call. Returns the turns, from 0, of which this is not true. They are context for the others. A task without others
/// is rejected.
pub(super) fn worth_doing(
    suite: &Suite,
    task: &TaskRecord,
    origins: &[Vec<BTreeMap<String, Origin>>],
    keep_trivial: bool,
) -> Result<Vec<usize>, Rejection> {
    let mut context_only = Vec::new();
    let mut has_trivial = false;
    let mut before = &task.initial;
    for (number, (turn, origins)) in task.turns.iter().zip(origins).enumerate() {
        let asks = turn
            .calls
            .iter()
            .any(|call| call.requested && suite.is_read_only(&call.tool));
        let does_nothing = !asks && turn.goal == *before;
        let mut origins = origins.iter().flat_map(BTreeMap::values);
        let is_copied = origins.all(|origin| match origin {
            Origin::Text { turn } => *turn == number,
            Origin::Result { .. } => false,
            Origin::Default => true,
        });
        let is_trivial = turn.calls.len() <= 1 && is_copied && !keep_trivial;
        if does_nothing || is_trivial {
            has_trivial |= !does_nothing;
            context_only.push(number);
        }
        before = &turn.goal;
    }
    if context_only.len() < task.turns.len() {
        return Ok(context_only);
    }
    Err(if has_trivial {
        let detail = "one call solves each turn, and its arguments are copied from the turn's text";
        Rejection::new(Reason::Trivial, detail)
    } else {
        let detail = "the state is the same after every turn, and nothing is asked";
        Rejection::new(Reason::NothingToDo, detail)
    })
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
            ("text", json!(texts)),
            ("calls", json!([calls, task.initial])),
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
