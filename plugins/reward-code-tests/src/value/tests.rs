use rlf_plugin::serde_json::{self, json};

use super::*;

fn equal(left: Value, right: Value) -> Option<bool> {
    let equal = Plain::read(&left)
        .unwrap()
        .equals(&Plain::read(&right).unwrap());
    let back = Plain::read(&right)
        .unwrap()
        .equals(&Plain::read(&left).unwrap());
    assert_eq!(equal, back, "{left} and {right}");
    equal
}

fn float(number: f64) -> Value {
    json!(["f", format!("{:016x}", number.to_bits())])
}

/// CPython 3.11 compared each pair; `python/golden.py` says how.
#[test]
fn equality_is_that_of_python() {
    let golden = include_str!("golden.jsonl");
    let mut counted = [0, 0];
    for line in golden.lines() {
        let (left, right, expected): (Value, Value, bool) = serde_json::from_str(line).unwrap();
        assert_eq!(equal(left, right), Some(expected), "{line}");
        counted[usize::from(expected)] += 1;
    }
    assert!(counted.iter().all(|count| *count > 200), "{counted:?}");
}

#[test]
fn a_nan_equals_nothing_that_came_from_elsewhere() {
    let nan = float(f64::NAN);
    assert_eq!(equal(nan.clone(), nan.clone()), Some(false));
    assert_eq!(equal(json!(["l", nan]), json!(["l", nan])), Some(false));
}

#[test]
fn what_has_an_equality_of_its_own_is_left_to_the_judge() {
    let counter = json!(["C", "a", 1]);
    assert_eq!(equal(counter.clone(), json!(["d", "a", 1])), Some(true));
    assert_eq!(equal(counter.clone(), json!(["C", "a", 1, "b", 0])), None);
    assert_eq!(Plain::read(&json!(["m", "1.0"])), Err(Unread::Judge));
    assert_eq!(
        Plain::read(&json!(["l", ["r", 0, 3, 1]])),
        Err(Unread::Judge)
    );
}

#[test]
fn what_the_encoder_would_not_write_is_malformed() {
    for data in [
        json!(1.5),
        json!({}),
        json!([]),
        json!([1]),
        json!(["x", 1]),
        json!(["f", "nan"]),
        json!(["f"]),
        json!(["i", "zz"]),
        json!(["b", "abc"]),
        json!(["d", 1]),
        json!(["l", ["?"]]),
    ] {
        assert_eq!(Plain::read(&data), Err(Unread::Malformed), "{data}");
    }
}

#[test]
fn truth_is_that_of_python() {
    for (data, truth) in [
        (json!(null), false),
        (json!(false), false),
        (json!(0), false),
        (float(-0.0), false),
        (float(f64::NAN), true),
        (json!(""), false),
        (json!("0"), true),
        (json!(["b", ""]), false),
        (json!(["l"]), false),
        (json!(["t", null]), true),
        (json!(["d"]), false),
        (json!(["s", 0]), true),
        (json!(["e"]), true),
    ] {
        assert_eq!(Plain::read(&data).unwrap().is_true(), truth, "{data}");
    }
}
