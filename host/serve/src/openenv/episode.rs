//! One client's episode: a session of an environment, begun by a reset or by the first action.

use std::sync::Arc;

use http::StatusCode;
use rlf_dialogue::episode::Reply;
use rlf_dialogue::message::{Content, plain_text};
use rlf_dialogue::tool::{CallOutcome, Ended, Fault as CallFault, ToolCall, ToolDefinition};
use rlf_dialogue::trajectory::Verdict;
use rlf_environments::error::{OpenError, SessionError};
use rlf_environments::session::EnvironmentSession;
use rlf_plugins::turn::TurnContext;
use serde_json::{Map, Value, json};

use super::protocol::{Action, Code, Fault, Observed, read_action};
use crate::answer::Refusal;
use crate::queue::WaitBudget;
use crate::service::Service;
use crate::sessions::{EpisodeEnd, Progress, Session, SessionRefusal, SessionUse};

/// One client's episode in an environment. Dropping it closes its session, unless the session is kept.
#[derive(Debug)]
pub(super) struct Episode {
    pub(super) service: Arc<Service>,
    environment: String,
    open: Option<Open>,
    /// True after a reset that opened no session.
    is_refused: bool,
}

#[derive(Debug)]
struct Open {
    /// The session's name.
    name: String,
    session: SessionUse,
    /// True if other requests use the session by its name.
    is_kept: bool,
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
            is_refused: false,
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take().filter(|open| !open.is_kept) {
            let environment = Some(self.environment.as_str());
            self.service.sessions.close(&open.name, environment);
        }
    }

    /// Closes a session that was kept. Returns the end of its episode with this answer, or why it could not be judged.
    /// `None` if there is no such session.
    pub(super) async fn close_other(
        &self,
        name: &str,
        answer: Value,
        wait: &mut WaitBudget,
    ) -> Option<Result<Observed, Fault>> {
        let mut other = Self::new(Arc::clone(&self.service), self.environment.clone());
        other.resume(name).ok()?;
        let answer = json!({"type": "answer", "answer": answer});
        let ended = other.ended(answer, wait).await;
        if matches!(&ended, Err(fault) if fault.code == Code::CapacityReached) {
            // The client may come again.
            return Some(ended);
        }
        let environment = Some(self.environment.as_str());
        (self.service.sessions.close(name, environment)).then_some(ended)
    }

    /// The end of the episode. If it has not been judged, it is, with this answer.
    async fn ended(&mut self, answer: Value, wait: &mut WaitBudget) -> Result<Observed, Fault> {
        let service = Arc::clone(&self.service);
        let open = self.opened(wait).await?;
        let session = service.lock_session(&open.session, wait).await?;
        let Some(end) = session.progress.end.clone() else {
            drop(session);
            return self.step(answer, wait).await;
        };
        Ok(Observed {
            observation: json!({"metadata": end.verdict}),
            reward: end.reward,
            done: true,
        })
    }

    /// Begins an episode. An earlier one ends.
    pub(super) async fn reset(
        &mut self,
        options: Map<String, Value>,
        wait: &mut WaitBudget,
    ) -> Result<Observed, Fault> {
        self.close();
        self.is_refused = true;
        let service = Arc::clone(&self.service);
        let open = self.begin(options, wait).await?;
        let session = service.lock_session(&open.session, wait).await?;
        let environment = &session.environment;
        let messages: Vec<Value> = (environment.messages().iter())
            .map(|message| json!({"role": message.role, "content": plain_text(&message.content)}))
            .collect();
        Ok(Observed {
            observation: json!({"metadata": {"messages": messages}}),
            reward: None,
            done: environment.is_terminated(),
        })
    }

    /// Opens a session. Without a setup, the environment's own scenarios have one.
    async fn begin(
        &mut self,
        mut options: Map<String, Value>,
        wait: &mut WaitBudget,
    ) -> Result<&mut Open, Fault> {
        let invalid = |what: &str| Fault::new(Code::ValidationError, what);
        let service = &self.service;
        let seed = match options.remove("seed") {
            None | Some(Value::Null) => service.config.seed,
            Some(seed) => {
                let seed = seed.as_u64();
                seed.ok_or_else(|| invalid("`seed` must be an integer from 0"))?
            }
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
        let progress = Progress {
            episode,
            reference: options.remove("reference").unwrap_or_default(),
            ..Progress::default()
        };
        let _place = service.call_place(wait).await?;
        let (sessions, environment) = (&service.sessions, &self.environment);
        let setup = if options.is_empty() {
            sessions.default_setup(environment, seed).await?
        } else {
            Value::Object(options)
        };
        let (name, session) = sessions.open(environment, &setup, seed, progress).await?;
        self.is_refused = false;
        Ok(self.open.insert(Open {
            name,
            session,
            is_kept: false,
        }))
    }

    /// The session; it begins here if there was no reset.
    async fn opened(&mut self, wait: &mut WaitBudget) -> Result<&mut Open, Fault> {
        let gone = |what| Fault::new(Code::SessionError, what);
        if self.is_refused {
            return Err(gone("the last reset was refused; reset again"));
        }
        if self.open.is_none() {
            self.begin(Map::new(), wait).await?;
        }
        (self.open.as_mut()).ok_or_else(|| gone("there is no session"))
    }

    /// Goes on with a session that was kept.
    pub(super) fn resume(&mut self, name: &str) -> Result<(), SessionRefusal> {
        let session = self.service.sessions.get(name, Some(&self.environment))?;
        self.open = Some(Open {
            name: name.to_owned(),
            session,
            is_kept: true,
        });
        Ok(())
    }

    /// Keeps the session open for other requests.
    pub(super) fn keep(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_kept = true;
        }
    }

    /// The name of the session, if one is open.
    pub(super) fn open_name(&self) -> Option<&str> {
        self.open.as_ref().map(|open| open.name.as_str())
    }

    /// The name of the session; it begins here if there was no reset.
    pub(super) async fn name(&mut self, wait: &mut WaitBudget) -> Result<String, Fault> {
        Ok(self.opened(wait).await?.name.clone())
    }

    /// Lists the tools on offer, in the form that `tool` gives each.
    pub(super) async fn tools(
        &mut self,
        tool: impl Fn(&ToolDefinition) -> Value,
        wait: &mut WaitBudget,
    ) -> Result<Vec<Value>, Fault> {
        let service = Arc::clone(&self.service);
        let open = self.opened(wait).await?;
        let session = service.lock_session(&open.session, wait).await?;
        Ok(session.environment.tools().map(tool).collect())
    }

    /// Acts.
    pub(super) async fn step(
        &mut self,
        action: Value,
        wait: &mut WaitBudget,
    ) -> Result<Observed, Fault> {
        let action = read_action(action)?;
        let service = Arc::clone(&self.service);
        let Open { name, session, .. } = self.opened(wait).await?;
        let mut session = service.lock_session(session, wait).await?;
        let Session {
            environment,
            progress,
        } = &mut *session;
        if let Action::ListTools {} = action {
            let tools: Vec<Value> = environment.tools().map(tool).collect();
            return Ok(Observed {
                observation: json!({"tools": tools}),
                reward: None,
                done: environment.is_terminated() || progress.end.is_some(),
            });
        }
        let _place = service.call_place(wait).await?;
        let (observation, mut reward) = match action {
            Action::CallTool {
                tool_name,
                arguments,
            } if progress.end.is_none() => {
                call(environment, name, progress.steps, &tool_name, arguments).await?
            }
            Action::Say { text } if progress.end.is_none() && !environment.is_terminated() => {
                let context = context(name, progress.steps);
                let (reply, feedback) = environment.say(&text, &context).await?;
                let reply = match reply {
                    Reply::Said(content) => Some(plain_text(&content)),
                    Reply::Silence | Reply::Ended => None,
                };
                (json!({"reply": reply}), feedback.step_reward)
            }
            Action::Answer { .. } if progress.end.is_none() && progress.reference.is_null() => {
                let why = "no verdict: the reset had no `reference`";
                let end = EpisodeEnd {
                    reward: None,
                    verdict: json!({"success": null, "reason": why}),
                };
                (json!({"metadata": progress.end.insert(end).verdict}), None)
            }
            Action::Answer { answer } if progress.end.is_none() => {
                let verdict = environment.verify(answer.as_deref(), &progress.reference);
                let end = progress.end.insert(judged(&verdict.await?));
                (json!({"metadata": end.verdict}), end.reward)
            }
            _ => {
                let what = "the episode is over; begin another one with reset";
                return Err(Fault::new(Code::ExecutionError, what));
            }
        };
        progress.steps += 1;
        if let Some(why) = environment.lost() {
            return Err(Fault::new(Code::SessionError, why));
        }
        if environment.is_terminated() && progress.end.is_none() && !progress.reference.is_null() {
            let verdict = environment.verify(None, &progress.reference).await;
            reward = progress.end.insert(judged(&verdict?)).reward;
        }
        Ok(Observed {
            observation,
            reward,
            done: environment.is_terminated() || progress.end.is_some(),
        })
    }

    /// The state.
    pub(super) async fn state(&mut self, wait: &mut WaitBudget) -> Result<Value, Fault> {
        let service = Arc::clone(&self.service);
        let Open { name, session, .. } = self.opened(wait).await?;
        let session = service.lock_session(session, wait).await?;
        let _place = service.call_place(wait).await?;
        let state = session.environment.state().await?;
        let state: Value = rlf_json::from_str(&state).map_err(|error| {
            Fault::new(
                Code::ExecutionError,
                format!("the state is no JSON: {error}"),
            )
        })?;
        let progress = &session.progress;
        Ok(json!({
            "episode_id": progress.episode.as_ref().unwrap_or(name),
            "step_count": progress.steps,
            "state": state,
        }))
    }
}

