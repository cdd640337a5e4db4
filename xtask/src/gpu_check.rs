//! `cargo xtask gpu-check`: runs all checks of a GPU on a machine that has one.
//!
//! A failed check does not stop the others: a machine with a GPU is often available only for a short time.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::Stdio,
    sync::mpsc,
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::{
    cuda,
    machine::{self, Need},
    manifest, plugins,
    project::Project,
    steps::{self, Steps, heading, say},
};

/// The users' program. The maintainers' `rlf-bench` is built beside it.
const HOST: &str = "rlf-host";
const BENCH: &str = "rlf-bench";

const SPEED: &str = "Tokens per second";

/// Python that the policy's speed is compared with, if it has [`PEERS`].
const PYTHON: &str = "python3";
const PEERS: &str = "import torch, transformers";

/// The checks: title in the report, program and arguments.
const CHECKS: [(&str, &str, &[&str]); 5] = [
    ("The machine", HOST, &["doctor", "configs/quickstart.toml"]),
    (
        "Forward, backward and decode against the CPU",
        BENCH,
        &["parity", "--device", "cuda"],
    ),
    (SPEED, BENCH, &["policy", "--device", "cuda"]),
    (
        "The quickstart, trained on the GPU",
        HOST,
        &[
            "train",
            "configs/quickstart.toml",
            "--plugins",
            "target/plugins",
            "--device",
            "cuda",
            "--run",
            "runs/gpu-check",
            "--overwrite",
        ],
    ),
    (
        "The quickstart, trained on the GPU in bf16",
        HOST,
        &[
            "train",
            "configs/quickstart.toml",
            "--plugins",
            "target/plugins",
            "--device",
            "cuda",
            "--set",
            "precision=bf16",
            "--run",
            "runs/gpu-check-bf16",
            "--overwrite",
        ],
    ),
];

/// Builds (unless `binary` is a built one), runs every check and writes their output to `report`.
pub fn run(project: &Project, binary: Option<PathBuf>, report: &Path) -> Result<()> {
    let Some(gpu) = gpu(project) else {
        bail!(
            "`nvidia-smi` finds no NVIDIA GPU here, so nothing was checked and {} is unchanged. \
             Without a GPU, `cargo xtask cuda` shows that the CUDA build compiles",
            report.display()
        );
    };
    say(&format!("{}, driver {}", gpu.name, gpu.driver));
    let binary = match binary {
        Some(binary) => binary
            .canonicalize()
            .with_context(|| format!("{} cannot be run", binary.display()))?,
        None => build(project, &gpu)?,
    };
    let mut text = preamble(project, &gpu);
    let mut failed = Vec::new();
    for (title, program, arguments) in CHECKS {
        heading(title);
        let mut arguments = arguments.to_vec();
        if title == SPEED && has_peers(project) {
            arguments.extend(["--python", PYTHON]);
        }
        let start = Instant::now();
        let (success, output) = listen(project, &program_beside(&binary, program), &arguments)?;
        let time = start.elapsed().as_secs_f64();
        let mark = if success { "" } else { "\n**It failed.**\n" };
        _ = write!(
            text,
            "\n## {title}\n\n`{program} {}`, {time:.1} s\n{mark}\n```text\n{}\n```\n",
            arguments.join(" "),
            output.trim_end()
        );
        if !success {
            failed.push(title);
        }
    }
    manifest::replace(&project.root().join(report), text.as_bytes())?;
    say(&format!("\nwritten: {}", report.display()));
    if !failed.is_empty() {
        bail!(
            "failed: {}; their output is in {}",
            failed.join(", "),
            report.display()
        );
    }
    Ok(())
}

/// True if there is a Python to compare with.
fn has_peers(project: &Project) -> bool {
    steps::output(project.command(PYTHON).args(["-c", PEERS])).is_ok()
}

/// The path of the program with this name: the `rlf-host` in use, or a program built beside it.
fn program_beside(host: &Path, name: &str) -> PathBuf {
    if name == HOST {
        host.to_owned()
    } else {
        host.with_file_name(name)
    }
}

