//! Tasks in our own format, which `[tasks]` of a configuration reads.

use rlf_dialogue::task::Task;
use serde_json::{Map, Value, json};

use super::Naming;
use super::conversation::before;
use super::shown_names::ShownNames;
use crate::graph::ValueType;
use crate::tasks::record::{GoldCall, TaskRecord};
use crate::tasks::suite::Suite;

/// One task for each turn. It begins in the state in which the turn before it ended.
pub fn rows(suite: &Suite, task: &TaskRecord, naming: &Naming) -> Vec<Task> {
    let names = ShownNames::new(task, naming);
    let mut state = &task.initial;
    let mut rows = Vec::with_capacity(task.turns.len());
    for (number, turn) in task.turns.iter().enumerate() {
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
        let implicit: Vec<&str> = turn.implicit.iter().map(|kind| kind.as_str()).collect();
        extra.insert("implicit".into(), json!(implicit));
        if !names.renamed().is_empty() {
            extra.insert("shown_tools".into(), json!({ "rename": names.renamed() }));
        }
        rows.push(Task {
            id,
            source: naming.source.clone(),
            prompt: before(task, number, &names),
            tools: Some(task.tools.clone()),
            reference: json!({ "calls": calls, "state": turn.goal, "answer": turn.answer }),
            environment: Some(naming.environment.clone()),
            setup: json!({ "servers": state }),
            extra,
        });
        state = &turn.goal;
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
