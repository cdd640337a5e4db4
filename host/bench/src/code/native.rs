//! Python without our sandbox: one process for each program, a server that forks, and Monty.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::{Samples, Way};

/// The machine's real Python, not a shim that starts it.
pub(super) fn python() -> anyhow::Result<PathBuf> {
    let output = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .context("python3 cannot be started")?;
    ensure!(output.status.success(), "python3 does not run");
    Ok(PathBuf::from(
        String::from_utf8_lossy(&output.stdout).trim(),
    ))
}

/// CPU time in seconds of this process and of the processes that it started and waited for.
pub(super) fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 14 to 17, counted after the name, because a name may contain anything.
    let after = text.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = after
        .split_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}

pub(super) fn ways<'a>(python: &Path) -> Vec<(String, Box<dyn Way + 'a>)> {
    let process = |options: &[&str]| Process {
        python: python.to_owned(),
        options: options.iter().map(|option| (*option).to_owned()).collect(),
    };
    vec![
        (
            "python3 -I -S -c".to_owned(),
            Box::new(process(&["-I", "-S"])) as Box<dyn Way>,
        ),
        ("python3 -c".to_owned(), Box::new(process(&[]))),
        (
            "warm fork server".to_owned(),
            Box::new(Servers::new(python, include_str!("fork_server.py"))),
        ),
    ]
}

/// Monty, in a Python that has `pydantic-monty`.
pub(super) fn monty(python: &Path) -> (String, Box<dyn Way>) {
    let servers = Servers::new(python, include_str!("monty_server.py"));
    ("Monty, new session".to_owned(), Box::new(servers))
}

/// Runs `once` repeatedly on `at_once` threads.
pub(super) fn threads(
    at_once: usize,
    time: Duration,
    once: impl Fn(usize) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<Samples> {
    once(0)?;
    let (began, cpu) = (Instant::now(), cpu_seconds());
    let mut seconds = Vec::new();
    std::thread::scope(|scope| {
        let once = &once;
        let callers: Vec<_> = (0..at_once)
            .map(|caller| {
                scope.spawn(move || {
                    let mut seconds = Vec::new();
                    while began.elapsed() < time {
                        let started = Instant::now();
                        once(caller)?;
                        seconds.push(started.elapsed().as_secs_f64());
                    }
                    anyhow::Ok(seconds)
                })
            })
            .collect();
        for caller in callers {
            let found = caller
                .join()
                .map_err(|_| anyhow::anyhow!("a caller broke"))?;
            seconds.extend(found?);
        }
        anyhow::Ok(())
    })?;
    let cpu = cpu_seconds() - cpu;
    Ok(Samples::new(seconds, began.elapsed().as_secs_f64(), cpu))
}

struct Process {
    python: PathBuf,
    options: Vec<String>,
}

impl Way for Process {
    fn measure(
        &mut self,
        code: &str,
        printed: &str,
        at_once: usize,
        time: Duration,
    ) -> anyhow::Result<Samples> {
        threads(at_once, time, |_| {
            let output = Command::new(&self.python)
                .args(&self.options)
                .args(["-c", code])
                .output()?;
            ensure!(
                output.status.success() && output.stdout.ends_with(printed.as_bytes()),
                "it ended otherwise: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            Ok(())
        })
    }
}

/// One server for each concurrent caller, because a server runs one program after the other.
struct Servers {
    python: PathBuf,
    /// The program of a server.
    script: &'static str,
    started: Vec<Mutex<Server>>,
}

impl Servers {
    fn new(python: &Path, script: &'static str) -> Self {
        Self {
            python: python.to_owned(),
            script,
            started: Vec::new(),
        }
    }
}

struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl Server {
    fn start(python: &Path, script: &str) -> anyhow::Result<Self> {
        let mut child = Command::new(python)
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().context("no pipe")?;
        let stdout = child.stdout.take().context("no pipe")?;
        Ok(Self {
            child,
            stdin,
            stdout,
        })
    }

    fn run(&mut self, code: &str) -> anyhow::Result<Vec<u8>> {
        let length = u32::try_from(code.len())?;
        let frame = [&length.to_le_bytes(), code.as_bytes()].concat();
        self.stdin.write_all(&frame)?;
        self.stdin.flush()?;
        let mut length = [0; 4];
        self.stdout.read_exact(&mut length)?;
        let mut printed = vec![0; u32::from_le_bytes(length) as usize];
        self.stdout.read_exact(&mut printed)?;
        Ok(printed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Way for Servers {
    fn measure(
        &mut self,
        code: &str,
        printed: &str,
        at_once: usize,
        time: Duration,
    ) -> anyhow::Result<Samples> {
        // More servers than cores bring no speed.
        let servers = at_once.min(std::thread::available_parallelism().map_or(2, usize::from));
        while self.started.len() < servers {
            let server = Server::start(&self.python, self.script)?;
            self.started.push(Mutex::new(server));
        }
        threads(at_once, time, |caller| {
            let server = &self.started[caller % servers];
            let mut server = server
                .lock()
                .map_err(|_| anyhow::anyhow!("a server broke"))?;
            let found = server.run(code)?;
            ensure!(
                found.ends_with(printed.as_bytes()),
                "it ended otherwise: {}",
                String::from_utf8_lossy(&found)
            );
            Ok(())
        })
    }
}
