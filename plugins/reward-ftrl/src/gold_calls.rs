//! Turn-level credit from gold calls: the trajectory's calls are matched one to one with the calls of a solution.

use rlf_plugin::serde_json::{self, Map, Value};
use rlf_plugin::{Event, Trajectory};

use crate::assignment::assign;
use crate::reference::GoldCall;

/// Weight that prefers earlier calls among assignments of equal weight. It is smaller than any difference between two
/// similarities of calls with fewer than ten thousand arguments.
const EARLIER: f64 = 1e-9;

/// The value of a trajectory's calls.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matched {
    pub(crate) term: f64,
    /// By index of the turn's event, for turns with a call.
    pub(crate) turns: Vec<(u32, f64)>,
}

/// Matches all calls of the trajectory with the gold calls.
pub(crate) fn matched(trajectory: &Trajectory, gold: &[GoldCall]) -> Matched {
    let turns: Vec<(u32, usize)> = (0..)
        .zip(&trajectory.events)
        .filter_map(|(index, event)| match event {
            Event::Turn(turn) if !turn.calls.is_empty() => Some((index, turn.calls.len())),
            _ => None,
        })
        .collect();
    let similarities: Vec<Vec<f64>> = trajectory
        .turns()
        .flat_map(|turn| &turn.calls)
        .map(|call| {
            let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
            let similarity = |gold| similarity(&call.name, &arguments, gold);
            gold.iter().map(similarity).collect()
        })
        .collect();
    let calls = similarities.len();
    let weighted: Vec<Vec<f64>> = similarities
        .iter()
        .enumerate()
        .map(|(at, row)| {
            let earlier = EARLIER * (calls - at) as f64 / calls as f64;
            let weigh =
                |similarity: &f64| similarity + if *similarity > 0.0 { earlier } else { 0.0 };
            row.iter().map(weigh).collect()
        })
        .collect();
    let values: Vec<f64> = similarities
        .iter()
        .zip(assign(&weighted))
        .map(|(row, column)| column.map_or(0.0, |column| row[column]))
        .collect();
    let mut rest = values.as_slice();
    let turns = turns.into_iter().map(|(event, calls)| {
        let (own, after) = rest.split_at(calls);
        rest = after;
        (event, own.iter().sum::<f64>() / calls as f64)
    });
    let turns = turns.collect();
    let both = calls + gold.len();
    let sum: f64 = values.iter().sum();
    let term = if both == 0 {
        1.0
    } else {
        2.0 * sum / both as f64
    };
    Matched { term, turns }
}

/// 0 for different names, else (1 + share of equal arguments) / 2.
fn similarity(name: &str, arguments: &Map<String, Value>, gold: &GoldCall) -> f64 {
    if name != gold.name {
        return 0.0;
    }
    let equal = gold
        .arguments
        .iter()
        .filter(|(name, value)| arguments.get(*name).is_some_and(|other| same(value, other)))
        .count();
    let shared = gold
        .arguments
        .keys()
        .filter(|name| arguments.contains_key(*name))
        .count();
    let all = arguments.len() + gold.arguments.len() - shared;
    let share = if all == 0 {
        1.0
    } else {
        equal as f64 / all as f64
    };
    f64::midpoint(1.0, share)
}

/// Equality of JSON values with numbers by value; a number and its text differ.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64() == right.as_f64() && (left.is_f64() || right.is_f64())
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, value)| right.get(name).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}
