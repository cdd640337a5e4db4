//! `rlf-bench env`: the cost of environment sessions, compared with one process for each.
//!
//! Measures a native component, a specification and its export to Python, a Python file in the Python component, and the
//! same file in processes. All are measured in one run, because machines are noisy and only ratios carry over.

mod loading;
mod memory;
mod process;
mod rounds;
mod sandboxed;
mod specified;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use rlf_plugins::python_environment::PythonEnvironment;
use tokio::runtime::Runtime;

use self::memory::MostSessions;
use self::process::Processes;
use self::rounds::{AT_ONCE, Figures, OPERATIONS, Samples, Way, figures, together};
use self::sandboxed::{InSandbox, MeasuredEnvironment, SandboxedSession};
use self::specified::{Measurable, Specified};

/// Name of the native component.
const RETAIL: &str = "tau-retail";
/// Name of the component that plays specifications.
const SPECIFIED: &str = "specified";
/// Number of sessions in the measurement with more sessions than places.
const SESSIONS: usize = 1_000;
const PLACES: u32 = 100;
/// Maximum time to wait until a number of sessions is open.
const MAX_WAIT: Duration = Duration::from_mins(5);
/// The goals: memory of an idle session, and number of live sessions.
const GOAL_BYTES: u64 = 1 << 20;
const GOAL_LIVE: usize = 10_000;

/// Options from the command line.
pub(super) struct Options<'a> {
    pub(super) plugins: &'a Path,
    /// Data of tau-bench's retail store.
    pub(super) retail: Option<&'a Path>,
    /// A specification.
    pub(super) specification: &'a Path,
    /// A Python file with an environment.
    pub(super) environment: &'a Path,
    /// Python interpreter with the packages `mcp` and `pydantic`.
    pub(super) python: Option<&'a Path>,
    /// Time spent on each figure.
    pub(super) time: Duration,
    /// Maximum number of live sessions.
    pub(super) alive: usize,
}

/// The environments to measure, each with the scenario that its sessions play.
struct Measured {
    runtime: Runtime,
    environments: Vec<Measurable>,
    /// Environments of which only the speed is measured: the specification with generated states, and its export.
    speed_only: Vec<Measurable>,
    /// The processes to compare with. An error is the reason why there are none.
    peer: Result<Arc<Processes>, String>,
    /// Name of the processes in the tables.
    peer_title: String,
    time: Duration,
    alive: usize,
}

pub(super) fn run(options: &Options<'_>) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let measured = prepare(options, folder.path())?;
    let openings = speed(&measured);
    let reached = memory(&measured);
    few_places(&measured);
    goals(&reached, &openings);
    Ok(ExitCode::SUCCESS)
}

fn prepare(options: &Options<'_>, folder: &Path) -> anyhow::Result<Measured> {
    let runtime = rlf_run::runtime()?;
    let cache = folder.join("cache");
    let (file, server) = python_file(options.environment)?;
    if let Err(error) = loading::loading(options, folder, &file, &server) {
        println!("loading {server}: not measured: {error:#}\n");
    }
    let mut found = Vec::new();
    match options.retail {
        Some(retail) if retail.join("orders.json").is_file() => {
            found.push(MeasuredEnvironment::retail(options, retail, &cache));
        }
        Some(retail) => println!(
            "{RETAIL}: not measured, there is no orders.json in {}\n",
            retail.display()
        ),
        None => println!("{RETAIL}: not measured, name its data with --retail DIR\n"),
    }
    found.push(MeasuredEnvironment::python(options, &cache, &file, &server));
    let mut peer = Err("no --python with the packages `mcp` and `pydantic`".to_owned());
    let mut environments = Vec::new();
    for environment in found {
        match runtime.block_on(environment.scenario()) {
            Ok(scenario) => {
                if let Some(python) = options.python.filter(|_| environment.name != RETAIL) {
                    let scenario = Arc::clone(&scenario);
                    peer = Processes::new(python, folder, &file, &server, scenario)
                        .map(Arc::new)
                        .map_err(|error| format!("{error:#}"));
                }
                environments.push((environment, scenario));
            }
            Err(error) => println!("{}: not measured: {error:#}\n", environment.title),
        }
    }
    let mut speed_only = Vec::new();
    match Specified::new(options, folder, &cache, &runtime) {
        Ok(specified) => {
            environments.push(specified.given);
            speed_only = vec![specified.generated, specified.export];
        }
        Err(error) => println!("{SPECIFIED}: not measured: {error:#}\n"),
    }
    ensure!(
        !environments.is_empty(),
        "nothing could be measured; build the plugins with `cargo xtask plugins`"
    );
    Ok(Measured {
        runtime,
        environments,
        speed_only,
        peer,
        peer_title: format!("{server} in a process"),
        time: options.time,
        alive: options.alive,
    })
}

