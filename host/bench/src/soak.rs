//! `rlf-bench soak`: makes very many good and bad calls, and checks what remains afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rlf_dialogue::tool::ToolCall;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::registry::Registry;
use rlf_plugins::turn::TurnContext;
use rlf_run::plugins::KINDS;
use rlf_sandbox::{InUse, Limits};
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
use serde_json::{Value, json};

use crate::memory::process_memory;

/// Tools that misbehave, with their share of every 1,000 calls. All other calls compute and behave.
const MISDEEDS: &[(u64, &str)] = &[
    (2, "loop"),
    (5, "sleep"),
    (5, "exhaust_memory"),
    (5, "flood_output"),
    (5, "flood_log"),
    (5, "trap"),
    (5, "panic"),
    (5, "exit"),
    (5, "recurse"),
    (5, "huge_result"),
    (5, "invalid_result"),
];
/// Calls that the caller abandons halfway, out of every 1,000.
const GIVEN_UP: u64 = 10;

pub(super) struct Options<'a> {
    pub(super) plugins: &'a Path,
    /// Directory with the plugin `misbehave`.
    pub(super) misbehaving: &'a Path,
    pub(super) calls: u64,
    pub(super) at_once: usize,
}

pub(super) fn run(options: &Options<'_>) -> anyhow::Result<ExitCode> {
    let sandbox = crate::user_sandbox()?;
    println!("{}\n", sandbox.describe());
    let strict = PluginGrants {
        path: Some(options.misbehaving.join("misbehave")),
        limits: Limits {
            cpu: Duration::from_millis(20),
            memory_bytes: 32 << 20,
            ..Limits::default()
        },
        ..PluginGrants::default()
    };
    let grants_by_name = BTreeMap::from([("misbehave".to_owned(), strict)]);
    let registry =
        Registry::load_where(options.plugins, &grants_by_name, KINDS, &sandbox, |name| {
            matches!(name, "calculator" | "misbehave")
        });
    if let Some(problem) = registry.problems().first() {
        bail!("{problem}");
    }
    let tools = ToolManager::new(
        &registry,
        &ToolManagerConfig {
            max_concurrency: options.at_once.max(1),
            ..ToolManagerConfig::default()
        },
    )?;
    let runtime = rlf_run::runtime()?;
    let next = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let memory = |moment: &str| {
        let resident = resident_bytes().map_or_else(
            || "unknown".into(),
            |bytes| format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        );
        println!("resident memory {moment:<14} {resident}");
    };
    memory("at start");
    let mut wrong = 0;
    for (quarter, moment) in (1..).zip(["a quarter", "halfway", "three quarters", "at the end"]) {
        let until = options.calls / 4 * quarter + options.calls % 4 * u64::from(quarter == 4);
        wrong += runtime.block_on(calls(&tools, &next, until, options.at_once))?;
        memory(moment);
    }
    let elapsed = began.elapsed().as_secs_f64();
    println!(
        "\n{} calls in {elapsed:.0} s, {:.0} calls/s, {} at once",
        options.calls,
        options.calls as f64 / elapsed,
        options.at_once
    );
    for (tool, counts) in tools.counts() {
        if counts.total() == 0 {
            continue;
        }
        println!("{tool:<16} {}", serde_json::to_string(&counts)?);
    }
    let left = runtime.block_on(async {
        // An abandoned call ends within an epoch's tick.
        for _ in 0..1_000 {
            if sandbox.in_use() == InUse::default() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        sandbox.in_use()
    });
    println!("still in use: {}", serde_json::to_string(&left)?);
    println!("wrong answers of well-behaved calls: {wrong}");
    Ok(if left == InUse::default() && wrong == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Makes calls until number `until`, with `at_once` in flight. Returns how many good calls failed.
async fn calls(
    tools: &ToolManager,
    next: &Arc<AtomicU64>,
    until: u64,
    at_once: usize,
) -> anyhow::Result<u64> {
    let callers: Vec<_> = (0..at_once)
        .map(|_| {
            let (tools, next) = (tools.clone(), next.clone());
            tokio::spawn(async move {
                let mut wrong = 0;
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= until {
                        next.fetch_sub(1, Ordering::Relaxed);
                        return wrong;
                    }
                    wrong += u64::from(!one(&tools, number).await);
                }
            })
        })
        .collect();
    let mut wrong = 0;
    for caller in callers {
        wrong += caller.await.context("a caller broke")?;
    }
    Ok(wrong)
}

/// Makes one call, and returns whether it ended as it must.
async fn one(tools: &ToolManager, number: u64) -> bool {
    let draw = mixed(number) % 1_000;
    let mut edge = 0;
    let misdeed = MISDEEDS.iter().find(|(share, _)| {
        edge += share;
        draw < edge
    });
    let (name, arguments) = match misdeed {
        Some((_, name)) => (*name, misdeed_arguments(name)),
        None => ("calculate", json!({"expression": format!("{number}*2+1")})),
    };
    let context = TurnContext {
        trajectory_id: "soak".into(),
        turn: 0,
        seed: number,
    };
    let call = ToolCall {
        call_id: format!("soak/0/{number}"),
        name: name.into(),
        arguments,
    };
    let calling = tools.invoke(vec![call], &context);
    if mixed(number ^ 0x5bd1) % 1_000 < GIVEN_UP {
        let time = Duration::from_micros(mixed(number ^ 0xa5) % 200);
        let _ = tokio::time::timeout(time, calling).await;
        return true;
    }
    let outcomes = calling.await;
    if misdeed.is_some() {
        return true;
    }
    let text = outcomes[0]
        .observation
        .as_ref()
        .map(|seen| rlf_dialogue::message::plain_text(&seen.content));
    text == Some((number * 2 + 1).to_string())
}

fn misdeed_arguments(name: &str) -> Value {
    match name {
        "sleep" => json!({"milliseconds": 3_600_000}),
        "flood_output" | "huge_result" => json!({"bytes": 20_000_000}),
        "flood_log" => json!({"lines": 10_000}),
        "exit" => json!({"code": 3}),
        _ => json!({}),
    }
}

/// Pseudo-random number that decides what a call does. It is the same in every soak.
fn mixed(number: u64) -> u64 {
    rlf_policy::Key::from_value(0).word(number)
}

fn resident_bytes() -> Option<u64> {
    memory_bytes("VmRSS:")
}

/// Reads a line of this process's memory status from the kernel.
pub(super) fn memory_bytes(line: &str) -> Option<u64> {
    process_memory("self", line)
}
