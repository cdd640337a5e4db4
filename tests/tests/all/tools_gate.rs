//! Plugins that call tools of other plugins: only the tools that their grants open, within their own remaining time,
//! and only as deep as calls may nest.

use std::fs;

use rlf_tests::{Ended, Host};
use serde_json::{Value, json};

/// Calls a tool of the guest `agent` (among all test plugins) with these grants for it.
fn call(tool: &str, arguments: &Value, grants: &str) -> Ended {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("agent.toml");
    let host = Host::with_test_plugins();
    fs::write(&config, format!("[plugins.agent]\n{grants}")).expect("can be written");
    let file = config.to_str().expect("a plain name");
    host.plugin(["grant", "agent", "--gate", "tools", "--config", file])
        .succeeded();
    host.plugin([
        "call",
        "agent",
        tool,
        &arguments.to_string(),
        "--json",
        "--config",
        file,
    ])
}

fn seen(ended: &Ended) -> Value {
    let outcome = ended.json();
    let content = &outcome["observation"]["content"][0];
    if content["structured"].is_null() {
        content["text"].clone()
    } else {
        content["structured"].clone()
    }
}

fn delegate(calls: &[(&str, Value)], times: usize) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(tool, arguments)| json!({"tool": tool, "arguments": arguments.to_string()}))
        .collect();
    json!({"calls": calls, "times": times})
}

#[test]
fn calls_are_answered_as_a_models_would_be() {
    let called = delegate(
        &[
            ("echo", json!({"text": "hi"})),
            ("echo", json!({"texts": "hi"})),
            ("trap", json!({})),
            ("loop", json!({})),
            ("sleep", json!({"milliseconds": 1})),
        ],
        1,
    );
    let grants =
        "tools = [\"echo\", \"trap\", \"loop\"]\n[plugins.misbehave.limits]\ncpu_ms = 100\n";
    let ended = call("delegate", &called, grants);
    let answers = seen(ended.succeeded());
    assert_eq!(answers[0]["ended"], "Ended::Ok", "{answers}");
    assert_eq!(answers[0]["shown"][0]["text"], "hi");
    assert_eq!(answers[1]["ended"], "Ended::InvalidArguments", "{answers}");
    assert_eq!(
        answers[2]["shown"][0], "error: the tool broke on this call and gave no result",
        "{answers}"
    );
    assert_eq!(answers[3]["ended"], "Ended::Timeout", "{answers}");
    let refused = answers[4]["refused"].as_str().expect("not open");
    assert_eq!(
        refused,
        "no tool \"sleep\" is open to this plugin; there are: echo, trap, loop"
    );
    assert_eq!(
        seen(call("list", &json!({}), grants).succeeded()),
        "echo trap loop"
    );
}

#[test]
fn a_call_makes_so_many_others_and_no_more() {
    let called = delegate(&[("echo", json!({"text": ""}))], 100);
    let answers = seen(call("delegate", &called, "tools = [\"echo\"]").succeeded());
    let answers = answers.as_array().expect("a list");
    let (made, refused) = answers.split_at(64);
    assert!(
        made.iter().all(|answer| answer["ended"] == "Ended::Ok"),
        "{made:?}"
    );
    assert_eq!(refused.len(), 36);
    for answer in refused {
        assert_eq!(
            answer["refused"],
            "a call makes 64 others at the most (nested_calls)"
        );
    }
    let at_once = delegate(&vec![("echo", json!({"text": ""})); 65], 1);
    let outcome = call("delegate", &at_once, "tools = [\"echo\"]").json();
    assert_eq!(outcome["ended"], "denied", "{outcome}");
    let detail = outcome["detail"].as_str().expect("says which limit");
    assert!(detail.contains("nested_calls = 64, used 65"), "{detail}");
}

#[test]
fn a_tool_that_calls_itself_comes_to_an_end() {
    // This holds with one call at a time too: each level has its own places.
    let grants = "tools = [\"descend\"]\nmax_concurrency = 1\n";
    let ended = call("descend", &json!({}), grants);
    let text = seen(ended.succeeded());
    assert_eq!(
        text,
        "1 + 1 + 1 + error: the tool asked for something it may not have"
    );
}

#[test]
fn what_is_called_is_charged_to_the_caller() {
    let called = delegate(&[("loop", json!({}))], 3);
    let grants = "tools = [\"loop\"]\n[plugins.agent.limits]\ncpu_ms = 200\n";
    let ended = call("delegate", &called, grants);
    assert_eq!(ended.code(), Some(1), "{ended}");
    let outcome = ended.json();
    assert_eq!(outcome["ended"], "timeout", "{outcome}");
    assert_eq!(outcome["fault"], "model", "{outcome}");
    let detail = outcome["detail"].as_str().expect("says what");
    assert!(detail.contains("cpu_ms = 200"), "{detail}");
}

#[test]
fn grants_that_open_what_is_not_there_are_refused_by_name() {
    let ended = call("list", &json!({}), "tools = [\"ecko\"]");
    assert_eq!(ended.code(), Some(1), "{ended}");
    assert!(
        ended
            .stderr
            .contains("[plugins.agent] `tools`: there is no tool `ecko`; did you mean `echo`?"),
        "{ended}"
    );
    let ended = call("list", &json!({}), "");
    assert!(
        ended.stderr.contains("no tool is named; add `tools = "),
        "{ended}"
    );
}

#[test]
fn a_reward_verifies_with_a_tool() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("verifier.toml");
    let host = Host::new();
    let verifier = Host::with_test_plugins().plugins().join("verifier");
    let grants = format!("[plugins.verifier]\npath = {verifier:?}\ntools = [\"calculate\"]\n");
    fs::write(&config, grants).expect("can be written");
    let file = config.to_str().expect("a plain name");
    host.plugin(["grant", "verifier", "--gate", "tools", "--config", file])
        .succeeded();
    for (answer, term) in [("42", 1.0), ("41", 0.0)] {
        let graded = host.plugin([
            "grade",
            "verifier",
            "--answer",
            answer,
            "--reference",
            "6 * 7",
            "--json",
            "--config",
            file,
        ]);
        assert_eq!(
            graded.succeeded().json()["terms"]["right"],
            term,
            "{answer}"
        );
    }
}
