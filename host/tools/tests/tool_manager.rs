//! The promises of the tool manager, tested end to end: from a model's arguments to the outcome.

use std::collections::BTreeMap;
use std::fs;

use rlf_dialogue::message::{Content, plain_text};
use rlf_dialogue::tool::{CallOutcome, Ended, Fault, ToolCall};
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::registry::Registry;
use rlf_plugins::turn::TurnContext;
use rlf_stub_plugins::{
    ANY_OBJECT, BROKEN_JSON, DETERMINISTIC, DOWN, ECHO, FLAKY, IDEMPOTENT, SEED, SPIN, StubTool,
    TRAP, sandbox,
};
use rlf_tools::ToolLoader;
use rlf_tools::tool_manager::{ToolError, ToolManager, ToolManagerConfig};
use serde_json::{Value, json};
use tempfile::TempDir;

fn stub(name: &'static str, hints: u8, body: &'static str) -> StubTool {
    StubTool {
        name,
        schema: ANY_OBJECT,
        hints,
        body,
    }
}

fn registry(tools: &[StubTool], grants: &str) -> (TempDir, Registry) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("stub.wasm"),
        rlf_stub_plugins::tools(tools),
    )
    .unwrap();
    let grants: PluginGrants = rlf_config::parse(grants, "test.toml").unwrap();
    let grants_by_name = BTreeMap::from([("stub".to_owned(), grants)]);
    let registry = Registry::load(
        directory.path(),
        &grants_by_name,
        &[&ToolLoader],
        &sandbox(),
    );
    assert_eq!(registry.problems(), []);
    (directory, registry)
}

fn manager(tools: &[StubTool], grants: &str) -> ToolManager {
    ToolManager::new(&registry(tools, grants).1, &ToolManagerConfig::default()).unwrap()
}

fn call(name: &str, id: &str, arguments: Value) -> ToolCall {
    ToolCall {
        call_id: id.into(),
        name: name.into(),
        arguments,
    }
}

fn turn(seed: u64) -> TurnContext {
    TurnContext {
        trajectory_id: "t".into(),
        turn: 0,
        seed,
    }
}

async fn invoke(manager: &ToolManager, name: &str, arguments: Value) -> CallOutcome {
    manager
        .invoke(vec![call(name, "t/0/0", arguments)], &turn(0))
        .await
        .remove(0)
}

fn observed(outcome: &CallOutcome) -> String {
    outcome
        .observation
        .as_ref()
        .map(|o| plain_text(&o.content))
        .unwrap_or_default()
}

