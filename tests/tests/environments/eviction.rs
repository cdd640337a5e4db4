//! Sessions beyond the available room are neither refused nor lost: waiting sessions make room, and come back.

use std::time::Duration;

use rlf_dialogue::tool::{Ended, Fault};
use serde_json::json;

use crate::test_host::{GRANTS, TestHost, add, call, count, host_for, observed};

fn host_with_three_places() -> TestHost {
    host_for(3, Duration::from_mins(10), GRANTS)
}

#[tokio::test]
async fn twenty_sessions_live_in_three_places() {
    let host = host_with_three_places();
    let mut sessions = Vec::new();
    for start in 0..20 {
        sessions.push(host.open(json!({ "start": start })).await);
    }
    for _ in 0..3 {
        for session in &mut sessions {
            call(session, "add", add(10)).await;
        }
    }
    for (start, session) in sessions.iter_mut().enumerate() {
        let outcome = call(session, "add", add(0)).await;
        assert_eq!(observed(&outcome), (start + 30).to_string());
    }
    let counts = host.environments.sessions();
    assert_eq!(counts.opened, 20);
    assert!(
        counts.live <= 3 && counts.evicted >= 57 && counts.revived >= 57,
        "{counts:?}"
    );
    drop(sessions);
    let is_empty = |host: &TestHost| {
        host.environments.sessions().live == 0 && host.sandbox.in_use().permits == 0
    };
    host.wait_until(is_empty).await;
    assert_eq!(host.sandbox.in_use(), rlf_sandbox::InUse::default());
}

#[tokio::test]
async fn many_at_once_share_few_places() {
    let host = host_with_three_places();
    let mut tasks = tokio::task::JoinSet::new();
    for start in 0..40_i64 {
        let session = host.environments.clone();
        tasks.spawn(async move {
            let task = json!({ "start": start });
            let mut session = session
                .open("counter", "test", &task, 0)
                .await
                .expect("there is room");
            for _ in 0..5 {
                call(&mut session, "add", add(1)).await;
                tokio::task::yield_now().await;
            }
            count(&session).await == start + 5
        });
    }
    while let Some(done) = tasks.join_next().await {
        assert!(done.expect("nothing panics"));
    }
}

#[tokio::test]
async fn one_that_gives_no_snapshot_is_played_again_from_its_beginning() {
    let host = host_with_three_places();
    let mut session = host.open(json!({"start": 2, "snapshot": "error"})).await;
    for _ in 0..4 {
        call(&mut session, "add", add(1)).await;
    }
    let drawn = call(&mut session, "draw", json!({})).await;
    assert!(session.evict().await);
    assert!(!session.evict().await, "it has no instance any more");
    assert_eq!(count(&session).await, 6);
    let mut twin = host.open(json!({"start": 2, "snapshot": "error"})).await;
    for _ in 0..4 {
        call(&mut twin, "add", add(1)).await;
    }
    assert_eq!(
        observed(&call(&mut twin, "draw", json!({})).await),
        observed(&drawn)
    );
}

#[tokio::test]
async fn one_that_waits_long_frees_its_instance() {
    let host = host_for(4, Duration::from_millis(30), GRANTS);
    let mut session = host.open(json!({})).await;
    call(&mut session, "add", add(1)).await;
    host.wait_until(|host| host.environments.sessions().live == 0)
        .await;
    assert_eq!(count(&session).await, 1);
    assert_eq!(host.environments.sessions().revived, 1);
}

#[tokio::test]
async fn where_there_is_no_room_at_the_end_it_is_asked_for_once_more() {
    let grants_by_name =
        format!("{GRANTS}wall_ms = 500\n[long]\nplugin = \"counter\"\nlimits.cpu_ms = 20000\n");
    let host = host_for(1, Duration::from_mins(10), &grants_by_name);
    let session = host.open(json!({})).await;
    let long = host.environments.open("long", "test", &json!({}), 7).await;
    let mut long = long.expect("the other makes room");
    let nothing = json!({});
    let ending = tokio::select! {
        // This one is polled first, so it runs before the other asks for its place.
        biased;
        outcome = call(&mut long, "spin", json!({})) => panic!("{outcome:?}"),
        ending = session.end(None, &nothing) => ending,
    };
    let problem = ending.problem.expect("there was no room");
    assert!(problem.contains("no room"), "{problem}");
    // Reading the state and grading were each tried once more.
    assert_eq!(host.environments.counts()["counter"].retried, 2);
    drop(long);
    let ending = session.end(None, &nothing).await;
    assert_eq!(ending.state.expect("there is room now")["count"], 0);
}

#[tokio::test]
async fn one_that_breaks_as_it_comes_back_ends_the_call_as_the_plugins_doing() {
    let host = host_with_three_places();
    let mut session = host.open(json!({"restore": "trap"})).await;
    call(&mut session, "add", add(1)).await;
    assert!(session.evict().await);
    let outcome = call(&mut session, "add", add(1)).await;
    assert_eq!((outcome.ended, outcome.fault), (Ended::Trap, Fault::Plugin));
}

#[tokio::test]
async fn one_that_comes_back_otherwise_than_it_was_is_given_up_and_says_why() {
    let host = host_with_three_places();
    let mut session = host.open(json!({"drift": 1})).await;
    call(&mut session, "add", add(1)).await;
    assert!(session.evict().await);
    let outcome = call(&mut session, "add", add(1)).await;
    assert_eq!(outcome.ended, Ended::Unavailable);
    let why = session.lost().expect("it is given up");
    assert!(why.contains("another state than it had"), "{why}");
}
