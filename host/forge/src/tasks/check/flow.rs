//! Information flow: every argument of a gold call must be known from the text, from an earlier result, or by default.

use std::collections::BTreeMap;

use serde_json::Value;

use super::said::says;
use crate::graph::ValueType;
use crate::tasks::record::{GoldCall, Origin, TaskRecord};
use crate::tasks::rejection::{Reason, Rejection};
use crate::tasks::suite::Suite;

/// The origin of every argument, for each call of each turn. An argument without one is left out if `unchecked`, and an
/// error otherwise.
pub(super) fn origins(
    suite: &Suite,
    task: &TaskRecord,
    unchecked: bool,
) -> Result<Vec<Vec<BTreeMap<String, Origin>>>, Rejection> {
    let mut all = Vec::with_capacity(task.turns.len());
    for (number, turn) in task.turns.iter().enumerate() {
        let mut calls = Vec::with_capacity(turn.calls.len());
        for (place, call) in turn.calls.iter().enumerate() {
            let mut origins = BTreeMap::new();
            for (parameter, value) in &call.arguments {
                match origin(suite, task, (number, place), call, parameter, value) {
                    Some(origin) => _ = origins.insert(parameter.clone(), origin),
                    None if unchecked => {}
                    None => {
                        let detail = format!(
                            "turn {}: nothing says the `{parameter}` of {}, {value}",
                            number + 1,
                            call.tool
                        );
                        return Err(Rejection::new(Reason::UnknownArgument, detail));
                    }
                }
            }
            calls.push(origins);
        }
        all.push(calls);
    }
    Ok(all)
}

/// The origin of an argument, if there is one. Keys are looked for in results first, and everything else in the text.
fn origin(
    suite: &Suite,
    task: &TaskRecord,
    at: (usize, usize),
    call: &GoldCall,
    parameter: &str,
    value: &Value,
) -> Option<Origin> {
    let kind = suite
        .input(&call.tool, parameter)
        .map(|input| input.kind.item());
    let from_text = || {
        let turns = (0..=at.0).rev();
        let mut said = turns.filter(|&turn| says(&task.turns[turn].query, value));
        said.next().map(|turn| Origin::Text { turn })
    };
    let from_result = || {
        let before = (0..=at.0).rev().flat_map(|turn| {
            let calls = if turn == at.0 {
                at.1
            } else {
                task.turns[turn].calls.len()
            };
            (0..calls).rev().map(move |call| (turn, call))
        });
        before.into_iter().find_map(|(turn, call)| {
            let mut pointer = String::new();
            let result = &task.turns[turn].calls[call].result;
            found(result, value, &mut pointer).then_some(Origin::Result {
                turn,
                call,
                pointer,
            })
        })
    };
    let known = if matches!(kind, Some(ValueType::Key(_))) {
        from_result().or_else(from_text)
    } else {
        from_text().or_else(from_result)
    };
    known.or_else(|| {
        let default = &suite.parameter(&call.tool, parameter)["default"];
        (default == value).then_some(Origin::Default)
    })
}

/// Looks for a value inside another, and says where it is.
fn found(inside: &Value, wanted: &Value, pointer: &mut String) -> bool {
    if inside == wanted {
        return true;
    }
    let length = pointer.len();
    let mut step = |name: &str, value: &Value| {
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        let is_here = found(value, wanted, pointer);
        if !is_here {
            pointer.truncate(length);
        }
        is_here
    };
    match inside {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .any(|(place, item)| step(&place.to_string(), item)),
        Value::Object(fields) => fields.iter().any(|(name, value)| step(name, value)),
        _ => false,
    }
}
