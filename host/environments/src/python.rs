//! A session of an environment in Python. It is an interpreter's session whose memory already has the environment
//! loaded, so each cell is a request to the environment. plugins/python/README.md describes the requests.

use std::sync::Arc;

use rlf_interpreters::interpreter::{Interpreter, ProgramOptions};
use rlf_interpreters::language::{PYTHON, language};
use rlf_interpreters::notebook::{Notebook, NotebookRequest};
use rlf_interpreters::program::{ProgramError, ProgramOutcome};
use rlf_interpreters::requests::unwrapped;
use rlf_plugins::bindings::{environment, types};
use rlf_plugins::plugin::Plugin;
use rlf_plugins::programs::ProgramLimits;
use rlf_sandbox::Stopped;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::SessionError;
use crate::request::{
    Answer, LIFETIME, SessionOrigin, SessionStart, StepResult, Time, wait_within,
};

/// A live session. Dropping it frees its instance.
#[derive(Debug)]
pub(crate) struct PythonSession {
    notebook: Notebook,
    plugin: Arc<Plugin>,
    memory: u64,
}

/// A tool, as described by Python.
#[derive(Deserialize)]
struct Definition {
    name: String,
    #[serde(default)]
    description: String,
    input_schema: Value,
    #[serde(default)]
    output_schema: Option<Value>,
}

#[derive(Deserialize)]
struct Said {
    role: String,
    content: String,
}

#[derive(Deserialize, Default)]
struct Opened {
    #[serde(default)]
    messages: Vec<Said>,
    #[serde(default)]
    tools: Vec<Definition>,
}

#[derive(Deserialize)]
struct Called {
    text: String,
    failed: bool,
    #[serde(default)]
    terminated: bool,
    #[serde(default)]
    reward: Option<f64>,
    #[serde(default)]
    tools: Option<Vec<Definition>>,
}

#[derive(Deserialize)]
struct Heard {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    terminated: bool,
}

#[derive(Deserialize)]
struct Judged {
    success: bool,
    score: f64,
    #[serde(default)]
    reason: String,
}

impl PythonSession {
    pub(crate) async fn begin(
        plugin: &Arc<Plugin>,
        origin: SessionOrigin,
        label: &str,
        time: Time,
    ) -> Answer<(Self, SessionStart)> {
        let Some(language) = language(plugin, PYTHON) else {
            let what = format!("plugin `{}` does not run {PYTHON}", plugin.name());
            return Err(Stopped::unavailable(what).into());
        };
        let interpreter = Interpreter::pinned_to(plugin, language);
        let request = NotebookRequest {
            seed: origin.seed(),
            ..NotebookRequest::default()
        };
        let spec = ProgramOptions {
            label: label.to_owned(),
            lifetime: Some(LIFETIME),
            ..ProgramOptions::default()
        };
        let opened = wait_within(time.wall, interpreter.open_notebook(request, spec)).await?;
        let mut session = Self {
            notebook: opened.map_err(|error| stopped_by(&error))?,
            plugin: Arc::clone(plugin),
            memory: 0,
        };
        let opened = match origin {
            SessionOrigin::Open { task, seed } => {
                session.ask::<Opened>("open", json!([task, seed]), time)
            }
            SessionOrigin::Restore { snapshot, .. } => {
                let text = String::from_utf8_lossy(&snapshot).into_owned();
                return session.restore(text, time).await;
            }
        };
        let opened = opened.await?;
        let state = session.state(time).await?;
        let start = environment::Start {
            messages: opened.messages.into_iter().map(message).collect(),
            tools: opened.tools.into_iter().map(definition).collect(),
        };
        let start = Some(start);
        Ok((session, SessionStart { start, state }))
    }

    async fn restore(mut self, snapshot: String, time: Time) -> Answer<(Self, SessionStart)> {
        self.ask::<Value>("restore", json!([snapshot]), time)
            .await?;
        let state = self.state(time).await?;
        Ok((self, SessionStart { start: None, state }))
    }

    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    pub(crate) async fn call(
        &mut self,
        name: &str,
        arguments: &str,
        time: Time,
    ) -> Answer<StepResult> {
        let called = self.ask::<Called>("call", json!([name, arguments]), time);
        let called = match called.await {
            Ok(called) => Ok(called),
            // If the memory is used up, the effects of the call up to then do not count.
            Err(SessionError::Refused(error)) if !matches!(error, types::Error::Exhausted(_)) => {
                Err(error)
            }
            Err(error) => return Err(error),
        };
        let step = called.map(|called| environment::Step {
            observation: text(called.text, called.failed),
            reward: called.reward,
            terminated: called.terminated,
            tools: called
                .tools
                .map(|tools| tools.into_iter().map(definition).collect()),
        });
        self.stepped(step, time).await
    }

