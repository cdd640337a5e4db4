//! Every ending of a call has its own value.

use crate::guest::{ADDER, assert_unharmed, load, plain, run, sandbox};
use rlf_sandbox::{Ending, Limits};

#[test]
fn a_value_comes_back_with_what_the_call_used() {
    let sandbox = sandbox();
    let template = load(&sandbox, ADDER, Limits::default());
    let report = run::<_, u32>(&template, "add", (1_u32, 2_u32));
    assert_eq!(report.outcome, Ok(3));
    assert!(report.cpu > std::time::Duration::ZERO && report.wall >= report.queued);
    assert!(report.stdout.is_empty() && report.stderr.is_empty() && report.logs.lines.is_empty());
    assert_unharmed(&sandbox);
}

#[test]
fn a_trap_names_its_reason_and_keeps_its_backtrace_for_the_logs() {
    let sandbox = sandbox();
    let text = plain(
        r#"(func $broken (export "run") (result i32) unreachable)"#,
        r#"(func (export "run") (result u32) (canon lift (core func $i "run")))"#,
    );
    let stopped = run::<_, u32>(&load(&sandbox, &text, Limits::default()), "run", ())
        .outcome
        .unwrap_err();
    assert_eq!(stopped.ended, Ending::Trap);
    assert_eq!(
        stopped.reason,
        "the plugin trapped: wasm trap: wasm `unreachable` instruction executed"
    );
    assert!(!stopped.reason.contains("0x") && !stopped.reason.contains("broken"));
    assert!(stopped.backtrace.unwrap().contains("broken"));
    assert_unharmed(&sandbox);
}

#[test]
fn unbounded_recursion_is_a_trap_that_says_so() {
    let sandbox = sandbox();
    let text = plain(
        r#"(func $deeper (export "run") (param i32) (result i32)
            (i32.add (i32.const 1) (call $deeper (i32.add (local.get 0) (i32.const 1)))))"#,
        r#"(func (export "run") (param "n" u32) (result u32) (canon lift (core func $i "run")))"#,
    );
    let stopped = run::<_, u32>(&load(&sandbox, &text, Limits::default()), "run", (0_u32,))
        .outcome
        .unwrap_err();
    assert_eq!(stopped.ended, Ending::Trap);
    assert!(
        stopped.reason.contains("recursion is too deep"),
        "{}",
        stopped.reason
    );
    assert_unharmed(&sandbox);
}

#[test]
fn an_exit_is_not_a_trap_whatever_its_code() {
    let sandbox = sandbox();
    let text = r#"(component
        (import "wasi:cli/exit@0.2.0" (instance $cli (export "exit" (func (param "status" (result))))))
        (core func $exit (canon lower (func $cli "exit")))
        (core module $m
            (import "h" "exit" (func $exit (param i32)))
            (func (export "run") (param i32) (result i32) (call $exit (local.get 0)) (i32.const 7)))
        (core instance $i (instantiate $m (with "h" (instance (export "exit" (func $exit))))))
        (func (export "run") (param "status" u32) (result u32) (canon lift (core func $i "run"))))"#;
    let template = load(&sandbox, text, Limits::default());
    for code in [0_u32, 1] {
        let stopped = run::<_, u32>(&template, "run", (code,))
            .outcome
            .unwrap_err();
        assert_eq!(
            stopped.ended,
            Ending::Exited {
                code: code.cast_signed()
            },
            "{stopped}"
        );
        assert_eq!(stopped.reason, format!("the plugin left by exit({code})"));
    }
    assert_unharmed(&sandbox);
}

#[test]
fn nothing_of_one_call_is_seen_by_the_next() {
    let sandbox = sandbox();
    let text = plain(
        r#"(memory 1) (global $g (mut i32) (i32.const 0))
           (func (export "run") (result i32)
            (global.set $g (i32.add (global.get $g) (i32.const 1)))
            (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
            (i32.add (global.get $g) (i32.load (i32.const 0))))"#,
        r#"(func (export "run") (result u32) (canon lift (core func $i "run")))"#,
    );
    let template = load(&sandbox, &text, Limits::default());
    for _ in 0..50 {
        assert_eq!(run::<_, u32>(&template, "run", ()).outcome, Ok(2));
    }
}
