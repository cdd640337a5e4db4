//! The comparison: one process for each session. It serves the same Python file with the published packages `mcp` and
//! `pydantic`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use async_trait::async_trait;
use rlf_plugins::python_environment::Scenario;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::rounds::{Operation, Player, Way};

/// Seconds after which a process ends by itself.
const LONGEST_S: u64 = 1_800;

/// Starts processes, one after the other.
pub(super) struct Processes {
    pub(super) python: PathBuf,
    /// The driver script.
    pub(super) script: PathBuf,
    /// The file with the environment.
    pub(super) file: PathBuf,
    /// Name of the server in tasks.
    pub(super) server: String,
    pub(super) scenario: Arc<Scenario>,
}

impl Processes {
    pub(super) fn new(
        python: &Path,
        folder: &Path,
        file: &Path,
        server: &str,
        scenario: Arc<Scenario>,
    ) -> anyhow::Result<Self> {
        let script = folder.join("process.py");
        std::fs::write(&script, include_str!("process.py")).context("cannot write the driver")?;
        let output = Command::new(python)
            .args(["-c", "import mcp, pydantic"])
            .output()
            .with_context(|| format!("{} cannot be started", python.display()))?;
        ensure!(
            output.status.success(),
            "{} does not have the packages `mcp` and `pydantic`",
            python.display()
        );
        Ok(Self {
            python: python.to_owned(),
            script,
            file: file.to_owned(),
            server: server.to_owned(),
            scenario,
        })
    }

    /// Starts a process and brings its server into the scenario's first state. Blocks.
    pub(super) fn start(&self) -> anyhow::Result<Server> {
        let mut child = Command::new(&self.python)
            .arg(&self.script)
            .arg(&self.file)
            .arg(LONGEST_S.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{} cannot be started", self.python.display()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let mut child = Running(child);
        let Some((stdin, stdout)) = pipes else {
            let _ = child.0.kill();
            bail!("a process was started without pipes");
        };
        let mut server = Server {
            child,
            stdin,
            stdout: BufReader::new(stdout),
            requests: 0,
            name: self.server.clone(),
            scenario: Arc::clone(&self.scenario),
            start: self.scenario.task["servers"][&self.server].clone(),
            last: Value::Null,
        };
        server.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-03-26",
                "capabilities": {},
                "clientInfo": {"name": "rlf-host", "version": env!("CARGO_PKG_VERSION")},
            }),
        )?;
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        server.load(&server.start.clone())?;
        Ok(server)
    }
}

#[async_trait]
impl Way for Processes {
    async fn open(&self) -> anyhow::Result<Box<dyn Player>> {
        block_in_place(|| Ok(Box::new(self.start()?) as Box<dyn Player>))
    }

    /// Only one process, because opening it takes as long as opening a thousand sessions of the other ways.
    fn openings(&self) -> usize {
        1
    }
}

/// A child process that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running process.
pub(super) struct Server {
    child: Running,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    requests: u64,
    /// Name of the server in tasks.
    name: String,
    scenario: Arc<Scenario>,
    /// The state in which it started.
    start: Value,
    /// The last saved state.
    last: Value,
}

impl Server {
    pub(super) fn process(&self) -> u32 {
        self.child.0.id()
    }

    /// Makes the scenario's calls, and returns the seconds that each took.
    pub(super) fn play(&mut self) -> anyhow::Result<Vec<f64>> {
        let scenario = Arc::clone(&self.scenario);
        let mut seconds = Vec::new();
        for (tool, arguments) in &scenario.calls {
            let own = tool.strip_prefix(&self.name).unwrap_or(tool);
            let own = own.strip_prefix('-').unwrap_or(own);
            let began = Instant::now();
            self.call(own, arguments)?;
            seconds.push(began.elapsed().as_secs_f64());
        }
        Ok(seconds)
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        let sent = self.stdin.write_all(line.as_bytes());
        sent.context("a process of the environment does not listen any more")
    }

    fn request(&mut self, method: &str, parameters: &Value) -> anyhow::Result<Value> {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}))?;
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.stdout.read_line(&mut line)?;
            ensure!(read > 0, "a process of the environment is gone");
            let mut answer: Value =
                serde_json::from_str(&line).context("a process answered with no JSON")?;
            if answer["id"] == json!(id) {
                ensure!(
                    answer["error"].is_null(),
                    "`{method}` failed: {}",
                    answer["error"]
                );
                return Ok(answer["result"].take());
            }
        }
    }

    /// Calls a tool and returns its answer. A refusal is an answer too.
    fn call(&mut self, name: &str, arguments: &Value) -> anyhow::Result<Value> {
        self.request("tools/call", &json!({"name": name, "arguments": arguments}))
    }

    fn load(&mut self, scenario: &Value) -> anyhow::Result<()> {
        let loaded = self.call("load_scenario", &json!({ "scenario": scenario }))?;
        ensure!(
            loaded["isError"] != json!(true),
            "`load_scenario` refused: {loaded}"
        );
        Ok(())
    }

    fn save(&mut self) -> anyhow::Result<Value> {
        let saved = self.call("save_scenario", &json!({}))?;
        let text = saved["content"][0]["text"].as_str();
        let text = text.context("`save_scenario` returned no text")?;
        serde_json::from_str(text).context("`save_scenario` returned no JSON")
    }
}

#[async_trait]
impl Player for Server {
    async fn again(&mut self) -> anyhow::Result<()> {
        block_in_place(|| self.load(&self.start.clone()))
    }

    async fn turn(&mut self, operation: Operation) -> anyhow::Result<Vec<f64>> {
        block_in_place(|| {
            let began = Instant::now();
            match operation {
                Operation::Call => return self.play(),
                Operation::Snapshot => self.last = self.save()?,
                Operation::Restore => self.load(&self.last.clone())?,
            }
            Ok(vec![began.elapsed().as_secs_f64()])
        })
    }

    async fn state(&mut self) -> anyhow::Result<Value> {
        let saved = block_in_place(|| self.save())?;
        Ok(json!({ &self.name: saved }))
    }
}
