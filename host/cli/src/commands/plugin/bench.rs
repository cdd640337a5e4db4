//! `rlf-host plugin bench`: measures what the calls of a plugin cost on this machine.

use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{Ended, ToolCall};
use rlf_dialogue::trajectory::Trajectory;
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::plugin::Plugin;
use rlf_plugins::turn::TurnContext;
use rlf_rewards::reward::grade_alone;
use rlf_tools::tool_manager::ToolManager;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::call::{arguments, check_tool};
use super::grade::GRADING;
use super::inspect::grouped;
use crate::arguments::Trial;
use crate::display::failure;

/// Number of calls in flight when calls a second are measured.
const AT_ONCE: usize = 32;
/// The process that calls are compared with: one is started for each call.
const PROCESS: &str = "python3 -I -S -c pass";
/// Number of processes started.
const PROCESSES: usize = 20;

/// The work that is measured.
pub(super) enum Work {
    Call { tool: String, arguments: Value },
    Grade(Box<(Task, Trajectory)>),
}

impl Work {
    /// Does the work once, in a fresh instance. An error of the plugin is an error.
    async fn once(
        &self,
        plugin: &Arc<Plugin>,
        manager: &ToolManager,
        number: u64,
    ) -> anyhow::Result<()> {
        match self {
            Self::Call { tool, arguments } => {
                let context = TurnContext {
                    trajectory_id: format!("bench-{number}"),
                    turn: 0,
                    seed: number,
                };
                let call = ToolCall {
                    call_id: format!("bench/{number}"),
                    name: tool.clone(),
                    arguments: arguments.clone(),
                };
                let outcomes = manager.invoke(vec![call], &context).await;
                let outcome = outcomes.first().context("the call gave no outcome")?;
                if outcome.ended != Ended::Ok {
                    let seen = outcome.observation.as_ref();
                    let seen = seen.map(|seen| rlf_dialogue::message::plain_text(&seen.content));
                    let (label, why) = failure(outcome.ended, &seen.unwrap_or_default());
                    bail!("the call of `{tool}` gives no result to measure: {label} {why}");
                }
                Ok(())
            }
            Self::Grade(graded) => {
                let (task, trajectory) = &**graded;
                let graded = grade_alone(plugin, manager, task, trajectory, GRADING).await;
                graded.map_err(|error| anyhow!("`{}` gives no score: {error}", plugin.name()))?;
                Ok(())
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Call { tool, .. } => format!("call of `{tool}`"),
            Self::Grade(_) => "one answer graded".to_owned(),
        }
    }
}

/// Chooses what to measure of `plugin`. The tool's name may be left out if the plugin has only one tool.
pub(super) fn work(plugin: &Plugin, trial: &Trial) -> anyhow::Result<Work> {
    let name = plugin.name();
    if plugin.kind() == PluginKind::Reward && trial.tool.is_none() {
        let graded = trial.graded().with_context(|| {
            format!(
                "`{name}` is a reward: give it something to grade, with --answer and --reference"
            )
        })?;
        return Ok(Work::Grade(Box::new(graded.read()?)));
    }
    if trial.reference.is_some() {
        let kind = plugin.kind().with_article();
        bail!("`{name}` is {kind}; only rewards take --reference");
    }
    let tool = match (&trial.tool, plugin.tools()) {
        (Some(tool), _) => tool,
        (None, [only]) => &only.definition.name,
        (None, []) => bail!(
            "`{name}` is {} and has no tools; only tools and rewards are measured",
            plugin.kind().with_article()
        ),
        (None, _) => bail!("name the tool of `{name}` to call; `plugin inspect {name}` lists them"),
    };
    check_tool(plugin, tool)?;
    Ok(Work::Call {
        tool: tool.clone(),
        arguments: arguments(&trial.arguments)?,
    })
}

/// The median and the 99th percentile of some times.
struct Times {
    count: usize,
    p50: Duration,
    p99: Duration,
}

impl Times {
    /// Computes the figures of `times`, which must not be empty.
    fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
        Self {
            count: times.len(),
            p50: at(50),
            p99: at(99),
        }
    }
}

