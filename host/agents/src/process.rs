//! An agent as a process of this machine.

use std::fmt::Display;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rlf_rollout::agent::{AgentEnd, AgentReport};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};

use crate::config::AgentConfig;
use crate::report::{FORM, Report};
use crate::supervisor::{ARGUMENT, Ending, SURVIVORS};

/// Variables of this process that every agent gets.
const INHERITED: [&str; 10] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "TMPDIR", "TZ",
];
/// Number of bytes that are kept of the end of each stream.
const KEPT_BYTES: usize = 64 << 10;
/// Number of characters of standard error in a message.
const QUOTED: usize = 600;
/// Time to read what an agent without a supervisor wrote, after it ended. Its children may keep the streams open.
const DRAIN: Duration = Duration::from_millis(200);
/// Time for a supervisor to end all processes, and to read what it wrote. Its streams stay open only if it leaves some.
const SUPERVISED_END: Duration = Duration::from_secs(5);

/// The process group of an agent without a supervisor. Dropping it kills all processes in it.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // There is an error if nobody is left in the group.
            _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs an agent to its end: writes the task to its standard input, and reads its report. At the end, or when the future
/// is dropped, `supervisor` kills all processes that the agent started. It is the program that runs
/// [`supervise`](crate::supervisor::supervise). Without it, only the agent's process group is killed.
pub(crate) async fn run(
    config: &AgentConfig,
    supervisor: Option<&Path>,
    variables: &[(&str, String)],
    task: &Value,
) -> AgentEnd {
    let (mut child, group) = match start(config, supervisor, variables) {
        Ok(started) => started,
        Err(error) => {
            let supervisor = supervisor.map(|path| format!("the supervisor {}", path.display()));
            let program = supervisor.unwrap_or_else(|| program(config));
            return cannot_start(config, &program, &error);
        }
    };
    let is_supervised = supervisor.is_some();
    let mut stdin = child.stdin.take();
    let attended = attend(config, &mut child, &mut stdin, is_supervised, task);
    let end = tokio::time::timeout(config.wall, attended).await;
    // When its input ends, a supervisor kills all processes.
    drop(stdin);
    if end.is_err() && is_supervised {
        match tokio::time::timeout(SUPERVISED_END, child.wait()).await {
            Ok(Ok(status)) => warn_of_survivors(status),
            Ok(Err(error)) => tracing::warn!(%error, "cannot wait for the supervisor of an agent"),
            Err(_) => tracing::warn!(
                "the supervisor of an agent has not ended within {} ms; processes of the agent may live on",
                SUPERVISED_END.as_millis()
            ),
        }
    }
    drop(group);
    end.unwrap_or_else(|_| {
        AgentEnd::Failed(format!(
            "it did not end within {} ms (agent.wall_ms)",
            config.wall.as_millis()
        ))
    })
}

/// Starts the agent, under its supervisor if there is one.
fn start(
    config: &AgentConfig,
    supervisor: Option<&Path>,
    variables: &[(&str, String)],
) -> io::Result<(Child, Group)> {
    let mut words = config.command.iter();
    let mut command = if let Some(supervisor) = supervisor {
        let mut command = Command::new(supervisor);
        command.args([ARGUMENT, "--"]);
        command
    } else {
        Command::new(words.next().map_or("", String::as_str))
    };
    command.args(words).env_clear();
    for variable in INHERITED {
        if let Some(value) = std::env::var_os(variable) {
            command.env(variable, value);
        }
    }
    command.envs(&config.env);
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    if let Some(directory) = &config.directory {
        command.current_dir(directory);
    }
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        // A supervisor must live until it has killed the others.
        .kill_on_drop(supervisor.is_none())
        .spawn()?;
    let leader = child.id().filter(|_| supervisor.is_none());
    let group = Group(leader.and_then(|id| Pid::from_raw(id as i32)));
    Ok((child, group))
}

/// The agent's program, quoted.
fn program(config: &AgentConfig) -> String {
    let program = config.command.first().map_or("", String::as_str);
    format!("`{program}`")
}

fn cannot_start(config: &AgentConfig, program: &str, why: &dyn Display) -> AgentEnd {
    let place = config.directory.as_ref();
    let place = place.map_or(String::new(), |place| format!(" in {}", place.display()));
    AgentEnd::Misconfigured(format!("cannot start {program}{place}: {why}"))
}

/// Warns if a supervisor that ended like this has left processes.
fn warn_of_survivors(supervisor: ExitStatus) {
    if supervisor.code() == Some(SURVIVORS.into()) {
        tracing::warn!(
            "processes that an agent started live on, because they cannot be killed: docs/agents.md"
        );
    }
}