/// Prints the time of each operation. Returns the median time to open a session of each component that is not an
/// interpreter, in microseconds.
fn speed(measured: &Measured) -> Vec<(&str, f64)> {
    let Measured { runtime, time, .. } = measured;
    println!(
        "one session alone, and 32 side by side; the last column compares how many there are a second"
    );
    println!(
        "  {:<34}{:>8}{:>9}{:>12}{:>12}{:>12}{:>11}",
        "", "at once", "times", "p50 us", "p99 us", "a second", "x process"
    );
    let base = match &measured.peer {
        Ok(processes) => {
            let way = Arc::clone(processes) as Arc<dyn Way>;
            runtime.block_on(figures(way, &processes.scenario, *time))
        }
        Err(why) => Err(anyhow!(why.clone())),
    };
    let base = base.unwrap_or_else(|error| {
        println!("  {}: not measured: {error:#}", measured.peer_title);
        Figures::new()
    });
    table(&measured.peer_title, &base, &base);
    let mut openings = Vec::new();
    let mut all = Vec::new();
    for (environment, scenario) in measured.environments.iter().chain(&measured.speed_only) {
        let found = environment.load(128, scenario).and_then(|way| {
            let way = Arc::new(way);
            runtime.block_on(figures(way, scenario, *time))
        });
        match found {
            Ok(found) => {
                table(&environment.title, &found, &base);
                if [RETAIL, SPECIFIED].contains(&environment.name.as_str()) {
                    let open = found.get(&("open", 1));
                    openings.extend(open.map(|open| (environment.title.as_str(), open.at(0.5))));
                }
                all.push((environment.title.clone(), found));
            }
            Err(error) => println!("  {}: not measured: {error:#}", environment.title),
        }
    }
    let title = |name: &str| {
        let mut environments = measured.environments.iter();
        let found = environments.find(|(environment, _)| environment.name == name);
        found.map(|(environment, _)| environment.title.as_str())
    };
    if let (Some(own), Some((export, _))) = (title(SPECIFIED), measured.speed_only.last()) {
        let peers = [title(RETAIL).unwrap_or(RETAIL), export.title.as_str()];
        specified::compare(own, &all, &peers);
    }
    openings
}

fn memory(measured: &Measured) -> Vec<MostSessions> {
    let alive = measured.alive;
    println!();
    memory::heading();
    let mut reached = Vec::new();
    for (environment, scenario) in &measured.environments {
        let places = u32::try_from(alive + memory::FIRST).unwrap_or(u32::MAX);
        // The sandbox is a fresh one, because places keep memory that earlier sessions took.
        let found = environment.load(places, scenario).and_then(|way| {
            let found = memory::sessions(&environment.title, &way, alive);
            let found = measured.runtime.block_on(found);
            let evicted = way.environments.sessions().evicted;
            if evicted > 0 {
                println!(
                    "  {}: {evicted} of them had to make room for others",
                    environment.title
                );
            }
            found
        });
        match found {
            Ok(found) => reached.push(found),
            Err(error) => println!("  {}: not measured: {error:#}", environment.title),
        }
    }
    if let Ok(processes) = &measured.peer
        && let Err(error) = memory::processes(&measured.peer_title, processes, alive)
    {
        println!("  {}: not measured: {error:#}", measured.peer_title);
    }
    reached
}

/// Measures calls when most sessions are evicted and must be restored first.
fn few_places(measured: &Measured) {
    println!("\n{SESSIONS} sessions in {PLACES} places, one call of each in turn");
    for (environment, scenario) in &measured.environments {
        let found = environment.load(PLACES, scenario).and_then(|way| {
            let coming = come_back(&environment.title, &way, measured.time);
            measured.runtime.block_on(coming)
        });
        if let Err(error) = found {
            println!("  {}: not measured: {error:#}", environment.title);
        }
    }
}