pub(super) fn run(
    plugin: &Arc<Plugin>,
    manager: &ToolManager,
    work: Work,
    time: Duration,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let runtime = crate::commands::runtime()?;
    let work = Arc::new(work);
    let alone = runtime.block_on(one_after_another(plugin, manager, &work, time))?;
    let per_second = runtime.block_on(at_once(plugin, manager, &work, time))?;
    let instance = runtime
        .block_on(
            plugin
                .template()
                .instance_cost(time.min(Duration::from_millis(500))),
        )
        .map_err(|stopped| anyhow!("a fresh instance: {stopped}"))?;
    let process = processes();
    if as_json {
        let report = json!({
            "calls": alone.count,
            "p50_us": us(alone.p50),
            "p99_us": us(alone.p99),
            "instance_p50_us": us(instance.median),
            "at_once": AT_ONCE,
            "calls_per_second": per_second,
            "process": PROCESS,
            "process_p50_us": process.as_ref().map(|process| us(process.p50)),
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    let name = work.name();
    let rarest = format!("{name}, 99th percentile");
    let width = rarest.chars().count().max(34);
    let row = |what: &str, time: Duration, more: &str| {
        let line = format!("{what:<width$} {:>10.1} us  {more}", us(time));
        say!("{}", line.trim_end());
    };
    row(
        &format!("{name}, median"),
        alone.p50,
        &format!("({} calls, one after another)", grouped(alone.count as u64)),
    );
    row(&rarest, alone.p99, "");
    row(
        "a fresh instance of it, median",
        instance.median,
        &format!("({} instances)", grouped(instance.measured as u64)),
    );
    say!(
        "{:<width$} {:>10}     a second",
        format!("{AT_ONCE} at once"),
        grouped(per_second.round() as u64)
    );
    if let Some(process) = process {
        row(
            &format!("a process: {PROCESS}"),
            process.p50,
            &format!(
                "({:.1} times the call)",
                process.p50.as_secs_f64() / alone.p50.as_secs_f64()
            ),
        );
    } else {
        say!("there is no python3 to compare with");
    }
    Ok(ExitCode::SUCCESS)
}

fn us(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

async fn one_after_another(
    plugin: &Arc<Plugin>,
    manager: &ToolManager,
    work: &Work,
    time: Duration,
) -> anyhow::Result<Times> {
    let (began, mut times) = (Instant::now(), Vec::new());
    while times.is_empty() || began.elapsed() < time {
        let one = Instant::now();
        work.once(plugin, manager, times.len() as u64).await?;
        times.push(one.elapsed());
    }
    Ok(Times::new(times))
}

/// Calls a second, with [`AT_ONCE`] of them in flight.
async fn at_once(
    plugin: &Arc<Plugin>,
    manager: &ToolManager,
    work: &Arc<Work>,
    time: Duration,
) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..AT_ONCE as u64 {
        let (plugin, manager, work) = (Arc::clone(plugin), manager.clone(), Arc::clone(work));
        callers.spawn(async move {
            let mut calls = 0_u64;
            while calls == 0 || began.elapsed() < time {
                work.once(&plugin, &manager, caller << 32 | calls).await?;
                calls += 1;
            }
            anyhow::Ok(calls)
        });
    }
    let mut calls = 0;
    while let Some(caller) = callers.join_next().await {
        calls += caller.context("a caller failed")??;
    }
    Ok(calls as f64 / began.elapsed().as_secs_f64())
}

/// Times from the start of a process to its end; `None` if there is no python3.
fn processes() -> Option<Times> {
    // The command may be a script that chooses a version, and slower than python3 itself.
    let found = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output();
    let python = String::from_utf8(found.ok()?.stdout).ok()?;
    let times = (0..PROCESSES).map(|_| {
        let began = Instant::now();
        let status = Command::new(python.trim())
            .args(PROCESS.split(' ').skip(1))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.ok()?.success().then(|| began.elapsed())
    });
    Some(Times::new(times.collect::<Option<_>>()?))
}
