//! Turn-level credit from gold calls.

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{Score, testing};

use super::{call, credits, grade, turn_with};

fn graded(gold: Value, turns: &[Vec<(&str, Value)>]) -> Score {
    let trajectory = turns
        .iter()
        .fold(testing::trajectory(), |trajectory, calls| {
            let calls = calls
                .iter()
                .map(|(name, arguments)| (call(name, arguments.clone()), None));
            turn_with(trajectory, calls.collect())
        });
    grade(
        json!({}),
        json!({ "unsolved": {}, "calls": gold }),
        trajectory,
    )
}

#[test]
fn a_call_is_as_similar_as_its_name_and_its_share_of_equal_arguments() {
    let gold = json!([{ "name": "f", "arguments": { "a": 1, "b": [1, { "c": 2 }] } }]);
    for (name, arguments, expected) in [
        ("f", json!({ "a": 1.0, "b": [1.0, { "c": 2 }] }), 1.0),
        ("f", json!({ "a": "1", "b": [1, { "c": 2 }] }), 0.75),
        ("f", json!({ "a": 1 }), 0.75),
        ("f", json!({ "a": 1, "x": 1, "y": 1 }), 0.625),
        ("f", json!({}), 0.5),
        ("g", json!({ "a": 1, "b": [1, { "c": 2 }] }), 0.0),
    ] {
        let score = graded(gold.clone(), &[vec![(name, arguments.clone())]]);
        assert_eq!(score.get("matched"), Some(expected), "{name} {arguments}");
        assert_eq!(credits(&score, "matched"), [(0, expected)]);
    }
}

#[test]
fn a_repetition_gets_nothing_and_a_retry_takes_its_place() {
    let gold = json!([{ "name": "f", "arguments": { "a": 1 } }]);
    let right = vec![("f", json!({ "a": 1 }))];
    let wrong = vec![("f", json!({ "a": 2 }))];
    let repeated = graded(gold.clone(), &[right.clone(), right.clone()]);
    assert_eq!(credits(&repeated, "matched"), [(0, 1.0), (1, 0.0)]);
    assert_eq!(repeated.get("matched"), Some(2.0 / 3.0));
    let retried = graded(gold, &[wrong, right]);
    assert_eq!(credits(&retried, "matched"), [(0, 0.0), (1, 1.0)]);
}

#[test]
fn the_best_is_taken_for_all_calls_together() {
    let gold = json!([
        { "name": "f", "arguments": { "a": 1, "b": 1 } },
        { "name": "f", "arguments": { "a": 1, "b": 2 } },
    ]);
    // The first call fits the first gold call best, and leaves it to the second one, which fits no other as well.
    let calls = vec![("f", json!({ "a": 1 })), ("f", json!({ "a": 1, "b": 1 }))];
    let score = graded(gold, &[calls]);
    assert_eq!(credits(&score, "matched"), [(0, 0.875)]);
    assert_eq!(score.get("matched"), Some(0.875));
}

#[test]
fn without_gold_calls_none_is_the_best() {
    assert_eq!(graded(json!([]), &[]).get("matched"), Some(1.0));
    let score = graded(json!([]), &[vec![("f", json!({}))]]);
    assert_eq!(score.get("matched"), Some(0.0));
    assert_eq!(credits(&score, "matched"), [(0, 0.0)]);
}
