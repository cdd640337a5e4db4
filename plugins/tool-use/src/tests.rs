use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{Ended, RewardPlugin, Score, Trajectory, error_message, testing};

use crate::Plugin;

fn grade(config: Value, trajectory: Trajectory) -> Score {
    testing::init_reward::<Plugin>(config).unwrap();
    testing::grade::<Plugin>(&testing::task(json!("x")), trajectory).unwrap()
}

/// `ok`, `valid_share`, `used`, `calls`, `excess`, `repeated`.
fn terms(config: Value, trajectory: Trajectory) -> [f64; 6] {
    let score = grade(config, trajectory);
    ["ok", "valid_share", "used", "calls", "excess", "repeated"]
        .map(|term| score.get(term).unwrap())
}

fn called(endings: &[Ended]) -> Trajectory {
    endings
        .iter()
        .enumerate()
        .fold(testing::trajectory(), |trajectory, (number, ended)| {
            trajectory.called("f", json!({ "n": number }), *ended)
        })
}

#[test]
fn valid_calls_within_the_budget_are_ok() {
    assert_eq!(
        terms(json!({}), called(&[Ended::Ok, Ended::Ok])),
        [1.0, 1.0, 1.0, 2.0, 0.0, 0.0]
    );
    // A tool that says "no such city" was called validly.
    assert_eq!(
        terms(json!({}), called(&[Ended::Failed])),
        [1.0, 1.0, 0.0, 1.0, 0.0, 0.0]
    );
}

#[test]
fn what_the_model_did_wrong_is_not_valid() {
    for ended in [
        Ended::InvalidArguments,
        Ended::Timeout,
        Ended::MemoryLimit,
        Ended::OutputLimit,
        Ended::Exited,
        Ended::Denied,
    ] {
        assert_eq!(
            terms(json!({}), called(&[Ended::Ok, ended])),
            [0.0, 0.5, 1.0, 2.0, 0.0, 0.0],
            "{ended:?}"
        );
    }
    let malformed = called(&[Ended::Ok]).malformed("{", "bad-json");
    assert_eq!(terms(json!({}), malformed), [0.0, 0.5, 1.0, 2.0, 0.0, 0.0]);
}

#[test]
fn what_was_not_the_models_doing_counts_neither_way() {
    for ended in [Ended::Trap, Ended::Unavailable, Ended::Cancelled] {
        assert_eq!(
            terms(json!({}), called(&[Ended::Ok, ended])),
            [1.0, 1.0, 1.0, 2.0, 0.0, 0.0],
            "{ended:?}"
        );
    }
}

#[test]
fn too_few_too_many_and_repeated_calls_are_counted() {
    assert_eq!(
        terms(json!({}), testing::trajectory().answered("x")),
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    );
    assert_eq!(
        terms(json!({ "at_least": 0 }), testing::trajectory()),
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    );
    let many = called(&[Ended::Ok; 5]);
    assert_eq!(
        terms(json!({ "at_most": 2 }), many),
        [0.0, 1.0, 1.0, 5.0, 3.0, 0.0]
    );
    let again = called(&[Ended::Ok, Ended::Ok]).called("f", json!({ "n": 0 }), Ended::Ok);
    assert_eq!(terms(json!({}), again), [1.0, 1.0, 1.0, 3.0, 0.0, 1.0]);
}

#[test]
fn each_kind_of_error_is_counted_for_itself() {
    let counts = |trajectory: Trajectory| -> [f64; 4] {
        let score = grade(json!({}), trajectory);
        ["unparsed", "unknown_tool", "bad_arguments", "stopped"]
            .map(|term| score.get(term).unwrap())
    };
    assert_eq!(
        counts(called(&[Ended::Ok, Ended::Trap, Ended::Failed])),
        [0.0; 4]
    );
    let all = called(&[
        Ended::InvalidArguments,
        Ended::Timeout,
        Ended::MemoryLimit,
        Ended::OutputLimit,
        Ended::Exited,
        Ended::Denied,
    ]);
    let all = all.malformed("{", "bad-json").malformed("{", "unclosed");
    let all = all
        .malformed("{}", "unknown-tool")
        .malformed("{}", "bad-arguments");
    assert_eq!(counts(all), [2.0, 1.0, 2.0, 5.0]);
}

#[test]
fn several_tools_are_those_whose_calls_ended_well() {
    let several = |names: &[(&str, Ended)]| -> [f64; 2] {
        let calls = names.iter();
        let trajectory = calls.fold(testing::trajectory(), |trajectory, (name, ended)| {
            trajectory.called(name, json!({}), *ended)
        });
        let score = grade(json!({}), trajectory);
        ["tools", "several"].map(|term| score.get(term).unwrap())
    };
    assert_eq!(several(&[]), [0.0, 0.0]);
    assert_eq!(several(&[("f", Ended::Ok), ("f", Ended::Ok)]), [1.0, 0.0]);
    assert_eq!(
        several(&[("f", Ended::Ok), ("g", Ended::Failed)]),
        [1.0, 0.0]
    );
    assert_eq!(several(&[("f", Ended::Ok), ("g", Ended::Ok)]), [2.0, 1.0]);
}

fn credits(trajectory: Trajectory, name: &str) -> Vec<(u32, f64)> {
    let score = grade(json!({}), trajectory);
    let of_name = (score.per_event.iter()).filter(|(_, term)| term.name == name);
    of_name.map(|(event, term)| (*event, term.value)).collect()
}

#[test]
fn each_judged_call_has_its_own_credit() {
    let trajectory = called(&[Ended::Ok, Ended::Trap, Ended::InvalidArguments]);
    assert_eq!(credits(trajectory, "valid"), [(1, 1.0), (5, 0.0)]);
}

#[test]
fn each_turn_with_judged_calls_has_the_share_of_valid_ones() {
    let trajectory = called(&[Ended::Ok, Ended::Trap, Ended::InvalidArguments]);
    assert_eq!(credits(trajectory, "turn_valid"), [(0, 1.0), (4, 0.0)]);
    // A turn with two calls, of which one is valid.
    let mut trajectory = called(&[Ended::Ok, Ended::Timeout]);
    trajectory.events.remove(2);
    assert_eq!(credits(trajectory, "turn_valid"), [(0, 0.5)]);
    let trajectory = called(&[Ended::Ok]).malformed("{", "bad-json");
    assert_eq!(credits(trajectory, "turn_valid"), [(0, 1.0), (2, 0.0)]);
}

#[test]
fn a_budget_that_nothing_can_keep_is_refused() {
    let error = Plugin::init(r#"{"at_least": 3, "at_most": 2}"#).unwrap_err();
    assert_eq!(
        error_message(&error),
        "configuration: at_least = 3 is more than at_most = 2"
    );
}
