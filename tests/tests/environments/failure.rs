//! A call that is stopped has no effect: the session continues as if the call had not been made.

use std::time::Duration;

use rlf_dialogue::tool::{Ended, Fault};
use serde_json::json;

use crate::test_host::{TestHost, add, call, count, host, observed, state};

#[tokio::test]
async fn a_call_that_traps_after_it_changed_something_has_changed_nothing() {
    let host = host();
    let mut session = host.open(json!({})).await;
    call(&mut session, "add", add(3)).await;
    let drawn = call(&mut session, "draw", json!({})).await;
    let before = state(&session).await;
    let outcome = call(&mut session, "trap", json!({})).await;
    assert_eq!(
        (&outcome.state, outcome.state.is_some()),
        (&drawn.state, true)
    );
    assert_eq!((outcome.ended, outcome.fault), (Ended::Trap, Fault::Plugin));
    assert_eq!(
        observed(&outcome),
        "error: the tool broke on this call and gave no result; it has had no effect"
    );
    assert!(session.lost().is_none());
    assert_eq!(state(&session).await, before);
    assert_eq!(observed(&call(&mut session, "add", add(1)).await), "4");
    assert_eq!(host.environments.sessions().recovered, 1);
}

#[tokio::test]
async fn every_limit_ends_the_call_and_leaves_the_session() {
    let host = host();
    for (tool, arguments, ended) in [
        ("spin", json!({}), Ended::Timeout),
        ("grow", json!({"mib": 64}), Ended::MemoryLimit),
        ("sleep", json!({"ms": 3_600_000}), Ended::Timeout),
        ("print", json!({"bytes": 4 << 20}), Ended::OutputLimit),
    ] {
        let mut session = host.open(json!({"start": 5})).await;
        call(&mut session, "add", add(1)).await;
        let outcome = call(&mut session, tool, arguments).await;
        assert_eq!(
            (outcome.ended, outcome.fault),
            (ended, Fault::Model),
            "{tool}"
        );
        assert!(
            observed(&outcome).ends_with("; it has had no effect"),
            "{}",
            observed(&outcome)
        );
        assert_eq!(count(&session).await, 6, "{tool}");
    }
}

#[tokio::test]
async fn the_same_call_stopped_twice_ends_the_trajectory() {
    let host = host();
    let mut session = host.open(json!({})).await;
    call(&mut session, "trap", json!({})).await;
    call(&mut session, "add", add(1)).await;
    assert!(session.lost().is_none());
    call(&mut session, "trap", json!({})).await;
    let why = session.lost().expect("it is given up");
    assert!(
        why.starts_with("the same call to `trap` was stopped twice: "),
        "{why}"
    );
}

#[tokio::test]
async fn an_error_has_no_effect_either_and_says_whose_doing_it_was() {
    let host = host();
    let mut session = host.open(json!({"start": 1})).await;
    for (kind, ended, fault) in [
        ("invalid-arguments", Ended::InvalidArguments, Fault::Model),
        ("not-found", Ended::Failed, Fault::Model),
        ("denied", Ended::Denied, Fault::Model),
        ("exhausted", Ended::Denied, Fault::Model),
        ("unavailable", Ended::Unavailable, Fault::Infrastructure),
        ("internal", Ended::Trap, Fault::Plugin),
    ] {
        let outcome = call(&mut session, "error", json!({"kind": kind})).await;
        assert_eq!((outcome.ended, outcome.fault), (ended, fault), "{kind}");
        assert_eq!(count(&session).await, 1, "{kind}");
    }
    let failed = call(&mut session, "fail", json!({})).await;
    assert_eq!((failed.ended, failed.fault), (Ended::Failed, Fault::Model));
}

#[tokio::test]
async fn a_verdict_that_breaks_leaves_a_session_that_can_go_on() {
    let host = host();
    let mut session = host.open(json!({"verify": "trap"})).await;
    call(&mut session, "add", add(2)).await;
    assert!(session.verify(None, &json!({"count": 2})).await.is_err());
    assert_eq!(count(&session).await, 2);
}

#[tokio::test]
async fn a_call_that_is_given_up_midway_has_no_effect_and_costs_the_next_one_nothing() {
    let host = host();
    let mut session = host.open(json!({})).await;
    call(&mut session, "add", add(3)).await;
    let spins = call(&mut session, "spin", json!({}));
    let waited = tokio::time::timeout(Duration::from_millis(50), spins).await;
    assert!(waited.is_err(), "it does not end by itself");
    let next = call(&mut session, "add", add(1)).await;
    assert_eq!((next.ended, observed(&next)), (Ended::Ok, "4".to_owned()));
    drop(session);
    let is_empty = |host: &TestHost| host.sandbox.in_use() == rlf_sandbox::InUse::default();
    host.wait_until(is_empty).await;
}

#[tokio::test]
async fn a_session_that_is_given_up_as_it_comes_back_still_has_all_its_calls() {
    let host = host();
    let mut session = host.open(json!({"snapshot": "error"})).await;
    for _ in 0..300 {
        call(&mut session, "add", add(1)).await;
    }
    for wait in [0, 1, 2, 4, 8] {
        session.evict().await;
        let asked = tokio::time::timeout(Duration::from_millis(wait), count(&session));
        // Some of the sessions are given up while the calls are played again.
        _ = asked.await;
    }
    assert_eq!(count(&session).await, 300);
}
