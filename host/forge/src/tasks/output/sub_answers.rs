//! The sub-answers of a task: what the results of its gold calls must show, in the form that `reward-ftrl` reads.
//!
//! A sub-answer consists of members of a result as they stand in its JSON, such as `"loan_id":"L-7", "fine":3`. A call
//! that finds or makes something else does not show them, so a sub-answer cannot be met by chance.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::tasks::record::{GoldCall, Origin, TaskRecord};

/// The sub-answers of a turn by tool, in the order of its gold calls. A call whose result has no member with a value gives
/// none.
pub(super) fn of_turn(task: &TaskRecord, number: usize) -> BTreeMap<&str, Vec<String>> {
    let mut sub_answers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (index, call) in task.turns[number].calls.iter().enumerate() {
        let mut members = used(task, number, index, call);
        if members.is_empty() {
            members = own(&call.result);
        }
        if !members.is_empty() {
            let of_tool = sub_answers.entry(&call.tool).or_default();
            of_tool.push(members.join(", "));
        }
    }
    sub_answers
}

/// The members of a lookup's result that later calls use. An action counts by its whole result.
fn used(task: &TaskRecord, turn: usize, call: usize, gold: &GoldCall) -> Vec<String> {
    let mut members = Vec::new();
    if gold.requested {
        return members;
    }
    let later = task.turns[turn..].iter().flat_map(|turn| &turn.calls);
    for origin in later.flat_map(|later| later.origins.values()) {
        let Origin::Result {
            turn: of_turn,
            call: of_call,
            pointer,
        } = origin
        else {
            continue;
        };
        if (*of_turn, *of_call) != (turn, call) {
            continue;
        }
        let name = pointer.rsplit('/').next().unwrap_or_default();
        if let Some(member) = gold
            .result
            .pointer(pointer)
            .and_then(|value| member(name, value))
            && !members.contains(&member)
        {
            members.push(member);
        }
    }
    members
}

/// The members of an object, or of the first object of a list.
fn own(result: &Value) -> Vec<String> {
    match result {
        Value::Object(members) => members
            .iter()
            .filter_map(|(name, value)| member(name, value))
            .collect(),
        Value::Array(items) => items.first().map(own).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// A member with a text, number or truth value, as in JSON. None for an element of a list, which has no name.
fn member(name: &str, value: &Value) -> Option<String> {
    let named = !name.is_empty() && !name.bytes().all(|byte| byte.is_ascii_digit());
    let scalar = matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_));
    (named && scalar).then(|| format!("{}:{value}", Value::from(name)))
}
