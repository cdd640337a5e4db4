//! A process between rlf-host and an agent. It ends everything that the agent started.
//!
//! A process group is not enough: a process leaves it by `setsid`, and nobody kills the group after rlf-host itself was
//! killed. The supervisor is a subreaper (prctl(2), `PR_SET_CHILD_SUBREAPER`): if a process below it loses its parent,
//! the supervisor becomes the parent. So it can find and kill all of them, without any rights. It does so when the
//! agent has ended, or when its own standard input ends, which also happens when rlf-host is killed. A process that it
//! may not kill, such as a set-user-id program, is left after a time limit. The exit code says so.
//!
//! The supervisor is a program of the same build, started with the argument [`ARGUMENT`]: it calls [`supervise`] and
//! exits. The first line of its standard input is the agent's task. Its standard output is that of the agent, and then
//! one line of its own, which says how the agent ended.

use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{self, Child, ChildStdin, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, wait, waitid,
};
#[cfg(target_os = "linux")]
use rustix::{
    io::Errno,
    process::{PidfdFlags, getpid, kill_process, pidfd_open, pidfd_send_signal},
};
use serde::{Deserialize, Serialize};

/// Command-line argument that starts a program as the supervisor. The agent's program and arguments follow after `--`.
pub const ARGUMENT: &str = "supervise";

/// Exit code of a supervisor that could not end all processes below it.
pub(crate) const SURVIVORS: u8 = 3;
/// Time to end all processes.
const ENDING: Duration = Duration::from_secs(3);
/// Longest time between two attempts to end them. The first is short, and each is twice the one before.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The end of an agent: the last line of its supervisor's output.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ending {
    /// The agent's wait status.
    Status(i32),
    /// The reason why it could not be started.
    NotStarted(String),
}

impl Ending {
    /// Splits what a supervisor wrote into the agent's own output and its ending. None if the supervisor did not come
    /// to its end.
    pub(crate) fn split(written: &str) -> Option<(&str, Self)> {
        let (of_agent, last) = written.strip_suffix('\n')?.rsplit_once('\n')?;
        Some((of_agent, rlf_json::from_str(last).ok()?))
    }

    /// Writes it as a line of its own, whatever was written before.
    fn write(&self) -> io::Result<()> {
        let mut output = io::stdout().lock();
        writeln!(output, "\n{}", serde_json::to_string(self)?)?;
        output.flush()
    }
}

/// Runs an agent, as its supervisor, and ends all processes below this one. A program that starts agents calls this
/// before anything else if its first argument is [`ARGUMENT`].
#[must_use]
pub fn supervise(command: &[OsString]) -> ExitCode {
    let ending = match run(command) {
        Ok(status) => Ending::Status(status),
        Err(error) => Ending::NotStarted(error.to_string()),
    };
    let all_ended = end_all();
    match ending.write() {
        _ if !all_ended => SURVIVORS.into(),
        Ok(()) => ExitCode::SUCCESS,
        // Nobody reads it any more.
        Err(_) => ExitCode::FAILURE,
    }
}

/// Runs the agent to its end. Returns its wait status.
fn run(command: &[OsString]) -> io::Result<i32> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    let mut agent = start(command)?;
    let stdin = agent.stdin.take();
    let agent = Pid::from_child(&agent);
    thread::spawn(move || follow_input(agent, stdin));
    loop {
        // Others that have ended are only reaped.
        if let Some((ended, status)) = wait(WaitOptions::empty())?
            && ended == agent
        {
            return Ok(status.as_raw());
        }
    }
}

fn start(command: &[OsString]) -> io::Result<Child> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::other("no program is named"));
    };
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        // A signal to the agent's group must not reach the supervisor.
        .process_group(0)
        .spawn()
}

/// Passes the task on to the agent. When the input ends, it kills the agent and its group. After a time limit it ends
/// this process, even if they live.
fn follow_input(agent: Pid, stdin: Option<ChildStdin>) {
    let mut input = io::stdin().lock();
    let mut task = Vec::new();
    _ = input.read_until(b'\n', &mut task);
    // An agent that does not read its task must not hide the end of the input.
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&task)));
    _ = io::copy(&mut input, &mut io::sink());
    // The group keeps its id until the agent has been reaped, which fails here.
    let looking = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if waitid(WaitId::Pid(agent), looking).is_ok() {
        _ = kill_process_group(agent, Signal::KILL);
    }
    kill_children();
    thread::sleep(ENDING);
    process::exit(SURVIVORS.into());
}

/// Ends all processes below this one. The children of a child that ends become children of this process. False if some
/// live after the time limit.
fn end_all() -> bool {
    let deadline = Instant::now() + ENDING;
    let mut pause = Duration::from_millis(1);
    while Instant::now() < deadline {
        match wait(WaitOptions::NOHANG) {
            // No child is left.
            Err(_) => return true,
            Ok(Some(_)) => {}
            Ok(None) => {
                kill_children();
                thread::sleep(pause);
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        }
    }
    false
}

/// Kills the children of this process, and not theirs: what loses its parent becomes a child.
#[cfg(target_os = "linux")]
fn kill_children() {
    let own = getpid().as_raw_pid();
    let Ok(processes) = fs::read_dir("/proc") else {
        return;
    };
    for process in processes.flatten() {
        let id = process.file_name().to_str().and_then(|id| id.parse().ok());
        let Some(id) = id.and_then(Pid::from_raw) else {
            continue;
        };
        let is_child = || {
            let stat = fs::read(process.path().join("stat"));
            stat.is_ok_and(|stat| parent(&String::from_utf8_lossy(&stat)) == Some(own))
        };
        if !is_child() {
            continue;
        }
        _ = match pidfd_open(id, PidfdFlags::empty()) {
            // The other thread may have reaped it, and its id may be another's. The descriptor stays with one process.
            Ok(child) if is_child() => pidfd_send_signal(child, Signal::KILL),
            Ok(_) | Err(Errno::SRCH) => Ok(()),
            // A kernel before 5.3, or one that forbids it.
            Err(_) => kill_process(id, Signal::KILL),
        };
    }
}

/// Other systems do not tell who the children are.
#[cfg(not(target_os = "linux"))]
fn kill_children() {}

/// The parent's id in `/proc/PID/stat`: the second field after the program's name, which may contain anything.
#[cfg(any(target_os = "linux", test))]
fn parent(stat: &str) -> Option<i32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_is_the_last_line_whatever_the_agent_wrote() {
        let line = r#"{"status":768}"#;
        for of_agent in ["", "thinking", "{\"answer\": \"4\"}\n", "{\"status\":0}"] {
            let written = format!("{of_agent}\n{line}\n");
            assert_eq!(
                Ending::split(&written),
                Some((of_agent, Ending::Status(768)))
            );
        }
        let of_killed = ["", "\n", "{\"answer\": \"4\"}\n", "a\n{\"status\":7"];
        for written in of_killed {
            assert_eq!(Ending::split(written), None, "{written}");
        }
    }

    #[test]
    fn the_name_of_a_program_does_not_hide_its_parent() {
        assert_eq!(parent("12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (a) S 1 (b)) Z 7 12"), Some(7));
        assert_eq!(parent("12"), None);
    }
}
