//! A server that is a process of this machine.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::config::McpConfig;
use crate::ending::Ending;
use crate::lines::Lines;
use crate::quiet::Quiet;
use crate::variables::expand;

/// Variables of this process that every server gets.
const INHERITED: [&str; 10] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "TMPDIR", "TZ",
];
/// Number of lines of standard error that are kept for messages.
const KEPT_LINES: usize = 5;
/// Maximum length of a kept line, in bytes.
const LINE_BYTES: u64 = 1_000;
/// Time that a process has to end, after its input was closed and again after it was asked to end.
const GRACE: Duration = Duration::from_secs(1);

/// Time that processes have to end when the program exits at once.
const LAST_GRACE: Duration = Duration::from_millis(200);

/// The process groups of all servers that run. `None` when no more may start, because the program exits.
static GROUPS: Mutex<Option<Vec<Pid>>> = Mutex::new(Some(Vec::new()));

fn groups() -> MutexGuard<'static, Option<Vec<Pid>>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the processes of all servers, and lets no more start: each is asked to end, and killed after a moment. Call it before
/// the program exits without dropping [`Servers`](crate::Servers), such as in a handler of signals. Each server has a process
/// group of its own, so the Ctrl-C of a terminal does not reach it.
pub fn end_processes() {
    let Some(running) = groups().take().filter(|running| !running.is_empty()) else {
        return;
    };
    for signal in [Signal::TERM, Signal::KILL] {
        for group in &running {
            // There is an error if nobody is left in the group.
            _ = kill_process_group(*group, signal);
        }
        if signal == Signal::TERM {
            std::thread::sleep(LAST_GRACE);
        }
    }
}

/// A running process, alone in its process group. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// The group of the process and of all that it starts.
    group: Option<Pid>,
}

/// The last lines of a server's standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    /// The lines, for the end of a message. Empty if there are none.
    pub(crate) async fn quoted(&self) -> String {
        // What a process wrote before it ended may not have been read.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let lines: Vec<String> = self.lock().iter().cloned().collect();
        if lines.is_empty() {
            return String::new();
        }
        format!("; it wrote: {}", lines.join(" | "))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ends of a process's pipes.
pub(crate) type Pipes = Quiet<Lines<ChildStdout, ChildStdin>>;

impl Process {
    /// Starts the program of a configuration. `ending` gets the reason if its messages end the connection.
    pub(crate) fn start(
        name: &str,
        config: &McpConfig,
        said: &LastLines,
        ending: &Ending,
    ) -> Result<(Self, Pipes), String> {
        let program = config.command.as_deref().unwrap_or_default();
        let mut command = Command::new(program);
        command.env_clear();
        for variable in INHERITED {
            if let Some(value) = std::env::var_os(variable) {
                command.env(variable, value);
            }
        }
        for argument in &config.args {
            command.arg(expand(argument).map_err(|error| format!("args: {error}"))?);
        }
        for (variable, text) in &config.env {
            let value = expand(text).map_err(|error| format!("env.{variable}: {error}"))?;
            command.env(variable, value);
        }
        if let Some(directory) = &config.directory {
            command.current_dir(directory);
        }
        let mut groups = groups();
        let Some(running) = groups.as_mut() else {
            return Err("no server is started, because the program exits".to_owned());
        };
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start `{program}`: {error}"))?;
        let group = child.id().and_then(|id| Pid::from_raw(id as i32));
        running.extend(group);
        drop(groups);
        let mut process = Self { child, group };
        let child = &mut process.child;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(format!("`{program}` has no pipes"));
        };
        said.lock().clear();
        tokio::spawn(listen(name.to_owned(), stderr, said.clone()));
        let pipes = Lines::new(stdout, stdin, ending.clone());
        let pipes = Quiet::new(pipes, ending.clone());
        Ok((process, pipes))
    }

    /// Waits until the process has ended. Its input must be closed. A process that does not end is killed.
    pub(crate) async fn end(mut self) {
        if tokio::time::timeout(GRACE, self.child.wait()).await.is_ok() {
            return;
        }
        self.signal(Signal::TERM);
        // Dropping it kills it.
        _ = tokio::time::timeout(GRACE, self.child.wait()).await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // There is an error if nobody is left in the group.
            _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(running) = groups().as_mut() {
            running.retain(|group| Some(*group) != self.group);
        }
    }
}

/// Writes the lines of standard error to the log, and keeps the last ones.
async fn listen(name: String, stderr: ChildStderr, said: LastLines) {
    let mut lines = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut lines)
            .take(LINE_BYTES)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = rlf_sandbox::safe_text(&line).trim_end().to_owned();
        if text.is_empty() {
            continue;
        }
        tracing::debug!(server = name, text, "an MCP server wrote");
        let mut said = said.lock();
        if said.len() == KEPT_LINES {
            said.pop_front();
        }
        said.push_back(text);
    }
}
