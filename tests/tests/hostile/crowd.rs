//! Ten thousand calls at once, half of them cancelled at any moment, leave nothing behind.

use std::sync::Arc;

use rlf_dialogue::tool::{CallOutcome, Ended, Fault};
use rlf_plugins::counters::CallCounts;
use serde_json::{Value, json};

use crate::test_host::{Plan, TestHost, call, observed, turn};

/// A tool, its arguments, how its calls end, and its share of a hundred calls.
fn kinds() -> [(&'static str, Value, Ended, usize); 7] {
    [
        ("calculate", json!({"expression": "6*7"}), Ended::Ok, 50),
        ("echo", json!({"text": "x"}), Ended::Ok, 20),
        ("sleep", json!({"milliseconds": 5_000}), Ended::Ok, 10),
        ("panic", json!({}), Ended::Trap, 8),
        ("exit", json!({"code": 0}), Ended::Exited, 6),
        ("flood_output", json!({"bytes": 100_000}), Ended::Ok, 5),
        ("loop", json!({}), Ended::Timeout, 1),
    ]
}

/// A pseudo-random sequence, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

async fn one(host: &TestHost, tool: &str, arguments: Value) -> CallOutcome {
    host.tools
        .invoke(vec![call(tool, arguments)], &turn())
        .await
        .remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_with_thousands_of_them_given_up_leave_nothing() {
    // Deadlines far beyond the time needed, so that every call that is not cancelled ends as its kind does.
    let grants = "[misbehave]\nmax_concurrency = 10000\nlimits.wall_ms = 300000\nlimits.cpu_ms = 20\nlimits.memory_bytes = 8388608\n";
    let plan = Plan::new().guest("misbehave").instances(24);
    let host = Arc::new(plan.grants(grants).open());
    // The neighbour is part of the crowd here, and waits for its turn like the others.
    let kinds = kinds();
    let mut chance = Chance(1);
    let mut running = Vec::new();
    for _ in 0..10_000 {
        let mut lot = chance.below(100);
        let kind = kinds.iter().position(|(.., share)| {
            let found = lot < *share;
            lot = lot.saturating_sub(*share);
            found
        });
        let kind = kind.expect("shares sum to a hundred");
        let (tool, arguments, ..) = kinds[kind].clone();
        let own = Arc::clone(&host);
        running.push(Some((
            kind,
            tokio::spawn(async move { one(&own, tool, arguments).await }),
        )));
    }
    // Calls are cancelled one by one in any order, while others wait, are instantiated, run and end.
    for _ in 0..5_000 {
        let index = chance.below(running.len());
        if let Some((_, task)) = &running[index] {
            task.abort();
        }
        for _ in 0..chance.below(4) {
            tokio::task::yield_now().await;
        }
    }
    let (mut ended, mut given_up) = (0_u64, 0);
    for (kind, task) in running.iter_mut().filter_map(Option::take) {
        match task.await {
            Ok(outcome) => {
                let (tool, _, expected, _) = &kinds[kind];
                // The crowd may exceed a deadline; nothing else may differ.
                let late = *tool == "calculate" && outcome.fault == Fault::Infrastructure;
                assert!(outcome.ended == *expected || late, "{tool}: {outcome:?}");
                assert!(
                    *tool != "calculate" || late || observed(&outcome) == "42",
                    "{outcome:?}"
                );
                ended += 1;
            }
            Err(error) => {
                assert!(error.is_cancelled(), "{error}");
                given_up += 1;
            }
        }
    }
    assert!(
        given_up > 1_000 && ended > 1_000,
        "{given_up} given up, {ended} ended"
    );
    host.settle().await;
    // Cancelled calls are not counted; all others are.
    let counted: u64 = host.tools.counts().values().map(CallCounts::total).sum();
    assert_eq!(counted, ended);
    host.call_neighbour().await;
}

#[tokio::test]
async fn places_of_a_tool_come_back_from_calls_that_were_given_up() {
    let grants =
        "[misbehave]\nmax_concurrency = 2\nlimits.wall_ms = 60000\nlimits.cpu_ms = 60000\n";
    let host = Plan::new().guest("misbehave").grants(grants).open();
    for polls in 0..40 {
        let context = turn();
        let calls = (0..8).map(|_| call("loop", json!({}))).collect();
        let mut hopeless = std::pin::pin!(host.tools.invoke(calls, &context));
        for _ in 0..polls {
            // The future is polled once and never awaited.
            let once = std::future::poll_fn(|cx| {
                assert!(hopeless.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(())
            });
            once.await;
            tokio::task::yield_now().await;
        }
    }
    host.settle().await;
    let calls = (0..2).map(|_| call("echo", json!({"text": "x"}))).collect();
    for outcome in host.attack(calls).await {
        assert_eq!(outcome.ended, Ended::Ok, "{outcome:?}");
    }
    assert_eq!(host.tools.counts()["loop"].total(), 0);
}
