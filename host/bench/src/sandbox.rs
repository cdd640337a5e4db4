//! `rlf-bench sandbox`: the cost of a tool call, compared with other common ways to run tools.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rlf_dialogue::tool::{Ended, ToolCall};
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::plugin::Plugin;
use rlf_plugins::registry::Registry;
use rlf_plugins::turn::TurnContext;
use rlf_run::plugins::KINDS;
use rlf_sandbox::{Sandbox, SandboxConfig, prepare_process};
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::code_mode;
use crate::instance::{warm as warm_calls, while_held};
use crate::interruption;
use crate::soak::memory_bytes;

/// Number of passages in the corpus that is generated if none is given.
const PASSAGES: usize = 2_000;
/// Numbers of calls in flight.
const AT_ONCE: [usize; 3] = [1, 32, 256];

/// Options from the command line.
pub(super) struct Options<'a> {
    pub(super) plugins: &'a Path,
    /// Python interpreter with the package `mcp`.
    pub(super) python: Option<&'a Path>,
    /// Corpus of the search tool, instead of a generated one.
    pub(super) corpus: Option<&'a Path>,
    /// Time spent on each figure.
    pub(super) time: Duration,
}

/// Measured times of calls.
struct Samples {
    seconds: Vec<f64>,
    calls_per_s: f64,
}

impl Samples {
    fn new(mut seconds: Vec<f64>, elapsed: f64) -> Self {
        seconds.sort_by(f64::total_cmp);
        Self {
            calls_per_s: seconds.len() as f64 / elapsed,
            seconds,
        }
    }

    /// The given quantile, in microseconds.
    fn at(&self, part: f64) -> f64 {
        let last = self.seconds.len().saturating_sub(1) as f64;
        self.seconds
            .get((last * part) as usize)
            .map_or(f64::NAN, |seconds| seconds * 1e6)
    }
}

pub(super) fn run(options: &Options<'_>) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let made_up = folder.path().join("corpus.jsonl");
    let corpus = if let Some(corpus) = options.corpus {
        corpus
    } else {
        std::fs::write(&made_up, passages()).context("cannot write a corpus")?;
        &made_up
    };
    let config = SandboxConfig {
        cache: Some(folder.path().join("cache")),
        preparer: Some(prepare_process::this_program()),
        ..SandboxConfig::default()
    };
    let sandbox = Sandbox::new(&config)?;
    println!("{}\n", sandbox.describe());

    loading(options.plugins, corpus, &sandbox)?;
    let registry = load(options.plugins, corpus, &sandbox)?;
    let runtime = rlf_run::runtime()?;
    let search = ("search", queries(corpus)?);
    calls(options, &registry, &runtime, &search)?;
    programs(options, &sandbox, &runtime)?;

    // The sandbox is a fresh one, because places of the pool keep memory that earlier calls took.
    let unused = Sandbox::new(&config)?;
    memory(&load(options.plugins, corpus, &unused)?, &runtime, &search)?;
    let cost =
        interruption::interruption(options.time).map_err(|error| anyhow::anyhow!("{error:#}"))?;
    println!(
        "a compute-bound call: {:.1} ms with interruption and limits, {:.1} ms without: {:+.1} %",
        cost.with.as_secs_f64() * 1e3,
        cost.without.as_secs_f64() * 1e3,
        (cost.with.as_secs_f64() / cost.without.as_secs_f64() - 1.0) * 100.0
    );
    Ok(ExitCode::SUCCESS)
}

/// Prints the table of calls: this program's tools and the other ways to run a tool.
fn calls(
    options: &Options<'_>,
    registry: &Registry,
    runtime: &Runtime,
    search: &(&str, Vec<Value>),
) -> anyhow::Result<()> {
    println!(
        "one call, in a fresh sandbox where there is one; the last column compares calls/s with the MCP server's"
    );
    println!(
        "{:<58}{:>10}{:>10}{:>12}{:>9}",
        "", "p50 us", "p99 us", "calls/s", "x MCP"
    );
    let mcp = options.python.map(mcp_server).transpose()?;
    let peer = mcp.as_ref().map_or((f64::NAN, f64::NAN), |(one, at_32)| {
        (one.calls_per_s, *at_32)
    });
    let native = repeat(options.time, || native(&json!({"a": 1, "b": 1})));
    row("a plain Rust function on JSON, no sandbox", &native, peer.0);
    let pure = ("calculate", vec![json!({"expression": "1+1"})]);
    own_calls(options, registry, runtime, &pure, peer)?;
    let ratio = own_calls(options, registry, runtime, search, peer)?;
    if let Some((one, at_32)) = &mcp {
        row("resident Python MCP server over stdio", one, peer.0);
        println!(
            "{:<58}{:>10}{:>10}{at_32:>12.0}{:>9}",
            "the same, 32 at once", "", "", "1.0"
        );
    } else {
        println!(
            "resident Python MCP server over stdio: not measured, no --python with the package `mcp`"
        );
    }
    subprocesses(options.time, peer.0);
    println!(
        "\n`search` from a fresh instance takes {ratio:.2} times the search itself (again and again in one instance)"
    );
    Ok(())
}

