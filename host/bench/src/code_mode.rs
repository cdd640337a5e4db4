//! Calls of a tool from inside a program: code mode.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rlf_dialogue::tool::{Ended, ToolCall};
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::registry::Registry;
use rlf_plugins::turn::TurnContext;
use rlf_run::plugins::KINDS;
use rlf_sandbox::Sandbox;
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
use serde_json::json;

/// Number of calls that one program makes.
const CALLS: u32 = 5_000;

/// Measures programs in Python that call `calculate`, one call after the other. Returns the seconds of one call, once for
/// each program: the time of a program, less that of one that makes no call. None if there is no Python interpreter.
pub(crate) async fn seconds_per_call(
    plugins: &Path,
    sandbox: &Sandbox,
    time: Duration,
) -> anyhow::Result<Option<Vec<f64>>> {
    let mut python = PluginGrants::default();
    python.programs.tools = vec!["calculate".to_owned()];
    python.limits.nested_calls = CALLS;
    let grants = [("python".to_owned(), python)].into();
    let registry = Registry::load_where(plugins, &grants, KINDS, sandbox, |name| {
        matches!(name, "calculator" | "python")
    });
    if let Some(problem) = registry.problems().first() {
        bail!("{problem}");
    }
    if registry.plugins().len() < 2 {
        return Ok(None);
    }
    let tools = ToolManager::new(&registry, &ToolManagerConfig::default())?;
    let began = Instant::now();
    let mut seconds = Vec::new();
    while seconds.len() < 2 || began.elapsed() < time {
        let without = program(&tools, 0).await?;
        let with = program(&tools, CALLS).await?;
        seconds.push((with.as_secs_f64() - without.as_secs_f64()) / f64::from(CALLS));
    }
    // The first programs also warm up.
    Ok(Some(seconds.split_off(1)))
}

/// Runs a program that makes this number of calls, and returns the time it took.
async fn program(tools: &ToolManager, calls: u32) -> anyhow::Result<Duration> {
    let code =
        format!("from tools import calculate\nfor _ in range({calls}):\n    calculate('1+1')\n");
    let call = ToolCall {
        call_id: "bench/0".to_owned(),
        name: "python".to_owned(),
        arguments: json!({ "code": code }),
    };
    let context = TurnContext {
        trajectory_id: "bench".to_owned(),
        turn: 0,
        seed: 0,
    };
    let started = Instant::now();
    let outcome = tools.invoke(vec![call], &context).await.pop();
    let elapsed = started.elapsed();
    let outcome = outcome.context("the program has no outcome")?;
    ensure!(
        outcome.ended == Ended::Ok,
        "the program ended as {}: {:?}",
        outcome.ended.as_str(),
        outcome.observation
    );
    Ok(elapsed)
}
