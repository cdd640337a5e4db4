//! The same component, seed and arguments give the same bytes; another seed gives others.

use crate::guest::{CLOCK, MEMORY, block_on, call, load, sandbox};
use rlf_sandbox::{CallSpec, Limits, Sandbox};

/// Returns a list of eight numbers: wall clock, monotonic clock and all random sources.
pub(crate) fn looker() -> String {
    format!(
        r#"(component {MEMORY} {CLOCK}
        (import "wasi:clocks/wall-clock@0.2.0" (instance $wall
            (type $record (record (field "seconds" u64) (field "nanoseconds" u32)))
            (export "datetime" (type $datetime (eq $record)))
            (export "now" (func (result $datetime)))))
        (import "wasi:random/random@0.2.0" (instance $random (export "get-random-u64" (func (result u64)))))
        (import "wasi:random/insecure@0.2.0" (instance $insecure (export "get-insecure-random-u64" (func (result u64)))))
        (import "wasi:random/insecure-seed@0.2.0" (instance $seed (export "insecure-seed" (func (result (tuple u64 u64))))))
        (core func $wall-now (canon lower (func $wall "now") (memory $mem)))
        (core func $random (canon lower (func $random "get-random-u64")))
        (core func $insecure (canon lower (func $insecure "get-insecure-random-u64")))
        (core func $seed (canon lower (func $seed "insecure-seed") (memory $mem)))
        (core module $m
            (import "h" "memory" (memory 1))
            (import "h" "now" (func $now (result i64)))
            (import "h" "wall-now" (func $wall (param i32)))
            (import "h" "random" (func $random (result i64)))
            (import "h" "insecure" (func $insecure (result i64)))
            (import "h" "seed" (func $seed (param i32)))
            (func (export "look") (result i32)
                (call $wall (i32.const 64))
                (i64.store (i32.const 80) (call $now))
                (i64.store (i32.const 88) (call $random))
                (i64.store (i32.const 96) (call $random))
                (i64.store (i32.const 104) (call $insecure))
                (call $seed (i32.const 112))
                (i32.store (i32.const 0) (i32.const 64))
                (i32.store (i32.const 4) (i32.const 8))
                (i32.const 0)))
        (core instance $i (instantiate $m (with "h" (instance
            (export "memory" (memory $mem)) (export "now" (func $now)) (export "wall-now" (func $wall-now))
            (export "random" (func $random)) (export "insecure" (func $insecure)) (export "seed" (func $seed))))))
        (func (export "look") (result (list u64)) (canon lift (core func $i "look") (memory $mem))))"#
    )
}

fn observe(sandbox: &Sandbox, seed: u64) -> Vec<u64> {
    let template = load(sandbox, &looker(), Limits::default());
    let spec = CallSpec {
        seed,
        ..CallSpec::default()
    };
    block_on(call::<_, Vec<u64>>(&template, spec, "look", ()))
        .outcome
        .unwrap()
}

#[test]
fn clocks_start_at_a_fixed_instant() {
    let seen = observe(&sandbox(), 1);
    // 2024-01-01T00:00:00Z plus one microsecond for one reading; a day of uptime plus two readings.
    assert_eq!(seen[0], 1_704_067_200);
    assert_eq!(seen[1] & 0xffff_ffff, 1_000);
    assert_eq!(seen[2], 86_400_000_002_000);
}

#[test]
fn randomness_depends_on_the_seed_alone() {
    let (one, other) = (sandbox(), sandbox());
    let seen = observe(&one, 7);
    assert_eq!(seen, observe(&one, 7), "two calls of one sandbox");
    assert_eq!(seen, observe(&other, 7), "two sandboxes");
    let changed = observe(&one, 8);
    for source in 3..8 {
        assert_ne!(
            seen[source], changed[source],
            "source {source} ignores the seed"
        );
    }
    let mut distinct: Vec<_> = seen[3..].to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 5, "sources repeat each other: {seen:?}");
}

#[test]
fn randomness_is_the_same_in_every_release() {
    // Recorded from this implementation in 2026-11: a change of these numbers changes every recorded run.
    assert_eq!(observe(&sandbox(), 7)[3..], GOLDEN);
}

const GOLDEN: [u64; 5] = [
    8_543_100_090_321_362_954,
    4_706_955_304_348_745_955,
    7_920_688_028_157_835_786,
    4_930_809_473_520_149_338,
    5_253_319_306_020_207_399,
];

#[test]
fn a_nan_has_the_same_bits_everywhere() {
    let sandbox = sandbox();
    let text = crate::guest::plain(
        r#"(func (export "run") (param f64 f64) (result i64) (i64.reinterpret_f64 (f64.div (local.get 0) (local.get 1))))"#,
        r#"(func (export "run") (param "a" f64) (param "b" f64) (result u64) (canon lift (core func $i "run")))"#,
    );
    let template = load(&sandbox, &text, Limits::default());
    let bits = crate::guest::run::<_, u64>(&template, "run", (0.0_f64, 0.0_f64))
        .outcome
        .unwrap();
    assert_eq!(
        bits, 0x7ff8_0000_0000_0000,
        "x86 alone would give a negative one"
    );
}
