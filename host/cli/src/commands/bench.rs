//! `rlf-host bench`: measures the speed of this machine in a few seconds.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use candle_core::Device;
use rlf_dialogue::tool::{Ended, ToolCall};
use rlf_plugins::turn::TurnContext;
use rlf_policy::measure::{decode_together, quickstart_shape};
use rlf_policy::{Decoder, Model, PAGE_TOKENS, Purpose, Sampler, SamplingParams, cpu_facts};
use rlf_sandbox::SandboxConfig;
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
use serde_json::json;
use tokio::task::JoinSet;

use crate::arguments::Bench;
use crate::plugins::sources;
use crate::progress::Progress;

/// Time spent on each figure.
const TIME: Duration = Duration::from_secs(2);
/// Number of trajectories that the policy decodes together.
const BATCH: usize = 64;
/// Number of tokens decoded for each trajectory.
const NEW_TOKENS: usize = 64;
/// The tool that the calls go to.
const TOOL: &str = "calculate";

pub(crate) fn run(options: &Bench) -> anyhow::Result<ExitCode> {
    let workers = options.workers.unwrap_or_else(|| cpu_facts().threads);
    let tokens = tokens_per_second(workers)?;
    say!(
        "policy of the quickstart: {tokens:>8.0} tokens/s decoded, {BATCH} trajectories together, {workers} threads"
    );
    let tools = calculator(options)?;
    let runtime = super::runtime()?;
    for at_once in [1, 32] {
        let calls = runtime.block_on(calls_per_second(&tools, at_once))?;
        say!(
            "sandbox:                  {calls:>8.0} calls/s of `{TOOL}` in fresh instances, {at_once} at once"
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn tokens_per_second(workers: usize) -> anyhow::Result<f64> {
    let model = Model::init(&quickstart_shape(), 0, &Device::Cpu)?;
    let sampler = Sampler::new(SamplingParams::default(), 0, Purpose::Test)?;
    let cache = BATCH * NEW_TOKENS.next_multiple_of(PAGE_TOKENS);
    let mut decoder = Decoder::new(&model, cache, NEW_TOKENS, workers)?;
    let prompts = vec![vec![1_u32]; BATCH];
    let (began, mut tokens) = (Instant::now(), 0);
    while began.elapsed() < TIME {
        decode_together(&model, &mut decoder, &sampler, &prompts, NEW_TOKENS)?;
        tokens += BATCH * NEW_TOKENS;
    }
    Ok(tokens as f64 / began.elapsed().as_secs_f64())
}

/// Loads the calculator plugin.
fn calculator(options: &Bench) -> anyhow::Result<ToolManager> {
    let sources = sources(&options.plugins.plugins)?;
    let sandbox = sources.sandbox(&SandboxConfig::default())?;
    let wanted = |name: &str| name == "calculator";
    let registry = sources.load_where(&[].into(), &sandbox, &Progress::new(), wanted);
    if let Some(problem) = registry.problems().first() {
        bail!("{problem}");
    }
    ensure!(
        !registry.plugins().is_empty(),
        "{} has no calculator; build the plugins with `cargo xtask plugins`, or name another directory with --plugins",
        sources.display()
    );
    Ok(ToolManager::new(&registry, &ToolManagerConfig::default())?)
}

/// Calls the calculator repeatedly, with `at_once` calls in flight.
async fn calls_per_second(tools: &ToolManager, at_once: usize) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..at_once {
        let tools = tools.clone();
        callers.spawn(async move {
            let context = TurnContext {
                trajectory_id: format!("bench/{caller}"),
                turn: 0,
                seed: 0,
            };
            let mut calls = 0_u64;
            while began.elapsed() < TIME {
                let call = ToolCall {
                    call_id: format!("bench/{caller}/{calls}"),
                    name: TOOL.to_owned(),
                    arguments: json!({"expression": "1+1"}),
                };
                let outcomes = tools.invoke(vec![call], &context).await;
                let ended = outcomes.first().map(|outcome| outcome.ended);
                ensure!(ended == Some(Ended::Ok), "a call of `{TOOL}` failed");
                calls += 1;
            }
            Ok(calls)
        });
    }
    let mut calls = 0;
    while let Some(caller) = callers.join_next().await {
        calls += caller.context("a caller failed")??;
    }
    Ok(calls as f64 / began.elapsed().as_secs_f64())
}
