//! A call starts when there is a place and memory for it. Otherwise it waits until its deadline at most, and never
//! waits for a call that waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rlf_sandbox::{
    BoxFuture, CallReport, CallSpec, Caller, Clock, Ending, InUse, LEVELS, Limits, Pool, Sandbox,
    SandboxConfig, Stopped, Template,
};

use tokio::sync::Barrier;

use crate::guest::{
    Load, assert_unharmed, block_on, call, component, load, sandbox_with, try_load,
};

/// Computes until it is stopped.
const BUSY: &str = r#"(component
    (core module $m (func (export "run") (result i32) (loop $l (br $l)) (unreachable)))
    (core instance $i (instantiate $m))
    (func (export "run") (result u32) (canon lift (core func $i "run"))))"#;

async fn run(template: &Template, spec: CallSpec) -> CallReport<u32> {
    call(template, spec, "run", ()).await
}

/// Waits until abandoned calls have ended, and checks that nothing remains.
async fn settled(sandbox: &Sandbox) {
    while sandbox.in_use() != InUse::default() {
        tokio::task::yield_now().await;
    }
}

fn limits(cpu_ms: u64, wall_ms: u64, memory_bytes: u64) -> Limits {
    Limits {
        cpu: Duration::from_millis(cpu_ms),
        wall: Duration::from_millis(wall_ms),
        memory_bytes,
        ..Limits::default()
    }
}

#[test]
fn a_call_without_room_is_unavailable_and_says_which_budget_was_full() {
    const MIB: u64 = 1 << 20;
    let sandbox = sandbox_with(&SandboxConfig {
        instances: Some(4),
        // Half of it is for calls of the host: one of 256 MiB.
        memory_budget_bytes: Some(512 * MIB),
        max_memory_bytes: 256 * MIB,
        ..SandboxConfig::default()
    });
    let large = load(&sandbox, BUSY, limits(5_000, 10_000, 256 * MIB));
    block_on(async {
        let caller = as_caller(&large).await;
        let holder = tokio::spawn({
            let large = large.clone();
            async move { run(&large, CallSpec::default()).await }
        });
        while sandbox.in_use().memory_bytes == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(sandbox.in_use().memory_bytes, 256 * MIB);
        let spec = CallSpec {
            limits: Some(limits(5_000, 50, 256 * MIB)),
            ..CallSpec::default()
        };
        let stopped = run(&large, spec.clone()).await.outcome.unwrap_err();
        assert_eq!(stopped.ended, Ending::Unavailable);
        let limit = stopped.limit.unwrap();
        assert_eq!(
            (limit.name.as_str(), limit.value),
            ("memory_budget_bytes", 256 * MIB)
        );
        assert_eq!(limit.used, 512 * MIB);

        // A call made by a guest uses memory of its own level.
        let nested = CallSpec {
            caller: Some(caller),
            limits: Some(limits(20, 5_000, 128 * MIB)),
            ..spec
        };
        let ended = run(&large, nested).await.outcome.unwrap_err().ended;
        assert_eq!(ended, Ending::Timeout { clock: Clock::Cpu });
        holder.abort();
        let _ = holder.await;
        settled(&sandbox).await;
    });
    assert_unharmed(&sandbox);
}

