//! Two looks: their mean, their order and their disagreement.

use std::cell::RefCell;
use std::rc::Rc;

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::testing;

use super::{answer_with, grade, group, metric, system, values};

fn two_looks(keys: Value) -> Value {
    let mut config = json!({
        "criteria": [
            { "name": "first", "question": "?" },
            { "name": "second", "question": "?", "scale": [1, 5] },
        ],
        "looks": 2,
    });
    for (key, value) in keys.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

/// Answers with this in the operator's order of criteria, and with that in the other order.
fn by_order(this: Value, that: Value) {
    answer_with(move |question| {
        let place = |name| system(question).find(&format!("- `{name}`, from")).unwrap();
        let in_order = place("first") < place("second");
        json!({ "scores": if in_order { &this } else { &that } })
    });
}

#[test]
fn the_value_is_the_mean_and_the_disagreement_a_share_of_the_scales() {
    by_order(
        json!({ "first": 10, "second": 2 }),
        json!({ "first": 6, "second": 4 }),
    );
    let scores = grade(
        two_looks(json!({})),
        &testing::task(json!("x")),
        &group(&["x"]),
    );
    let score = scores[0].as_ref().unwrap();
    assert_eq!(score.get("first"), Some(0.8));
    assert_eq!(score.get("second"), Some(0.5));
    assert_eq!(values(&scores), [0.65]);
    // 4/10 of one scale and 2/4 of the other.
    assert_eq!(metric(&scores[0], "disagreement"), Some(0.45));
}

#[test]
fn too_large_a_disagreement_excludes_the_trajectory_and_says_so() {
    by_order(
        json!({ "first": 10, "second": 2 }),
        json!({ "first": 6, "second": 4 }),
    );
    let task = testing::task(json!("x"));
    let strict = grade(
        two_looks(json!({ "max_disagreement": 0.4 })),
        &task,
        &group(&["x"]),
    );
    let why = strict[0].as_ref().unwrap_err();
    assert!(
        why.contains("0.450") && why.contains("`max_disagreement` = 0.4"),
        "{why}"
    );
    let lenient = grade(
        two_looks(json!({ "max_disagreement": 0.5 })),
        &task,
        &group(&["x"]),
    );
    assert_eq!(values(&lenient), [0.65]);
}

#[test]
fn a_look_without_an_answer_excludes_the_trajectory() {
    by_order(json!({ "first": 10, "second": 2 }), json!({ "first": 6 }));
    let scores = grade(
        two_looks(json!({})),
        &testing::task(json!("x")),
        &group(&["x"]),
    );
    let why = scores[0].as_ref().unwrap_err();
    assert!(why.contains("no score for `second`"), "{why}");
}

#[test]
fn the_second_look_has_another_order_for_every_seed() {
    let names: Vec<String> = (0..4).map(|number| format!("c{number}")).collect();
    let criteria: Vec<Value> = names
        .iter()
        .map(|name| json!({ "name": name, "question": "?" }))
        .collect();
    let mut seconds = Vec::new();
    for seed in 0..30 {
        let orders: Rc<RefCell<Vec<Vec<String>>>> = Rc::default();
        let (heard, all) = (Rc::clone(&orders), names.clone());
        answer_with(move |question| {
            let mut order = all.clone();
            order.sort_by_key(|name| system(question).find(&format!("- `{name}`,")));
            heard.borrow_mut().push(order);
            let scores: Vec<(String, Value)> = all.iter().map(|n| (n.clone(), json!(5))).collect();
            json!({ "scores": Value::Object(scores.into_iter().collect()) })
        });
        let config = json!({ "criteria": criteria, "looks": 2 });
        super::grade_with_seed(config, &testing::task(json!("x")), &group(&["x"]), seed);
        let orders = orders.borrow();
        assert_eq!(orders[0], names);
        assert_ne!(orders[1], names, "seed {seed}");
        seconds.push(orders[1].clone());
    }
    seconds.sort();
    seconds.dedup();
    assert!(seconds.len() > 5, "the seed decides the order: {seconds:?}");
}
