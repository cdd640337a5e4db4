//! Plugins that call plugins never wait for their callers, end when their callers end, and leave nothing behind at
//! any depth.

use std::time::Duration;

use rlf_dialogue::tool::{Ended, Fault, ToolCall};
use serde_json::{Value, json};

use crate::test_host::{Plan, assert_ended, assert_limit, call, observed, turn};
use rlf_stub_plugins::{Beside, DOWN};

/// Arguments of `delegate` that make one call.
fn delegate(tool: &str, arguments: &Value) -> Value {
    json!({"calls": [{"tool": tool, "arguments": arguments.to_string()}]})
}

/// `depth` nested calls of `delegate` around a call of `tool`.
fn nested(depth: usize, tool: &str, arguments: &Value) -> ToolCall {
    let arguments = (0..depth - 1).fold(delegate(tool, arguments), |inner, _| {
        delegate("delegate", &inner)
    });
    call("delegate", arguments)
}

#[tokio::test]
async fn twice_as_many_agents_as_places_all_nest_and_all_succeed() {
    let plan = Plan::new().instances(4);
    let host = plan
        .agent(&["delegate", "calculate"], "max_concurrency = 4\n")
        .open();
    let calls = (0..16)
        .map(|_| nested(2, "calculate", &json!({"expression": "6*7"})))
        .collect();
    for outcome in host.attack(calls).await {
        assert_eq!(outcome.ended, Ended::Ok, "{outcome:?}");
        assert!(observed(&outcome).contains("42"), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_tool_that_calls_itself_through_another_is_stopped_at_the_third_level() {
    let host = Plan::new().agent(&["delegate", "calculate"], "").open();
    let sum = json!({"expression": "6*7"});
    let deepest = host.attack(vec![nested(2, "calculate", &sum)]).await;
    assert!(observed(&deepest[0]).contains("42"), "{deepest:?}");
    for depth in [3, 8] {
        let outcome = host.attack(vec![nested(depth, "calculate", &sum)]).await;
        assert_eq!(outcome[0].ended, Ended::Ok, "the agent copes: {outcome:?}");
        let text = observed(&outcome[0]);
        assert!(text.contains("Denied") && !text.contains("42"), "{text}");
    }
}

#[tokio::test]
async fn what_a_called_tool_computes_ends_its_callers_too() {
    let grants =
        "limits.cpu_ms = 200\n[misbehave]\nlimits.cpu_ms = 60000\nlimits.wall_ms = 60000\n";
    let plan = Plan::new().guest("misbehave");
    let host = plan.agent(&["delegate", "loop"], grants).open();
    let outcome = host.attack(vec![nested(2, "loop", &json!({}))]).await;
    assert_ended(&outcome[0], Ended::Timeout, Fault::Model, "was stopped");
    assert_limit(&outcome[0], "cpu_ms", 200);
}

#[tokio::test]
async fn what_cannot_be_had_is_nobodys_score() {
    let plan = Plan::new().stub("down", &Beside::default(), &[("down", DOWN)]);
    let host = plan.agent(&["delegate", "down"], "").open();
    let outcome = host.attack(vec![nested(2, "down", &json!({}))]).await;
    assert_eq!(
        (outcome[0].ended, outcome[0].fault),
        (Ended::Unavailable, Fault::Infrastructure),
        "{outcome:?}"
    );
    assert_eq!(outcome[0].observation, None);
}

#[tokio::test]
async fn a_caller_that_is_given_up_takes_what_it_called_with_it() {
    let grants = "limits.cpu_ms = 60000\nlimits.wall_ms = 60000\n";
    let grants = format!("{grants}[misbehave]\n{grants}");
    let plan = Plan::new().guest("misbehave");
    let host = plan.agent(&["delegate", "loop"], &grants).open();
    let turn = turn();
    let calls = (0..4).map(|_| nested(2, "loop", &json!({}))).collect();
    let running = host.tools.invoke(calls, &turn);
    let outcome = tokio::time::timeout(Duration::from_millis(200), running).await;
    assert!(outcome.is_err(), "they would run for a minute");
    host.settle().await;
    host.call_neighbour().await;
}