#[test]
fn programs_have_places_of_their_own() {
    const MIB: u64 = 1 << 20;
    let sandbox = sandbox_with(&SandboxConfig {
        instances: Some(1),
        programs: Some(1),
        max_memory_bytes: 128 * MIB,
        program_memory_budget_bytes: Some(128 * MIB),
        ..SandboxConfig::default()
    });
    let limits = limits(30, 5_000, 128 * MIB);
    let tool = load(&sandbox, BUSY, limits.clone());
    let program = try_load(
        &sandbox,
        &component(BUSY),
        &Load {
            limits: limits.clone(),
            pool: Pool::Programs,
            ..Load::default()
        },
    )
    .unwrap();
    block_on(async {
        let caller = as_caller(&tool).await;
        // The only place for calls is taken, and so is the only place for programs.
        let long = CallSpec {
            limits: Some(Limits {
                cpu: Duration::from_secs(5),
                ..limits.clone()
            }),
            ..CallSpec::default()
        };
        let hold = |template: &Template| {
            let (template, long) = (template.clone(), long.clone());
            tokio::spawn(async move { run(&template, long).await })
        };
        let busy_tool = hold(&tool);
        while sandbox.in_use().permits < 1 {
            tokio::task::yield_now().await;
        }
        // At any depth of its caller, a program takes a place among programs.
        let nested = CallSpec {
            caller: Some(caller),
            ..CallSpec::default()
        };
        for spec in [CallSpec::default(), nested] {
            let ended = run(&program, spec).await.outcome.unwrap_err().ended;
            assert_eq!(ended, Ending::Timeout { clock: Clock::Cpu });
        }
        let busy_program = hold(&program);
        while sandbox.in_use().permits < 2 {
            tokio::task::yield_now().await;
        }
        let late = CallSpec {
            deadline: Some(std::time::Instant::now() + Duration::from_millis(50)),
            ..CallSpec::default()
        };
        let stopped = run(&program, late).await.outcome.unwrap_err();
        assert_eq!(stopped.ended, Ending::Unavailable);
        assert_eq!(stopped.limit.unwrap().name, "instances");
        for busy in [busy_tool, busy_program] {
            busy.abort();
            let _ = busy.await;
        }
        settled(&sandbox).await;
    });
    assert_unharmed(&sandbox);
}

/// A caller that has used no CPU time.
async fn as_caller(template: &Template) -> Caller {
    let report = template
        .call(CallSpec::default(), |store, _| {
            let caller = store.data().as_caller();
            Box::pin(async move { Ok(caller) })
        })
        .await;
    report.outcome.expect("it does nothing")
}

/// Nests `depth` calls, as tools that call tools. Each level is entered while the one above still holds its place.
fn nest(
    template: Template,
    caller: Option<Caller>,
    depth: usize,
) -> BoxFuture<'static, Result<usize, Stopped>> {
    Box::pin(async move {
        if depth == 0 {
            return Ok(0);
        }
        let spec = CallSpec {
            caller,
            ..CallSpec::default()
        };
        let inner = template.clone();
        let report = template
            .call(spec, move |store, _| {
                let caller = store.data().as_caller();
                Box::pin(async move { Ok(nest(inner, Some(caller), depth - 1).await) })
            })
            .await;
        report.outcome?.map(|deeper| deeper + 1)
    })
}

#[test]
fn calls_that_all_nest_as_deep_as_they_may_all_end() {
    let sandbox = sandbox_with(&SandboxConfig {
        instances: Some(4),
        ..SandboxConfig::default()
    });
    let template = load(&sandbox, BUSY, limits(2, 60_000, 8 << 20));
    // Twice as many calls as places.
    block_on(async {
        let callers: Vec<_> = (0..8)
            .map(|_| tokio::spawn(nest(template.clone(), None, LEVELS)))
            .collect();
        for caller in callers {
            assert_eq!(caller.await.unwrap(), Ok(LEVELS));
        }
        settled(&sandbox).await;
    });
    assert_unharmed(&sandbox);
}

#[test]
fn calls_nest_no_deeper_than_the_levels_there_are() {
    let sandbox = sandbox_with(&SandboxConfig {
        instances: Some(2),
        ..SandboxConfig::default()
    });
    let template = load(&sandbox, BUSY, limits(5, 10_000, 1 << 20));
    let stopped = block_on(nest(template, None, LEVELS + 1)).unwrap_err();
    assert_eq!(stopped.ended, Ending::Denied);
    let limit = stopped.limit.unwrap();
    assert_eq!((limit.name.as_str(), limit.used), ("nesting", 4));
    assert_unharmed(&sandbox);
}

