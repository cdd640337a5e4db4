//! MBPP: every solution passes its own tests, and none passes after a change that makes it wrong. One problem in eight is
//! tried; `cargo xtask conformance` sets `RLF_WHOLE_DATA` and tries all, which takes minutes.

use std::{env, fs};

use serde_json::Value;

use crate::bench::{Bench, metric, term};

/// Changes a solution so that every top-level function returns another value to callers from outside. Where possible
/// the value has the same type, so that no test can pass by the type alone. Calls between the functions are
/// unchanged, because two wrong values could make a correct one.
const MUTATION: &str = r#"

def _mutated(value):
    kind = type(value)
    if kind is bool or value is None:
        return not value
    if kind in (int, float, complex):
        return value + 1
    if kind is str:
        return value + "?"
    if kind in (list, tuple):
        return kind([*value, None])
    if kind in (set, frozenset):
        return kind([*value, "?"])
    if isinstance(value, dict):
        return {**value, "?": None}
    return "?"

_depth = 0

def _wrapped(function):
    def outermost(*args, **kwargs):
        global _depth
        _depth += 1
        try:
            value = function(*args, **kwargs)
        finally:
            _depth -= 1
        return value if _depth else _mutated(value)
    return outermost

for _name, _value in list(globals().items()):
    if type(_value) is type(_wrapped) and _value not in (_mutated, _wrapped):
        globals()[_name] = _wrapped(_value)
"#;

#[tokio::test]
async fn solutions_of_mbpp_pass_and_no_mutated_one_does() {
    let Some(path) = rlf_tests::data("mbpp/mbpp.jsonl") else {
        return;
    };
    let step = if env::var_os("RLF_WHOLE_DATA").is_some() {
        1
    } else {
        8
    };
    let text = fs::read_to_string(path).expect("can be read");
    let rows: Vec<Value> = text
        .lines()
        .step_by(step)
        .map(|row| serde_json::from_str(row).expect("is JSON"))
        .collect();
    assert_eq!(rows.len(), 974_usize.div_ceil(step));
    let bench = Bench::new("config.wall_ms = 60_000\nconfig.attempts = 1\n");
    let (mut tests, mut weak, mut wrong) = (0.0, 0.0, Vec::new());
    for row in &rows {
        let solution = row["code"].as_str().expect("every row has a solution");
        let mutated = format!("{solution}{MUTATION}");
        let graded = bench.try_grade(row, &[solution, &mutated]).await;
        let [Ok(right), Ok(other)] = &*graded else {
            wrong.push(format!("{}: {graded:?}", row["task_id"]));
            continue;
        };
        tests += metric(right, "tests");
        weak += metric(right, "weak");
        if term(right, "all") != 1.0 || term(other, "rate") != 0.0 {
            wrong.push(format!("{}: {graded:?}", row["task_id"]));
        }
    }
    println!(
        "{} rows, {tests} tests, {weak} weak, {} wrong",
        rows.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(weak, 0.0, "all of MBPP is of the form that is taken apart");
}
