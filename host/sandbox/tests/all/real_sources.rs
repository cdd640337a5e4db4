//! The machine's clock and its randomness, each granted separately: for calls, and never for `init`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::determinism::looker;
use crate::guest::{
    Load, assert_unharmed, block_on, call, component, run, sandbox, try_load, with_init,
};
use crate::time::sleeper;
use rlf_sandbox::{
    CallSpec, Clock, Ending, InitMode, Limits, RealSources, Sandbox, ScratchFiles, Template,
};

const CLOCK: RealSources = RealSources {
    clock: true,
    random: false,
};
const RANDOM: RealSources = RealSources {
    clock: false,
    random: true,
};

fn granted(sandbox: &Sandbox, text: &str, real: RealSources, limits: Limits) -> Template {
    let load = Load {
        limits,
        real,
        ..Load::default()
    };
    try_load(sandbox, &component(text), &load).unwrap_or_else(|error| panic!("{error}"))
}

/// Seconds of the wall clock, the monotonic clock, and five random numbers.
fn observe(sandbox: &Sandbox, real: RealSources) -> (u64, u64, Vec<u64>) {
    let template = granted(sandbox, &looker(), real, Limits::default());
    let spec = CallSpec {
        seed: 7,
        ..CallSpec::default()
    };
    let seen = block_on(call::<_, Vec<u64>>(&template, spec, "look", ()));
    let seen = seen.outcome.unwrap();
    (seen[0], seen[2], seen[3..].to_vec())
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

#[test]
fn a_granted_clock_is_the_machines_and_randomness_stays_seeded() {
    let sandbox = sandbox();
    let (start, uptime, random) = observe(&sandbox, RealSources::default());
    assert_eq!((start, uptime), (1_704_067_200, 86_400_000_002_000));
    let before = now();
    let (wall, _, same) = observe(&sandbox, CLOCK);
    assert!((before..=now()).contains(&wall), "{wall}");
    assert_eq!(same, random);
    assert_unharmed(&sandbox);
}

#[test]
fn granted_entropy_is_the_machines_and_the_clock_stays_virtual() {
    let sandbox = sandbox();
    let (wall, uptime, one) = observe(&sandbox, RANDOM);
    let (_, _, other) = observe(&sandbox, RANDOM);
    assert_eq!((wall, uptime), (1_704_067_200, 86_400_000_002_000));
    for source in 0..5 {
        assert_ne!(one[source], other[source], "source {source} repeats itself");
    }
    assert_unharmed(&sandbox);
}

#[test]
fn sleeping_takes_real_time() {
    let sandbox = sandbox();
    let template = granted(&sandbox, &sleeper(), CLOCK, Limits::default());
    let asked = Duration::from_millis(20);
    let report = run::<_, u64>(&template, "sleep", (asked.as_nanos() as u64,));
    assert!(report.outcome.unwrap() >= asked.as_nanos() as u64);
    assert!(report.wall >= asked, "{:?}", report.wall);
    assert_unharmed(&sandbox);
}

#[test]
fn who_sleeps_past_the_deadline_is_stopped_at_once_and_it_is_its_own_doing() {
    let sandbox = sandbox();
    let limits = Limits {
        wall: Duration::from_millis(30),
        ..Limits::default()
    };
    let template = granted(&sandbox, &sleeper(), CLOCK, limits);
    for nanoseconds in [3_600_000_000_000_u64, u64::MAX] {
        let stopped = run::<_, u64>(&template, "sleep", (nanoseconds,))
            .outcome
            .unwrap_err();
        assert_eq!(
            stopped.ended,
            Ending::Timeout {
                clock: Clock::Virtual
            }
        );
        assert_eq!(stopped.limit.unwrap().name, "wall_ms");
    }
    assert_unharmed(&sandbox);
}

/// Keeps the wall clock and the random numbers that `init` saw.
fn remembers() -> String {
    let before = r#"
        (import "wasi:clocks/wall-clock@0.2.0" (instance $wall
            (type $record (record (field "seconds" u64) (field "nanoseconds" u32)))
            (export "datetime" (type $datetime (eq $record)))
            (export "resolution" (func (result $datetime)))
            (export "now" (func (result $datetime)))))
        (import "wasi:random/random@0.2.0" (instance $random (export "get-random-u64" (func (result u64)))))
        (core module $memory (memory (export "memory") 1))
        (core instance $memory (instantiate $memory))
        (alias core export $memory "memory" (core memory $mem))
        (core func $wall-now (canon lower (func $wall "now") (memory $mem)))
        (core func $random (canon lower (func $random "get-random-u64")))"#;
    let module = r#"(import "h" "seen" (memory $seen 1))
        (import "h" "wall" (func $wall (param i32)))
        (import "h" "random" (func $random (result i64)))
        (memory $own (export "memory") 1)
        (func (export "init") (param i32 i32) (result i32)
            (call $wall (i32.const 64))
            (i64.store $own (i32.const 100) (i64.load $seen (i32.const 64)))
            (i64.store $own (i32.const 108) (call $random))
            (i32.const 0))
        (func (export "seconds") (result i64) (i64.load $own (i32.const 100)))
        (func (export "drawn") (result i64) (i64.load $own (i32.const 108)))
        (func (export "draw") (result i64) (call $random))"#;
    let with = r#"(with "h" (instance (export "seen" (memory $mem)) (export "wall" (func $wall-now))
        (export "random" (func $random))))"#;
    let exports = ["seconds", "drawn", "draw"]
        .map(|name| {
            format!(r#"(func (export "{name}") (result u64) (canon lift (core func $i "{name}")))"#)
        })
        .join("\n");
    with_init(before, module, with, &exports)
}

#[test]
fn what_init_sees_is_virtual_and_seeded_in_a_snapshot_and_in_every_call() {
    let sandbox = sandbox();
    let folder = tempfile::tempdir().unwrap();
    let both = RealSources {
        clock: true,
        random: true,
    };
    let text = component(&remembers());
    for (host_directory, snapshot) in [(None, true), (Some(folder.path().to_owned()), false)] {
        let load = |real| {
            let load = Load {
                host_directory: host_directory.clone(),
                files: None::<ScratchFiles>,
                real,
                ..Load::default()
            };
            try_load(&sandbox, &text, &load).unwrap_or_else(|error| panic!("{error}"))
        };
        let (without, with) = (load(RealSources::default()), load(both));
        assert_eq!(*with.init() == InitMode::Snapshot, snapshot);
        let seen = |template: &Template, export| run::<_, u64>(template, export, ()).outcome;
        assert_eq!(seen(&with, "seconds"), Ok(1_704_067_200));
        assert_eq!(seen(&with, "drawn"), seen(&without, "drawn"));
        assert_eq!(seen(&without, "draw"), seen(&without, "draw"));
        assert_ne!(
            seen(&with, "draw"),
            seen(&with, "draw"),
            "in the call itself"
        );
    }
    assert_unharmed(&sandbox);
}
