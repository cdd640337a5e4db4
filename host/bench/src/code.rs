//! `rlf-bench code`: the cost of running a program in a sandbox, compared with ways to run it without one.
//!
//! All ways are measured in one process run, those of one program directly after each other. Machines are noisy, and
//! only ratios carry over to other machines.

mod http;
mod native;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rlf_interpreters::interpreter::{Interpreter, Interpreters, ProgramOptions};
use rlf_interpreters::notebook::{Notebook, NotebookRequest};
use rlf_interpreters::program::Program;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::programs::ProgramLimits;
use rlf_plugins::registry::Registry;
use rlf_run::plugins::KINDS;
use rlf_sandbox::{Sandbox, SandboxConfig, prepare_process};
use tokio::runtime::Runtime;

use crate::soak::memory_bytes;

/// Name, source and output of each program.
const PROGRAMS: [(&str, &str, &str); 5] = [
    ("print(1 + 1)", include_str!("code/print.py"), "2\n"),
    (
        "a function with its tests",
        include_str!("code/tested.py"),
        "passed\n",
    ),
    (
        "JSON and regular expressions",
        include_str!("code/json_re.py"),
        "",
    ),
    ("a loop of 1,000,000", include_str!("code/loop.py"), ""),
    ("an empty program", "", ""),
];
/// Name, source and output of each program that imports packages.
const WITH_PACKAGES: [(&str, &str, &str); 6] = [
    PROGRAMS[0],
    ("numpy", include_str!("code/packages/numpy.py"), ""),
    (
        "numpy: a product and a solution, 200 x 200",
        include_str!("code/packages/numpy_solve.py"),
        "True\n",
    ),
    (
        "pandas: groups of 1,000 rows",
        include_str!("code/packages/pandas.py"),
        "499.0 500.0\n",
    ),
    (
        "sympy: a quadratic and a derivative",
        include_str!("code/packages/sympy.py"),
        "[2, 3] x*cos(x) + sin(x)\n",
    ),
    (
        "scikit-learn: a linear regression",
        include_str!("code/packages/sklearn.py"),
        "2.0\n",
    ),
];
/// Numbers of runs in flight.
const AT_ONCE: [usize; 3] = [1, 2, 64];
/// Numbers of instances alive at once.
const ALIVE: [usize; 3] = [64, 1_000, 10_000];
/// Number of instances with packages alive at once.
const WITH_PACKAGES_ALIVE: u64 = 16;

/// Options from the command line.
pub(super) struct Options<'a> {
    /// Folders of plugins that run Python, each a row of the tables.
    pub(super) builds: &'a [PathBuf],
    /// Time spent on each figure.
    pub(super) time: Duration,
    /// Maximum number of instances kept alive at once.
    pub(super) alive: usize,
    /// Measure programs that import packages, and nothing else.
    pub(super) packages: bool,
    /// The native Python to compare with.
    pub(super) python: Option<PathBuf>,
    /// A Python with Monty, to compare with that too.
    pub(super) monty: Option<PathBuf>,
    /// Folder of compiled components; by default one that is removed at the end.
    pub(super) cache: Option<PathBuf>,
}

/// Measured times of runs.
struct Samples {
    seconds: Vec<f64>,
    runs_per_s: f64,
    /// CPU time per run, of this process and of the processes that it started.
    cpu: f64,
}

impl Samples {
    fn new(mut seconds: Vec<f64>, elapsed: f64, cpu: f64) -> Self {
        seconds.sort_by(f64::total_cmp);
        Self {
            runs_per_s: seconds.len() as f64 / elapsed,
            cpu: cpu / seconds.len() as f64,
            seconds,
        }
    }

    /// The given quantile, in microseconds.
    fn at(&self, part: f64) -> f64 {
        let last = self.seconds.len().saturating_sub(1) as f64;
        let at = self.seconds.get((last * part) as usize);
        at.map_or(f64::NAN, |seconds| seconds * 1e6)
    }
}

/// One way to run programs.
trait Way {
    /// Runs a program repeatedly for `time`, with `at_once` runs in flight.
    fn measure(
        &mut self,
        code: &str,
        printed: &str,
        at_once: usize,
        time: Duration,
    ) -> anyhow::Result<Samples>;
}

