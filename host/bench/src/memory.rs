//! Compares the memory that `rlf-host plan` says with what runs take.
//!
//! Each run is the quickstart with a few steps and a policy of another size. Its peak is that of its resident memory, as the
//! kernel counts it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// Interval between two readings of a run's memory. The kernel keeps the peak, so only the end of a run can be missed.
const INTERVAL: Duration = Duration::from_millis(20);
/// The configuration that is planned and run.
const CONFIG: &str = "configs/quickstart.toml";

/// Settings of every run: few steps, and rewards that give an untrained policy gradients.
const FEW_STEPS: [&str; 8] = [
    "sft.steps=10",
    "rl.steps=2",
    "rl.prompts_per_step=16",
    "eval.tasks=20",
    "eval.samples=2",
    "eval.validation_tasks=10",
    "tasks.facts.generated=300",
    "rewards.stack=[{plugin='exact-match',weights={verbatim=1.0}},{plugin='format',weights={well_formed=0.5,answered=0.25}}]",
];

/// A policy by its name, with its settings.
type Shape = (&'static str, &'static [&'static str]);

/// The quickstart's shape, and those of `rlf-bench policy`.
const SHAPES: [Shape; 3] = [
    ("0.35M", &[]),
    (
        "3.7M",
        &[
            "model.init.num_attention_heads=8",
            "model.init.num_key_value_heads=4",
            "model.init.vocab_size=2048",
            "model.init.hidden_size=256",
            "model.init.intermediate_size=768",
            "model.init.num_hidden_layers=4",
            "model.init.head_dim=32",
        ],
    ),
    (
        "30M",
        &[
            "model.init.num_attention_heads=8",
            "model.init.num_key_value_heads=4",
            "model.init.vocab_size=8192",
            "model.init.hidden_size=512",
            "model.init.intermediate_size=1536",
            "model.init.num_hidden_layers=8",
            "model.init.head_dim=64",
        ],
    ),
];

/// Plans and runs every shape whose name contains `shape`, with the plugins of a directory, and prints the ratios.
pub(crate) fn run(plugins: &Path, shape: &str) -> anyhow::Result<()> {
    let host = std::env::current_exe()?.with_file_name("rlf-host");
    ensure!(host.exists(), "there is no {}; build it", host.display());
    println!("peak of resident memory of a run of {CONFIG}, in MiB");
    println!(
        "  {:<14}{:>10}{:>10}{:>8}",
        "policy", "planned", "measured", "ratio"
    );
    let mut shapes = SHAPES
        .iter()
        .filter(|(name, _)| name.contains(shape))
        .peekable();
    ensure!(shapes.peek().is_some(), "no shape here is named `{shape}`");
    for (name, settings) in shapes {
        for precision in ["f32", "bf16"] {
            let precise = format!("precision={precision}");
            let settings = [*settings, &[&precise[..]]].concat();
            let planned = planned(&host, &settings)?;
            let measured = measured(&host, plugins, &settings)?;
            println!(
                "  {:<14}{:>10}{:>10}{:>8.2}",
                format!("{name}, {precision}"),
                planned >> 20,
                measured >> 20,
                planned as f64 / measured as f64
            );
        }
    }
    Ok(())
}

/// A command of `rlf-host` for the configuration with the settings of a shape.
fn command(host: &Path, name: &str, settings: &[&str]) -> Command {
    let mut command = Command::new(host);
    command.args([name, CONFIG]);
    for setting in FEW_STEPS.iter().chain(settings) {
        command.arg("--set").arg(setting);
    }
    command.stdin(Stdio::null());
    command
}

/// The peak that the plan says.
fn planned(host: &Path, settings: &[&str]) -> anyhow::Result<u64> {
    // It fails for a machine that is too small, and prints the plan all the same.
    let output = command(host, "plan", settings).arg("--json").output()?;
    let plan: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("`rlf-host plan` printed no plan: {said}")
    })?;
    plan["peak_bytes"].as_u64().context("the plan has no peak")
}

/// The peak of a run's resident memory.
fn measured(host: &Path, plugins: &Path, settings: &[&str]) -> anyhow::Result<u64> {
    let folder = tempfile::tempdir()?;
    let mut running = command(host, "train", settings)
        .arg("--plugins")
        .arg(plugins)
        .arg("--run")
        .arg(folder.path().join("run"))
        .stdout(Stdio::null())
        .spawn()
        .context("rlf-host cannot be started")?;
    let process = running.id().to_string();
    let mut peak = 0;
    loop {
        // A process that has ended has no memory any more.
        peak = peak.max(process_memory(&process, "VmHWM:").unwrap_or(0));
        match running.try_wait()? {
            None => thread::sleep(INTERVAL),
            Some(status) if status.success() => return Ok(peak),
            Some(status) => bail!("`rlf-host train` failed: {status}"),
        }
    }
}

/// A line of the memory status of a process from the kernel, by its id or `self`, in bytes.
pub(crate) fn process_memory(process: &str, line: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|found| found.strip_prefix(line))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}
