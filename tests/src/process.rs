//! A process that is watched while it runs, and that is always ended.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Far more than any command of these tests takes on a busy machine: a command that is still running by then hangs.
const MAX_TIME: Duration = Duration::from_mins(4);

/// A command that has been started.
#[derive(Debug)]
pub struct Running {
    child: Child,
    shown: String,
    deadline: Instant,
    lines: Receiver<String>,
    stdout: String,
    stderr: Receiver<String>,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit status.
    pub status: ExitStatus,
    /// Everything on standard output.
    pub stdout: String,
    /// Everything on standard error.
    pub stderr: String,
    shown: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let shown = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{shown} does not start: {error}"));
        let stdout = child.stdout.take().expect("is piped");
        let mut stderr = child.stderr.take().expect("is piped");
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = Vec::new();
            while stdout
                .read_until(b'\n', &mut line)
                .is_ok_and(|read| read > 0)
            {
                if send
                    .send(String::from_utf8_lossy(&line).into_owned())
                    .is_err()
                {
                    break;
                }
                line.clear();
            }
        });
        let (send, errors) = mpsc::channel();
        thread::spawn(move || {
            let mut all = Vec::new();
            let _ = stderr.read_to_end(&mut all);
            let _ = send.send(String::from_utf8_lossy(&all).into_owned());
        });
        Self {
            child,
            shown,
            deadline: Instant::now() + MAX_TIME,
            lines,
            stdout: String::new(),
            stderr: errors,
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line of standard output that begins with `start`.
    pub fn until(&mut self, start: &str) -> &mut Self {
        self.rest_of_line(start);
        self
    }

    /// Waits for a line of standard output that begins with `start`; returns the rest of that line.
    pub fn rest_of_line(&mut self, start: &str) -> String {
        loop {
            match self.line() {
                Some(line) if line.starts_with(start) => {
                    return line[start.len()..].trim_end().to_owned();
                }
                Some(_) => {}
                None => panic!(
                    "{} ended without printing `{start}`:\n{}{}",
                    self.shown,
                    self.stdout,
                    self.stderr.recv().unwrap_or_default()
                ),
            }
        }
    }

    /// Sends it a signal.
    pub fn signal(&mut self, signal: Signal) -> &mut Self {
        kill_process(Pid::from_child(&self.child), signal)
            .unwrap_or_else(|error| panic!("{} takes no signal: {error}", self.shown));
        self
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Ended {
        while self.line().is_some() {}
        let stderr = self.stderr.recv().unwrap_or_default();
        let status = self
            .child
            .wait()
            .unwrap_or_else(|error| panic!("{} cannot be waited for: {error}", self.shown));
        Ended {
            status,
            stdout: std::mem::take(&mut self.stdout),
            stderr,
            shown: std::mem::take(&mut self.shown),
        }
    }

    /// The next line of standard output; none after its end.
    fn line(&mut self) -> Option<String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => {
                self.stdout.push_str(&line);
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("{} does not end; so far:\n{}", self.shown, self.stdout)
            }
        }
    }
}

impl Drop for Running {
    /// Ends the process, so that a failed test leaves nothing running.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Fails the test unless the exit code is 0.
    #[track_caller]
    pub fn succeeded(&self) -> &Self {
        assert!(self.status.success(), "{self}");
        self
    }

    /// Fails the test unless the command was refused properly: an exit code, no result, and one clear message on
    /// standard error. Returns the message without its first word.
    #[track_caller]
    pub fn refused(&self) -> &str {
        assert_eq!(self.status.code(), Some(1), "{self}");
        let message = ["error: ", "refused: "]
            .iter()
            .find_map(|word| self.stderr.strip_prefix(word))
            .unwrap_or_else(|| panic!("no message comes first: {self}"));
        for bad in ["panicked", "RUST_BACKTRACE", "error: ", "WARN"] {
            assert!(!message.contains(bad), "`{bad}` in the message: {self}");
        }
        message.trim_end()
    }

    /// Fails the test unless the message of [`Ended::refused`] contains each of these.
    #[track_caller]
    pub fn refused_with(&self, parts: &[&str]) {
        let message = self.refused();
        for part in parts {
            assert!(message.contains(part), "no `{part}` in the message: {self}");
        }
    }

    /// The exit code; none if a signal ended the process.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The signal that ended it.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON: {error}: {self}"))
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}\n{}\nstdout: {}\nstderr: {}",
            self.shown, self.status, self.stdout, self.stderr
        )
    }
}