/// Waits for the end of a process. The input of a supervisor stays open.
async fn attend(
    config: &AgentConfig,
    child: &mut Child,
    stdin: &mut Option<ChildStdin>,
    is_supervised: bool,
    task: &Value,
) -> AgentEnd {
    let mut line = task.to_string();
    line.push('\n');
    let written = async {
        if let Some(stdin) = stdin.as_mut() {
            // An agent that does not read its task may close its input.
            _ = stdin.write_all(line.as_bytes()).await;
        }
        if !is_supervised {
            *stdin = None;
        }
    };
    let (mut out, mut err) = (Tail::default(), Tail::default());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let drain = if is_supervised { SUPERVISED_END } else { DRAIN };
    let status = {
        let reading = async { tokio::join!(written, out.read(stdout), err.read(stderr)) };
        tokio::pin!(reading);
        let mut waiting = std::pin::pin!(child.wait());
        tokio::select! {
            status = &mut waiting => {
                _ = tokio::time::timeout(drain, reading).await;
                status
            }
            _ = &mut reading => waiting.await,
        }
    };
    let said = quoted(&rlf_sandbox::safe_text(&err.0));
    let output = String::from_utf8_lossy(&out.0);
    let (status, output) = match status {
        Err(error) => return AgentEnd::Failed(error.to_string()),
        Ok(status) if !is_supervised => (status, &*output),
        Ok(status) => {
            warn_of_survivors(status);
            match Ending::split(&output) {
                Some((output, Ending::Status(raw))) => (ExitStatus::from_raw(raw), output),
                Some((_, Ending::NotStarted(why))) => {
                    return cannot_start(config, &program(config), &why);
                }
                None => {
                    return AgentEnd::Failed(format!(
                        "the process that supervises it ended with {status}{said}"
                    ));
                }
            }
        }
    };
    if status.success() {
        report(output)
    } else {
        AgentEnd::Failed(format!("it ended with {status}{said}"))
    }
}

/// The report of an agent that ended well: the last line that it wrote, if that is a JSON object.
fn report(written: &str) -> AgentEnd {
    let last = written.lines().rev().find(|line| !line.trim().is_empty());
    let Some(last) = last.filter(|line| line.trim_start().starts_with('{')) else {
        return AgentEnd::Finished(AgentReport::default());
    };
    match rlf_json::from_str::<Report>(last) {
        Ok(report) => AgentEnd::Finished(report.into()),
        Err(error) => AgentEnd::Failed(format!(
            "the last line that it wrote is no report ({error}); write {FORM}, or a line that does not begin with a brace"
        )),
    }
}

fn quoted(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        return String::new();
    }
    let skipped = text.chars().count().saturating_sub(QUOTED);
    let end: String = text.chars().skip(skipped).collect();
    format!("; it wrote: {end}")
}

/// The end of a stream.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut chunk = vec![0; 8 << 10];
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            self.0.extend_from_slice(&chunk[..count]);
            if self.0.len() > 2 * KEPT_BYTES {
                self.0.drain(..self.0.len() - KEPT_BYTES);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn run_shell(script: &str, wall: Duration) -> AgentEnd {
        let config = AgentConfig {
            command: vec!["sh".into(), "-c".into(), script.into()],
            wall,
            ..AgentConfig::default()
        };
        run(
            &config,
            None,
            &[("WHERE", "here".to_owned())],
            &json!({ "id": "t" }),
        )
        .await
    }

    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn the_last_line_is_the_report() {
        let report = |answer: Option<&str>, reward| {
            AgentEnd::Finished(AgentReport {
                answer: answer.map(str::to_owned),
                reward,
            })
        };
        let end = run_shell(
            "echo thinking; echo '{\"answer\": \"4\", \"reward\": 0.5}'",
            LONG,
        )
        .await;
        assert_eq!(end, report(Some("4"), Some(0.5)));
        assert_eq!(run_shell("echo done", LONG).await, report(None, None));
        assert_eq!(run_shell("true", LONG).await, report(None, None));
        let end = run_shell("read task; echo \"{\\\"answer\\\": \\\"$WHERE\\\"}\"", LONG).await;
        assert_eq!(end, report(Some("here"), None));
        let AgentEnd::Failed(why) = run_shell("echo '{\"answers\": 1}'", LONG).await else {
            panic!("a wrong report was accepted")
        };
        assert!(why.contains("answers"), "{why}");
    }

    #[tokio::test]
    async fn an_agent_that_fails_or_floods_or_hangs_costs_its_own_trajectory() {
        let failed = async |script, wall| match run_shell(script, wall).await {
            AgentEnd::Failed(why) => why,
            other => panic!("{other:?}"),
        };
        let why = failed("echo no such file >&2; exit 3", LONG).await;
        assert!(
            why.contains("exit status: 3") && why.contains("no such file"),
            "{why}"
        );
        let why = failed(
            "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; exit 1",
            LONG,
        )
        .await;
        assert!(why.len() < 4 * QUOTED, "{}", why.len());
        // A child that keeps the streams open does not keep the trajectory open.
        let end = run_shell("sleep 1000 & echo '{\"answer\": \"x\"}'", LONG).await;
        assert!(matches!(end, AgentEnd::Finished(_)), "{end:?}");
        let why = failed("sleep 1000 & wait", Duration::from_millis(300)).await;
        assert!(why.contains("agent.wall_ms"), "{why}");
    }

    #[tokio::test]
    async fn a_program_that_does_not_exist_is_named() {
        let config = AgentConfig {
            command: vec!["no-such-program".into()],
            ..AgentConfig::default()
        };
        let AgentEnd::Misconfigured(why) = run(&config, None, &[], &json!({})).await else {
            panic!("it ran")
        };
        assert!(why.contains("`no-such-program`"), "{why}");
    }

    #[tokio::test]
    async fn a_supervisor_that_cannot_start_is_not_taken_for_the_agent() {
        let config = AgentConfig {
            command: vec!["true".into()],
            ..AgentConfig::default()
        };
        let supervisor = Path::new("/no-such-supervisor");
        let AgentEnd::Misconfigured(why) = run(&config, Some(supervisor), &[], &json!({})).await
        else {
            panic!("it ran")
        };
        let says = "cannot start the supervisor /no-such-supervisor: ";
        assert!(why.starts_with(says), "{why}");
    }
}
