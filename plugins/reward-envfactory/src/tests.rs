//! The promises of the reward.

mod properties;

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{
    Ended, Error, Event, Grading, MalformedCall, ModelTurn, RewardPlugin, Score, Trajectory,
    error_message, testing,
};

use crate::Plugin;

const TERMS: [&str; 6] = ["score", "trace", "state", "length", "format", "solved"];

fn try_grade(config: Value, reference: Value, trajectory: Trajectory) -> Result<Score, Error> {
    testing::init_reward::<Plugin>(config).unwrap();
    testing::grade::<Plugin>(&testing::task(reference), trajectory)
}

fn terms(config: Value, reference: Value, trajectory: Trajectory) -> [f64; 6] {
    let score = try_grade(config, reference, trajectory).unwrap();
    TERMS.map(|term| score.get(term).unwrap())
}

fn called(calls: &[(&str, Value)]) -> Trajectory {
    calls
        .iter()
        .fold(testing::trajectory(), |trajectory, (name, arguments)| {
            trajectory.called(name, arguments.clone(), Ended::Ok)
        })
}

fn ended(trajectory: Trajectory, state: Value) -> Trajectory {
    Trajectory {
        final_state: Some(state.to_string()),
        ..trajectory
    }
}

fn reference() -> Value {
    json!({
        "calls": [
            { "name": "Files-move", "arguments": { "from": "/a", "to": "/b", "note": "x" }, "masked": ["note"] },
            { "name": "Mail-send", "arguments": { "to": "ann", "copies": 2 } },
        ],
        "state": { "Files": { "/b": "text" }, "Mail": { "sent": 2 } },
        "initial": { "Files": { "/a": "text" }, "Mail": { "sent": 0 } },
    })
}