/// Prints the goals and whether they are reached.
fn goals(reached: &[MostSessions], openings: &[(&str, f64)]) {
    let verdict = |is: bool| if is { "reached" } else { "not reached" };
    println!("\ngoals");
    for MostSessions {
        name,
        live,
        own_bytes,
    } in reached
    {
        println!(
            "  {name}: at most {} KiB of its own for a session that waits: {} KiB, {}",
            GOAL_BYTES >> 10,
            own_bytes >> 10,
            verdict(*live > 0 && *own_bytes <= GOAL_BYTES)
        );
        println!(
            "  {name}: {GOAL_LIVE} live: {live}, {}",
            verdict(*live >= GOAL_LIVE)
        );
    }
    for (name, us) in openings {
        println!(
            "  a session of {name} opens in microseconds, not milliseconds: {us:.0} us, {}",
            verdict(*us < 1e3)
        );
    }
}

fn table(title: &str, figures: &Figures, base: &Figures) {
    for what in OPERATIONS {
        for at_once in AT_ONCE {
            let Some(samples) = figures.get(&(what, at_once)) else {
                continue;
            };
            let peer = base.get(&(what, at_once));
            let ratio = peer.map_or_else(
                || "–".to_owned(),
                |peer| format!("{:.1}", samples.per_s / peer.per_s),
            );
            println!(
                "  {:<34}{at_once:>8}{:>9}{:>12.1}{:>12.1}{:>12.1}{ratio:>11}",
                format!("{title}: {what}"),
                samples.seconds.len(),
                samples.at(0.5),
                samples.at(0.99),
                samples.per_s,
            );
        }
    }
}

/// The file and the name of its server.
fn python_file(path: &Path) -> anyhow::Result<(PathBuf, String)> {
    ensure!(
        path.is_file(),
        "{} is no file; name an environment in Python with --environment FILE",
        path.display()
    );
    let environment = PythonEnvironment::new(path.to_owned());
    let files = environment.read()?;
    let servers = files["servers"].as_object();
    let name = servers.and_then(|servers| servers.keys().next().cloned());
    let file = path
        .canonicalize()
        .with_context(|| format!("cannot find {}", path.display()))?;
    Ok((file, name.context("there is no server in the file")?))
}

async fn come_back(title: &str, way: &InSandbox, time: Duration) -> anyhow::Result<()> {
    let mut sessions = Vec::new();
    let began = Instant::now();
    for _ in 0..SESSIONS {
        sessions.push(way.begin().await?);
        ensure!(
            began.elapsed() < MAX_WAIT,
            "only {} were opened in {} s",
            sessions.len(),
            MAX_WAIT.as_secs()
        );
    }
    for at_once in AT_ONCE {
        let before = way.environments.sessions();
        let mut shares: Vec<Vec<SandboxedSession>> = (0..at_once).map(|_| Vec::new()).collect();
        for (number, session) in sessions.into_iter().enumerate() {
            shares[number % at_once].push(session);
        }
        let began = Instant::now();
        let callers = shares.into_iter().map(|mut share| async move {
            let mut seconds = Vec::new();
            let mut next = 0;
            while began.elapsed() < time {
                let session = next % share.len();
                seconds.push(share[session].call().await?);
                next += 1;
            }
            Ok((seconds, share))
        });
        let done = together(callers).await?;
        let elapsed = began.elapsed().as_secs_f64();
        let after = way.environments.sessions();
        let mut seconds = Vec::new();
        sessions = Vec::new();
        for (share_seconds, share) in done {
            seconds.extend(share_seconds);
            sessions.extend(share);
        }
        let samples = Samples::new(seconds, Some(elapsed));
        println!(
            "  {title:<34}{at_once:>8} at once: {:.0} evictions/s; {} of {} calls had to come back, p50 {:.1} us, p99 {:.1} us",
            (after.evicted - before.evicted) as f64 / elapsed,
            after.revived - before.revived,
            samples.seconds.len(),
            samples.at(0.5),
            samples.at(0.99),
        );
    }
    Ok(())
}
