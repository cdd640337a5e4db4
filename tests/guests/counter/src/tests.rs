use rlf_plugin::testing::{self, text};
use rlf_plugin::{Error, ToolDefinition};
use serde_json::json;

use super::Plugin;

fn names(tools: &[ToolDefinition]) -> Vec<&str> {
    tools.iter().map(|tool| &*tool.name).collect()
}

#[test]
fn it_keeps_the_promises_of_an_environment() {
    assert_eq!(testing::check_scenarios::<Plugin>(), Ok(()));
}

#[test]
fn a_secret_is_offered_only_behind_the_door() {
    let (mut session, start) = testing::open::<Plugin>(json!({}), 0).unwrap();
    assert_eq!(names(&start.tools), super::OFFERED);
    let early = session.call("secret", json!({}));
    assert!(matches!(early, Err(Error::NotFound(_))), "{early:?}");

    let opened = session.call("open_door", json!({})).unwrap();
    let tools = opened.tools.unwrap();
    assert!(names(&tools).contains(&"secret") && !names(&tools).contains(&"open_door"));
    let mut restored = session.restored().unwrap();
    assert!(restored.call("secret", json!({})).unwrap().terminated);
}

#[test]
fn an_addition_is_rewarded_and_refused_where_it_does_not_fit() {
    let (mut session, _) = testing::open::<Plugin>(json!({ "start": i64::MAX - 1 }), 0).unwrap();
    let step = session.call("add", json!({ "by": 1 })).unwrap();
    assert_eq!(
        (text(&step.observation), step.reward),
        (i64::MAX.to_string(), Some(1.0))
    );
    assert!(
        session
            .call("add", json!({ "by": 1 }))
            .unwrap()
            .observation
            .failed
    );
    let error = session.call("add", json!({ "by": "one" }));
    assert!(
        matches!(error, Err(Error::InvalidArguments(_))),
        "{error:?}"
    );
}

#[test]
fn every_error_of_the_contract_can_be_had() {
    let (mut session, _) = testing::open::<Plugin>(json!({}), 0).unwrap();
    let mut raise = |kind: &str| session.call("error", json!({ "kind": kind })).unwrap_err();
    let text = || "as asked".to_owned();
    assert_eq!(raise("invalid-arguments"), Error::InvalidArguments(text()));
    assert_eq!(raise("not-found"), Error::NotFound(text()));
    assert_eq!(raise("denied"), Error::Denied(text()));
    assert_eq!(raise("exhausted"), Error::Exhausted(text()));
    assert_eq!(raise("unavailable"), Error::Unavailable(text()));
    assert_eq!(raise("cancelled"), Error::Cancelled);
    assert_eq!(raise("internal"), Error::Internal(text()));
}

#[test]
fn words_are_answered_or_end_the_episode_as_the_task_says() {
    let (mut session, _) = testing::open::<Plugin>(json!({}), 0).unwrap();
    let answered = session.say("hello").unwrap();
    assert_eq!(text(&answered.observation), "you said: hello");
    assert_eq!((answered.terminated, answered.reward), (false, Some(0.25)));
    let ended = session.say("end").unwrap();
    assert_eq!((ended.terminated, ended.reward), (true, Some(1.0)));

    let (mut session, _) = testing::open::<Plugin>(json!({ "say": "end" }), 0).unwrap();
    assert!(session.say("hello").unwrap().terminated);
}

#[test]
fn a_verdict_needs_the_count_and_the_answer_where_there_is_one() {
    let (session, _) = testing::open::<Plugin>(json!({ "start": 3 }), 0).unwrap();
    let judged = |answer, reference| {
        let verdict = session.verify(answer, &reference).unwrap();
        (verdict.success, verdict.score)
    };
    assert_eq!(judged(None, json!({ "count": 3 })), (true, 1.0));
    assert_eq!(judged(None, json!({ "count": 4 })), (false, 0.0));
    let both = json!({ "count": 3, "answer": "three" });
    assert_eq!(judged(Some("three"), both.clone()), (true, 1.0));
    assert_eq!(judged(None, both), (false, 0.5));
    let error = session.verify(None, &json!("three"));
    assert!(
        matches!(error, Err(Error::InvalidArguments(_))),
        "{error:?}"
    );
}

#[test]
fn a_task_asks_for_what_goes_wrong() {
    let error = testing::open::<Plugin>(json!({ "open": "error" }), 0).err();
    assert!(matches!(error, Some(Error::Internal(_))), "{error:?}");
    let error = testing::open::<Plugin>(json!({ "tools": ["fly"] }), 0).err();
    assert!(
        matches!(error, Some(Error::InvalidArguments(_))),
        "{error:?}"
    );
    let (session, _) = testing::open::<Plugin>(json!({ "snapshot": "error" }), 0).unwrap();
    assert!(session.restored().is_err());
    let (session, _) = testing::open::<Plugin>(json!({ "drift": 2 }), 0).unwrap();
    assert_eq!(session.restored().unwrap().state()["count"], 2);
    let task = json!({ "state": "big", "mib": 1 });
    let (session, _) = testing::open::<Plugin>(task, 0).unwrap();
    assert!(session.state().to_string().len() > 1 << 20);
    let trapped = std::panic::catch_unwind(|| {
        let (session, _) = testing::open::<Plugin>(json!({ "verify": "trap" }), 0).unwrap();
        session.verify(None, &json!({ "count": 0 }))
    });
    assert!(trapped.is_err());
}
