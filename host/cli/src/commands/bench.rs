//! `rlf-host bench`: speed as ratios, parity of devices, and endurance.

mod code;
mod env;
mod sandbox;
mod soak;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use rlf_policy::bench::{self, Workload};
use rlf_policy::{open_device, parity};

use crate::arguments::{Bench, BenchTarget};

pub(crate) fn run(options: &Bench) -> anyhow::Result<ExitCode> {
    match &options.what {
        BenchTarget::Policy { device, workers } => {
            let choice = open_device(device)?;
            let workers = workers.unwrap_or_else(|| rlf_policy::cpu_facts().threads);
            let mut workloads = vec![Workload::quickstart()];
            // On a CPU it says nothing that the small one does not, and takes minutes.
            if !choice.device.is_cpu() {
                workloads.push(Workload::qwen3_06b());
            }
            for workload in &workloads {
                say!("{}", bench::run(workload, &choice.device, workers)?);
            }
            Ok(ExitCode::SUCCESS)
        }
        BenchTarget::Sandbox {
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
        BenchTarget::Code {
            builds,
            seconds,
            alive,
        } => code::run(&code::Options {
            builds,
            time: Duration::from_secs_f64(*seconds),
            alive: *alive,
        }),
        BenchTarget::Env {
            python,
            environment,
            retail,
            seconds,
            alive,
            plugins,
        } => env::run(&env::Options {
            plugins: &plugins.plugins,
            retail,
            environment,
            python: python.as_deref(),
            time: Duration::from_secs_f64(*seconds),
            alive: *alive,
        }),
        BenchTarget::Soak {
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
        BenchTarget::Parity { device } => {
            let choice = open_device(device)?;
            if choice.device.is_cpu() {
                bail!("parity compares another device with the CPU; name one with --device");
            }
            let report = parity::with_cpu(&choice.device)?;
            say!("{report}");
            Ok(if report.agrees() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
    }
}