/// Calls a tool of a session. Returns the observation in OpenEnv's form, and the reward. `number` counts the actions of
/// the session.
async fn call(
    session: &mut EnvironmentSession,
    name: &str,
    number: u32,
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<(Value, Option<f64>), Fault> {
    let is_known = session.tools().any(|known| known.name == tool);
    let call = ToolCall {
        call_id: format!("{name}/{number}/0"),
        name: tool.to_owned(),
        arguments: Value::Object(arguments),
    };
    let outcome = session.call(call, &context(name, number)).await;
    if outcome.fault == CallFault::Infrastructure {
        // Neither the client's mistake nor the environment's: nothing that a policy should read.
        let why = outcome.detail.clone();
        let why = why.unwrap_or_else(|| said(&outcome));
        return Err(Fault::new(Code::SessionError, why));
    }
    let reward = outcome.step_reward;
    let error_type = match outcome.ended {
        _ if !is_known => Some("tool_not_found"),
        Ended::Ok | Ended::Failed => None,
        Ended::InvalidArguments => Some("invalid_args"),
        Ended::Timeout => Some("timeout"),
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
    Ok((observation, reward))
}

/// The end of an episode by a verdict.
fn judged(verdict: &Verdict) -> EpisodeEnd {
    EpisodeEnd {
        reward: Some(verdict.score),
        verdict: json!({"success": verdict.success, "reason": verdict.reason}),
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
        let code = match refusal.status() {
            StatusCode::GATEWAY_TIMEOUT => Code::CapacityReached,
            StatusCode::NOT_FOUND => Code::SessionError,
            _ => Code::ValidationError,
        };
        Self::new(code, refusal.reason())
    }
}

impl From<SessionError> for Fault {
    fn from(error: SessionError) -> Self {
        let code = match &error {
            error if error.is_infrastructure() => Code::CapacityReached,
            _ => Code::ExecutionError,
        };
        Self::new(code, error.to_string())
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