/// Prints what a call from inside a program costs.
fn programs(options: &Options<'_>, sandbox: &Sandbox, runtime: &Runtime) -> anyhow::Result<()> {
    let measured = code_mode::seconds_per_call(options.plugins, sandbox, options.time);
    let Some(seconds) = runtime.block_on(measured)? else {
        println!("`calculate` from a program: not measured, there is no Python interpreter");
        return Ok(());
    };
    let elapsed = seconds.iter().sum();
    let call = Samples::new(seconds, elapsed).at(0.5);
    println!(
        "`calculate` from a program in Python, one call after the other: {call:.1} us, {:.0} calls/s",
        1e6 / call
    );
    Ok(())
}

/// Prints a row of the table. `peer` is the number of calls per second to compare with.
fn row(name: &str, samples: &Samples, peer: f64) {
    let ratio = samples.calls_per_s / peer;
    let ratio = if ratio.is_nan() {
        "–".into()
    } else {
        format!("{ratio:.1}")
    };
    println!(
        "{name:<58}{:>10.1}{:>10.1}{:>12.0}{ratio:>9}",
        samples.at(0.5),
        samples.at(0.99),
        samples.calls_per_s,
    );
}

/// Prints the rows of one of this program's tools. `peer` are the MCP server's calls per second, alone and with 32 at
/// once. Returns how many times longer a call in a fresh instance takes than one in a used instance.
fn own_calls(
    options: &Options<'_>,
    registry: &Registry,
    runtime: &Runtime,
    (tool, arguments): &(&str, Vec<Value>),
    peer: (f64, f64),
) -> anyhow::Result<f64> {
    let config = ToolManagerConfig {
        max_concurrency: 1_000,
        ..ToolManagerConfig::default()
    };
    let tools = ToolManager::new(registry, &config)?;
    let mut fresh = f64::NAN;
    for at_once in AT_ONCE {
        let samples = runtime.block_on(call(&tools, tool, arguments, at_once, options.time))?;
        let name = format!("`{tool}` through the tool manager, {at_once} at once");
        row(&name, &samples, if at_once == 1 { peer.0 } else { peer.1 });
        if at_once == 1 {
            fresh = samples.at(0.5);
        }
    }
    let warm = warm(registry, runtime, tool, arguments)?;
    let name = format!("`{tool}` again and again in one instance");
    row(&name, &warm, peer.0);
    Ok(fresh / warm.at(0.5))
}

/// Prints the rows of a subprocess per call.
fn subprocesses(time: Duration, peer: f64) {
    const SCRIPT: &str = "import json, sys\nprint(json.load(sys.stdin)['a'] + 1)";
    for (name, program) in [
        ("a subprocess per call: cat", vec!["cat"]),
        (
            "a subprocess per call: python3 -c",
            vec!["python3", "-c", SCRIPT],
        ),
    ] {
        match subprocess(&program, time.min(Duration::from_secs(3))) {
            Ok(samples) => row(name, &samples, peer),
            Err(error) => println!("{name}: not measured: {error:#}"),
        }
    }
}

/// Measures loading each plugin, cold and cached.
fn loading(plugins: &Path, corpus: &Path, sandbox: &Sandbox) -> anyhow::Result<()> {
    let mut text = String::new();
    for _ in 0..2 {
        let registry = load(plugins, corpus, sandbox)?;
        for plugin in registry.plugins() {
            let made = plugin.report().preparation;
            let _ = writeln!(
                text,
                "load `{}` {:<11} {:>8.1} ms of init and snapshot, {:>8.1} ms {}",
                plugin.name(),
                if made.from_cache { "cached" } else { "cold" },
                made.prepare_ms,
                made.compile_ms,
                if made.from_cache {
                    "reading"
                } else {
                    "compiling"
                },
            );
        }
    }
    println!("{text}");
    Ok(())
}

