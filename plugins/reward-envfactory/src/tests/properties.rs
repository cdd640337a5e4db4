//! Properties of every trajectory's score.

use proptest::prelude::*;
use rlf_plugin::serde_json::{Map, Value, json};

use super::{called, ended, terms};

type Calls = Vec<(String, Value)>;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|truth| json!(truth)),
        (-1_000_i64..1_000).prop_map(|number| json!(number)),
        (-1e6..1e6).prop_map(|number: f64| json!(number)),
        "\\PC{0,6}".prop_map(|text| json!(text)),
        // Numbers as texts.
        (-9_i64..9).prop_map(|number| json!(number.to_string())),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            prop::collection::btree_map("\\PC{0,3}", inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    })
}

/// Calls, each with these arguments.
fn calls_with(names: &'static [&'static str]) -> impl Strategy<Value = Calls> {
    let arguments = prop::collection::vec(value(), names.len()).prop_map(|values| {
        let pairs = names.iter().zip(values);
        pairs
            .map(|(name, value)| ((*name).to_owned(), value))
            .collect()
    });
    let call =
        ("[ST]-[fg]", arguments).prop_map(|(name, arguments)| (name, Value::Object(arguments)));
    prop::collection::vec(call, 1..4)
}

/// Calls with the same arguments, so that no gold call fits a call that another one needs, unless they are equal.
fn alike() -> impl Strategy<Value = Calls> {
    prop_oneof![calls_with(&[]), calls_with(&["a"]), calls_with(&["a", "b"])]
}

fn calls() -> impl Strategy<Value = Calls> {
    let some = (calls_with(&["a"]), calls_with(&["b", "a"]), calls_with(&[]));
    some.prop_map(|(one, two, none)| [one, two, none].concat())
        .prop_shuffle()
}

fn gold(calls: &Calls) -> Value {
    let calls = calls.iter();
    let calls = calls.map(|(name, arguments)| json!({ "name": name, "arguments": arguments }));
    json!({ "calls": calls.collect::<Vec<_>>(), "state": {} })
}

fn made(calls: &Calls) -> rlf_plugin::Trajectory {
    let calls: Vec<(&str, Value)> = calls
        .iter()
        .map(|(name, arguments)| (name.as_str(), arguments.clone()))
        .collect();
    called(&calls)
}

/// The same value: keys in another order, whole numbers as floats.
fn rewritten(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap()),
        Value::Array(items) => items.iter().map(rewritten).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().rev();
            let fields: Map<String, Value> = fields
                .map(|(name, value)| (name.clone(), rewritten(value)))
                .collect();
            Value::Object(fields)
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn the_gold_calls_in_any_order_are_the_whole_trace(
        (calls, shuffled) in alike().prop_flat_map(|calls| (Just(calls.clone()), Just(calls).prop_shuffle())),
    ) {
        let graded = terms(json!({ "tau": 0.5 }), gold(&calls), made(&shuffled));
        prop_assert_eq!(graded, [1.0, 1.0, 1.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn a_call_made_twice_costs_its_length_and_nothing_else(calls in calls(), twice in any::<prop::sample::Index>()) {
        let mut again = calls.clone();
        again.push(calls[twice.index(calls.len())].clone());
        let [score, trace, state, length, format, solved] = terms(json!({ "tau": 0.5 }), gold(&calls), made(&again));
        prop_assert_eq!([trace, state, length, format, solved], [1.0, 1.0, 0.05, 0.0, 1.0]);
        prop_assert_eq!(score, 0.95);
    }

    #[test]
    fn a_gold_call_less_is_no_trace(calls in calls(), without in any::<prop::sample::Index>()) {
        let mut fewer = calls.clone();
        fewer.remove(without.index(calls.len()));
        prop_assert_eq!(terms(json!({}), gold(&calls), made(&fewer))[1], 0.0);
    }

    #[test]
    fn any_trajectory_scores_a_share(gold_calls in calls(), calls in calls(), left in value(), right in value(), tau in 0.0..=1.0) {
        let mut reference = gold(&gold_calls);
        reference["state"] = json!({ "S": left, "T": right.clone() });
        for uncalled in ["initial", "mismatch"] {
            let trajectory = ended(made(&calls), json!({ "S": right, "T": right }));
            let config = json!({ "tau": tau, "uncalled": uncalled });
            for term in terms(config, reference.clone(), trajectory) {
                prop_assert!((0.0..=1.0).contains(&term));
            }
        }
    }

    #[test]
    fn a_state_is_the_same_however_it_is_written(state in value()) {
        let reference = json!({ "calls": [], "state": { "S": state } });
        let trajectory = ended(made(&vec![]), json!({ "S": rewritten(&state) }));
        prop_assert_eq!(terms(json!({}), reference, trajectory)[2], 1.0);
    }
}
