//! A guest's output survives its end, is bounded, and is safe to show.

use crate::guest::{MEMORY, STDOUT, assert_unharmed, load, run, sandbox};
use rlf_sandbox::{Clock, Ending, Limits};

/// Prints 4096 bytes of the given character `times` times, then ends as the argument says.
fn printer() -> String {
    format!(
        r#"(component {MEMORY} {STDOUT}
        (core module $m
            (import "h" "memory" (memory 1))
            (import "h" "stdout" (func $stdout (result i32)))
            (import "h" "print" (func $print (param i32 i32 i32 i32)))
            (data (i32.const 0) "caf\c3\a9 \1b[31mred\ff\0a")
            (func (export "run") (param $times i32) (param $then i32) (result i32)
                (local $out i32)
                (local.set $out (call $stdout))
                (call $print (local.get $out) (i32.const 0) (i32.const 16) (i32.const 60000))
                (memory.fill (i32.const 8192) (i32.const 120) (i32.const 4096))
                (block $done (loop $again
                    (br_if $done (i32.eqz (local.get $times)))
                    (call $print (local.get $out) (i32.const 8192) (i32.const 4096) (i32.const 60000))
                    (local.set $times (i32.sub (local.get $times) (i32.const 1)))
                    (br $again)))
                (call $print (local.get $out) (i32.const 0) (i32.const 4) (i32.const 60000))
                (if (i32.eq (local.get $then) (i32.const 1)) (then unreachable))
                (if (i32.eq (local.get $then) (i32.const 2)) (then (loop $forever (br $forever))))
                (i32.const 7)))
        (core instance $i (instantiate $m (with "h" (instance
            (export "memory" (memory $mem)) (export "stdout" (func $stdout)) (export "print" (func $print))))))
        (func (export "run") (param "times" u32) (param "then" u32) (result u32) (canon lift (core func $i "run"))))"#
    )
}

#[test]
fn what_was_printed_survives_every_ending() {
    let sandbox = sandbox();
    let limits = Limits {
        cpu: std::time::Duration::from_millis(20),
        ..Limits::default()
    };
    let template = load(&sandbox, &printer(), limits);
    let shown = "café \u{241b}[31mred\u{fffd}\ncaf\u{fffd}";
    let returned = run::<_, u32>(&template, "run", (0_u32, 0_u32));
    assert_eq!(
        (returned.outcome, returned.stdout.captured().text.as_str()),
        (Ok(7), shown)
    );
    let trapped = run::<_, u32>(&template, "run", (0_u32, 1_u32));
    assert_eq!(
        (
            trapped.outcome.unwrap_err().ended,
            trapped.stdout.captured().text.as_str()
        ),
        (Ending::Trap, shown)
    );
    let stopped = run::<_, u32>(&template, "run", (0_u32, 2_u32));
    let timeout = Ending::Timeout { clock: Clock::Cpu };
    assert_eq!(
        (
            stopped.outcome.unwrap_err().ended,
            stopped.stdout.captured().text.as_str()
        ),
        (timeout, shown)
    );
    assert_unharmed(&sandbox);
}

#[test]
fn a_flood_keeps_head_and_tail_and_is_counted() {
    let sandbox = sandbox();
    let template = load(
        &sandbox,
        &printer(),
        Limits {
            output_bytes: 64,
            ..Limits::default()
        },
    );
    let report = run::<_, u32>(&template, "run", (1_000_u32, 0_u32));
    assert_eq!(report.outcome, Ok(7));
    let total = 16 + 4096 * 1_000 + 4;
    assert_eq!(report.stdout.total_bytes(), total);
    let head = format!("café \u{241b}[31mred\u{fffd}\n{}", "x".repeat(16));
    let text = format!(
        "{head}\n[... {} bytes left out ...]\n{}caf\u{fffd}",
        total - 64,
        "x".repeat(28)
    );
    assert_eq!(report.stdout.captured().text, text);
    assert_unharmed(&sandbox);
}

#[test]
fn printing_without_end_stops_at_the_hard_limit() {
    let sandbox = sandbox();
    let template = load(
        &sandbox,
        &printer(),
        Limits {
            output_stop_bytes: 100_000,
            ..Limits::default()
        },
    );
    let report = run::<_, u32>(&template, "run", (u32::MAX, 0_u32));
    let stopped = report.outcome.unwrap_err();
    assert_eq!(stopped.ended, Ending::OutputLimit);
    let limit = stopped.limit.unwrap();
    assert_eq!(
        (limit.name.as_str(), limit.value),
        ("output_stop_bytes", 100_000)
    );
    assert_eq!(limit.used, report.stdout.total_bytes());
    assert!(report.stdout.captured().text.starts_with("café"));
    assert_unharmed(&sandbox);
}
