//! A call's memories and tables have one common limit, and its stack is limited.

use rlf_dialogue::tool::{Ended, Fault};
use serde_json::json;

use crate::test_host::{Plan, assert_ended, assert_limit, call, observed};
use rlf_stub_plugins::Beside;

const LIMIT: u64 = 32 << 20;

#[tokio::test]
async fn memory_taken_by_steps_ends_at_the_limit() {
    let grants = format!("[misbehave]\nlimits.memory_bytes = {LIMIT}\n");
    let host = Plan::new().guest("misbehave").grants(&grants).open();
    let calls = (0..8).map(|_| call("exhaust_memory", json!({}))).collect();
    for outcome in host.attack(calls).await {
        assert_ended(
            &outcome,
            Ended::MemoryLimit,
            Fault::Model,
            "more than the 32 MiB of memory",
        );
        assert_limit(&outcome, "memory_bytes", LIMIT);
    }
    // A guest that asks first and accepts a refusal continues.
    let outcome = host
        .attack_with("grow_memory", json!({"megabytes": 500}))
        .await;
    assert_eq!(outcome.ended, Ended::Ok);
    assert!(
        observed(&outcome).starts_with("refused after "),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn several_memories_and_tables_share_the_limits() {
    let beside = Beside {
        module: "(memory $more 1) (table $few 1 funcref) (table $others 1 funcref)",
        ..Beside::default()
    };
    let tools = [
        // 16 MiB each, then one page too many.
        (
            "memories",
            "(loop $again
               (br_if $again (i32.and
                 (i32.ne (i32.const -1) (memory.grow 0 (i32.const 16)))
                 (i32.ne (i32.const -1) (memory.grow $more (i32.const 16))))))
             unreachable",
        ),
        // 65,536 elements are allowed: neither table reaches this alone.
        (
            "tables",
            "(loop $again
               (br_if $again (i32.and
                 (i32.ne (i32.const -1) (table.grow $few (ref.null func) (i32.const 100)))
                 (i32.ne (i32.const -1) (table.grow $others (ref.null func) (i32.const 100))))))
             unreachable",
        ),
        (
            "once",
            "(if (i32.eq (i32.const -1) (memory.grow (i32.const 65530))) (then (unreachable))) unreachable",
        ),
    ];
    let grants = format!("[grows]\nlimits.memory_bytes = {LIMIT}\n");
    let host = Plan::new()
        .stub("grows", &beside, &tools)
        .grants(&grants)
        .open();
    for (name, limit, value) in [
        ("memories", "memory_bytes", LIMIT),
        ("tables", "table_elements", 65_536),
        ("once", "memory_bytes", LIMIT),
    ] {
        let outcome = host.attack_with(name, json!({})).await;
        assert_ended(
            &outcome,
            Ended::MemoryLimit,
            Fault::Model,
            "error: the tool needed more",
        );
        assert_limit(&outcome, limit, value);
    }
}

#[tokio::test]
async fn recursion_without_end_is_a_trap_and_no_overflow_of_the_host() {
    let beside = Beside {
        module: "(func $here (param i64) (result i64) (i64.add (call $there (local.get 0)) (i64.const 1)))
                 (func $there (param i64) (result i64) (i64.add (call $here (local.get 0)) (i64.const 1)))",
        ..Beside::default()
    };
    let tools = [("turns", "(i32.wrap_i64 (call $here (local.get $seed)))")];
    let host = Plan::new()
        .guest("misbehave")
        .stub("deep", &beside, &tools)
        .open();
    // The stack that a compiler keeps in memory overflows before the real one does.
    for (tool, why) in [
        (
            "recurse",
            "the plugin trapped: wasm trap: out of bounds memory access",
        ),
        ("turns", "the plugin's recursion is too deep"),
    ] {
        let calls = (0..8).map(|_| call(tool, json!({}))).collect();
        for outcome in host.attack(calls).await {
            assert_ended(
                &outcome,
                Ended::Trap,
                Fault::Plugin,
                "the tool broke on this call",
            );
            let detail = outcome.detail.unwrap();
            assert!(detail.starts_with(why), "{detail}");
        }
    }
}

#[tokio::test]
async fn a_trap_an_exit_and_a_panic_end_their_own_call_alone() {
    let host = Plan::new().guest("misbehave").open();
    for (tool, arguments, ended, fault, told) in [
        (
            "trap",
            json!({}),
            Ended::Trap,
            Fault::Plugin,
            "the tool broke",
        ),
        (
            "panic",
            json!({}),
            Ended::Trap,
            Fault::Plugin,
            "the tool broke",
        ),
        (
            "exit",
            json!({"code": 0}),
            Ended::Exited,
            Fault::Model,
            "without a result",
        ),
        (
            "exit",
            json!({"code": 3}),
            Ended::Exited,
            Fault::Model,
            "without a result",
        ),
    ] {
        let calls = (0..16).map(|_| call(tool, arguments.clone())).collect();
        for outcome in host.attack(calls).await {
            assert_ended(&outcome, ended, fault, told);
        }
    }
    assert_eq!(host.tools.counts()["exit"].ended(Ended::Exited), 32);
}
