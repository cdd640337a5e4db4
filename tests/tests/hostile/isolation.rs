//! No call finds anything of another call: not in memory, files, environment, clock or randomness.

use rlf_dialogue::tool::Ended;
use serde_json::{Value, json};

use crate::test_host::{Plan, call};

fn found(outcome: &rlf_dialogue::tool::CallOutcome) -> Value {
    assert_eq!(outcome.ended, Ended::Ok, "{outcome:?}");
    serde_json::to_value(&outcome.observation.as_ref().unwrap().content).unwrap()
}

#[tokio::test]
async fn whatever_a_call_leaves_the_next_finds_what_the_first_found() {
    let host = Plan::new()
        .guest("misbehave")
        .grants("[misbehave.files]\nbytes = 1000000\n")
        .open();
    let trace = |secret: &str| call("leave_traces", json!({"secret": secret, "folder": "/work"}));
    let first = found(&host.attack(vec![trace("alpha")]).await[0]);
    let text = first.to_string();
    assert!(
        text.contains("\"shared\":[]") && text.contains("\"own\":[]"),
        "{text}"
    );
    assert!(
        text.contains("\"files\":\"[]\"") && text.contains("\"environment\":[]"),
        "{text}"
    );
    assert!(text.contains("\"arguments\":[]"), "{text}");
    // One after the other, and many at once in slots that others have used.
    for secret in ["b", "gamma-gamma", "delta"] {
        assert_eq!(
            found(&host.attack(vec![trace(secret)]).await[0]),
            first,
            "{secret}"
        );
    }
    let secrets: Vec<String> = (0..200).map(|n| format!("secret-{n}")).collect();
    let calls = secrets.iter().map(|secret| trace(secret)).collect();
    for outcome in host.attack(calls).await {
        assert_eq!(found(&outcome), first);
    }
}

#[tokio::test]
async fn a_call_that_was_killed_leaves_no_more_than_one_that_ended() {
    let host = Plan::new()
        .guest("misbehave")
        .grants("[misbehave]\nlimits.cpu_ms = 100\nlimits.wall_ms = 60000\n")
        .open();
    let echo = || call("echo", json!({"text": "x"}));
    let before = found(&host.attack(vec![echo()]).await[0]);
    for tool in ["exhaust_memory", "loop", "recurse", "panic", "trap"] {
        host.attack_with(tool, json!({})).await;
        assert_eq!(
            found(&host.attack(vec![echo()]).await[0]),
            before,
            "after {tool}"
        );
    }
}