pub(super) fn run(options: &Options<'_>) -> anyhow::Result<ExitCode> {
    ensure!(
        !options.builds.is_empty(),
        "name a folder with a Python plugin: --build DIR; `cargo xtask plugins` makes target/plugins/python"
    );
    let runtime = rlf_run::runtime()?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut builds = Vec::new();
    for path in options.builds {
        let cache = options.cache.clone();
        let cache = cache.unwrap_or_else(|| folder.path().join("cache"));
        builds.push(Build::load(path, &cache, options.alive)?);
    }
    println!("{}\n", builds[0].sandbox.describe());
    for build in &builds {
        println!("{}: {}", build.name, build.interpreter.language().version);
    }
    println!();
    let mut ways: Vec<(String, Box<dyn Way>)> = Vec::new();
    for build in &builds {
        ways.push((
            format!("{}, fresh instance", build.name),
            Box::new(InSandbox {
                interpreter: build.interpreter.clone(),
                runtime: &runtime,
            }),
        ));
    }
    let python = options.python.clone().map_or_else(native::python, Ok);
    match &python {
        Ok(python) => ways.extend(native::ways(python)),
        Err(error) => println!("nothing to compare with: {error:#}"),
    }
    ways.extend(options.monty.as_deref().map(native::monty));
    let programs = if options.packages {
        &WITH_PACKAGES[..]
    } else {
        &PROGRAMS
    };
    for (name, code, printed) in programs {
        table(name, code, printed, &mut ways, options.time);
    }
    drop(ways);
    if options.packages {
        for build in &builds {
            memory_with_packages(build, &runtime)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Ok(python) = &python {
        for build in &builds {
            http::compare(build, python, options.time)?;
        }
    }
    for build in &builds {
        memory(build, &runtime, options.alive)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints one program's row for every way.
fn table(
    name: &str,
    code: &str,
    printed: &str,
    ways: &mut [(String, Box<dyn Way + '_>)],
    time: Duration,
) {
    println!("{name}");
    println!(
        "  {:<44}{:>8}{:>11}{:>11}{:>11}{:>11}",
        "", "at once", "p50 us", "p99 us", "runs/s", "CPU us"
    );
    let mut first = BTreeMap::new();
    for (way, runner) in ways.iter_mut() {
        for at_once in AT_ONCE {
            let samples = match runner.measure(code, printed, at_once, time) {
                Ok(samples) => samples,
                Err(error) => {
                    println!("  {way:<44}{at_once:>8}  not measured: {error:#}");
                    continue;
                }
            };
            println!(
                "  {way:<44}{at_once:>8}{:>11.1}{:>11.1}{:>11.0}{:>11.1}",
                samples.at(0.5),
                samples.at(0.99),
                samples.runs_per_s,
                samples.cpu * 1e6,
            );
            if at_once == 1 {
                first.insert(way.clone(), samples.at(0.5));
            }
        }
    }
    let ours: Vec<&String> = first
        .keys()
        .filter(|way| way.ends_with("fresh instance"))
        .collect();
    for own in ours {
        let ratios: Vec<String> = first
            .iter()
            .filter(|(way, _)| !way.ends_with("fresh instance"))
            .map(|(way, median)| format!("{:.1} x {way}", median / first[own]))
            .collect();
        println!("  {own}, at p50 of one at once: {}", ratios.join(", "));
    }
    println!();
}

/// A built interpreter.
struct Build {
    name: String,
    folder: PathBuf,
    sandbox: Sandbox,
    interpreter: Interpreter,
}

impl Build {
    fn load(path: &Path, cache: &Path, alive: usize) -> anyhow::Result<Self> {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let programs = u32::try_from(alive.max(256)).unwrap_or(u32::MAX);
        let grants = PluginGrants {
            path: Some(path.to_owned()),
            ..PluginGrants::default()
        };
        let sandbox = Sandbox::new(&SandboxConfig {
            cache: Some(cache.to_owned()),
            preparer: Some(prepare_process::this_program()),
            instances: Some(8),
            programs: Some(programs),
            // Nearly all of this memory is shared.
            program_memory_budget_bytes: Some(u64::from(programs) * grants.programs.memory_bytes),
            ..SandboxConfig::default()
        })?;
        let grants_by_name = BTreeMap::from([("python".to_owned(), grants)]);
        let empty = tempfile::tempdir().context("cannot make a temporary folder")?;
        let registry = Registry::load(empty.path(), &grants_by_name, KINDS, &sandbox);
        if let Some(problem) = registry.problems().first() {
            bail!("{problem}");
        }
        let interpreters = Interpreters::new(&registry);
        let interpreter = interpreters
            .get("python")
            .with_context(|| format!("{} runs no python", path.display()))?
            .clone();
        Ok(Self {
            name,
            folder: path.to_owned(),
            sandbox,
            interpreter,
        })
    }
}

/// Programs in this project's sandbox.
struct InSandbox<'a> {
    interpreter: Interpreter,
    runtime: &'a Runtime,
}

impl Way for InSandbox<'_> {
    fn measure(
        &mut self,
        code: &str,
        printed: &str,
        at_once: usize,
        time: Duration,
    ) -> anyhow::Result<Samples> {
        let once = |interpreter: Interpreter, code: String, printed: String| async move {
            let program = Program {
                code,
                ..Program::default()
            };
            let report = interpreter.run(program, ProgramOptions::default()).await?;
            let stdout = report.stdout.head();
            ensure!(
                report.exit_code() == Some(0) && stdout.ends_with(printed.as_bytes()),
                "it ended otherwise: {}",
                report.stderr.captured().text
            );
            anyhow::Ok(())
        };
        self.runtime.block_on(async {
            once(
                self.interpreter.clone(),
                code.to_owned(),
                printed.to_owned(),
            )
            .await?;
            let (began, cpu) = (Instant::now(), native::cpu_seconds());
            let callers: Vec<_> = (0..at_once)
                .map(|_| {
                    let (interpreter, code, printed) = (
                        self.interpreter.clone(),
                        code.to_owned(),
                        printed.to_owned(),
                    );
                    tokio::spawn(async move {
                        let mut seconds = Vec::new();
                        while began.elapsed() < time {
                            let started = Instant::now();
                            once(interpreter.clone(), code.clone(), printed.clone()).await?;
                            seconds.push(started.elapsed().as_secs_f64());
                        }
                        anyhow::Ok(seconds)
                    })
                })
                .collect();
            let mut seconds = Vec::new();
            for caller in callers {
                seconds.extend(caller.await.context("a caller broke")??);
            }
            let cpu = native::cpu_seconds() - cpu;
            Ok(Samples::new(seconds, began.elapsed().as_secs_f64(), cpu))
        })
    }
}

/// Prints the memory that a run with packages has of its own.
fn memory_with_packages(build: &Build, runtime: &Runtime) -> anyhow::Result<()> {
    println!(
        "memory beyond the shared image of {}, {} instances that each ran the program",
        build.name, WITH_PACKAGES_ALIVE
    );
    // The places of instances that ended keep pages, so none ends before all are measured.
    let mut notebooks = Vec::new();
    for (name, code, printed) in WITH_PACKAGES {
        let kib = runtime.block_on(async {
            let before = own_bytes()?;
            for _ in 0..WITH_PACKAGES_ALIVE {
                let mut notebook = open(build).await?;
                let cell = notebook.execute(code, ProgramLimits::default()).await?;
                ensure!(
                    cell.stdout.head().ends_with(printed.as_bytes()),
                    "{name} ended otherwise: {}",
                    cell.stderr.captured().text
                );
                notebooks.push(notebook);
            }
            anyhow::Ok(own_bytes()?.saturating_sub(before) / 1024 / WITH_PACKAGES_ALIVE)
        })?;
        println!("  {name:<44}{kib:>8} KiB each");
    }
    println!();
    Ok(())
}

/// Memory that only this process has. The pages of an image count only where an instance wrote to them.
fn own_bytes() -> anyhow::Result<u64> {
    memory_bytes("RssAnon:").context("the kernel does not say what memory is private (RssAnon)")
}

/// Opens a notebook in a fresh instance.
async fn open(build: &Build) -> anyhow::Result<Notebook> {
    let options = ProgramOptions {
        label: "bench".to_owned(),
        ..ProgramOptions::default()
    };
    let opened = build
        .interpreter
        .open_notebook(NotebookRequest::default(), options);
    Ok(opened.await?)
}

/// Prints the memory of live instances that have run a program.
fn memory(build: &Build, runtime: &Runtime, alive: usize) -> anyhow::Result<()> {
    println!(
        "instances of {} that live at once, each having run `print(1 + 1)`, and then the function with its tests",
        build.name
    );
    runtime.block_on(async {
        let before = own_bytes()?;
        let mut notebooks = Vec::new();
        for count in ALIVE.into_iter().filter(|count| *count <= alive) {
            while notebooks.len() < count {
                let mut notebook = open(build).await?;
                let cell = notebook
                    .execute(PROGRAMS[0].1, ProgramLimits::default())
                    .await?;
                ensure!(
                    cell.stdout.head() == b"2\n",
                    "a cell printed something else"
                );
                notebooks.push(notebook);
            }
            let printed = own_bytes()?.saturating_sub(before);
            let mut tested = None;
            if count == ALIVE[0] {
                for notebook in &mut notebooks {
                    let cell = notebook
                        .execute(PROGRAMS[1].1, ProgramLimits::default())
                        .await?;
                    ensure!(
                        cell.stdout.head() == b"passed\n",
                        "a cell printed something else"
                    );
                }
                tested = Some(own_bytes()?.saturating_sub(before));
            }
            let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            println!(
                "  {count:>6}: {:>9.1} MiB beyond the shared image, {:.0} KiB each{}",
                mebibytes(printed),
                printed as f64 / 1024.0 / count as f64,
                tested.map_or_else(String::new, |bytes| format!(
                    "; {:.1} MiB after the second",
                    mebibytes(bytes)
                ))
            );
        }
        anyhow::Ok(())
    })?;
    println!();
    Ok(())
}
