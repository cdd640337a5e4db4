//! One client's episode: a session of an environment, begun by a reset or by the first action.

use std::sync::Arc;

use rlf_dialogue::episode::Reply;
use rlf_dialogue::message::{Content, plain_text};
use rlf_dialogue::tool::{CallOutcome, Ended, ToolCall, ToolDefinition};
use rlf_environments::error::OpenError;
use rlf_environments::error::SessionError;
use rlf_environments::session::EnvironmentSession;
use rlf_plugins::turn::TurnContext;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::protocol::{Action, Code, Fault, Observed, read_action};
use crate::answer::Refusal;
use crate::service::Service;
use crate::sessions::SessionRefusal;

/// One client's episode in an environment. Dropping it closes its session.
#[derive(Debug)]
pub(super) struct Episode {
    pub(super) service: Arc<Service>,
    environment: String,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    /// The session's name.
    name: String,
    session: Arc<Mutex<EnvironmentSession>>,
    /// The client's name for the episode.
    episode: Option<String>,
    /// The reference of the task, with which the environment judges the episode.
    reference: Value,
    steps: u32,
    /// True after the verdict.
    is_answered: bool,
}

impl Drop for Episode {
    fn drop(&mut self) {
        self.close();
    }
}

impl Episode {
    pub(super) fn new(service: Arc<Service>, environment: String) -> Self {
        Self {
            service,
            environment,
            open: None,
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.service.sessions.close(&open.name);
        }
    }

    /// Begins an episode. An earlier one ends.
    pub(super) async fn reset(
        &mut self,
        mut options: Map<String, Value>,
    ) -> Result<Observed, Fault> {
        let invalid = |what: &str| Fault::new(Code::ValidationError, what);
        let seed = match options.remove("seed") {
            None | Some(Value::Null) => None,
            Some(seed) => Some(
                seed.as_u64()
                    .ok_or_else(|| invalid("`seed` must be an integer from 0"))?,
            ),
        };
        let episode = match options.remove("episode_id") {
            None | Some(Value::Null) => None,
            Some(Value::String(episode)) if episode.len() <= 255 => Some(episode),
            Some(_) => {
                return Err(invalid(
                    "`episode_id` must be a string of at most 255 bytes",
                ));
            }
        };
        let reference = options.remove("reference").unwrap_or(Value::Null);
        self.close();
        let open = self.begin(seed, options, episode, reference).await?;
        let session = open.session.lock().await;
        let messages: Vec<Value> = (session.messages().iter())
            .map(|message| json!({"role": message.role, "content": plain_text(&message.content)}))
            .collect();
        let done = session.is_terminated();
        drop(session);
        Ok(Observed {
            observation: json!({"metadata": {"messages": messages}}),
            reward: None,
            done,
        })
    }

    /// Opens a session. Without a setup, the environment's own scenarios have one.
    async fn begin(
        &mut self,
        seed: Option<u64>,
        setup: Map<String, Value>,
        episode: Option<String>,
        reference: Value,
    ) -> Result<&mut Open, Fault> {
        let service = &self.service;
        let mut wait = service.wait();
        let _place = service.call_place(&mut wait).await?;
        let seed = seed.unwrap_or(service.config.seed);
        let setup = if setup.is_empty() {
            let setup = service
                .sessions
                .default_setup(&self.environment, seed)
                .await;
            setup?
        } else {
            Value::Object(setup)
        };
        let opened = service.sessions.open(&self.environment, &setup, seed).await;
        let (name, session) = opened?;
        Ok(self.open.insert(Open {
            name,
            session,
            episode,
            reference,
            steps: 0,
            is_answered: false,
        }))
    }

    /// The session; it begins here if there was no reset.
    async fn opened(&mut self) -> Result<&mut Open, Fault> {
        if self.open.is_none() {
            self.begin(None, Map::new(), None, Value::Null).await?;
        }
        let gone = || Fault::new(Code::SessionError, "there is no session");
        self.open.as_mut().ok_or_else(gone)
    }

    /// Gives the session a name that other requests can use, and keeps it open. Returns the name.
    pub(super) async fn keep(&mut self) -> Result<String, Fault> {
        self.opened().await?;
        let open = self.open.take();
        Ok(open.map(|open| open.name).unwrap_or_default())
    }

    /// The name of the session, if one is open.
    pub(super) fn open_name(&self) -> Option<&str> {
        self.open.as_ref().map(|open| open.name.as_str())
    }

    /// The name of the session; it begins here if there was no reset.
    pub(super) async fn name(&mut self) -> Result<String, Fault> {
        Ok(self.opened().await?.name.clone())
    }

    /// The session itself, for calls beside those of [`Episode::step`].
    pub(super) async fn session(&mut self) -> Result<Arc<Mutex<EnvironmentSession>>, Fault> {
        Ok(Arc::clone(&self.opened().await?.session))
    }