fn solution() -> [(&'static str, Value); 2] {
    [
        ("Files-move", json!({ "to": "/b", "from": "/a" })),
        (
            "Mail-send",
            json!({ "to": "ann", "copies": 2.0, "urgent": true }),
        ),
    ]
}

fn reached() -> Value {
    json!({ "Mail": { "sent": 2.0 }, "Files": { "/b": "text" }, "Calendar": {} })
}

/// Computed from the formula of the paper in Python 3.11.
#[test]
fn the_score_is_that_of_the_formula() {
    let half = json!({ "Files": { "/b": "text" }, "Mail": { "sent": 0 } });
    let [first, second] = solution();
    let more = |count: usize| {
        let mut calls = vec![first.clone(), second.clone()];
        calls.extend((0..count).map(|_| first.clone()));
        called(&calls)
    };
    for (tau, trajectory, state, expected) in [
        (0.5, more(0), reached(), [1.0, 1.0, 1.0, 0.0, 0.0, 1.0]),
        (0.5, more(0), half.clone(), [0.75, 1.0, 0.5, 0.0, 0.0, 0.0]),
        (
            0.9,
            called(std::slice::from_ref(&first)),
            half.clone(),
            [0.049_999_999_999_999_99, 0.0, 0.5, 0.0, 0.0, 0.0],
        ),
        (
            0.3,
            more(3),
            reached(),
            [0.85, 1.0, 1.0, 0.150_000_000_000_000_02, 0.0, 1.0],
        ),
        (0.5, more(10), reached(), [0.5, 1.0, 1.0, 0.5, 0.0, 1.0]),
        (0.5, more(40), reached(), [0.5, 1.0, 1.0, 0.5, 0.0, 1.0]),
        (
            0.5,
            more(1).malformed("{", "bad-json"),
            reached(),
            [0.899_999_999_999_999_9, 1.0, 1.0, 0.05, 0.05, 1.0],
        ),
        (
            1.0,
            more(40).malformed("{", "bad-json"),
            half.clone(),
            [0.45, 1.0, 0.5, 0.5, 0.05, 0.0],
        ),
        (
            1.0,
            called(&[]).malformed("{", "bad-json"),
            half,
            [0.0, 0.0, 0.5, 0.0, 0.05, 0.0],
        ),
    ] {
        let graded = terms(json!({ "tau": tau }), reference(), ended(trajectory, state));
        assert_eq!(graded, expected, "{tau}");
    }
}

#[test]
fn a_gold_call_needs_a_call_of_its_own() {
    let gold = json!({ "calls": [
        { "name": "S-f", "arguments": { "a": 1 } },
        { "name": "S-f", "arguments": { "a": 1 } },
    ], "state": {} });
    let one = ("S-f", json!({ "a": 1 }));
    let trace = |calls: &[(&str, Value)]| terms(json!({}), gold.clone(), called(calls))[1];
    assert_eq!(trace(std::slice::from_ref(&one)), 0.0);
    assert_eq!(trace(&[one.clone(), one.clone()]), 1.0);
    assert_eq!(trace(&[one, ("S-f", json!({ "a": 2 }))]), 0.0);
}

#[test]
fn arguments_are_equal_by_kind_and_value() {
    let trace = |gold: Value, made: Value| {
        let gold = json!({ "calls": [{ "name": "S-f", "arguments": { "a": gold } }], "state": {} });
        terms(json!({}), gold, called(&[("S-f", made)]))[1]
    };
    for (gold, made, expected) in [
        (json!(5), json!({ "a": 5.0 }), 1.0),
        (json!(5), json!({ "a": 5.000_001 }), 1.0),
        (json!(5), json!({ "a": 5.000_01 }), 0.0),
        (json!(5), json!({ "a": "5" }), 0.0),
        (json!("5"), json!({ "a": 5 }), 0.0),
        (json!("5"), json!({ "a": "5.0" }), 0.0),
        (
            json!("Z\u{fc}rich"),
            json!({ "a": "Z\u{fc}rich", "b": 1 }),
            1.0,
        ),
        (json!("Z\u{fc}rich"), json!({ "a": "z\u{fc}rich" }), 0.0),
        (json!(null), json!({}), 0.0),
        (json!(null), json!({ "a": null }), 1.0),
        (
            json!({ "x": [1, 2] }),
            json!({ "a": { "x": [1.0, 2] } }),
            1.0,
        ),
        (json!({ "x": [1, 2] }), json!({ "a": { "x": [2, 1] } }), 0.0),
    ] {
        assert_eq!(trace(gold.clone(), made.clone()), expected, "{gold} {made}");
    }
}

#[test]
fn a_server_that_was_never_called_is_as_it_was() {
    let gold = json!({
        "calls": [],
        "state": { "A": 1, "A-B": 2, "C": 3 },
        "initial": { "C": 3 },
    });
    let trajectory = || ended(called(&[("A-B-f", json!({}))]), json!({ "A": 1, "A-B": 2 }));
    let state = |uncalled| terms(json!({ "uncalled": uncalled }), gold.clone(), trajectory())[2];
    assert_eq!(state("initial"), 1.0);
    // Published: only a called server can match, and `A-B-f` is a tool of `A-B`.
    assert_eq!(state("mismatch"), 1.0 / 3.0);
}

#[test]
fn an_empty_gold_asks_for_nothing() {
    let nothing = json!({ "calls": [], "state": {} });
    assert_eq!(
        terms(json!({}), nothing.clone(), testing::trajectory()),
        [1.0, 1.0, 1.0, 0.0, 0.0, 1.0]
    );
    let one = called(&[("S-f", json!({}))]);
    assert_eq!(
        terms(json!({}), nothing, one),
        [0.95, 1.0, 1.0, 0.05, 0.0, 1.0]
    );
}

#[test]
fn tau_goes_from_trace_to_state_over_the_steps_of_training() {
    let tau = |config: Value, split: &str, step, steps| {
        testing::init_reward::<Plugin>(config).unwrap();
        let grading = Grading {
            split: split.to_owned(),
            step,
            steps,
            seed: 0,
        };
        // No call, and all states reached: the score is 1 - tau.
        let task = testing::task(reference());
        let trajectory = ended(testing::trajectory(), reached());
        let scores = Plugin::grade(&task, &[trajectory], &grading).unwrap();
        1.0 - scores[0].as_ref().unwrap().get("score").unwrap()
    };
    let scheduled = |split, step, steps| (tau(json!({}), split, step, steps) * 1e9).round() / 1e9;
    assert_eq!(
        [0, 5, 10].map(|step| scheduled("train", step, 11)),
        [0.9, 0.5, 0.1]
    );
    assert_eq!(scheduled("train", 0, 1), 0.9);
    // Past its end, outside training, and where no steps are planned.
    assert_eq!(scheduled("train", 99, 11), 0.1);
    assert_eq!(scheduled("validation", 0, 11), 0.1);
    assert_eq!(scheduled("train", 0, 0), 0.1);
    assert_eq!(tau(json!({ "tau": 0.25 }), "train", 3, 10), 0.25);
    let back = json!({ "tau": { "from": 0.0, "to": 1.0 } });
    assert_eq!(tau(back, "train", 1, 5), 0.25);
}

#[test]
fn tags_of_reasoning_are_no_calls() {
    let mut turn = ModelTurn {
        text: String::new(),
        reasoning: None,
        visible: String::new(),
        calls: Vec::new(),
        malformed: Vec::new(),
        tokens: 1,
    };
    let malformed = |text: &str, diagnostic: &str| MalformedCall {
        text: text.to_owned(),
        diagnostic: diagnostic.to_owned(),
    };
    turn.malformed = vec![
        malformed("hm", "unclosed-think"),
        malformed("</think>", "stray-close"),
        malformed("</tool_call>", "stray-close"),
        malformed("{}", "unknown-tool"),
    ];
    let mut trajectory = testing::trajectory();
    trajectory.events.push(Event::Turn(turn));
    assert_eq!(
        terms(json!({}), json!({ "calls": [], "state": {} }), trajectory)[4],
        0.1
    );
}

#[test]
fn what_is_missing_is_named() {
    let graded = |reference: Value, trajectory: Trajectory| {
        error_message(&try_grade(json!({}), reference, trajectory).unwrap_err()).to_owned()
    };
    for (reference, expected) in [
        (json!({ "state": {} }), "`calls`"),
        (json!({ "calls": {}, "state": {} }), "`calls`"),
        (json!({ "calls": [] }), "`state`"),
        (
            json!({ "calls": [], "state": {}, "initial": 1 }),
            "`initial`",
        ),
        (
            json!({ "calls": [{ "arguments": {} }], "state": {} }),
            "`calls[0]` lacks `name`",
        ),
        (
            json!({ "calls": [{ "name": "f" }], "state": {} }),
            "`calls[0]` lacks `arguments`",
        ),
        (
            json!({ "calls": [{ "name": "f", "arguments": {}, "masked": [1] }], "state": {} }),
            "`masked`",
        ),
        (json!({ "calls": [], "state": { "Files": {} } }), "`Files`"),
    ] {
        let message = graded(reference, ended(testing::trajectory(), json!({})));
        assert!(message.contains(expected), "{message}");
    }
    let message = graded(reference(), testing::trajectory());
    assert!(message.contains("no final state"), "{message}");
    let message = graded(reference(), ended(testing::trajectory(), json!([])));
    assert!(message.contains("not an object of servers"), "{message}");
}

#[test]
fn a_tau_that_is_no_share_is_refused() {
    for (config, expected) in [
        (r#"{"tau": 1.5}"#, "tau = 1.5"),
        (r#"{"tau": {"from": 0.9, "to": -1}}"#, "tau = -1"),
        (r#"{"tau": "high"}"#, "from = NUMBER"),
        (r#"{"tau": {"from": 0.9, "till": 0.1}}"#, "from = NUMBER"),
        (r#"{"taw": 0.5}"#, "taw"),
    ] {
        let error = Plugin::init(config).unwrap_err();
        assert!(error_message(&error).contains(expected), "{error:?}");
    }
}
