//! `rlf-bench`: benchmarks and comparisons for maintainers. It prints speed as ratios to a named peer, and checks
//! parity of devices, endurance, and conformance of the interpreters. Users have `rlf-host bench`.
//!
//! No crate may depend on it, and users never need it.
//!
//! | looking for | module |
//! |---|---|
//! | the command line | `arguments` |
//! | speed of the policy; the cost of interrupting guests | `policy`, `interruption` |
//! | the memory of a plan and of its run | `memory` |
//! | a rollout with slow tools, beside a barrier for each turn | `rollout` |
//! | its trajectories; the generator that forces their turns; its tool | `rollout::{plan, script, tool}` |
//! | speed of tool calls, programs and environment sessions | `sandbox`, `code`, `env` |
//! | calls from inside a program | `code_mode` |
//! | calls inside one instance, for comparison | `instance` |
//! | very many calls | `soak` |
//! | equality of devices | `parity` |
//! | interpreters on recorded programs | `conformance` |

mod arguments;
mod code;
mod code_mode;
mod conformance;
mod env;
mod instance;
mod interruption;
mod memory;
mod parity;
mod policy;
mod rollout;
mod sandbox;
mod soak;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, ensure};
use clap::Parser;
use rlf_policy::{Precision, open_device};
use rlf_run::PluginSources;
use rlf_sandbox::{Sandbox, SandboxConfig, SandboxError, prepare_process};

use crate::arguments::{Arguments, Command};
use crate::policy::Workload;

fn main() -> anyhow::Result<ExitCode> {
    rlf_allocator::configure();
    let arguments = Arguments::parse();
    // A soak makes plugins misbehave on purpose, so their warnings are not shown.
    let filter = tracing_subscriber::EnvFilter::try_from_env("RLF_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .without_time()
        .init();
    run(&arguments.command)
}

/// The sandbox with the same settings as in `rlf-host`.
fn user_sandbox() -> Result<Sandbox, SandboxError> {
    let sources = PluginSources {
        preparer: Some(prepare_process::this_program()),
        ..PluginSources::new("target/plugins")
    };
    sources.sandbox(&SandboxConfig::default())
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Prepare => Ok(prepare_process::prepare_from_stdin(
            &rlf_plugins::gates::closed_gates(),
        )),
        Command::Conformance(options) => conformance::run(options),
        Command::Policy {
            device,
            workers,
            python,
            shape,
            bf16,
            keep_activations,
        } => {
            let choice = open_device(device)?;
            ensure!(
                !bf16 || choice.device.is_cpu(),
                "--bf16 is for the CPU; shapes for a GPU are in bf16 without it"
            );
            let workers = workers.unwrap_or_else(|| rlf_policy::cpu_facts().threads);
            let mut workloads = vec![Workload::quickstart()];
            // Qwen3's shapes would take hours on a CPU.
            workloads.extend(if choice.device.is_cpu() {
                Workload::small()
            } else {
                Workload::qwen3()
            });
            workloads.retain(|workload| workload.name.contains(shape));
            ensure!(!workloads.is_empty(), "no shape here is named `{shape}`");
            let mut reports = Vec::new();
            for workload in &mut workloads {
                workload.checkpointing &= !keep_activations;
                if *bf16 {
                    workload.precision = Precision::Bf16;
                }
                // First, because this process does not give back a GPU's memory.
                let peers = python
                    .as_ref()
                    .map(|python| workload.in_transformers(&choice.device, python, workers))
                    .transpose()?;
                let mut report = policy::run(workload, &choice.device, workers)?;
                report.compare(peers.unwrap_or_default());
                println!("{report}");
                reports.push(report);
            }
            println!("{}", policy::table(&reports));
            Ok(ExitCode::SUCCESS)
        }
        Command::Rollout {
            workers,
            seed,
            batches,
        } => {
            rollout::run(&rollout::Options {
                workers: workers.unwrap_or_else(|| rlf_policy::cpu_facts().threads),
                seed: *seed,
                batches,
            })?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Memory { shape, plugins } => {
            memory::run(&plugins.plugins, shape)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Sandbox {
            python,
            corpus,
            seconds,
            plugins,
        } => sandbox::run(&sandbox::Options {
            plugins: &plugins.plugins,
            python: python.as_deref(),
            corpus: corpus.as_deref(),
            time: Duration::from_secs_f64(*seconds),
        }),
        Command::Code {
            builds,
            seconds,
            alive,
            packages,
            python,
            monty,
            cache,
        } => code::run(&code::Options {
            builds,
            time: Duration::from_secs_f64(*seconds),
            alive: *alive,
            packages: *packages,
            python: python.clone(),
            monty: monty.clone(),
            cache: cache.clone(),
        }),
        Command::Env {
            python,
            environment,
            specification,
            retail,
            seconds,
            alive,
            plugins,
        } => env::run(&env::Options {
            plugins: &plugins.plugins,
            retail: retail.as_deref(),
            environment,
            specification,
            python: python.as_deref(),
            time: Duration::from_secs_f64(*seconds),
            alive: *alive,
        }),
        Command::Soak {
            calls,
            at_once,
            misbehaving,
            plugins,
        } => soak::run(&soak::Options {
            plugins: &plugins.plugins,
            misbehaving,
            calls: *calls,
            at_once: *at_once,
        }),
        Command::Parity { device } => {
            let choice = open_device(device)?;
            if choice.device.is_cpu() {
                bail!("parity compares another device with the CPU; name one with --device");
            }
            let compared = parity::with_cpu(&choice.device)?;
            for (shape, parity) in &compared {
                println!("{shape}\n{parity}");
            }
            Ok(if compared.iter().all(|(_, parity)| parity.agrees()) {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
    }
}