    /// Acts.
    pub(super) async fn step(&mut self, action: Value) -> Result<Observed, Fault> {
        let action = read_action(action)?;
        let service = Arc::clone(&self.service);
        let open = self.opened().await?;
        let mut session = service.lock_session(&open.session).await?;
        if let Action::ListTools {} = action {
            let tools: Vec<Value> = session.tools().map(tool).collect();
            return Ok(Observed {
                observation: json!({"tools": tools}),
                reward: None,
                done: session.is_terminated() || open.is_answered,
            });
        }
        let mut wait = service.wait();
        let _place = service.call_place(&mut wait).await?;
        let (observation, mut reward) = match action {
            Action::CallTool {
                tool_name,
                arguments,
            } if !open.is_answered => {
                let called =
                    call(&mut session, &open.name, open.steps, &tool_name, arguments).await;
                (called.observation, called.reward)
            }
            Action::Say { text } if !open.is_answered && !session.is_terminated() => {
                let context = context(&open.name, open.steps);
                let (reply, feedback) = session.say(&text, &context).await?;
                let reply = match reply {
                    Reply::Said(content) => Some(plain_text(&content)),
                    Reply::Silence | Reply::Ended => None,
                };
                (json!({"reply": reply}), feedback.step_reward)
            }
            Action::Answer { answer } if !open.is_answered => {
                let verdict = session.verify(answer.as_deref(), &open.reference).await;
                let verdict = verdict?;
                open.is_answered = true;
                let about = json!({"success": verdict.success, "reason": verdict.reason});
                (json!({"metadata": about}), Some(verdict.score))
            }
            _ => {
                let what = "the episode is over; begin another one with reset";
                return Err(Fault::new(Code::ExecutionError, what));
            }
        };
        open.steps += 1;
        if let Some(why) = session.lost() {
            return Err(Fault::new(Code::SessionError, why));
        }
        if session.is_terminated() && !open.is_answered && !open.reference.is_null() {
            let verdict = session.verify(None, &open.reference).await;
            reward = Some(verdict?.score);
            open.is_answered = true;
        }
        Ok(Observed {
            observation,
            reward,
            done: session.is_terminated() || open.is_answered,
        })
    }

    /// The state.
    pub(super) async fn state(&mut self) -> Result<Value, Fault> {
        let service = Arc::clone(&self.service);
        let open = self.opened().await?;
        let session = service.lock_session(&open.session).await?;
        let mut wait = service.wait();
        let _place = service.call_place(&mut wait).await?;
        let state = session.state().await?;
        let state: Value = rlf_json::from_str(&state).map_err(|error| {
            Fault::new(
                Code::ExecutionError,
                format!("the state is no JSON: {error}"),
            )
        })?;
        Ok(json!({
            "episode_id": open.episode.as_ref().unwrap_or(&open.name),
            "step_count": open.steps,
            "state": state,
        }))
    }
}

/// A call in OpenEnv's form.
pub(super) struct Called {
    /// `tool_name`, `result` and `error`.
    pub(super) observation: Value,
    pub(super) reward: Option<f64>,
}

/// Calls a tool of a session. `number` counts the actions of the session.
pub(super) async fn call(
    session: &mut EnvironmentSession,
    name: &str,
    number: u32,
    tool: &str,
    arguments: Map<String, Value>,
) -> Called {
    let is_known = session.tools().any(|known| known.name == tool);
    let call = ToolCall {
        call_id: format!("{name}/{number}/0"),
        name: tool.to_owned(),
        arguments: Value::Object(arguments),
    };
    let outcome = session.call(call, &context(name, number)).await;
    let reward = outcome.step_reward;
    let error_type = match outcome.ended {
        _ if !is_known => Some("tool_not_found"),
        Ended::Ok | Ended::Failed => None,
        Ended::InvalidArguments => Some("invalid_args"),
        Ended::Timeout => Some("timeout"),
        Ended::Unavailable | Ended::Cancelled => Some("transport_error"),
        _ => Some("execution_error"),
    };
    let observation = match error_type {
        Some(error_type) => json!({
            "tool_name": tool,
            "result": null,
            "error": {"error_type": error_type, "message": said(&outcome)},
        }),
        None => json!({"tool_name": tool, "result": result(&outcome), "error": null}),
    };
    Called {
        observation,
        reward,
    }
}

/// The text of a call's outcome.
fn said(outcome: &CallOutcome) -> String {
    match &outcome.observation {
        Some(observation) => plain_text(&observation.content),
        None => format!(
            "the call ended as `{}`, which says nothing about the tool",
            outcome.ended.as_str()
        ),
    }
}

/// A result, with the keys of FastMCP's.
fn result(outcome: &CallOutcome) -> Value {
    let content = outcome.observation.iter().flat_map(|seen| &seen.content);
    let blocks: Vec<Value> = content
        .clone()
        .map(|part| match part {
            Content::Text(text) => json!({"type": "text", "text": text}),
            Content::Structured(value) => json!({"type": "text", "text": value.to_string()}),
            Content::Image(blob) | Content::Audio(blob) | Content::File(blob) => json!({
                "type": "text",
                "text": format!("[{}, {} bytes]", blob.media_type, blob.data.len()),
            }),
        })
        .collect();
    let structured = content.clone().find_map(|part| match part {
        Content::Structured(value) => Some(value.clone()),
        _ => None,
    });
    let data = structured.unwrap_or_else(|| Value::String(said(outcome)));
    json!({"content": blocks, "data": data, "is_error": outcome.ended == Ended::Failed})
}

/// A tool as OpenEnv's clients read it.
fn tool(tool: &ToolDefinition) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})
}

fn context(name: &str, number: u32) -> TurnContext {
    TurnContext {
        trajectory_id: name.to_owned(),
        turn: number,
        seed: 0,
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::new(Code::ExecutionError, refusal.reason())
    }
}

impl From<SessionError> for Fault {
    fn from(error: SessionError) -> Self {
        Self::new(Code::ExecutionError, error.to_string())
    }
}

impl From<SessionRefusal> for Fault {
    fn from(refusal: SessionRefusal) -> Self {
        let code = match &refusal {
            SessionRefusal::Full(_) => Code::CapacityReached,
            SessionRefusal::Open(
                OpenError::Refused { .. } | OpenError::NoSuchEnvironment { .. },
            ) => Code::ValidationError,
            SessionRefusal::Open(_) => Code::ExecutionError,
            SessionRefusal::None(_) | SessionRefusal::NoRandomness(_) => Code::SessionError,
        };
        Self::new(code, refusal.to_string())
    }
}
