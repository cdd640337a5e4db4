//! No guest uses more time than it may: computing ends at the CPU budget; sleeping takes no real time and ends at the
//! deadline in virtual time.

use std::time::{Duration, Instant};

use crate::guest::{
    CLOCK, assert_unharmed, block_on, call, load, plain, run, sandbox, sandbox_with,
};
use rlf_sandbox::{CallSpec, Clock, Ending, Limits, SandboxConfig};

fn loops() -> String {
    plain(
        r#"(func (export "run") (result i32) (loop $again (br $again)) unreachable)"#,
        r#"(func (export "run") (result u32) (canon lift (core func $i "run")))"#,
    )
}

#[test]
fn an_endless_loop_ends_at_its_cpu_budget() {
    let sandbox = sandbox();
    let template = load(
        &sandbox,
        &loops(),
        Limits {
            cpu: Duration::from_millis(40),
            ..Limits::default()
        },
    );
    let report = run::<_, u32>(&template, "run", ());
    let stopped = report.outcome.unwrap_err();
    assert_eq!(stopped.ended, Ending::Timeout { clock: Clock::Cpu });
    assert!(!stopped.ended.is_infrastructure());
    let limit = stopped.limit.unwrap();
    assert_eq!((limit.name.as_str(), limit.value), ("cpu_ms", 40));
    assert!(limit.used >= 40 && report.cpu >= Duration::from_millis(40));
    assert_unharmed(&sandbox);
}

#[test]
fn many_endless_loops_at_once_each_get_their_own_budget() {
    let sandbox = sandbox_with(&SandboxConfig {
        instances: Some(16),
        ..SandboxConfig::default()
    });
    let limits = Limits {
        cpu: Duration::from_millis(20),
        wall: Duration::from_mins(1),
        ..Limits::default()
    };
    let template = load(&sandbox, &loops(), limits);
    block_on(async {
        let calls: Vec<_> = (0..32)
            .map(|_| {
                let template = template.clone();
                tokio::spawn(async move {
                    call::<_, u32>(&template, CallSpec::default(), "run", ()).await
                })
            })
            .collect();
        for call in calls {
            let report = call.await.unwrap();
            assert_eq!(
                report.outcome.unwrap_err().ended,
                Ending::Timeout { clock: Clock::Cpu }
            );
            assert!(report.cpu >= Duration::from_millis(20));
        }
    });
    assert_unharmed(&sandbox);
}

/// Limits whose deadline ends a call before its budget does.
fn short_of_time(wall_ms: u64) -> Limits {
    Limits {
        cpu: Duration::from_hours(1),
        wall: Duration::from_millis(wall_ms),
        ..Limits::default()
    }
}

#[test]
fn who_computes_until_the_deadline_was_held_up_by_nobody() {
    let sandbox = sandbox();
    let template = load(&sandbox, &loops(), short_of_time(100));
    let stopped = || run::<_, u32>(&template, "run", ()).outcome.unwrap_err();
    // Other processes may take the processor from one call, but hardly from twenty.
    let on_time = (0..20)
        .map(|_| stopped())
        .find(|stopped| stopped.ended == Ending::Timeout { clock: Clock::Cpu });
    assert_eq!(on_time.unwrap().limit.unwrap().name, "wall_ms");
    assert_unharmed(&sandbox);
}

#[test]
fn a_busy_guest_that_gets_no_processor_times_out_as_infrastructure() {
    let sandbox = sandbox_with(&SandboxConfig {
        instances: Some(16),
        workers: Some(2),
        ..SandboxConfig::default()
    });
    let template = load(&sandbox, &loops(), short_of_time(200));
    let held_up = block_on(async {
        let calls: Vec<_> = (0..16)
            .map(|_| {
                let template = template.clone();
                tokio::spawn(async move {
                    call::<_, u32>(&template, CallSpec::default(), "run", ()).await
                })
            })
            .collect();
        let mut held_up = 0;
        for call in calls {
            let ended = call.await.unwrap().outcome.unwrap_err().ended;
            held_up += usize::from(ended.is_infrastructure());
        }
        held_up
    });
    // Two threads for 200 ms: at most three of the calls can get more than half of that each.
    assert!(held_up >= 13, "{held_up} of 16");
    assert_unharmed(&sandbox);
}

pub(crate) fn sleeper() -> String {
    format!(
        r#"(component {CLOCK}
        (core module $m
            (import "h" "now" (func $now (result i64)))
            (import "h" "subscribe" (func $subscribe (param i64) (result i32)))
            (import "h" "block" (func $block (param i32)))
            (func (export "sleep") (param i64) (result i64)
                (local $before i64)
                (local.set $before (call $now))
                (call $block (call $subscribe (local.get 0)))
                (i64.sub (call $now) (local.get $before)))
            (func (export "watch") (param i64) (result i64)
                (local $until i64)
                (local.set $until (i64.add (call $now) (local.get 0)))
                (loop $again (br_if $again (i64.lt_u (call $now) (local.get $until))))
                (call $now)))
        (core instance $i (instantiate $m (with "h" (instance
            (export "now" (func $now)) (export "subscribe" (func $subscribe)) (export "block" (func $block))))))
        (func (export "sleep") (param "ns" u64) (result u64) (canon lift (core func $i "sleep")))
        (func (export "watch") (param "ns" u64) (result u64) (canon lift (core func $i "watch"))))"#
    )
}

/// A call with a deadline in real time, far shorter than the virtual time that the guest sleeps. A guest that really
/// slept would reach this deadline.
fn within_a_minute() -> CallSpec {
    CallSpec {
        deadline: Some(Instant::now() + Duration::from_mins(1)),
        ..CallSpec::default()
    }
}

