//! Tests of the configurations that `init` accepts, and of its errors.

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{error_message, testing};

use super::{accuracy, config};
use crate::Plugin;

fn refused(config: Value) -> String {
    let error = testing::init_reward::<Plugin>(config).unwrap_err();
    error_message(&error).to_owned()
}

#[test]
fn a_criterion_is_all_that_a_configuration_needs() {
    testing::init_reward::<Plugin>(config(json!({}))).unwrap();
}

#[test]
fn every_key_of_the_readme_is_accepted() {
    testing::init_reward::<Plugin>(json!({
        "criteria": [
            { "name": "accuracy", "question": "Right?", "weight": 2, "scale": [-3, 3] },
            { "name": "style_2", "question": "Clear?" },
        ],
        "scale": [1, 5], "mode": "ranking", "judged": "transcript", "reference": false, "looks": 2,
        "max_disagreement": 0.25, "instructions": "Be strict.", "model": "small", "temperature": 0,
        "max_tokens": 100, "max_chars": 1000, "max_questions": 10, "retries": 0,
    }))
    .unwrap();
}

#[test]
fn a_wrong_value_names_its_key_and_how_to_mend_it() {
    for (keys, expected) in [
        (json!({ "lokks": 2 }), ["unknown field `lokks`", "`looks`"]),
        (json!({ "looks": "two" }), ["`looks`", "expected u32"]),
        (json!({ "looks": 3 }), ["`looks` = 3", "from 1 to 2"]),
        (
            json!({ "looks": 2, "mode": "pairwise" }),
            ["`looks` = 2", "leave `looks` out"],
        ),
        (json!({ "mode": "vote" }), ["`mode`", "`pairwise`"]),
        (
            json!({ "judged": "thoughts" }),
            ["`judged`", "`transcript`"],
        ),
        (json!({ "reference": "yes" }), ["`reference`", "boolean"]),
        (
            json!({ "scale": [0] }),
            ["`scale` has 1 numbers", "[low, high]"],
        ),
        (
            json!({ "scale": [5, 5] }),
            ["`scale` = [5, 5]", "below the second"],
        ),
        (
            json!({ "scale": [0, 101] }),
            ["`scale` = [0, 101]", "100 apart"],
        ),
        (
            json!({ "scale": [i64::MIN, i64::MAX] }),
            ["`scale`", "100 apart"],
        ),
        (json!({ "scale": [0, 0.5] }), ["`scale`", "expected i64"]),
        (
            json!({ "max_disagreement": 0.1 }),
            ["`max_disagreement`", "looks = 2"],
        ),
        (
            json!({ "max_disagreement": 1.5, "looks": 2 }),
            ["`max_disagreement` = 1.5", "from 0 to 1"],
        ),
        (
            json!({ "temperature": 3 }),
            ["`temperature` = 3", "from 0 to 2"],
        ),
        (json!({ "max_tokens": 0 }), ["`max_tokens` = 0", "from 1"]),
        (json!({ "max_chars": 10 }), ["`max_chars` = 10", "from 100"]),
        (
            json!({ "max_questions": 0 }),
            ["`max_questions` = 0", "from 1"],
        ),
        (json!({ "retries": 6 }), ["`retries` = 6", "from 0 to 5"]),
        (
            json!({ "criteria": {} }),
            ["`criteria`", "expected a sequence"],
        ),
    ] {
        let why = refused(config(keys));
        assert!(expected.iter().all(|part| why.contains(part)), "{why}");
    }
}

#[test]
fn a_wrong_criterion_is_named() {
    let named = |name: &str| json!({ "name": name, "question": "?" });
    let with = |key: &str, value: Value| {
        let mut criterion = named("accuracy");
        criterion[key] = value;
        json!([criterion])
    };
    for (criteria, expected) in [
        (json!([]), ["`criteria` is missing", "name = \"accuracy\""]),
        (json!(vec![named("a"); 17]), ["17 entries", "at most 16"]),
        (
            json!([named("a"), named("a")]),
            ["entry 2 (\"a\")", "same `name`"],
        ),
        (json!([named("Accuracy")]), ["entry 1", "a-z 0-9 _"]),
        (json!([named("")]), ["entry 1", "1 to 32"]),
        (json!([named(&"a".repeat(33))]), ["entry 1", "1 to 32"]),
        (json!([named("score")]), ["`score`", "another name"]),
        (
            json!([{ "name": "a" }]),
            ["entry 1 (\"a\")", "missing field `question`"],
        ),
        (json!(["a"]), ["entry 1", "expected struct"]),
        (
            with("question", json!(" ")),
            ["accuracy", "`question` is empty"],
        ),
        (with("weight", json!(0)), ["accuracy", "`weight` = 0"]),
        (with("weight", json!(-1)), ["accuracy", "above 0"]),
        (
            with("weigth", json!(1)),
            ["accuracy", "unknown field `weigth`"],
        ),
        (
            with("scale", json!([3, 1])),
            ["accuracy", "`scale` = [3, 1]"],
        ),
    ] {
        let why = refused(json!({ "criteria": criteria }));
        assert!(expected.iter().all(|part| why.contains(part)), "{why}");
    }
    assert!(refused(json!({})).contains("`criteria` is missing"));
    let heavy = |name| json!({ "name": name, "question": "?", "weight": 1e308 });
    assert!(refused(json!({ "criteria": [heavy("a"), heavy("b")] })).contains("too large"));
    testing::init_reward::<Plugin>(json!({ "criteria": accuracy() })).unwrap();
}
