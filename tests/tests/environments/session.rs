//! Each session is its own copy of the environment: its state follows from its calls and its seed only.

use rlf_dialogue::episode::Reply;
use rlf_dialogue::tool::Ended;
use rlf_environments::error::OpenError;
use rlf_environments::snapshot::SnapshotError;
use serde_json::json;

use crate::test_host::{add, call, count, host, observed, state, turn};

#[tokio::test]
async fn what_one_session_does_no_other_sees() {
    let host = host();
    let (mut one, other) = (
        host.open(json!({"start": 1})).await,
        host.open(json!({"start": 1})).await,
    );
    let outcome = call(&mut one, "add", add(5)).await;
    assert_eq!(
        (observed(&outcome).as_str(), outcome.step_reward),
        ("6", Some(5.0))
    );
    assert_eq!(count(&one).await, 6);
    assert_eq!(count(&other).await, 1);
}

#[tokio::test]
async fn equal_calls_leave_equal_hashes_and_others_leave_others() {
    let host = host();
    let mut hashes = Vec::new();
    for steps in [[2, 3], [2, 3], [3, 2], [4, 1]] {
        let mut session = host.open(json!({})).await;
        let mut last = None;
        for by in steps {
            last = call(&mut session, "add", add(by)).await.state;
        }
        hashes.push(last.expect("every call of an environment has one"));
    }
    // The environment keeps the sum, and not how it was reached.
    assert!(
        hashes
            .iter()
            .all(|hash| *hash == hashes[0] && hash.len() == 32)
    );
    let mut session = host.open(json!({})).await;
    assert_ne!(
        call(&mut session, "add", add(1)).await.state.as_ref(),
        Some(&hashes[0])
    );
}

#[tokio::test]
async fn the_seed_decides_everything_random() {
    let host = host();
    let mut drawn = Vec::new();
    for seed in [1, 1, 2] {
        let mut session = host.open_seeded(json!({}), seed).await;
        call(&mut session, "draw", json!({})).await;
        drawn.push(observed(&call(&mut session, "draw", json!({})).await));
    }
    assert_eq!(drawn[0], drawn[1]);
    assert_ne!(drawn[0], drawn[2]);
}

