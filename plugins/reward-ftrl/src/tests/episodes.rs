//! Whole trajectories.

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{Ended, Event, Finish, MalformedCall, Observation, error_message, testing};

use super::{act, call, credits, grade, say, spoken, turn_with};
use crate::Plugin;

fn reference() -> Value {
    json!({ "answer": "Rome", "unsolved": { "a": ["1", "2"], "b": ["3"] } })
}

#[test]
fn what_a_turn_solved_is_gone_for_the_next_one() {
    let trajectory = act(testing::trajectory(), &[("a", "1"), ("b", "nothing")]);
    let trajectory = act(trajectory, &[("a", "1")]);
    let trajectory = act(trajectory, &[("a", "2"), ("b", "3")]);
    let score = grade(json!({}), reference(), say(trajectory, "It is Rome."));
    // p = 2, q = 1; then p = 1, q = 0; then p = q = 2; then the answer with nothing left.
    let expected = [(0, 2.0 / 3.0), (3, 0.0), (5, 4.0 / 3.0), (8, 1.0)];
    assert_eq!(credits(&score, "step"), expected);
    assert_eq!(score.get("step_mean"), Some(0.75));
    assert_eq!(score.get("solve_p"), Some(3.0 / 5.0));
    assert_eq!(score.get("solve_r"), Some(1.0));
    assert_eq!(score.get("solve_f1"), Some(6.0 / 8.0));
    assert_eq!(score.get("final"), Some(1.0));
    assert_eq!(score.get("matched"), None);
}

#[test]
fn an_answer_is_worth_more_the_less_was_left_and_half_if_it_is_wrong() {
    let none = say(testing::trajectory(), "Rome");
    assert_eq!(grade(json!({}), reference(), none).get("final"), Some(0.25));
    let one = say(act(testing::trajectory(), &[("a", "2")]), "Rome");
    assert_eq!(
        grade(json!({}), reference(), one).get("final"),
        Some(1.0 / 3.0)
    );
    let all = act(testing::trajectory(), &[("a", "2"), ("a", "1"), ("b", "3")]);
    let wrong = say(all, "Paris");
    assert_eq!(grade(json!({}), reference(), wrong).get("final"), Some(0.5));
}

#[test]
fn a_trajectory_without_calls_has_full_precision_and_no_recall() {
    let score = grade(json!({}), reference(), say(testing::trajectory(), "Paris"));
    let shares = ["solve_p", "solve_r", "solve_f1", "final"].map(|term| score.get(term).unwrap());
    assert_eq!(shares, [1.0, 0.0, 0.0, 0.0]);
    let nothing = grade(json!({}), reference(), testing::trajectory());
    let rest = ["final", "step", "step_mean"].map(|term| nothing.get(term).unwrap());
    assert_eq!(rest, [0.0; 3]);
}

#[test]
fn where_nothing_is_to_be_solved_all_of_it_is() {
    let empty = json!({ "answer": "Rome", "unsolved": {} });
    let shares = |trajectory| {
        let score = grade(json!({}), empty.clone(), trajectory);
        ["solve_p", "solve_r", "solve_f1", "final"].map(|term| score.get(term).unwrap())
    };
    assert_eq!(
        shares(say(testing::trajectory(), "Rome")),
        [1.0, 1.0, 1.0, 1.0]
    );
    assert_eq!(
        shares(act(testing::trajectory(), &[("a", "1")])),
        [0.0, 1.0, 0.0, 0.0]
    );
}

#[test]
fn calls_that_were_not_run_count_nowhere() {
    let skipped = vec![(call("b", json!({})), None)];
    let trajectory = turn_with(act(testing::trajectory(), &[("a", "1")]), skipped);
    let score = grade(json!({}), reference(), trajectory);
    assert_eq!(score.get("solve_p"), Some(1.0));
    assert_eq!(score.get("solve_f1"), Some(2.0 / 4.0));
    assert_eq!(
        (score.get("final"), score.get("step")),
        (Some(0.0), Some(0.0))
    );
}