fn load(plugins: &Path, corpus: &Path, sandbox: &Sandbox) -> anyhow::Result<Registry> {
    let grants = |data: &[(&str, &Path)]| PluginGrants {
        data: data
            .iter()
            .map(|(slot, path)| ((*slot).to_owned(), path.to_path_buf()))
            .collect(),
        ..PluginGrants::default()
    };
    let grants_by_name = [
        ("calculator".to_owned(), grants(&[])),
        ("search".to_owned(), grants(&[("corpus", corpus)])),
    ];
    let registry = Registry::load_where(plugins, &grants_by_name.into(), KINDS, sandbox, |name| {
        matches!(name, "calculator" | "search")
    });
    if let Some(problem) = registry.problems().first() {
        bail!("{problem}");
    }
    ensure!(
        registry.plugins().len() == 2,
        "{} has no calculator and search; build them with `cargo xtask plugins`",
        plugins.display()
    );
    Ok(registry)
}

/// Calls a tool repeatedly, with `at_once` calls in flight.
async fn call(
    tools: &ToolManager,
    tool: &str,
    arguments: &[Value],
    at_once: usize,
    time: Duration,
) -> anyhow::Result<Samples> {
    let began = Instant::now();
    let callers: Vec<_> = (0..at_once)
        .map(|caller| {
            let (tools, tool, arguments) = (tools.clone(), tool.to_owned(), arguments.to_vec());
            tokio::spawn(async move {
                let mut seconds = Vec::new();
                let context = TurnContext {
                    trajectory_id: format!("bench/{caller}"),
                    turn: 0,
                    seed: 0,
                };
                while began.elapsed() < time {
                    let call = ToolCall {
                        call_id: format!("bench/{caller}/{}", seconds.len()),
                        name: tool.clone(),
                        arguments: arguments[(caller + seconds.len()) % arguments.len()].clone(),
                    };
                    let started = Instant::now();
                    let outcomes = tools.invoke(vec![call], &context).await;
                    seconds.push(started.elapsed().as_secs_f64());
                    let outcome = &outcomes[0];
                    ensure!(
                        outcome.ended == Ended::Ok,
                        "a call of `{tool}` ended as {}: {}",
                        outcome.ended.as_str(),
                        outcome.detail.as_deref().unwrap_or_default()
                    );
                }
                Ok(seconds)
            })
        })
        .collect();
    let mut seconds = Vec::new();
    for caller in callers {
        seconds.extend(caller.await.context("a caller broke")??);
    }
    Ok(Samples::new(seconds, began.elapsed().as_secs_f64()))
}

/// Measures a tool in one instance that is used again, without the cost of a fresh sandbox.
fn warm(
    registry: &Registry,
    runtime: &Runtime,
    tool: &str,
    arguments: &[Value],
) -> anyhow::Result<Samples> {
    let plugin = offering(registry, tool)?;
    let began = Instant::now();
    let arguments = arguments.iter().map(Value::to_string).collect();
    let each = runtime.block_on(warm_calls(plugin, tool, arguments, 2_000))?;
    let seconds = each.iter().map(Duration::as_secs_f64).collect();
    Ok(Samples::new(seconds, began.elapsed().as_secs_f64()))
}

/// Prints the memory of a live instance, apart from shared memory.
fn memory(
    registry: &Registry,
    runtime: &Runtime,
    (tool, arguments): &(&str, Vec<Value>),
) -> anyhow::Result<()> {
    const INSTANCES: usize = 24;
    let plugin = offering(registry, tool)?;
    let arguments = arguments[0].to_string();
    // Only pages that a call wrote to count; the rest is shared with the snapshot.
    let look = || memory_bytes("RssAnon:");
    let hold = |count| -> anyhow::Result<u64> {
        let seen = runtime.block_on(while_held(plugin, tool, &arguments, count, look))?;
        seen.context("the kernel does not say what memory is private (RssAnon)")
    };
    let (few, many) = (hold(1)?, hold(1 + INSTANCES)?);
    println!(
        "a live instance of `{tool}` after a call: {} KiB of its own; the component it starts from has {} KiB",
        (many.saturating_sub(few) / INSTANCES as u64) >> 10,
        plugin.report().preparation.prepared_bytes >> 10
    );
    Ok(())
}