#[tokio::test]
async fn the_guest_gets_canonical_arguments() {
    let manager = manager(&[stub("echo", 0, ECHO)], "");
    let arguments: Value =
        serde_json::from_str(r#"{"b": 1, "a": [true, {"z": 0, "y": "é"}]}"#).unwrap();
    let outcome = invoke(&manager, "echo", arguments).await;
    assert_eq!((outcome.ended, outcome.fault), (Ended::Ok, Fault::None));
    assert_eq!(observed(&outcome), r#"{"a":[true,{"y":"é","z":0}],"b":1}"#);
    assert_eq!(outcome.component.len(), 64);
}

#[tokio::test]
async fn results_are_in_call_order_whatever_ends_first() {
    let tools = [
        stub("spin", 0, SPIN),
        stub("echo", 0, ECHO),
        stub("trap", 0, TRAP),
    ];
    let manager = manager(&tools, "limits.cpu_ms = 40\n");
    let calls = vec![
        call("spin", "t/0/0", json!({})),
        call("echo", "t/0/1", json!({"n": 1})),
        call("trap", "t/0/2", json!({})),
        call("nothing", "t/0/3", json!({})),
        call("echo", "t/0/4", json!({"n": 4})),
    ];
    let outcomes = manager.invoke(calls, &turn(0)).await;
    let ends: Vec<(&str, Ended, Fault)> = outcomes
        .iter()
        .map(|o| (o.call_id.as_str(), o.ended, o.fault))
        .collect();
    assert_eq!(
        ends,
        [
            ("t/0/0", Ended::Timeout, Fault::Model),
            ("t/0/1", Ended::Ok, Fault::None),
            ("t/0/2", Ended::Trap, Fault::Plugin),
            ("t/0/3", Ended::InvalidArguments, Fault::Model),
            ("t/0/4", Ended::Ok, Fault::None),
        ]
    );
    assert_eq!(
        observed(&outcomes[0]),
        "error: the call was stopped after the 40 ms it may take; try a simpler one"
    );
    assert_eq!(
        observed(&outcomes[2]),
        "error: the tool broke on this call and gave no result"
    );
    assert_eq!(
        observed(&outcomes[3]),
        "error: there is no tool \"nothing\""
    );
    assert_eq!(observed(&outcomes[4]), r#"{"n":4}"#);

    let counts = manager.counts();
    assert_eq!(counts["echo"].ended(Ended::Ok), 2);
    assert_eq!(counts["spin"].ended(Ended::Timeout), 1);
    assert_eq!(counts["trap"].ended(Ended::Trap), 1);
    assert_eq!(counts[""].ended(Ended::InvalidArguments), 1);
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_never_reach_the_guest() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    // Every call that reaches this guest traps.
    let manager = manager(
        &[StubTool {
            name: "trap",
            schema,
            hints: 0,
            body: TRAP,
        }],
        "",
    );
    let outcome = invoke(&manager, "trap", json!({"n": "3"})).await;
    assert_eq!(
        (outcome.ended, outcome.fault),
        (Ended::InvalidArguments, Fault::Model)
    );
    assert_eq!(
        observed(&outcome),
        "error: invalid arguments: `n` must be an integer, got \"3\""
    );
}

#[tokio::test]
async fn arguments_over_their_limit_never_reach_the_guest() {
    let tools = [stub("trap", 0, TRAP), stub("echo", 0, ECHO)];
    let manager = manager(&tools, "limits.arguments_bytes = 10\n");
    assert_eq!(
        observed(&invoke(&manager, "echo", json!({"a": 123})).await),
        r#"{"a":123}"#.to_owned()
    );
    let outcome = invoke(&manager, "trap", json!({"a": 123_456})).await;
    assert_eq!(outcome.ended, Ended::InvalidArguments);
    assert_eq!(
        observed(&outcome),
        "error: invalid arguments: they have 12 bytes; at most 10 bytes are allowed"
    );
}

#[tokio::test]
async fn an_idempotent_call_is_tried_once_more_and_another_is_not() {
    let tools = [
        stub("flaky", IDEMPOTENT, FLAKY),
        stub("down", IDEMPOTENT, DOWN),
        stub("once", 0, FLAKY),
    ];
    let manager = manager(&tools, "");
    let outcome = invoke(&manager, "flaky", json!({"x": 1})).await;
    assert_eq!(
        (outcome.ended, observed(&outcome).as_str()),
        (Ended::Ok, r#"{"x":1}"#)
    );
    for name in ["down", "once"] {
        let outcome = invoke(&manager, name, json!({})).await;
        assert_eq!(
            (outcome.ended, outcome.fault),
            (Ended::Unavailable, Fault::Infrastructure)
        );
        assert_eq!(
            outcome.observation, None,
            "nothing to show, nothing to grade"
        );
    }
    let retried = |name: &str| manager.counts()[name].retried;
    assert_eq!(
        (retried("flaky"), retried("down"), retried("once")),
        (1, 1, 0)
    );
}

#[tokio::test]
async fn the_operator_can_switch_retries_off() {
    let manager = manager(&[stub("flaky", IDEMPOTENT, FLAKY)], "retries = 0\n");
    assert_eq!(
        invoke(&manager, "flaky", json!({})).await.ended,
        Ended::Unavailable
    );
}

#[tokio::test]
async fn each_call_has_a_seed_of_its_own_that_is_the_same_in_every_replay() {
    let manager = manager(&[stub("seed", 0, SEED)], "");
    let run = async |seed: u64| {
        let calls = vec![
            call("seed", "t/0/0", json!({})),
            call("seed", "t/0/1", json!({})),
        ];
        let outcomes = manager.invoke(calls, &turn(seed)).await;
        outcomes.iter().map(observed).collect::<Vec<_>>()
    };
    let first = run(1).await;
    assert_eq!(first, run(1).await);
    assert_ne!(first[0], first[1]);
    assert_ne!(first, run(2).await);
}

#[tokio::test]
async fn a_result_against_the_contract_or_over_its_limit_is_not_shown() {
    let tools = [stub("broken", 0, BROKEN_JSON), stub("echo", 0, ECHO)];
    let manager = manager(&tools, "limits.result_bytes = 1024\n");
    let outcome = invoke(&manager, "broken", json!({"a": 1})).await;
    assert_eq!((outcome.ended, outcome.fault), (Ended::Trap, Fault::Plugin));
    assert!(outcome.detail.unwrap().contains("is not one JSON value"));
    let outcome = invoke(&manager, "echo", json!({"a": "x".repeat(2_000)})).await;
    assert_eq!(outcome.ended, Ended::OutputLimit);
    assert_eq!(
        observed(&outcome),
        "error: the output is larger than the 1 KiB it may have; ask for less"
    );
}

#[tokio::test]
async fn what_a_guest_returns_is_safe_to_print() {
    let manager = manager(&[stub("echo", 0, ECHO)], "");
    // JSON does not escape DEL, so it reaches the guest and comes back unchanged.
    let outcome = invoke(&manager, "echo", json!({"a": "\u{7f}\u{202e}"})).await;
    let content = outcome.observation.unwrap().content;
    assert_eq!(
        content,
        [Content::Text("{\"a\":\"\u{2421}\u{fffd}\"}".into())]
    );
}

#[tokio::test]
async fn deterministic_results_are_kept_when_asked_and_failures_never() {
    let tools = [
        stub("echo", DETERMINISTIC, ECHO),
        stub("down", DETERMINISTIC, DOWN),
    ];
    let (_directory, registry) = registry(&tools, "");
    let cached = ToolManagerConfig {
        cache_bytes: 1 << 20,
        ..ToolManagerConfig::default()
    };
    let manager = ToolManager::new(&registry, &cached).unwrap();
    for _ in 0..3 {
        assert_eq!(
            observed(&invoke(&manager, "echo", json!({"b": 1, "a": 2})).await),
            r#"{"a":2,"b":1}"#
        );
        assert_eq!(
            invoke(&manager, "down", json!({})).await.ended,
            Ended::Unavailable
        );
    }
    // The order of keys does not make a different call.
    invoke(
        &manager,
        "echo",
        serde_json::from_str(r#"{"a": 2, "b": 1}"#).unwrap(),
    )
    .await;
    let counts = manager.counts();
    assert_eq!(
        (counts["echo"].cached, counts["echo"].ended(Ended::Ok)),
        (3, 4)
    );
    assert_eq!(counts["down"].cached, 0);

    let plain = ToolManager::new(&registry, &ToolManagerConfig::default()).unwrap();
    for _ in 0..2 {
        invoke(&plain, "echo", json!({})).await;
    }
    assert_eq!(plain.counts()["echo"].cached, 0, "off by default");
}

#[tokio::test]
async fn no_result_is_kept_of_a_plugin_that_has_the_machines_clock_or_entropy() {
    for (grant, kept) in [("", 2), ("\"real-clock\"", 0), ("\"real-random\"", 0)] {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("stub");
        fs::create_dir(&folder).unwrap();
        let component = rlf_stub_plugins::tools(&[stub("echo", DETERMINISTIC, ECHO)]);
        fs::write(folder.join("stub.wasm"), &component).unwrap();
        fs::write(folder.join("plugin.toml"), format!("gates = [{grant}]")).unwrap();
        let hash = blake3::hash(&component).to_hex();
        let grants = format!("hash = \"{hash}\"\ngrants = [{grant}]");
        let grants: PluginGrants = rlf_config::parse(&grants, "test.toml").unwrap();
        let grants_by_name = BTreeMap::from([("stub".to_owned(), grants)]);
        let registry = Registry::load(
            directory.path(),
            &grants_by_name,
            &[&ToolLoader],
            &sandbox(),
        );
        assert_eq!(registry.problems(), []);
        let config = ToolManagerConfig {
            cache_bytes: 1 << 20,
            ..ToolManagerConfig::default()
        };
        let manager = ToolManager::new(&registry, &config).unwrap();
        for _ in 0..3 {
            invoke(&manager, "echo", json!({})).await;
        }
        assert_eq!(manager.counts()["echo"].cached, kept, "{grant}");
    }
}

#[tokio::test]
async fn a_full_tool_lets_a_call_wait_no_longer_than_its_deadline() {
    let tools = [stub("spin", 0, SPIN), stub("echo", 0, ECHO)];
    let manager = manager(
        &tools,
        "max_concurrency = 1\nlimits.wall_ms = 300\nlimits.cpu_ms = 250\n",
    );
    // Three calls want the only place. Each of them keeps it for its whole CPU budget.
    let calls = (0..3)
        .map(|n| call("spin", &format!("t/0/{n}"), json!({})))
        .collect();
    let outcomes = manager.invoke(calls, &turn(0)).await;
    assert_eq!(outcomes[0].ended, Ended::Timeout);
    let waited: Vec<&CallOutcome> = outcomes
        .iter()
        .filter(|o| o.fault == Fault::Infrastructure)
        .collect();
    assert!(!waited.is_empty());
    assert!(
        waited
            .iter()
            .all(|o| o.ended == Ended::Timeout && o.observation.is_none())
    );
    // Another tool of the same plugin has its own places.
    assert_eq!(invoke(&manager, "echo", json!({})).await.ended, Ended::Ok);
}

#[tokio::test]
async fn a_plugin_that_traps_too_often_is_reported() {
    let manager = manager(&[stub("trap", 0, TRAP), stub("echo", 0, ECHO)], "");
    for n in 0..20 {
        invoke(&manager, if n < 3 { "trap" } else { "echo" }, json!({})).await;
    }
    assert!(manager.check_health(&BTreeMap::new(), 0.2).is_ok());
    let unhealthy = manager.check_health(&BTreeMap::new(), 0.1).unwrap_err();
    assert_eq!(
        (unhealthy.plugin.as_str(), unhealthy.traps, unhealthy.calls),
        ("stub", 3, 20)
    );
    assert!(
        unhealthy.last_trap.contains("unreachable"),
        "{}",
        unhealthy.last_trap
    );
}

#[tokio::test]
async fn definitions_are_in_the_order_asked_for_and_unknown_names_are_explained() {
    let manager = manager(&[stub("search", 0, ECHO), stub("add", 0, ECHO)], "");
    let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let got = manager
        .definitions(Some(&names(&["add", "search"])))
        .unwrap();
    assert_eq!(
        got.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(),
        ["add", "search"]
    );
    assert_eq!(manager.definitions(None).unwrap()[0].name, "search");
    let error = manager.definitions(Some(&names(&["serach"]))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no tool `serach`; did you mean `search`?"
    );
    let error = manager.definitions(Some(&names(&["xyzzy"]))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no tool `xyzzy`; there are: search, add"
    );
    let none = ToolManagerConfig {
        max_concurrency: 0,
        ..ToolManagerConfig::default()
    };
    let (_directory, registry) = registry(&[stub("add", 0, ECHO)], "");
    assert_eq!(
        ToolManager::new(&registry, &none).unwrap_err(),
        ToolError::NoConcurrency
    );
}