#[test]
fn a_sample_of_one_turn_is_worth_its_turn() {
    let trajectory = act(testing::trajectory(), &[("a", "2"), ("a", "2")]);
    let score = grade(
        json!({ "step": "solved-precision" }),
        reference(),
        trajectory,
    );
    assert_eq!(score.get("step"), Some(0.5));
    assert_eq!(score.get("step_mean"), Some(0.5));
    assert_eq!(score.get("final"), Some(0.0));
}

#[test]
fn only_what_was_to_be_a_call_is_a_broken_one() {
    let of = |diagnostic: &str, text: &str, matching: &str| {
        let mut trajectory = testing::trajectory();
        let mut turn = spoken("Rome");
        turn.malformed.push(MalformedCall {
            text: text.to_owned(),
            diagnostic: diagnostic.to_owned(),
        });
        trajectory.events.push(Event::Turn(turn));
        trajectory.answer = Some("Rome".to_owned());
        trajectory.finish = Finish::Answered;
        grade(json!({ "matching": matching }), reference(), trajectory)
    };
    for matching in ["published", "strict"] {
        let step = |diagnostic, text| of(diagnostic, text, matching).get("step").unwrap();
        // A malformed call of any protocol.
        assert_eq!(step("bad-json", "<|python_tag|>{"), -0.3);
        assert_eq!(step("unclosed-think", "hm"), 0.25);
        assert_eq!(step("stray-close", "</think>"), 0.25);
        assert_eq!(step("stray-close", "</tool_call>"), -0.3);
        // It is a call that solves nothing.
        let unknown = of("unknown-tool", "{}", matching);
        assert_eq!(unknown.get("step"), Some(0.0));
        assert_eq!(
            (unknown.get("solve_p"), unknown.get("final")),
            (Some(0.0), Some(0.0))
        );
    }
}

#[test]
fn results_are_told_apart_by_their_call() {
    let text = |text: &str| Some((Ended::Ok, Observation::text(text)));
    let calls = vec![
        (call("a", json!({})), text("3")),
        (call("b", json!({})), text("1")),
    ];
    let mut trajectory = turn_with(testing::trajectory(), calls);
    let crossed = trajectory.clone();
    assert_eq!(
        grade(json!({}), reference(), crossed).get("solve_r"),
        Some(0.0)
    );
    // In order of completion: the second call's result before the first one's.
    for event in &mut trajectory.events {
        if let Event::Outcome(outcome) = event {
            let other = if outcome.call_id == "test/0/0" {
                "test/0/1"
            } else {
                "test/0/0"
            };
            other.clone_into(&mut outcome.call_id);
        }
    }
    assert_eq!(
        grade(json!({}), reference(), trajectory).get("solve_r"),
        Some(2.0 / 3.0)
    );
}

#[test]
fn a_reference_that_cannot_be_read_says_which_field() {
    for (reference, expected) in [
        (json!({ "answer": "x" }), "`unsolved`"),
        (json!("x"), "`unsolved`"),
        (json!({ "unsolved": ["x"] }), "`unsolved`"),
        (json!({ "unsolved": { "a": "x" } }), "`unsolved.a`"),
        (json!({ "unsolved": { "a": [null] } }), "`unsolved.a`"),
        (json!({ "unsolved": {}, "answer": ["x"] }), "`answer`"),
        (
            json!({ "unsolved": {}, "calls": [{ "name": "a" }] }),
            "`calls`",
        ),
    ] {
        testing::init_reward::<Plugin>(json!({})).unwrap();
        let graded = testing::grade::<Plugin>(&testing::task(reference), testing::trajectory());
        let message = error_message(&graded.unwrap_err()).to_owned();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn numbers_of_a_reference_are_texts() {
    let reference = json!({ "answer": 1024, "unsolved": { "a": [12.5] } });
    let trajectory = act(testing::trajectory(), &[("a", "it is 12.5")]);
    let score = grade(json!({}), reference, say(trajectory, "1,024"));
    assert_eq!(score.get("solve_f1"), Some(1.0));
    assert_eq!(score.get("final"), Some(1.0));
}