#[test]
fn sleeping_takes_virtual_time_only() {
    let sandbox = sandbox();
    let template = load(
        &sandbox,
        &sleeper(),
        Limits {
            wall: Duration::from_hours(1),
            ..Limits::default()
        },
    );
    let hour = 3_599_000_000_000_u64;
    let report = block_on(call::<_, u64>(
        &template,
        within_a_minute(),
        "sleep",
        (hour,),
    ));
    // One reading of the clock after the sleep.
    assert_eq!(report.outcome, Ok(hour + 1_000));
    assert_unharmed(&sandbox);
}

#[test]
fn sleeping_past_the_deadline_is_a_timeout_at_once() {
    let sandbox = sandbox();
    let template = load(
        &sandbox,
        &sleeper(),
        Limits {
            wall: Duration::from_hours(1),
            ..Limits::default()
        },
    );
    for nanoseconds in [3_600_000_000_001_u64, 1_000_000_000_000_000, u64::MAX] {
        let report = block_on(call::<_, u64>(
            &template,
            within_a_minute(),
            "sleep",
            (nanoseconds,),
        ));
        let stopped = report.outcome.unwrap_err();
        assert_eq!(
            stopped.ended,
            Ending::Timeout {
                clock: Clock::Virtual
            }
        );
        assert!(!stopped.ended.is_infrastructure());
        assert_eq!(stopped.limit.unwrap().name, "wall_ms");
    }
    assert_unharmed(&sandbox);
}

#[test]
fn waiting_by_looking_at_the_clock_gets_there() {
    let sandbox = sandbox();
    let template = load(&sandbox, &sleeper(), Limits::default());
    let millisecond = 1_000_000_u64;
    let watched = run::<_, u64>(&template, "watch", (millisecond,))
        .outcome
        .unwrap();
    // The first reading, one for every microsecond, and the last.
    let start = 86_400_000_000_000_u64;
    assert_eq!(watched - start, 1_000 + millisecond + 1_000);
    let stopped = run::<_, u64>(&template, "watch", (60_000 * millisecond,))
        .outcome
        .unwrap_err();
    assert!(
        matches!(
            stopped.ended,
            Ending::Timeout {
                clock: Clock::Virtual | Clock::Cpu
            }
        ),
        "{stopped}"
    );
    assert_unharmed(&sandbox);
}

#[test]
fn a_caller_with_less_time_left_is_obeyed() {
    let sandbox = sandbox();
    let template = load(
        &sandbox,
        &loops(),
        Limits {
            cpu: Duration::from_hours(1),
            ..Limits::default()
        },
    );
    let spec = CallSpec {
        deadline: Some(Instant::now() + Duration::from_millis(30)),
        ..CallSpec::default()
    };
    let report = block_on(call::<_, u32>(&template, spec, "run", ()));
    let stopped = report.outcome.unwrap_err();
    assert_eq!(stopped.ended, Ending::Timeout { clock: Clock::Wall });
    // The caller's limit, not the template's ten seconds.
    let limit = stopped.limit.unwrap();
    assert_eq!(limit.name, "wall_ms");
    assert!(limit.value <= 30, "{limit}");
}

#[test]
fn no_instance_inside_the_deadline_is_unavailable() {
    let sandbox = sandbox_with(&SandboxConfig {
        instances: Some(1),
        ..SandboxConfig::default()
    });
    let template = load(
        &sandbox,
        &loops(),
        Limits {
            cpu: Duration::from_hours(1),
            ..Limits::default()
        },
    );
    block_on(async {
        let holder = tokio::spawn({
            let template = template.clone();
            async move { call::<_, u32>(&template, CallSpec::default(), "run", ()).await }
        });
        while sandbox.in_use().permits == 0 {
            tokio::task::yield_now().await;
        }
        let spec = CallSpec {
            deadline: Some(Instant::now() + Duration::from_millis(20)),
            ..CallSpec::default()
        };
        let stopped = call::<_, u32>(&template, spec, "run", ())
            .await
            .outcome
            .unwrap_err();
        assert_eq!(stopped.ended, Ending::Unavailable);
        assert_eq!(stopped.limit.unwrap().name, "instances");
        holder.abort();
        let _ = holder.await;
    });
}

#[test]
fn a_call_that_began_on_its_callers_thread_is_handed_over_when_it_computes_on() {
    let sandbox = sandbox();
    let text = r#"(component
        (core module $m (func (export "run") (param $n i32) (result i32)
            (loop $l (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
            (i32.const 7)))
        (core instance $i (instantiate $m))
        (func (export "run") (param "n" u32) (result u32) (canon lift (core func $i "run"))))"#;
    let limits = Limits {
        cpu: Duration::from_millis(300),
        ..Limits::default()
    };
    let template = load(&sandbox, text, limits);
    block_on(async {
        for _ in 0..100 {
            let brief = call::<_, u32>(&template, CallSpec::default(), "run", (1_u32,)).await;
            assert_eq!(brief.outcome.unwrap(), 7);
        }
        // One thread for the caller and everything else: 2^32 rounds on it would leave no turn for other tasks.
        let long = tokio::spawn({
            let template = template.clone();
            async move { call::<_, u32>(&template, CallSpec::default(), "run", (0_u32,)).await }
        });
        let mut turns = 0;
        while !long.is_finished() {
            tokio::task::yield_now().await;
            turns += 1;
        }
        let ended = long.await.unwrap().outcome.unwrap_err().ended;
        assert_eq!(ended, Ending::Timeout { clock: Clock::Cpu });
        assert!(turns > 100, "others had {turns} turns while it ran");
    });
    assert_unharmed(&sandbox);
}
