//! A guest's log lines are limited in number and length, and are safe to show.

use crate::guest::{MEMORY, assert_unharmed, load, run, sandbox};
use rlf_sandbox::{Limits, LogLevel, LogLine};

/// Logs a line of `length` bytes at `level`, `times` times; returns `enabled` for that level.
fn logger() -> String {
    format!(
        r#"(component {MEMORY}
        (import "rlf:plugin/log@0.1.0" (instance $log
            (type $variant (enum "trace" "debug" "info" "warn" "error"))
            (export "level" (type $level (eq $variant)))
            (export "write" (func (param "level" $level) (param "message" string)))
            (export "enabled" (func (param "level" $level) (result bool)))))
        (core func $write (canon lower (func $log "write") (memory $mem)))
        (core func $enabled (canon lower (func $log "enabled")))
        (core module $m
            (import "h" "memory" (memory 1))
            (import "h" "write" (func $write (param i32 i32 i32)))
            (import "h" "enabled" (func $enabled (param i32) (result i32)))
            (data (i32.const 0) "hi\1b[2J and more that is longer")
            (func (export "run") (param $level i32) (param $length i32) (param $times i32) (result i32)
                (block $done (loop $again
                    (br_if $done (i32.eqz (local.get $times)))
                    (call $write (local.get $level) (i32.const 0) (local.get $length))
                    (local.set $times (i32.sub (local.get $times) (i32.const 1)))
                    (br $again)))
                (call $enabled (local.get $level))))
        (core instance $i (instantiate $m (with "h" (instance
            (export "memory" (memory $mem)) (export "write" (func $write)) (export "enabled" (func $enabled))))))
        (func (export "run") (param "level" u32) (param "length" u32) (param "times" u32) (result bool)
            (canon lift (core func $i "run"))))"#
    )
}

#[test]
fn lines_are_collected_with_their_level_and_made_safe() {
    let sandbox = sandbox();
    let report = run::<_, bool>(
        &load(&sandbox, &logger(), Limits::default()),
        "run",
        (3_u32, 6_u32, 1_u32),
    );
    assert_eq!(report.outcome, Ok(true));
    assert_eq!(
        report.logs.lines,
        [LogLine {
            level: LogLevel::Warn,
            message: "hi\u{241b}[2J".into()
        }]
    );
    assert_unharmed(&sandbox);
}

#[test]
fn a_flood_is_counted_and_the_guest_can_ask() {
    let sandbox = sandbox();
    let template = load(
        &sandbox,
        &logger(),
        Limits {
            log_lines: 5,
            ..Limits::default()
        },
    );
    let report = run::<_, bool>(&template, "run", (2_u32, 2_u32, 10_000_u32));
    assert_eq!(report.outcome, Ok(false), "a line would be dropped now");
    assert_eq!((report.logs.lines.len(), report.logs.dropped), (5, 9_995));
}

#[test]
fn lines_below_the_wanted_level_are_neither_kept_nor_counted() {
    let sandbox = sandbox();
    let report = run::<_, bool>(
        &load(&sandbox, &logger(), Limits::default()),
        "run",
        (1_u32, 2_u32, 3_u32),
    );
    assert_eq!(
        (report.outcome, report.logs.lines.len(), report.logs.dropped),
        (Ok(false), 0, 0)
    );
}

#[test]
fn a_long_line_is_cut_visibly() {
    let sandbox = sandbox();
    let template = load(
        &sandbox,
        &logger(),
        Limits {
            log_line_bytes: 2,
            ..Limits::default()
        },
    );
    let report = run::<_, bool>(&template, "run", (4_u32, 31_u32, 1_u32));
    assert!(
        report.logs.lines[0].message.starts_with("hi [... "),
        "{:?}",
        report.logs.lines
    );
}
