//! A guest cannot make the host use more memory on its behalf than it is allowed.

use crate::guest::{CLOCK, MEMORY, assert_unharmed, load, plain, run, sandbox};
use rlf_sandbox::{Ending, Limits, Stopped};

fn assert_limit(stopped: &Stopped, ended: Ending, name: &str, value: u64) {
    assert_eq!(stopped.ended, ended, "{stopped}");
    let limit = stopped.limit.as_ref().expect("the limit is named");
    assert_eq!((limit.name.as_str(), limit.value), (name, value));
    assert!(limit.used >= value);
}

#[test]
fn a_huge_argument_to_the_host_is_refused() {
    let sandbox = sandbox();
    let text = format!(
        r#"(component {MEMORY}
        (import "rlf:plugin/log@0.1.0" (instance $log
            (type $variant (enum "trace" "debug" "info" "warn" "error"))
            (export "level" (type $level (eq $variant)))
            (export "write" (func (param "level" $level) (param "message" string)))))
        (core func $write (canon lower (func $log "write") (memory $mem)))
        (core module $m
            (import "h" "memory" (memory 1))
            (import "h" "write" (func $write (param i32 i32 i32)))
            (func (export "run") (param i32) (result i32)
                (drop (memory.grow (i32.const 100)))
                (call $write (i32.const 2) (i32.const 0) (local.get 0))
                (i32.const 7)))
        (core instance $i (instantiate $m (with "h" (instance (export "memory" (memory $mem)) (export "write" (func $write))))))
        (func (export "run") (param "length" u32) (result u32) (canon lift (core func $i "run"))))"#
    );
    let template = load(
        &sandbox,
        &text,
        Limits {
            hostcall_bytes: 1 << 20,
            ..Limits::default()
        },
    );
    assert_eq!(run::<_, u32>(&template, "run", (1000_u32,)).outcome, Ok(7));
    let stopped = run::<_, u32>(&template, "run", (5_u32 << 20,))
        .outcome
        .unwrap_err();
    assert_limit(&stopped, Ending::OutputLimit, "hostcall_bytes", 1 << 20);
    assert_unharmed(&sandbox);
}

#[test]
fn a_huge_result_is_refused() {
    let sandbox = sandbox();
    let text = r#"(component
        (core module $m (memory (export "memory") 100)
            (func (export "run") (param i32) (result i32)
                (i32.store (i32.const 0) (i32.const 64))
                (i32.store (i32.const 4) (local.get 0))
                (i32.const 0)))
        (core instance $i (instantiate $m))
        (func (export "run") (param "length" u32) (result string) (canon lift (core func $i "run") (memory (core memory $i "memory")))))"#;
    let template = load(
        &sandbox,
        text,
        Limits {
            hostcall_bytes: 1 << 20,
            ..Limits::default()
        },
    );
    assert_eq!(
        run::<_, String>(&template, "run", (10_u32,))
            .outcome
            .unwrap()
            .len(),
        10
    );
    let stopped = run::<_, String>(&template, "run", (5_u32 << 20,))
        .outcome
        .unwrap_err();
    assert_limit(&stopped, Ending::OutputLimit, "hostcall_bytes", 1 << 20);
    // Longer than the guest's own memory: no limit of ours, but an error all the same.
    let stopped = run::<_, String>(&template, "run", (u32::MAX,))
        .outcome
        .unwrap_err();
    assert_eq!(stopped.ended, Ending::Trap);
    assert_unharmed(&sandbox);
}

