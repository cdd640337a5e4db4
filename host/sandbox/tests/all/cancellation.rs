//! Dropping a call's future stops its guest and returns all resources.

use std::time::Duration;

use crate::guest::{assert_unharmed, block_on, call, load, plain, sandbox};
use rlf_sandbox::{CallSpec, InUse, Limits, Sandbox};

fn endless(sandbox: &Sandbox) -> rlf_sandbox::Template {
    let text = plain(
        r#"(memory 1) (table 10 funcref) (func (export "run") (result i32) (loop $again (br $again)) unreachable)"#,
        r#"(func (export "run") (result u32) (canon lift (core func $i "run")))"#,
    );
    let limits = Limits {
        cpu: Duration::from_hours(1),
        wall: Duration::from_hours(1),
        ..Limits::default()
    };
    load(sandbox, &text, limits)
}

async fn settled(sandbox: &Sandbox) {
    while sandbox.in_use() != InUse::default() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_dropped_call_gives_back_its_instance_and_permit() {
    let sandbox = sandbox();
    let template = endless(&sandbox);
    block_on(async {
        let running = tokio::spawn({
            let template = template.clone();
            async move { call::<_, u32>(&template, CallSpec::default(), "run", ()).await }
        });
        while sandbox.in_use().component_instances == 0 {
            tokio::task::yield_now().await;
        }
        running.abort();
        settled(&sandbox).await;
    });
    assert_unharmed(&sandbox);
}

#[test]
fn calls_dropped_while_queued_or_instantiating_leave_nothing() {
    let sandbox = sandbox();
    let template = endless(&sandbox);
    block_on(async {
        // More calls than instances; each is dropped at a different moment of its life.
        for polls in 0..64 {
            let calls: Vec<_> = (0..16)
                .map(|_| {
                    let template = template.clone();
                    tokio::spawn(async move {
                        call::<_, u32>(&template, CallSpec::default(), "run", ()).await
                    })
                })
                .collect();
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
            for call in calls {
                call.abort();
            }
            settled(&sandbox).await;
        }
    });
    assert_unharmed(&sandbox);
}

#[test]
fn a_sandbox_may_be_dropped_by_an_async_task_while_guests_run() {
    block_on(async {
        let sandbox = sandbox();
        let template = endless(&sandbox);
        let running =
            tokio::spawn(
                async move { call::<_, u32>(&template, CallSpec::default(), "run", ()).await },
            );
        while sandbox.in_use().component_instances == 0 {
            tokio::task::yield_now().await;
        }
        drop(sandbox);
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
    });
}
