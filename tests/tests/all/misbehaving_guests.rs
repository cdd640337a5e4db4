//! Whatever a guest does, its call ends as the contract's table says, the model sees a plain sentence, and the host
//! continues.

use std::fs;

use rlf_tests::{Ended, Host};
use serde_json::{Value, json};

/// Calls a tool of the guest `misbehave`, with the limits of `LIMITS`.
fn call(tool: &str, arguments: &Value, seed: u64) -> Ended {
    /// Lower than the defaults, so that the tests are faster.
    const LIMITS: &str = "[plugins.misbehave.limits]\ncpu_ms = 300\nmemory_bytes = 33554432\n";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("limits.toml");
    fs::write(&config, LIMITS).expect("can be written");
    Host::with_test_plugins().plugin([
        "call",
        "misbehave",
        tool,
        &arguments.to_string(),
        "--json",
        "--seed",
        &seed.to_string(),
        "--config",
        config.to_str().expect("a plain name"),
    ])
}

/// The text that the model is shown of a call.
fn seen(outcome: &Value) -> &str {
    outcome["observation"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text: {outcome}"))
}

/// A tool, its arguments, how the call ends, the fault, and the text that the model sees.
type Case = (
    &'static str,
    fn() -> Value,
    &'static str,
    &'static str,
    &'static str,
);

const CASES: &[Case] = &[
    ("loop", || json!({}), "timeout", "model", "was stopped"),
    (
        "sleep",
        || json!({"milliseconds": 3_600_000}),
        "timeout",
        "model",
        "was stopped after the 10 s it may take",
    ),
    (
        "exhaust_memory",
        || json!({}),
        "memory-limit",
        "model",
        "more than the 32 MiB of memory",
    ),
    (
        "flood_output",
        || json!({"bytes": 100_000_000}),
        "output-limit",
        "model",
        "larger than the 16 MiB it may have",
    ),
    (
        "huge_result",
        || json!({"bytes": 2_000_000}),
        "output-limit",
        "model",
        "larger than the 1 MiB it may have",
    ),
    (
        "exit",
        || json!({"code": 0}),
        "exited",
        "model",
        "without a result",
    ),
    (
        "exit",
        || json!({"code": 7}),
        "exited",
        "model",
        "without a result",
    ),
    ("trap", || json!({}), "trap", "plugin", "the tool broke"),
    ("panic", || json!({}), "trap", "plugin", "the tool broke"),
    ("recurse", || json!({}), "trap", "plugin", "the tool broke"),
    (
        "invalid_result",
        || json!({}),
        "trap",
        "plugin",
        "the tool broke",
    ),
    (
        "invalid_metric",
        || json!({}),
        "trap",
        "plugin",
        "the tool broke",
    ),
    (
        "print",
        || json!({"stdout": "a", "stderr": "b", "then_loop": true}),
        "timeout",
        "model",
        "was stopped",
    ),
];

#[test]
fn every_bad_end_has_its_name_and_one_plain_sentence_for_the_model() {
    for (tool, arguments, ended, fault, sentence) in CASES {
        let printed = call(tool, &arguments(), 0);
        // An ordinary exit, never a signal: the guest did not take the host down.
        assert_eq!(printed.code(), Some(1), "{tool}: {printed}");
        let outcome = printed.json();
        assert_eq!(outcome["ended"], *ended, "{tool}: {outcome}");
        assert_eq!(outcome["fault"], *fault, "{tool}: {outcome}");
        assert_eq!(outcome["observation"]["failed"], true, "{tool}: {outcome}");
        let seen = seen(&outcome);
        assert!(seen.contains(sentence), "{tool}: {seen}");
        for inside in ["wasm", "backtrace", "panicked", ".rs", "/", "0x", "thread"] {
            assert!(!seen.contains(inside), "{tool}: `{inside}` in {seen}");
        }
        assert_eq!(seen.lines().count(), 1, "{tool}: {seen}");
    }
}

#[test]
fn the_operator_is_told_what_the_model_is_not() {
    let told =
        |tool: &str, arguments: Value| call(tool, &arguments, 0).json()["detail"].to_string();
    let panic = told("panic", json!({}));
    assert!(panic.contains("a panic in a guest"), "{panic}");
    assert!(panic.contains("backtrace"), "{panic}");
    // Paths are those of the reproducible build, not of the build machine.
    assert!(!panic.contains(env!("CARGO_MANIFEST_DIR")), "{panic}");
    let looped = told("loop", json!({}));
    assert!(looped.contains("cpu_ms = 300"), "{looped}");
    let slept = told("sleep", json!({"milliseconds": 3_600_000}));
    assert!(slept.contains("used 3600000, in virtual time"), "{slept}");
    let memory = told("exhaust_memory", json!({}));
    assert!(memory.contains("memory_bytes = 33554432"), "{memory}");
}

#[test]
fn sleep_is_by_the_guests_own_clock() {
    let outcome = call("sleep", &json!({"milliseconds": 2_000}), 0);
    let outcome = outcome.succeeded().json();
    assert_eq!(seen(&outcome), "2000", "by its own clock it slept");
}

#[test]
fn memory_that_is_refused_politely_is_no_bad_end() {
    let outcome = call("grow_memory", &json!({"megabytes": 500}), 0);
    let outcome = outcome.succeeded().json();
    let text = seen(&outcome);
    assert!(text.starts_with("refused after "), "{text}");
}

#[test]
fn output_is_kept_in_bounds_and_a_little_of_it_harms_nobody() {
    let outcome = call("flood_output", &json!({"bytes": 1_000_000}), 0);
    let outcome = outcome.succeeded().json();
    assert_eq!(seen(&outcome), "printed it all");
    let outcome = call("flood_log", &json!({"lines": 10_000}), 0);
    assert_eq!(seen(&outcome.succeeded().json()), "logged it all");
}

#[test]
fn clock_and_randomness_are_functions_of_the_seed() {
    let observed = |tool, arguments: &Value, seed| {
        let outcome = call(tool, arguments, seed);
        outcome.succeeded().json()["observation"]["content"][0]["structured"].clone()
    };
    for tool in ["read_clock", "read_random"] {
        assert_eq!(
            observed(tool, &json!({}), 1),
            observed(tool, &json!({}), 1),
            "{tool}"
        );
    }
    // The random number that std draws once, for hash maps, is part of init's snapshot; a call's seed is its own.
    let seed = |seed| observed("echo", &json!({"text": ""}), seed)["seed"].clone();
    assert_eq!(seed(1), seed(1));
    assert_ne!(seed(1), seed(2));
    let clock = observed("read_clock", &json!({}), 1);
    let (first, second) = (clock["wall"][0].as_u64(), clock["wall"][1].as_u64());
    assert!(first < second, "time stands still: {clock}");
}

#[test]
fn every_call_has_a_fresh_instance() {
    let outcome = call("echo", &json!({"text": "<tool_call>"}), 3);
    let outcome = outcome.succeeded().json();
    let echoed = &outcome["observation"]["content"][0]["structured"];
    assert_eq!(echoed["text"], "<tool_call>");
    assert_eq!(echoed["calls"], 1);
    assert_eq!(echoed["attempt"], 0);
}