#[test]
fn a_giant_random_request_is_refused() {
    let sandbox = sandbox();
    let text = format!(
        r#"(component {MEMORY}
        (import "wasi:random/random@0.2.0" (instance $random
            (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
        (core func $bytes (canon lower (func $random "get-random-bytes") (memory $mem) (realloc $realloc)))
        (core module $m
            (import "h" "memory" (memory 1))
            (import "h" "bytes" (func $bytes (param i64 i32)))
            (func (export "run") (param i64) (result i32)
                (call $bytes (local.get 0) (i32.const 0))
                (i32.load (i32.const 4))))
        (core instance $i (instantiate $m (with "h" (instance (export "memory" (memory $mem)) (export "bytes" (func $bytes))))))
        (func (export "run") (param "length" u64) (result u32) (canon lift (core func $i "run"))))"#
    );
    let template = load(
        &sandbox,
        &text,
        Limits {
            random_bytes: 4096,
            ..Limits::default()
        },
    );
    assert_eq!(
        run::<_, u32>(&template, "run", (4096_u64,)).outcome,
        Ok(4096)
    );
    for length in [4097, u64::MAX] {
        let stopped = run::<_, u32>(&template, "run", (length,))
            .outcome
            .unwrap_err();
        assert_limit(&stopped, Ending::MemoryLimit, "random_bytes", 4096);
    }
    assert_unharmed(&sandbox);
}

#[test]
fn a_million_handles_are_refused() {
    let sandbox = sandbox();
    let text = r#"(component
        (type $r (resource (rep i32)))
        (core func $new (canon resource.new $r))
        (core module $m
            (import "h" "new" (func $new (param i32) (result i32)))
            (func (export "run") (param i32) (result i32)
                (block $done (loop $again
                    (br_if $done (i32.eqz (local.get 0)))
                    (drop (call $new (i32.const 1)))
                    (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
                    (br $again)))
                (i32.const 7)))
        (core instance $i (instantiate $m (with "h" (instance (export "new" (func $new))))))
        (func (export "run") (param "count" u32) (result u32) (canon lift (core func $i "run"))))"#;
    let template = load(
        &sandbox,
        text,
        Limits {
            component_handles: 500,
            ..Limits::default()
        },
    );
    assert_eq!(run::<_, u32>(&template, "run", (500_u32,)).outcome, Ok(7));
    let stopped = run::<_, u32>(&template, "run", (1_000_000_u32,))
        .outcome
        .unwrap_err();
    assert_limit(&stopped, Ending::MemoryLimit, "component_handles", 500);
    assert_unharmed(&sandbox);
}

#[test]
fn a_million_timers_are_refused() {
    let sandbox = sandbox();
    let text = format!(
        r#"(component {CLOCK}
        (core module $m
            (import "h" "subscribe" (func $subscribe (param i64) (result i32)))
            (func (export "run") (param i32) (result i32)
                (block $done (loop $again
                    (br_if $done (i32.eqz (local.get 0)))
                    (drop (call $subscribe (i64.const 1)))
                    (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
                    (br $again)))
                (i32.const 7)))
        (core instance $i (instantiate $m (with "h" (instance (export "subscribe" (func $subscribe))))))
        (func (export "run") (param "count" u32) (result u32) (canon lift (core func $i "run"))))"#
    );
    let template = load(
        &sandbox,
        &text,
        Limits {
            resources: 100,
            ..Limits::default()
        },
    );
    assert_eq!(run::<_, u32>(&template, "run", (50_u32,)).outcome, Ok(7));
    let stopped = run::<_, u32>(&template, "run", (1_000_000_u32,))
        .outcome
        .unwrap_err();
    assert_limit(&stopped, Ending::MemoryLimit, "resources", 100);
    assert_unharmed(&sandbox);
}

#[test]
fn bulk_memory_storms_end_at_the_cpu_budget() {
    let sandbox = sandbox();
    let text = plain(
        r#"(memory 256) (func (export "run") (result i32)
            (loop $again (memory.fill (i32.const 0) (i32.const 1) (i32.const 16777216)) (br $again)) unreachable)"#,
        r#"(func (export "run") (result u32) (canon lift (core func $i "run")))"#,
    );
    let limits = Limits {
        cpu: std::time::Duration::from_millis(30),
        ..Limits::default()
    };
    let stopped = run::<_, u32>(&load(&sandbox, &text, limits), "run", ())
        .outcome
        .unwrap_err();
    assert!(stopped.limit.is_some_and(|limit| limit.name == "cpu_ms"));
    assert_unharmed(&sandbox);
}