/// Makes six calls at once from one call with so much memory for them. Each waits for one other to run beside it. Returns how
/// they ended, and how many ran at once.
fn calls_side_by_side(nested_bytes: u64) -> (Vec<Result<(), Stopped>>, usize) {
    let sandbox = sandbox_with(&SandboxConfig::default());
    let template = load(&sandbox, BUSY, limits(1_000, 10_000, 8 << 20));
    let of_caller = Limits {
        nested_bytes,
        ..limits(1_000, 10_000, 8 << 20)
    };
    let spec = CallSpec {
        limits: Some(of_caller),
        ..CallSpec::default()
    };
    let most = Arc::new(AtomicUsize::new(0));
    let (inner, seen) = (template.clone(), Arc::clone(&most));
    let report = block_on(template.call(spec, move |store, _| {
        let caller = store.data().as_caller();
        let (pairs, running) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
        Box::pin(async move {
            let calls = (0..6).map(|_| {
                let spec = CallSpec {
                    caller: Some(caller.clone()),
                    ..CallSpec::default()
                };
                let (pairs, running, most) = (pairs.clone(), running.clone(), seen.clone());
                let inner = inner.clone();
                tokio::spawn(async move {
                    let call = inner.call(spec, move |_, _| {
                        Box::pin(async move {
                            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            pairs.wait().await;
                            running.fetch_sub(1, Ordering::SeqCst);
                            Ok(())
                        })
                    });
                    call.await.outcome
                })
            });
            let calls: Vec<_> = calls.collect();
            let mut ends = Vec::new();
            for call in calls {
                ends.push(call.await?);
            }
            Ok(ends)
        })
    }));
    let ends = report.outcome.expect("the caller itself ends well");
    assert_unharmed(&sandbox);
    (ends, most.load(Ordering::SeqCst))
}

#[test]
fn calls_of_a_call_run_side_by_side_as_far_as_its_memory_for_calls_goes() {
    // A call needs 8 MiB, its output and its result.
    let (ends, most) = calls_side_by_side(20 << 20);
    assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    assert_eq!(most, 2);
    let (ends, _) = calls_side_by_side(8 << 20);
    for end in ends {
        let stopped = end.unwrap_err();
        assert_eq!(stopped.ended, Ending::Denied);
        assert_eq!(stopped.limit.unwrap().name, "nested_bytes");
    }
}

#[test]
fn what_the_calls_of_a_call_compute_is_charged_to_it_and_they_end_when_it_does() {
    let sandbox = sandbox_with(&SandboxConfig::default());
    let busy = load(&sandbox, BUSY, limits(60_000, 60_000, 8 << 20));
    // Callers with little CPU time or little wall-clock time left.
    let with = |limits: Limits| CallSpec {
        limits: Some(limits),
        ..CallSpec::default()
    };
    let nested = |limits| {
        let (outer, inner) = (busy.clone(), busy.clone());
        block_on(async move {
            let report = outer
                .call(with(limits), move |store, _| {
                    let spec = CallSpec {
                        caller: Some(store.data().as_caller()),
                        ..CallSpec::default()
                    };
                    Box::pin(async move { Ok(run(&inner, spec).await.outcome.unwrap_err()) })
                })
                .await;
            report.outcome
        })
    };
    let stopped = nested(limits(30, 60_000, 8 << 20)).expect("the caller is told");
    assert_eq!(stopped.ended, Ending::Timeout { clock: Clock::Cpu });
    let limit = stopped.limit.unwrap();
    assert_eq!((limit.name.as_str(), limit.value), ("cpu_ms", 30));
    let stopped = nested(limits(60_000, 50, 8 << 20));
    assert!(
        matches!(
            stopped
                .as_ref()
                .map_or_else(|outer| outer.ended, |inner| inner.ended),
            Ending::Timeout {
                clock: Clock::Cpu | Clock::Wall | Clock::Host
            }
        ),
        "{stopped:?}"
    );
    block_on(settled(&sandbox));
    assert_unharmed(&sandbox);
}

#[test]
fn many_calls_too_short_to_be_interrupted_do_not_outlast_their_callers_budget() {
    let sandbox = sandbox_with(&SandboxConfig::default());
    let busy = load(&sandbox, BUSY, limits(1, 60_000, 8 << 20));
    let spec = CallSpec {
        limits: Some(limits(50, 60_000, 8 << 20)),
        ..CallSpec::default()
    };
    let inner = busy.clone();
    let refused = block_on(busy.call(spec, move |store, _| {
        let caller = store.data().as_caller();
        Box::pin(async move {
            for number in 0..1_000 {
                let spec = CallSpec {
                    caller: Some(caller.clone()),
                    ..CallSpec::default()
                };
                let limit = run(&inner, spec).await.outcome.unwrap_err().limit;
                if limit.is_some_and(|limit| limit.value == 50) {
                    return Ok(number);
                }
            }
            Ok(1_000)
        })
    }));
    let number = refused.outcome.expect("the caller itself does nothing");
    assert!(
        (1..=51).contains(&number),
        "{number} calls of 1 ms and more"
    );
    block_on(settled(&sandbox));
    assert_unharmed(&sandbox);
}
