//! `rlf-host doctor`: shows what this machine has, and which device a configuration would use.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, ExitCode};

use console::style;
use rlf_policy::{cpu_facts, cuda_status, open_device};
use rlf_run::RunConfig;
use rlf_sandbox::{SandboxConfig, user_cache};
use serde_json::json;

use crate::arguments::Doctor;
use crate::plugins::sandbox;

/// Target that plugins in Rust are compiled for.
pub(crate) const WASM_TARGET: &str = "wasm32-wasip2";

pub(crate) fn run(options: &Doctor) -> anyhow::Result<ExitCode> {
    let cpu = cpu_facts();
    let cuda = cuda_status();
    let pools = sandbox(&SandboxConfig::default())?.pools();
    let cache = user_cache();
    let target = wasm_target(Path::new("."));
    let config = options.config.as_ref().map(|path| {
        let config = RunConfig::load(path, &[])?;
        let reason = open_device(&config.device)?.reason;
        anyhow::Ok((config.device.clone(), reason, config.workers()))
    });
    if options.json {
        let config = config.map(|config| match config {
            Ok((device, reason, workers)) => {
                json!({"device": device, "reason": reason, "workers": workers})
            }
            Err(error) => json!({"error": crate::error_text(&error)}),
        });
        let report = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "processor": cpu.name, "threads": cpu.threads, "simd": cpu.simd,
            "cuda": cuda.as_ref().ok(), "cuda_missing": cuda.as_ref().err().map(ToString::to_string),
            "wasm_target": target.as_ref().ok(), "wasm_target_missing": target.as_ref().err(),
            "component_cache": cache, "pools": pools, "config": config,
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    let row = |name: &str, value: String| say!("{:<16} {value}", style(name).bold());
    row("rlf-host", env!("CARGO_PKG_VERSION").into());
    row(
        "processor",
        format!("{}, {} threads, {}", cpu.name, cpu.threads, cpu.simd),
    );
    row("cuda", cuda.unwrap_or_else(|why| format!("no: {why}")));
    row(
        "wasm target",
        match target {
            Ok(found) => found,
            Err(why) => format!("no: {why} (only needed to build plugins)"),
        },
    );
    row(
        "component cache",
        cache.map_or_else(
            || "none: HOME is not set".into(),
            |path| path.display().to_string(),
        ),
    );
    let titles = ["sandbox"].into_iter().chain(std::iter::repeat(""));
    for (title, level) in titles.zip(pools.describe_levels()) {
        row(title, level);
    }
    row(
        "",
        format!(
            "at most {} MiB for one memory, {} threads that run guests",
            pools.max_memory_bytes >> 20,
            pools.workers
        ),
    );
    row("", pools.reset.to_string());
    match config {
        None => {}
        Some(Ok((device, reason, workers))) => {
            row(
                "configuration",
                format!("device = \"{device}\" uses {reason}; {workers} workers"),
            );
        }
        Some(Err(error)) => {
            row(
                "configuration",
                format!(
                    "{} {}",
                    style("cannot be used:").red(),
                    crate::error_text(&error)
                ),
            );
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks that the compiler in use in `folder` can build plugins in Rust. The error says what to install.
pub(crate) fn wasm_target(folder: &Path) -> Result<String, String> {
    let output = Command::new("rustc")
        .current_dir(folder)
        .args(["--print", "target-libdir", "--target", WASM_TARGET])
        .output()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!(
                "there is no `rustc`; install Rust from https://rustup.rs, then type `rustup target add {WASM_TARGET}`"
            ),
            _ => format!("`rustc` cannot be started: {error}"),
        })?;
    let libraries = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && Path::new(&libraries).is_dir() {
        Ok(format!("{WASM_TARGET} is installed"))
    } else {
        Err(format!("`rustup target add {WASM_TARGET}` installs it"))
    }
}
