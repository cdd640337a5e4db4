//! The sum of a guest's memories and tables stays below its limit, however it is divided.

use crate::guest::{assert_unharmed, load, plain, run, sandbox};
use rlf_sandbox::{Ending, Limits};
use std::time::Duration;

const MIB: u64 = 1 << 20;

fn limits() -> Limits {
    Limits {
        memory_bytes: 8 * MIB,
        table_elements: 1_000,
        ..Limits::default()
    }
}

/// Grows until growing fails, then traps as an allocator does.
const GROWS: &str = r#"(memory 1)
    (func (export "run") (result i32)
        (loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 1)))))
        unreachable)
    (func (export "handles-it") (result i32)
        (loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 1)))))
        (memory.size))"#;
const EXPORTS: &str = r#"(func (export "run") (result u32) (canon lift (core func $i "run")))
    (func (export "handles-it") (result u32) (canon lift (core func $i "handles-it")))"#;

#[test]
fn growing_by_steps_ends_at_the_limit() {
    let sandbox = sandbox();
    let report = run::<_, u32>(&load(&sandbox, &plain(GROWS, EXPORTS), limits()), "run", ());
    let stopped = report.outcome.unwrap_err();
    assert_eq!(stopped.ended, Ending::MemoryLimit);
    let limit = stopped.limit.unwrap();
    assert_eq!(
        (limit.name.as_str(), limit.value, limit.used),
        ("memory_bytes", 8 * MIB, 8 * MIB + 65_536)
    );
    assert_eq!(report.memory_peak, 8 * MIB);
    assert_unharmed(&sandbox);
}

#[test]
fn a_guest_that_copes_with_a_refusal_goes_on() {
    let sandbox = sandbox();
    let report = run::<_, u32>(
        &load(&sandbox, &plain(GROWS, EXPORTS), limits()),
        "handles-it",
        (),
    );
    assert_eq!(report.outcome, Ok(8 * 16));
}

#[test]
fn several_memories_share_one_limit() {
    let sandbox = sandbox();
    let text = r#"(component
        (core module $a (memory (export "memory") 1)
            (func (export "grow") (result i32) (memory.grow (i32.const 16))))
        (core module $b (import "a" "grow" (func $other (result i32))) (memory (export "memory") 1)
            (func (export "run") (result i32)
                (local $n i32)
                (block $full (loop $again
                    (br_if $full (i32.eq (i32.const -1) (memory.grow (i32.const 16))))
                    (local.set $n (i32.add (local.get $n) (i32.const 16)))
                    (br_if $full (i32.eq (i32.const -1) (call $other)))
                    (local.set $n (i32.add (local.get $n) (i32.const 16)))
                    (br $again)))
                (local.get $n)))
        (core instance $first (instantiate $a))
        (core instance $i (instantiate $b (with "a" (instance $first))))
        (func (export "run") (result u32) (canon lift (core func $i "run"))))"#;
    let report = run::<_, u32>(&load(&sandbox, text, limits()), "run", ());
    // 128 pages in all; two existed, and the remainder is less than a step.
    assert_eq!(report.outcome, Ok(112));
    assert!(report.memory_peak <= 8 * MIB);
    assert_unharmed(&sandbox);
}

#[test]
fn tables_are_counted_too() {
    let sandbox = sandbox();
    let text = plain(
        r#"(table 0 funcref)
        (func (export "run") (result i32)
            (loop $again (br_if $again (i32.ne (i32.const -1) (table.grow (ref.null func) (i32.const 100)))))
            unreachable)"#,
        r#"(func (export "run") (result u32) (canon lift (core func $i "run")))"#,
    );
    let report = run::<_, u32>(&load(&sandbox, &text, limits()), "run", ());
    let stopped = report.outcome.unwrap_err();
    assert_eq!(stopped.ended, Ending::MemoryLimit);
    let limit = stopped.limit.unwrap();
    assert_eq!(
        (limit.name.as_str(), limit.value, limit.used),
        ("table_elements", 1_000, 1_100)
    );
    assert_eq!(report.memory_peak, 8_000);
    assert_unharmed(&sandbox);
}

#[test]
fn a_component_that_starts_too_big_never_runs() {
    let sandbox = sandbox();
    let text = plain(
        "(memory 200)  (func (export \"run\") (result i32) (i32.const 1))",
        r#"(func (export "run") (result u32) (canon lift (core func $i "run")))"#,
    );
    let stopped = run::<_, u32>(&load(&sandbox, &text, limits()), "run", ())
        .outcome
        .unwrap_err();
    assert_eq!(stopped.ended, Ending::MemoryLimit);
    assert_eq!(stopped.limit.unwrap().used, 200 * 65_536);
    assert_unharmed(&sandbox);
}

#[test]
fn exceptions_that_nobody_keeps_take_no_memory() {
    let sandbox = sandbox();
    let text = plain(
        r#"(tag $thrown)
        (func (export "run") (result i32) (local $count i32)
            (loop $again
                (block $caught (try_table (catch $thrown $caught) (throw $thrown)))
                (local.set $count (i32.add (local.get $count) (i32.const 1)))
                (br_if $again (i32.lt_u (local.get $count) (i32.const 100_000))))
            (local.get $count))"#,
        r#"(func (export "run") (result u32) (canon lift (core func $i "run")))"#,
    );
    let patient = Limits {
        cpu: Duration::from_mins(1),
        wall: Duration::from_mins(2),
        ..limits()
    };
    let report = run::<_, u32>(&load(&sandbox, &text, patient), "run", ());
    assert_eq!(report.outcome.unwrap(), 100_000);
    assert!(report.memory_peak <= MIB, "{}", report.memory_peak);
    assert_unharmed(&sandbox);
}

#[test]
fn exceptions_that_are_kept_count_as_memory() {
    let sandbox = sandbox();
    let text = plain(
        r#"(tag $thrown)
        (table $kept 0 exnref)
        (func (export "run") (result i32)
            (loop $again
                (br_if $again (i32.ne (i32.const -1) (table.grow $kept
                    (block $caught (result exnref)
                        (try_table (catch_all_ref $caught) (throw $thrown)) unreachable)
                    (i32.const 1)))))
            unreachable)"#,
        r#"(func (export "run") (result u32) (canon lift (core func $i "run")))"#,
    );
    let limits = Limits {
        memory_bytes: MIB,
        table_elements: 65_536,
        ..Limits::default()
    };
    let report = run::<_, u32>(&load(&sandbox, &text, limits), "run", ());
    let stopped = report.outcome.unwrap_err();
    assert_eq!(stopped.ended, Ending::MemoryLimit);
    assert_eq!(stopped.limit.unwrap().name, "memory_bytes");
    assert_unharmed(&sandbox);
}
