use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{Ended, Finish, Trajectory, testing};

use crate::Plugin;

/// `ok`, `answered`, `well_formed`.
fn grade(config: Value, trajectory: Trajectory) -> [f64; 3] {
    testing::init_reward::<Plugin>(config).unwrap();
    let score = testing::grade::<Plugin>(&testing::task(json!("x")), trajectory).unwrap();
    ["ok", "answered", "well_formed"].map(|term| score.get(term).unwrap())
}

#[test]
fn an_answer_after_well_formed_calls_is_ok() {
    let call = || testing::trajectory().called("f", json!({}), Ended::Ok);
    assert_eq!(grade(json!({}), call().answered("42")), [1.0, 1.0, 1.0]);
    assert_eq!(
        grade(json!({}), testing::trajectory().answered("42")),
        [1.0, 1.0, 1.0]
    );
    // The tool's reaction does not matter for the form.
    let refused = testing::trajectory().called("f", json!({}), Ended::InvalidArguments);
    assert_eq!(grade(json!({}), refused.answered("42")), [1.0, 1.0, 1.0]);
}

#[test]
fn a_malformed_call_counts_against_the_share_and_the_whole() {
    let mixed = testing::trajectory()
        .called("f", json!({}), Ended::Ok)
        .malformed("{", "bad-json");
    assert_eq!(grade(json!({}), mixed.answered("42")), [0.0, 1.0, 0.5]);
}

#[test]
fn no_answer_or_a_blank_one_is_not_an_answer() {
    assert_eq!(
        grade(json!({}), testing::trajectory().said("42")),
        [0.0, 0.0, 1.0]
    );
    assert_eq!(
        grade(json!({}), testing::trajectory().answered("  \n")),
        [0.0, 0.0, 1.0]
    );
    let cut_short = Trajectory {
        finish: Finish::Length,
        ..testing::trajectory().answered("42")
    };
    assert_eq!(grade(json!({}), cut_short), [0.0, 0.0, 1.0]);
}

#[test]
fn an_answer_longer_than_allowed_counts_as_none() {
    let config = json!({ "max_answer_chars": 3 });
    assert_eq!(
        grade(
            config.clone(),
            testing::trajectory().answered("\u{e9}\u{e9}\u{e9} ")
        ),
        [1.0, 1.0, 1.0]
    );
    assert_eq!(
        grade(config, testing::trajectory().answered("four")),
        [0.0, 0.0, 1.0]
    );
}

#[test]
fn a_limit_that_no_answer_can_keep_is_refused() {
    assert!(testing::init_reward::<Plugin>(json!({ "max_answer_chars": 0 })).is_err());
}
