//! The memory that the host keeps for a guest, or copies for it, is bounded.

use rlf_dialogue::tool::{Ended, Fault};
use serde_json::json;

use crate::test_host::{Plan, assert_ended, assert_limit, limit};
use rlf_stub_plugins::Beside;

/// Timers and randomness. Results of randomness go to their own memory.
const IMPORTS: &str = r#"
    (core module $other
      (memory (export "memory") 1)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
    (core instance $other (instantiate $other))
    (import "wasi:io/poll@0.2.0" (instance $poll
        (export "pollable" (type $p (sub resource)))))
    (alias export $poll "pollable" (type $pollable))
    (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
        (alias outer 1 $pollable (type $outer))
        (export "pollable" (type $p (eq $outer)))
        (export "subscribe-duration" (func (param "when" u64) (result (own $p))))))
    (import "wasi:random/random@0.2.0" (instance $random
        (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
    (core func $subscribe (canon lower (func $clock "subscribe-duration")))
    (core func $bytes (canon lower (func $random "get-random-bytes")
        (memory (core memory $other "memory")) (realloc (core func $other "realloc"))))"#;

fn plan() -> Plan {
    let beside = Beside {
        component: IMPORTS,
        with: r#"(with "h" (instance (export "subscribe" (func $subscribe)) (export "bytes" (func $bytes))))"#,
        imports: r#"(import "h" "subscribe" (func $subscribe (param i64) (result i32)))
            (import "h" "bytes" (func $bytes (param i64 i32)))"#,
        ..Beside::default()
    };
    Plan::new().stub(
        "takes",
        &beside,
        &[
            (
                "handles",
                "(loop $again (drop (call $subscribe (i64.const 1))) (br $again)) unreachable",
            ),
            (
                "random",
                "(call $bytes (i64.const 0x7fffffffffffffff) (i32.const 16)) unreachable",
            ),
            (
                "more",
                "(loop $again (call $bytes (i64.const 1048577) (i32.const 16)) (br $again)) unreachable",
            ),
            ("text", "(call $text (i32.const 0) (i32.const 0x7fffffff))"),
            ("whole", "(drop (memory.grow (i32.const 1000))) (call $text (i32.const 0) (i32.const 60000000))"),
            // A list of 100 million items, all of them the same few bytes.
            (
                "parts",
                "(drop (call $text (i32.const 0) (i32.const 0))) (i32.store (i32.const 1032) (i32.const 100000000)) (i32.const 1024)",
            ),
            ("outside", "(i32.const 0x7ffffff0)"),
            ("case", "(i32.store8 (i32.const 1024) (i32.const 9)) (i32.const 1024)"),
        ],
    )
}

#[tokio::test]
async fn a_million_handles_end_at_the_limit() {
    let host = plan().open();
    let outcome = host.attack_with("handles", json!({})).await;
    assert_ended(&outcome, Ended::MemoryLimit, Fault::Model, "ask for less");
    assert_limit(&outcome, "resources", 1_000);
}

#[tokio::test]
async fn a_giant_random_request_is_refused_unmade() {
    let host = plan().open();
    for tool in ["random", "more"] {
        let outcome = host.attack_with(tool, json!({})).await;
        assert_ended(&outcome, Ended::MemoryLimit, Fault::Model, "ask for less");
        assert_limit(&outcome, "random_bytes", 1 << 20);
    }
}

#[tokio::test]
async fn a_result_of_two_gigabytes_is_never_copied() {
    let host = plan().open();
    // The text is longer than the guest's memory: the guest's own fault.
    let outcome = host.attack_with("text", json!({})).await;
    assert_ended(&outcome, Ended::Trap, Fault::Plugin, "the tool broke");
    // The text is in the guest's memory, and too long to be passed at once.
    let outcome = host.attack_with("whole", json!({})).await;
    assert_ended(
        &outcome,
        Ended::OutputLimit,
        Fault::Model,
        "larger than the 16 MiB",
    );
    assert_eq!(limit(&outcome).0, "hostcall_bytes");
    for tool in ["parts", "outside", "case"] {
        let outcome = host.attack_with(tool, json!({})).await;
        assert_ended(&outcome, Ended::Trap, Fault::Plugin, "the tool broke");
    }
}
