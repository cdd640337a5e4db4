//! A call gets in where there is a place and memory for it, waits inside its deadline where there is
//! not, and never waits for a call that waits for it.

use std::time::Duration;

use rlf_sandbox::{
    BoxFuture, CallReport, CallSpec, Clock, Ended, InUse, LEVELS, Limits, Sandbox, SandboxConfig,
    Template,
};

use crate::guest::{assert_unharmed, block_on, call, load, sandbox_with};

/// Computes until it is stopped.
const BUSY: &str = r#"(component
    (core module $m (func (export "run") (result i32) (loop $l (br $l)) (unreachable)))
    (core instance $i (instantiate $m))
    (func (export "run") (result u32) (canon lift (core func $i "run"))))"#;

async fn run(template: &Template, spec: CallSpec) -> CallReport<u32> {
    call(template, spec, "run", ()).await
}

/// Waits until what was given up is over, and sees that nothing of it is left.
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
        // Half of it for calls of the host's: one of 256 MiB.
        memory_budget_bytes: Some(512 * MIB),
        ..SandboxConfig::default()
    });
    let large = load(&sandbox, BUSY, limits(5_000, 10_000, 256 * MIB));
    block_on(async {
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
        assert_eq!(stopped.ended, Ended::Unavailable);
        let limit = stopped.limit.unwrap();
        assert_eq!(
            (limit.name.as_str(), limit.value),
            ("memory_budget_bytes", 256 * MIB)
        );
        assert_eq!(limit.used, 512 * MIB);

        // A call that a guest makes has memory of its own level.
        let nested = CallSpec { depth: 1, ..spec };
        let nested = CallSpec {
            limits: Some(limits(20, 5_000, 128 * MIB)),
            ..nested
        };
        let ended = run(&large, nested).await.outcome.unwrap_err().ended;
        assert_eq!(ended, Ended::Timeout { clock: Clock::Cpu });
        holder.abort();
        let _ = holder.await;
        settled(&sandbox).await;
    });
    assert_unharmed(&sandbox);
}

/// Each level is entered while the one above it still holds its place: as a tool that calls a tool.
fn nest(template: Template, depth: usize) -> BoxFuture<'static, usize> {
    Box::pin(async move {
        if depth == LEVELS {
            return 0;
        }
        let spec = CallSpec {
            depth,
            ..CallSpec::default()
        };
        let inner = template.clone();
        let report = template
            .call(spec, move |_, _| {
                Box::pin(async move { Ok(nest(inner, depth + 1).await) })
            })
            .await;
        report.outcome.expect("somebody can always go on") + 1
    })
}

#[test]
fn calls_that_all_nest_as_deep_as_they_may_all_end() {
    let sandbox = sandbox_with(&SandboxConfig {
        instances: Some(4),
        ..SandboxConfig::default()
    });
    let template = load(&sandbox, BUSY, limits(2, 60_000, 8 << 20));
    // Twice as many as there are places.
    block_on(async {
        let callers: Vec<_> = (0..8)
            .map(|_| tokio::spawn(nest(template.clone(), 0)))
            .collect();
        for caller in callers {
            assert_eq!(caller.await.unwrap(), LEVELS);
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
    let template = load(&sandbox, BUSY, limits(5, 1_000, 1 << 20));
    let spec = CallSpec {
        depth: LEVELS,
        ..CallSpec::default()
    };
    let stopped = block_on(run(&template, spec)).outcome.unwrap_err();
    assert_eq!(stopped.ended, Ended::Denied);
    assert_eq!(stopped.limit.unwrap().name, "nesting");
    assert_unharmed(&sandbox);
}