fn offering<'a>(registry: &'a Registry, tool: &str) -> anyhow::Result<&'a Arc<Plugin>> {
    let has = |plugin: &&Arc<Plugin>| {
        let mut tools = plugin.tools().iter();
        tools.any(|offered| offered.definition.name == tool)
    };
    let found = registry.plugins().iter().find(has);
    found.with_context(|| format!("no plugin has `{tool}`"))
}

/// Does the least work of any tool: parses arguments and returns text.
fn native(arguments: &Value) -> String {
    let arguments = arguments.to_string();
    let parsed: Value = serde_json::from_str(&arguments).unwrap_or_default();
    let number = |name: &str| parsed.get(name).and_then(Value::as_i64).unwrap_or_default();
    (number("a") + number("b")).to_string()
}

fn repeat<T>(time: Duration, mut what: impl FnMut() -> T) -> Samples {
    let began = Instant::now();
    let mut seconds = Vec::new();
    while began.elapsed() < time && seconds.len() < 1_000_000 {
        let started = Instant::now();
        std::hint::black_box(what());
        seconds.push(started.elapsed().as_secs_f64());
    }
    Samples::new(seconds, began.elapsed().as_secs_f64())
}

fn subprocess(program: &[&str], time: Duration) -> anyhow::Result<Samples> {
    let once = || -> anyhow::Result<()> {
        use std::io::Write as _;
        let mut child = Command::new(program[0])
            .args(&program[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("`{}` cannot be started", program[0]))?;
        let mut stdin = child.stdin.take().context("no pipe")?;
        stdin.write_all(br#"{"a": 1, "b": 1}"#)?;
        drop(stdin);
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "`{}` failed", program[0]);
        Ok(())
    };
    once()?;
    Ok(repeat(time, once))
}

#[derive(Deserialize)]
struct McpFigures {
    seconds: Vec<f64>,
    calls_per_s_at_32: f64,
}

/// Measures a server that keeps running: calls one after the other, and calls per second with 32 at once.
fn mcp_server(python: &Path) -> anyhow::Result<(Samples, f64)> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let script = folder.path().join("mcp_echo.py");
    std::fs::write(&script, include_str!("mcp_echo.py")).context("cannot write the MCP server")?;
    let output = Command::new(python)
        .arg(&script)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{} cannot be started", python.display()))?;
    ensure!(
        output.status.success(),
        "the MCP server was not measured: {} ended with {}; does it have the package `mcp`?",
        python.display(),
        output.status
    );
    let figures: McpFigures =
        serde_json::from_slice(&output.stdout).context("the MCP client printed no figures")?;
    let elapsed = figures.seconds.iter().sum();
    Ok((
        Samples::new(figures.seconds, elapsed),
        figures.calls_per_s_at_32,
    ))
}

/// Generates arguments of searches: the first words of some passages, as long as typical questions.
fn queries(corpus: &Path) -> anyhow::Result<Vec<Value>> {
    const QUERIES: usize = 64;
    const WORDS: usize = 14;
    let text = std::fs::read_to_string(corpus)
        .with_context(|| format!("cannot read {}", corpus.display()))?;
    let passages: Vec<Value> = serde_json::from_str(&text).or_else(|_| {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(serde_json::from_str).collect()
    })?;
    let queries: Vec<Value> = passages
        .iter()
        .step_by((passages.len() / QUERIES).max(1))
        .filter_map(|passage| passage["text"].as_str())
        .map(|text| {
            let words: Vec<&str> = text.split_whitespace().take(WORDS).collect();
            json!({"query": words.join(" "), "top_k": 3})
        })
        .collect();
    ensure!(
        !queries.is_empty(),
        "{} has no passages with a `text`",
        corpus.display()
    );
    Ok(queries)
}

/// Generates passages as JSON lines. Word frequencies follow Zipf's law: the n-th word is 1/n as frequent.
fn passages() -> String {
    const WORDS: &[&str] = &[
        "river", "city", "bridge", "empire", "king", "song", "film", "north", "island", "war",
        "temple", "harbour", "mountain", "painter", "novel", "treaty", "railway", "festival",
    ];
    let mut state = 1_u64;
    let mut draw = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % bound
    };
    let mut text = String::new();
    for passage in 0..PASSAGES {
        let mut words = Vec::new();
        for _ in 0..80 {
            let rank = draw(1_000);
            words.push(if rank < 400 {
                WORDS[draw(WORDS.len())].to_owned()
            } else {
                format!("word{}", draw(rank * 10 + 1))
            });
        }
        let row = json!({"title": format!("Passage {passage}"), "text": words.join(" ")});
        let _ = writeln!(text, "{row}");
    }
    text
}
