//! `cargo xtask`: parses the arguments and calls the library of this crate, which does the work.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::{
    bench, clients, conformance, cuda, gpu_check, lint,
    machine::{self, Need},
    modules, package, plugins,
    project::Project,
    python::{self, Tier},
    quickstart, reproducible, test, with_c,
};

/// Build, train and test rlf-host on a fresh machine
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the program and the plugins of the quickstart, and train a small policy
    Quickstart {
        /// Arguments for `rlf-host train`: `--overwrite`, `--seed 2`, `--run DIR`, ..
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        extra: Vec<String>,
    },
    /// Build everything and run all tests
    Test(test::Choice),
    /// Check format, licences, features, cycles of modules, clippy and documentation, of host and guests
    Lint,
    /// Check every crate for cycles between modules
    Modules,
    /// Build plugins whose sources changed, into target/plugins and target/test-plugins
    Plugins {
        /// Build nothing, and report which plugins are stale
        #[arg(long)]
        check: bool,
    },
    /// Build the Python interpreter into target/plugins/python, if it changed
    Python {
        /// The build to make [default: fast if this machine has clang 19, else portable]
        #[arg(long)]
        tier: Option<Tier>,
    },
    /// Build the Python with numpy, pandas, scipy, sympy and scikit-learn into target/science, if it changed
    Science,
    /// Build the guests with C inside (the JavaScript interpreter and SQLite's reward), if they changed
    Javascript,
    /// Measure speed and memory: `bench policy`, `rollout`, `memory`, `sandbox`, `env` or `code`, with the options of
    /// `rlf-bench`; `policy --peers`, or `train` for short, installs torch and transformers to compare with
    Bench {
        /// Arguments for `rlf-bench`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        what: Vec<String>,
    },
    /// Test published clients, from PyPI and npm, against `rlf-host serve` and in training
    Clients {
        /// The clients
        #[arg(value_enum, default_value_t)]
        clients: clients::Clients,
    },
    /// Make very many calls, good and bad, and report what they leave behind
    Soak {
        /// Arguments for `rlf-bench soak`: `--calls 1000000`, ..
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        extra: Vec<String>,
    },
    /// Test the interpreters on recorded programs, and on rows with functions
    Conformance {
        /// Folder of data sets with `ftrl-sample/sample.jsonl` and `mbpp/mbpp.jsonl` [default: RLF_DATA]
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Build what a release publishes, into target/packages: Python wheels, archives and a container image
    Package(package::Choice),
    /// Build with CUDA; no GPU, driver or installed toolkit is needed
    Cuda {
        /// Only prepare the toolkit
        #[arg(long)]
        prepare: bool,
        /// Also fetch the libraries that are loaded on a machine with a GPU: cuBLAS and cuRAND
        #[arg(long)]
        runtime: bool,
    },
    /// On a machine with a GPU, check parity with the CPU, speed and the quickstart; write docs/gpu-check.md
    GpuCheck {
        /// A CUDA binary that was built elsewhere, with `rlf-bench` beside it; plugins are taken from target/plugins
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
        /// The file that the report is written to
        #[arg(long, value_name = "FILE", default_value = "docs/gpu-check.md")]
        report: PathBuf,
    },
}

fn main() -> ExitCode {
    if let Some(ended) = with_c::as_compiler() {
        return ended;
    }
    if let Some(ended) = reproducible::as_rustc() {
        return ended;
    }
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<()> {
    let project = Project::find()?;
    match arguments.command {
        Command::Quickstart { extra } => quickstart::run(&project, &extra),
        Command::Test(choice) => test::run(&project, &choice),
        Command::Lint => lint::run(&project),
        Command::Modules => modules::check(&project),
        Command::Plugins { check: true } => plugins::check(&project),
        Command::Plugins { check: false } => {
            machine::make_ready(&project, &[Need::Wasm])?;
            plugins::build(&project)
        }
        Command::Python { tier } => {
            python::choose(&project, tier)?;
            plugins::build_python(&project)
        }
        Command::Science => plugins::build_science(&project),
        Command::Javascript => {
            machine::make_ready(&project, &[Need::Wasm])?;
            plugins::build_with_c(&project)
        }
        Command::Bench { what } => bench::run(&project, &what),
        Command::Package(choice) => package::run(&project, &choice),
        Command::Clients { clients } => clients::run(&project, clients),
        Command::Soak { extra } => {
            let words: Vec<String> = std::iter::once("soak".to_owned()).chain(extra).collect();
            bench::run(&project, &words)
        }
        Command::Conformance { data } => conformance::run(&project, data),
        Command::Cuda { prepare, runtime } => cuda::run(
            &project,
            cuda::Options {
                prepare_only: prepare,
                runtime,
            },
        ),
        Command::GpuCheck { binary, report } => gpu_check::run(&project, binary, &report),
    }
}
