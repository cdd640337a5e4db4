//! `rlf-host env try`: plays an episode whose turns come from standard input, one command a line.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use console::style;
use rlf_config::nearest;
use rlf_dialogue::episode::Reply;
use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::{CallOutcome, Ended, ToolCall};
use rlf_dialogue::trajectory::EnvironmentFeedback;
use rlf_environments::difference::difference;
use rlf_environments::environments::Environments;
use rlf_environments::session::EnvironmentSession;
use rlf_environments::snapshot::SessionSnapshot;
use rlf_plugins::turn::TurnContext;
use serde_json::Value;

use crate::commands::lines::CommandLines;
use crate::display::{failure, printable};

/// The task and the seed that a session is opened with.
#[derive(Clone)]
pub(super) struct Begin {
    pub(super) task: Value,
    pub(super) seed: u64,
}

/// Maximum size of a snapshot that is read from a file, in bytes: more than any session may have.
const MAX_SNAPSHOT_BYTES: u64 = 4 << 30;

const HELP: &str = "\
list                 list the tools on offer
NAME {ARGUMENTS}     call a tool with a JSON object of arguments; `call NAME {..}` if a command has the same name
say TEXT             say something without calling a tool
state                show the state as JSON
diff                 show the changes of the last call
snapshot FILE        save the session to a file
restore FILE         continue from a saved session
undo                 undo the last call
verify REFERENCE     show the environment's verdict on its state, given a reference (JSON)
quit                 leave";

const COMMANDS: [&str; 10] = [
    "list", "call", "say", "state", "diff", "snapshot", "restore", "undo", "verify", "quit",
];

/// An action that can be undone.
#[derive(Clone)]
enum Action {
    Call(String, Value),
    Say(String),
}

struct Play<'a> {
    environments: &'a Environments,
    name: &'a str,
    begin: Begin,
    session: EnvironmentSession,
    /// The snapshot that the actions started from, if they did not start from the task.
    base: Option<SessionSnapshot>,
    actions: Vec<Action>,
    /// The state now, and the state before the last action.
    now: Value,
    before: Value,
    as_json: bool,
    /// True if a call was stopped or could not be made.
    stopped: bool,
}

/// Reads commands until the input ends. If input is not from a terminal, a command that fails or is stopped makes the
/// exit code a failure.
pub(super) async fn run(
    environments: &Environments,
    name: &str,
    begin: Begin,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let session = open(environments, name, &begin).await?;
    let mut play = Play {
        environments,
        name,
        begin,
        session,
        base: None,
        actions: Vec::new(),
        now: Value::Null,
        before: Value::Null,
        as_json,
        stopped: false,
    };
    let mut lines = CommandLines::from_stdin();
    if !as_json {
        for message in play.session.messages() {
            let role = format!("{:?}", message.role).to_lowercase();
            say!(
                "{}: {}",
                style(role).bold(),
                printable(&message.plain_text())
            );
        }
        if lines.is_interactive() {
            say!("{}", HELP);
            play.list();
        }
    }
    play.now = play.state().await?;
    play.before.clone_from(&play.now);
    while let Some(line) = lines.next()? {
        if let Err(error) = play.run_command(&line).await {
            lines.show_error(error);
        }
    }
    if play.stopped {
        lines.note_failure();
    }
    Ok(lines.exit_code())
}

async fn open(
    environments: &Environments,
    name: &str,
    begin: &Begin,
) -> anyhow::Result<EnvironmentSession> {
    Ok(environments
        .open(name, "command-line", &begin.task, begin.seed)
        .await?)
}

