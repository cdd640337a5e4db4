//! Tasks in our own format, which `[tasks]` of a configuration reads.

use rlf_dialogue::task::Task;
use serde_json::{Map, Value, json};

use super::conversation::before;
use super::{Naming, sub_answers};
use crate::graph::ValueType;
use crate::tasks::record::{GoldCall, TaskRecord};
use crate::tasks::suite::Suite;

/// One task for each turn that is more than context. It begins in the state in which the turn before it ended.
/// `reward-envfactory` grades its calls and states, `reward-ftrl` its sub-answers.
pub fn rows(suite: &Suite, task: &TaskRecord, naming: &Naming) -> Vec<Task> {
    let mut state = &task.initial;
    let mut rows = Vec::with_capacity(task.turns.len());
    for (number, turn) in task.turns.iter().enumerate() {
        let begins = std::mem::replace(&mut state, &turn.goal);
        if turn.context_only {
            continue;
        }
        let calls: Vec<Value> = turn
            .calls
            .iter()
            .map(|call| {
                json!({
                    "name": call.tool, "arguments": call.arguments, "masked": masked(suite, call),
                })
            })
            .collect();
        let id = if task.turns.len() == 1 {
            task.id.clone()
        } else {
            format!("{}-{}", task.id, number + 1)
        };
        let mut extra = Map::new();
        extra.insert("kind".into(), kind(task).into());
        extra.insert("domain".into(), task.domain.clone().into());
        extra.insert("turn".into(), (number + 1).into());
        extra.insert("calls".into(), turn.calls.len().into());
        extra.insert("difficulty".into(), json!(task.measures.difficulty));
        // How hard it is by its structure; a curriculum groups tasks by it.
        let level = turn.calls.len() + turn.implicit.len();
        extra.insert("level".into(), level.into());
        if !task.shown.is_plain() {
            extra.insert("shown_tools".into(), json!(task.shown));
        }
        let implicit: Vec<&str> = turn.implicit.iter().map(|kind| kind.as_str()).collect();
        extra.insert("implicit".into(), json!(implicit));
        rows.push(Task {
            id,
            source: naming.source.clone(),
            prompt: task.shown.messages(before(task, number)),
            tools: Some(task.tools.clone()),
            reference: json!({
                "calls": calls,
                "state": turn.goal,
                "answer": turn.answer,
                "unsolved": sub_answers::of_turn(task, number),
            }),
            environment: Some(naming.environment.clone()),
            setup: json!({ "servers": begins }),
            extra,
        });
    }
    rows
}

/// The group in which evaluations report a task: what about it is unseen in training.
fn kind(task: &TaskRecord) -> String {
    match task.unseen {
        crate::tasks::record::Unseen::Nothing => "seen".to_owned(),
        other => format!("unseen-{}", other.as_str()),
    }
}

/// The arguments that may have any value: the words that a lookup searches for. Whatever finds the entity is right.
pub(super) fn masked(suite: &Suite, call: &GoldCall) -> Vec<String> {
    if call.requested {
        return Vec::new();
    }
    let is_text = |parameter: &&String| {
        suite
            .input(&call.tool, parameter)
            .is_some_and(|input| input.kind == ValueType::Text)
    };
    call.arguments.keys().filter(is_text).cloned().collect()
}
