//! A call ends at its deadline and its CPU budget at any point, and the times of many simultaneous calls do not add
//! up.

use rlf_dialogue::tool::{Ended, Fault};
use serde_json::json;

use crate::test_host::{Plan, assert_ended, assert_limit, call, observed};
use rlf_stub_plugins::Beside;

/// Limits under which only the CPU budget can be reached.
const BUDGET: &str = "limits.cpu_ms = 200\nlimits.wall_ms = 60000\n";

#[tokio::test]
async fn busy_loops_end_at_their_own_budget_each() {
    let grants = format!("[misbehave]\n{BUDGET}");
    let host = Plan::new().guest("misbehave").grants(&grants).open();
    let calls = (0..12).map(|_| call("loop", json!({}))).collect();
    for outcome in host.attack(calls).await {
        assert_ended(
            &outcome,
            Ended::Timeout,
            Fault::Model,
            "was stopped after the 200 ms it may take",
        );
        assert_limit(&outcome, "cpu_ms", 200);
    }
}

#[tokio::test]
async fn a_storm_of_bulk_memory_operations_ends_at_the_budget() {
    let beside = Beside {
        module: "(table $table 10000 funcref)",
        ..Beside::default()
    };
    let tools = [
        (
            "fill",
            "(drop (memory.grow (i32.const 800)))
             (loop $again (memory.fill (i32.const 131072) (i32.const 1) (i32.const 52000000)) (br $again)) unreachable",
        ),
        (
            "copy",
            "(drop (memory.grow (i32.const 800)))
             (loop $again (memory.copy (i32.const 131072) (i32.const 131080) (i32.const 52000000)) (br $again)) unreachable",
        ),
        (
            "table",
            "(loop $again (table.fill $table (i32.const 0) (ref.null func) (i32.const 10000)) (br $again)) unreachable",
        ),
    ];
    let grants = format!("[storm]\n{BUDGET}");
    let host = Plan::new()
        .stub("storm", &beside, &tools)
        .grants(&grants)
        .open();
    let calls = tools
        .iter()
        .map(|(name, _)| call(name, json!({})))
        .collect();
    for outcome in host.attack(calls).await {
        assert_ended(&outcome, Ended::Timeout, Fault::Model, "was stopped");
        assert_limit(&outcome, "cpu_ms", 200);
    }
}

#[tokio::test]
async fn sleeping_forever_ends_at_once_and_by_the_guests_own_clock() {
    let host = Plan::new().guest("misbehave").open();
    for milliseconds in [10_001, 3_600_000_u64, u64::from(u32::MAX) * 1_000] {
        let outcome = host
            .attack_with("sleep", json!({ "milliseconds": milliseconds }))
            .await;
        assert_ended(
            &outcome,
            Ended::Timeout,
            Fault::Model,
            "was stopped after the 10 s it may take",
        );
        assert_limit(&outcome, "wall_ms", 10_000);
        assert!(outcome.detail.unwrap().contains("in virtual time"));
    }
}

#[tokio::test]
async fn a_thousand_sleepers_at_once_all_wake() {
    // 9,000 s of sleep, with far fewer places than sleepers.
    let grants = "[misbehave]\nmax_concurrency = 1000\nlimits.memory_bytes = 8388608\nlimits.wall_ms = 60000\n";
    let host = Plan::new().guest("misbehave").grants(grants).open();
    let calls = (0..1_000)
        .map(|_| call("sleep", json!({"milliseconds": 9_000})))
        .collect();
    for outcome in host.attack(calls).await {
        assert_eq!(
            (outcome.ended, observed(&outcome).as_str()),
            (Ended::Ok, "9000"),
            "{outcome:?}"
        );
    }
}
