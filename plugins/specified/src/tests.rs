//! The component, natively: its promises on its own scenarios, tasks, verdicts.

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::testing;

use crate::Plugin;
use crate::scenarios::spread;

fn bind() {
    for name in ["LendingLibrary", "Clinic", "Warehouse"] {
        let path = format!("{}/examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        testing::bind(
            "specifications",
            &format!("{name}.toml"),
            std::fs::read(path).unwrap(),
        );
    }
    testing::init_environment::<Plugin>(json!({})).unwrap();
}

#[test]
fn the_scenarios_keep_the_promises() {
    bind();
    testing::check_scenarios::<Plugin>().unwrap();
}

#[test]
fn many_scenarios_are_played_at_equal_distances() {
    let kept = |items: &[u32], most| spread(items, most).copied().collect::<Vec<_>>();
    assert_eq!(kept(&[1, 2, 3], 3), [1, 2, 3]);
    assert_eq!(kept(&[1, 2, 3, 4, 5], 2), [1, 3]);
    assert!(kept(&[], 2).is_empty());
}

#[test]
fn a_task_names_scenarios_or_states_and_is_judged_by_its_state() {
    bind();
    let task = json!({ "servers": { "LendingLibrary": { "scenario": "medium" }, "Clinic": null } });
    let (session, start) = testing::open::<Plugin>(task, 3).unwrap();
    assert_eq!(start.tools.len(), 7 + 8);
    assert!(
        start
            .tools
            .iter()
            .any(|tool| tool.name == "LendingLibrary-lend_book")
    );
    let state = session.state();
    let reference = json!({ "state": state });
    assert!(session.verify(None, &reference).unwrap().success);
    let (again, _) = testing::open::<Plugin>(json!({ "servers": state }), 99).unwrap();
    assert_eq!(again.state(), state);
    let mut other = reference.clone();
    other["state"]["Clinic"]["today"] = json!("2020-01-01");
    let verdict = session.verify(None, &other).unwrap();
    assert_eq!((verdict.success, verdict.score), (false, 0.5));
    assert_eq!(verdict.reason, "Clinic: today differs");
    for wrong in [
        json!(1),
        json!({ "server": {} }),
        json!({ "servers": { "Shop": null } }),
        json!({ "servers": { "Clinic": { "scenario": "huge" } } }),
        json!({ "servers": { "Clinic": { "today": 1 } } }),
    ] {
        assert!(
            testing::open::<Plugin>(wrong.clone(), 0).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn a_refused_call_says_why_and_changes_nothing() {
    bind();
    let task = json!({ "servers": { "LendingLibrary": { "scenario": "simple" } } });
    let (mut session, _) = testing::open::<Plugin>(task, 0).unwrap();
    let before: Value = session.state();
    let step = session
        .call(
            "LendingLibrary-lend_book",
            json!({ "book_id": "B99", "member_id": "M1" }),
        )
        .unwrap();
    assert!(step.observation.failed);
    assert_eq!(
        testing::text(&step.observation),
        "no book B99; find_books gives the numbers"
    );
    assert_eq!(session.state(), before);
    assert!(
        session
            .call("LendingLibrary-steal_book", json!({}))
            .is_err()
    );
}
