//! The sub-answers of a task: what the results of its gold calls must show, in the form that `reward-ftrl` reads.
//!
//! A sub-answer consists of members of a result as they stand in its JSON, such as `"loan_id":"L-7", "fine":3}`. A call
//! that finds or makes something else does not show them, so a sub-answer cannot be met by chance. A number includes the
//! character after it, because `"fine":3` is also a part of `"fine":35`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

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
        let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
        let object = gold.result.pointer(parent).and_then(Value::as_object);
        if let Some(member) = object.and_then(|object| member(object, name))
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
        Value::Object(object) => object
            .keys()
            .filter_map(|name| member(object, name))
            .collect(),
        Value::Array(items) => items.first().map(own).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// A member with a text, number or truth value, as in JSON. `reward-ftrl` ignores commas, so a number ends at the quote of
/// the next name, or at the brace.
fn member(object: &Map<String, Value>, name: &str) -> Option<String> {
    let value = object.get(name)?;
    let end = match value {
        Value::String(_) | Value::Bool(_) => "",
        Value::Number(_) if object.keys().next_back().is_some_and(|last| last == name) => "}",
        Value::Number(_) => ",\"",
        _ => return None,
    };
    Some(format!("{}:{value}{end}", Value::from(name)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::own;

    #[test]
    fn a_number_is_no_part_of_a_longer_one() {
        let result = json!({ "fine": 3, "loan": "L-7", "late": true, "none": null, "days": 12 });
        let members = own(&result);
        assert_eq!(
            members,
            [
                "\"fine\":3,\"",
                "\"loan\":\"L-7\"",
                "\"late\":true",
                "\"days\":12}"
            ]
        );
        let shown = result.to_string();
        assert!(members.iter().all(|member| shown.contains(member)));
        let longer = json!({ "fine": 35, "loan": "L-7", "late": true, "days": 125 }).to_string();
        let found: Vec<bool> = members
            .iter()
            .map(|member| longer.contains(member))
            .collect();
        assert_eq!(found, [false, true, true, false]);
    }
}