#[tokio::test]
async fn tools_come_and_go_and_those_that_went_cannot_be_called() {
    let host = host();
    let mut session = host.open(json!({})).await;
    let names = |session: &rlf_environments::session::EnvironmentSession| -> Vec<String> {
        session.tools().map(|tool| tool.name.clone()).collect()
    };
    assert!(!names(&session).contains(&"secret".to_owned()));
    assert!(!session.take_tools_changed());
    call(&mut session, "open_door", json!({})).await;
    assert!(session.take_tools_changed() && !session.take_tools_changed());
    assert!(names(&session).contains(&"secret".to_owned()));
    let gone = call(&mut session, "open_door", json!({})).await;
    assert_eq!(gone.ended, Ended::InvalidArguments);
    assert_eq!(observed(&gone), "error: there is no tool \"open_door\" now");
    assert!(!session.is_terminated());
    call(&mut session, "secret", json!({})).await;
    assert!(session.is_terminated());
    let late = call(&mut session, "add", add(1)).await;
    assert_eq!(late.ended, Ended::Denied);
    assert_eq!(
        observed(&late),
        "error: the episode is over; this call was not made"
    );
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_it() {
    let host = host();
    let mut session = host.open(json!({"start": 3})).await;
    let outcome = call(&mut session, "add", json!({"by": "x"})).await;
    assert_eq!(outcome.ended, Ended::InvalidArguments);
    assert!(
        observed(&outcome).starts_with("error: invalid arguments: "),
        "{}",
        observed(&outcome)
    );
    assert_eq!(count(&session).await, 3);
}

#[tokio::test]
async fn a_user_answers_until_the_environment_ends_the_episode() {
    let host = host();
    let mut session = host.open(json!({})).await;
    let Ok((Reply::Said(said), heard)) = session.say("hello", &turn(0)).await else {
        panic!("someone answers");
    };
    assert_eq!(rlf_dialogue::message::plain_text(&said), "you said: hello");
    assert_eq!(heard.step_reward, Some(0.25));
    let (reply, last) = session
        .say("end", &turn(1))
        .await
        .expect("it hears the model out");
    assert_eq!((reply, last.step_reward), (Reply::Ended, Some(1.0)));
    assert!(session.is_terminated());
    // Text changes nothing in this environment, and a call after the episode's end is not made.
    let late = call(&mut session, "add", add(1)).await;
    assert_eq!(late.ended, Ended::Denied);
    assert!(late.state.is_some());
    assert_eq!([heard.state, last.state], [late.state.clone(), late.state]);
}

#[tokio::test]
async fn a_snapshot_goes_on_in_another_session_of_the_same_component_and_in_no_other() {
    let host = host();
    let mut first = host.open(json!({})).await;
    call(&mut first, "add", add(4)).await;
    call(&mut first, "draw", json!({})).await;
    let snapshot = first.snapshot().await.expect("it gives one");
    let mut second = host.open(json!({"start": 99})).await;
    second.restore(&snapshot).await.expect("it takes it");
    assert_eq!(state(&second).await, state(&first).await);
    let next = [
        call(&mut first, "draw", json!({})).await,
        call(&mut second, "draw", json!({})).await,
    ];
    assert_eq!(observed(&next[0]), observed(&next[1]));
    assert_eq!(next[0].state, next[1].state);

    let mut foreign = snapshot.clone();
    foreign.component = "0".repeat(64);
    let error = second
        .restore(&foreign)
        .await
        .expect_err("another component's");
    assert!(
        matches!(error, SnapshotError::OtherComponent { .. }),
        "{error}"
    );
    let mut broken = snapshot;
    broken.data = b"{".to_vec();
    let before = state(&second).await;
    assert!(second.restore(&broken).await.is_err());
    assert_eq!(
        state(&second).await,
        before,
        "what cannot be restored changes nothing"
    );
}

#[tokio::test]
async fn the_end_is_judged_by_a_reference_that_only_then_is_shown() {
    let host = host();
    let mut session = host.open(json!({})).await;
    call(&mut session, "add", add(2)).await;
    let ending = session
        .end(Some("two"), &json!({"count": 2, "answer": "two"}))
        .await;
    let verdict = ending.verdict.expect("it judges");
    assert!(verdict.success && ending.problem.is_none());
    assert_eq!(ending.state.expect("it has one")["count"], 2);
    let wrong = session.end(None, &json!({"count": 3})).await;
    assert!(!wrong.verdict.expect("it judges").success);
    let broken = session.end(None, &json!("no reference")).await;
    assert!(broken.verdict.is_none() && broken.problem.is_some());
}

#[tokio::test]
async fn what_cannot_be_opened_is_said_with_its_reason() {
    let host = host();
    let open = async |name: &str, task: serde_json::Value| {
        let opened = host.environments.open(name, "test", &task, 0).await;
        opened.expect_err("it cannot be opened")
    };
    let error = open("coutner", json!({})).await;
    assert_eq!(
        error.to_string(),
        "there is no environment `coutner`; did you mean `counter`?"
    );
    let error = open("counter", json!({"start": "x"})).await;
    assert!(matches!(error, OpenError::Refused { .. }), "{error}");
    for how in ["trap", "spin"] {
        let error = open("counter", json!({"open": how})).await;
        assert!(matches!(error, OpenError::Broke { .. }), "{how}: {error}");
    }
}

#[tokio::test]
async fn an_environment_that_keeps_its_promises_passes_its_own_check() {
    let host = host();
    let report = host
        .environments
        .check("counter", 0)
        .await
        .expect("it can be checked");
    assert!(report.scenarios.len() >= 2);
    let problems: Vec<_> = report
        .scenarios
        .iter()
        .flat_map(|one| &one.problems)
        .collect();
    assert!(problems.is_empty(), "{problems:?}");
    // Tools that trap are found with arguments that their schemas allow.
    let report = host
        .environments
        .check("counter", 2)
        .await
        .expect("it can be checked");
    let broken: Vec<&str> = (report.tools.iter())
        .filter(|tool| !tool.problems.is_empty())
        .map(|tool| tool.name.as_str())
        .collect();
    assert!(
        broken.contains(&"trap") && !broken.contains(&"add"),
        "{broken:?}"
    );
}