fn build(project: &Project, gpu: &Gpu) -> Result<PathBuf> {
    let mut steps = Steps::new();
    steps.take("make ready", || {
        machine::make_ready(project, &[Need::Wasm, Need::Native])
    })?;
    steps.take("build the plugins", || plugins::build(project))?;
    let options = cuda::Options {
        runtime: true,
        ..cuda::Options::default()
    };
    cuda::build(project, options, Some(&gpu.capability), &mut steps)?;
    Ok(cuda::binary(project))
}

/// A GPU as `nvidia-smi` describes it.
#[derive(Debug, PartialEq)]
struct Gpu {
    name: String,
    driver: String,
    /// The compute capability without the point: 9.0 is `90`.
    capability: String,
    memory: String,
}

/// The first GPU of this machine.
fn gpu(project: &Project) -> Option<Gpu> {
    let mut command = project.command("nvidia-smi");
    command.arg("--query-gpu=name,driver_version,compute_cap,memory.total");
    command.arg("--format=csv,noheader");
    parse(&steps::output(&mut command).ok()?)
}

fn parse(text: &str) -> Option<Gpu> {
    let mut fields = text.lines().next()?.split(", ").map(str::to_owned);
    Some(Gpu {
        name: fields.next()?,
        driver: fields.next()?,
        capability: fields.next()?.replace('.', ""),
        memory: fields.next()?,
    })
}

fn preamble(project: &Project, gpu: &Gpu) -> String {
    let said = |program: &str, arguments: &[&str]| {
        steps::output(project.command(program).args(arguments))
            .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
    };
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown", |(_, name)| name);
    format!(
        "# What was checked on a GPU\n\n\
         Output of `cargo xtask gpu-check`, which replaces this file.\n\n\
         | | |\n|---|---|\n\
         | GPU | {}, {}, compute capability {} |\n\
         | driver | {} |\n\
         | processor | {processor}, {} threads |\n\
         | commit | {} |\n\
         | day | {} |\n",
        gpu.name,
        gpu.memory,
        gpu.capability,
        gpu.driver,
        thread::available_parallelism().map_or(0, std::num::NonZero::get),
        said("git", &["rev-parse", "--short", "HEAD"]),
        said("date", &["-u", "+%F"]),
    )
}

/// Runs the binary, passes on its output from both streams as it arrives, and returns it.
fn listen(project: &Project, binary: &Path, arguments: &[&str]) -> Result<(bool, String)> {
    let mut command = project.command(binary);
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(libraries) = cuda::runtime_libraries(project) {
        let mut path = libraries.into_os_string();
        if let Some(more) = std::env::var_os("LD_LIBRARY_PATH") {
            path.push(":");
            path.push(more);
        }
        command.env("LD_LIBRARY_PATH", path);
    }
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {}", binary.display()))?;
    let (sender, lines) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as _),
        child.stderr.take().map(|stream| Box::new(stream) as _),
    ];
    for stream in streams.into_iter().flatten() {
        let sender = sender.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    drop(sender);
    let mut kept = String::new();
    for line in lines {
        let line = String::from_utf8_lossy(&line);
        say(&line);
        _ = writeln!(kept, "{line}");
    }
    let status = child.wait().context("the check could not be waited for")?;
    Ok((status.success(), kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gpu_is_read_from_the_drivers_tool() {
        let text =
            "NVIDIA H200, 580.95.05, 9.0, 143771 MiB\nNVIDIA H200, 580.95.05, 9.0, 143771 MiB\n";
        let gpu = parse(text).unwrap();
        assert_eq!(gpu.name, "NVIDIA H200");
        assert_eq!(gpu.capability, "90");
        assert_eq!(parse("No devices were found"), None);
    }

    #[test]
    fn both_streams_of_a_check_are_kept() {
        let project = Project::at(Path::new("/"));
        let script = ["-c", "echo out; echo err >&2; exit 3"];
        let (success, output) = listen(&project, Path::new("/bin/sh"), &script).unwrap();
        assert!(!success);
        assert!(
            output.contains("out\n") && output.contains("err\n"),
            "{output}"
        );
    }
}