impl Play<'_> {
    async fn run_command(&mut self, line: &str) -> anyhow::Result<()> {
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match command {
            "help" => say!("{}", HELP),
            "list" => self.list(),
            "state" => say!("{}", serde_json::to_string_pretty(&self.state().await?)?),
            "diff" if self.before == self.now => say!("{}", style("(no change)").dim()),
            "diff" => self.show_difference(),
            "call" => {
                let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                self.call(name, arguments).await?;
            }
            "say" => self.act(Action::Say(rest.to_owned())).await?,
            "undo" => self.undo().await?,
            "snapshot" => {
                let snapshot = self.session.snapshot().await.map_err(anyhow::Error::msg)?;
                let bytes = snapshot.to_bytes();
                if rest.is_empty() {
                    bail!("name a file: snapshot FILE");
                }
                rlf_files::write(Path::new(rest), &bytes)
                    .with_context(|| format!("cannot write {rest}"))?;
                say!("{} bytes in {rest}", bytes.len());
            }
            "restore" => {
                let bytes = rlf_files::read(Path::new(rest), MAX_SNAPSHOT_BYTES)
                    .with_context(|| format!("cannot read {rest:?}"))?;
                let snapshot = SessionSnapshot::from_bytes(&bytes)?;
                self.session.restore(&snapshot).await?;
                self.session.take_tools_changed();
                self.now = self.state().await?;
                self.before.clone_from(&self.now);
                self.base = Some(snapshot);
                self.actions.clear();
            }
            "verify" => {
                let reference = rlf_json::from_str(rest).context("the reference is not JSON")?;
                let verdict = self.session.verify(None, &reference).await;
                let verdict = verdict.map_err(anyhow::Error::msg)?;
                say!(
                    "{}, score {}: {}",
                    if verdict.success {
                        "success"
                    } else {
                        "no success"
                    },
                    verdict.score,
                    printable(&verdict.reason)
                );
            }
            name => self.call(name, rest).await?,
        }
        Ok(())
    }

    fn list(&self) {
        for tool in self.session.tools() {
            let required: Vec<&str> = tool.input_schema["required"]
                .as_array()
                .map(|names| names.iter().filter_map(Value::as_str).collect())
                .unwrap_or_default();
            let parameters = tool.input_schema["properties"].as_object();
            let parameters: Vec<String> = parameters
                .map(|properties| {
                    let shown = |name: &String| {
                        let optional = !required.contains(&name.as_str());
                        format!("{name}{}", if optional { "?" } else { "" })
                    };
                    properties.keys().map(shown).collect()
                })
                .unwrap_or_default();
            let description = tool.description.lines().next().unwrap_or_default();
            say!(
                "{} {{{}}}  {}",
                style(&tool.name).cyan(),
                parameters.join(", "),
                style(printable(description)).dim()
            );
        }
    }

    async fn call(&mut self, name: &str, arguments: &str) -> anyhow::Result<()> {
        if self.session.tools().all(|tool| tool.name != name) {
            let names: Vec<&str> = self
                .session
                .tools()
                .map(|tool| tool.name.as_str())
                .collect();
            let known = names.iter().copied().chain(COMMANDS);
            match nearest(name, known) {
                Some(near) => bail!("there is no tool or command `{name}`; did you mean `{near}`?"),
                None => bail!(
                    "there is no tool or command `{name}`; `list` and `help` say which there are"
                ),
            }
        }
        let arguments = if arguments.is_empty() {
            "{}"
        } else {
            arguments
        };
        let arguments: Value =
            rlf_json::from_str(arguments).context("the arguments are not JSON")?;
        self.act(Action::Call(name.to_owned(), arguments)).await
    }

    /// Does an action, shows its result, and records it.
    async fn act(&mut self, act: Action) -> anyhow::Result<()> {
        let number = self.actions.len();
        match perform(&mut self.session, &act, number).await? {
            Done::Called(outcome) => {
                self.stopped |= !matches!(outcome.ended, Ended::Ok | Ended::Failed);
                self.show_outcome(&outcome)?;
            }
            Done::Heard(reply, heard) => {
                match reply {
                    Reply::Said(content) => say!("user: {}", printable(&plain_text(&content))),
                    Reply::Ended => say!("the environment ended the episode"),
                    Reply::Silence => say!("nobody answers"),
                }
                if let Some(reward) = heard.step_reward {
                    say!("reward {reward}");
                }
            }
        }
        self.actions.push(act);
        if self.session.take_tools_changed() {
            say!("{}", style("the tools have changed:").yellow());
            self.list();
        }
        let now = self.state().await?;
        self.before = std::mem::replace(&mut self.now, now);
        if !self.as_json {
            self.show_difference();
        }
        Ok(())
    }

    fn show_outcome(&self, outcome: &CallOutcome) -> anyhow::Result<()> {
        if self.as_json {
            say!("{}", serde_json::to_string(outcome)?);
            return Ok(());
        }
        let shown = outcome
            .observation
            .as_ref()
            .map(|seen| plain_text(&seen.content))
            .unwrap_or_default();
        match outcome.ended {
            Ended::Ok if shown.is_empty() => say!("{}", style("(empty)").dim()),
            Ended::Ok => say!("{}", printable(&shown)),
            ended => {
                let (label, why) = failure(ended, &shown);
                say!("{} {why}", style(label).yellow());
                if let Some(detail) = &outcome.detail {
                    eprintln!("{}", printable(detail));
                }
            }
        }
        if let Some(reward) = outcome.step_reward {
            say!("reward {reward}");
        }
        if self.session.is_terminated() {
            say!("{}", style("the environment ended the episode").yellow());
        }
        Ok(())
    }

    /// Shows the changes made by the last action.
    fn show_difference(&self) {
        for line in difference(&self.before, &self.now) {
            say!("  {}", style(printable(&line)).dim());
        }
    }

    async fn undo(&mut self) -> anyhow::Result<()> {
        let Some((undone, actions)) = self.actions.split_last() else {
            bail!("there is nothing to undo");
        };
        let (undone, actions) = (undone.clone(), actions.to_vec());
        // The session is replayed from its start, so that added tools and a reached end are undone too.
        let mut session = open(self.environments, self.name, &self.begin).await?;
        if let Some(base) = &self.base {
            session.restore(base).await?;
        }
        for (number, act) in actions.iter().enumerate() {
            perform(&mut session, act, number).await?;
        }
        session.take_tools_changed();
        self.session = session;
        self.actions = actions;
        let now = self.state().await?;
        self.before = std::mem::replace(&mut self.now, now);
        self.show_difference();
        say!(
            "undone: {}",
            match undone {
                Action::Call(name, arguments) => format!("{name} {arguments}"),
                Action::Say(text) => format!("say {}", printable(&text)),
            }
        );
        Ok(())
    }

    async fn state(&self) -> anyhow::Result<Value> {
        let text = self.session.state().await.map_err(anyhow::Error::msg)?;
        rlf_json::from_str(&text).context("the state is not JSON")
    }
}

enum Done {
    Called(Box<CallOutcome>),
    Heard(Reply, EnvironmentFeedback),
}

async fn perform(
    session: &mut EnvironmentSession,
    act: &Action,
    number: usize,
) -> anyhow::Result<Done> {
    let context = TurnContext {
        trajectory_id: "command-line".into(),
        turn: u32::try_from(number).unwrap_or(u32::MAX),
        seed: 0,
    };
    Ok(match act {
        Action::Call(name, arguments) => {
            let call = ToolCall {
                call_id: format!("command-line/{number}/0"),
                name: name.clone(),
                arguments: arguments.clone(),
            };
            Done::Called(Box::new(session.call(call, &context).await))
        }
        Action::Say(text) => {
            let heard = session.say(text, &context).await;
            let (reply, heard) = heard.map_err(anyhow::Error::msg)?;
            Done::Heard(reply, heard)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_command() {
        for command in COMMANDS {
            assert!(HELP.contains(command), "{command}");
        }
    }
}