    pub(crate) async fn say(&mut self, said: &str, time: Time) -> Answer<StepResult> {
        let heard = match self.ask::<Heard>("say", json!([said]), time).await {
            Ok(heard) => Ok(heard),
            Err(SessionError::Refused(error)) => Err(error),
            Err(error) => return Err(error),
        };
        let step = heard.map(|heard| environment::Step {
            observation: types::Observation {
                content: heard.text.map(types::Content::Text).into_iter().collect(),
                failed: false,
                metrics: Vec::new(),
                extra: Vec::new(),
            },
            reward: None,
            terminated: heard.terminated,
            tools: None,
        });
        self.stepped(step, time).await
    }

    async fn stepped(
        &mut self,
        step: Result<environment::Step, types::Error>,
        time: Time,
    ) -> Answer<StepResult> {
        let state = self.state(time).await?;
        Ok(StepResult { step, state })
    }

    pub(crate) async fn state(&mut self, time: Time) -> Answer<String> {
        self.text("state", json!([]), time).await
    }

    pub(crate) async fn snapshot(&mut self, time: Time) -> Answer<Vec<u8>> {
        let text = self.text("snapshot", json!([]), time).await?;
        Ok(text.into_bytes())
    }

    pub(crate) async fn verify(
        &mut self,
        answer: Option<&str>,
        reference: &str,
        time: Time,
    ) -> Answer<types::Verdict> {
        let judged = self
            .ask::<Judged>("verify", json!([answer, reference]), time)
            .await?;
        Ok(types::Verdict {
            success: judged.success,
            score: judged.score,
            reason: judged.reason,
        })
    }

    /// The scenarios from the environment's files, as JSON.
    pub(crate) async fn scenarios(&mut self, time: Time) -> Answer<String> {
        self.text("scenarios", json!([]), time).await
    }

    async fn ask<T: DeserializeOwned>(&mut self, what: &str, with: Value, time: Time) -> Answer<T> {
        let text = self.text(what, with, time).await?;
        serde_json::from_str(&text).map_err(|error| {
            SessionError::Refused(types::Error::Internal(format!(
                "`{what}` gave no answer of the expected form: {error}"
            )))
        })
    }

    /// Sends one request. Its answer is JSON, or an error of the environment.
    async fn text(&mut self, what: &str, with: Value, time: Time) -> Answer<String> {
        let request = json!([what, with]).to_string();
        let limits = ProgramLimits {
            time: Some(time.budget),
            ..ProgramLimits::default()
        };
        let report = wait_within(time.wall, self.notebook.execute(&request, limits)).await?;
        let report = report.map_err(|error| stopped_by(&error))?;
        if let Some(stopped) = report.stopped {
            return Err(stopped.into());
        }
        self.memory = report.memory;
        self.plugin
            .keep_printed(report.stdout.captured(), report.stderr.captured());
        let internal = |what: String| SessionError::Refused(types::Error::Internal(what));
        let answer = match (report.outcome, report.value) {
            (Some(ProgramOutcome::Completed), Some(value)) => value,
            (Some(ProgramOutcome::Raised(error) | ProgramOutcome::Rejected(error)), _) => {
                return Err(internal(format!("{}: {}", error.kind, error.message)));
            }
            (outcome, _) => {
                let problem = format!("`{what}` ended without an answer: {outcome:?}");
                return Err(internal(problem));
            }
        };
        unwrapped(what, &answer).map_err(SessionError::Refused)
    }
}

fn stopped_by(error: &ProgramError) -> Stopped {
    Stopped::unavailable(error.to_string())
}

fn text(text: String, failed: bool) -> types::Observation {
    types::Observation {
        content: vec![types::Content::Text(text)],
        failed,
        metrics: Vec::new(),
        extra: Vec::new(),
    }
}

fn message(said: Said) -> types::Message {
    types::Message {
        role: match said.role.as_str() {
            "system" => types::Role::System,
            "assistant" => types::Role::Assistant,
            "tool" => types::Role::Tool,
            _ => types::Role::User,
        },
        content: vec![types::Content::Text(said.content)],
    }
}

fn definition(definition: Definition) -> types::ToolDefinition {
    types::ToolDefinition {
        name: definition.name,
        description: definition.description,
        input_schema: definition.input_schema.to_string(),
        output_schema: definition.output_schema.map(|schema| schema.to_string()),
        hints: types::Hints::empty(),
        extra: Vec::new(),
    }
}
