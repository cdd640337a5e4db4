//! Sessions of environments: one trajectory's copy of an environment.

use futures_util::future::BoxFuture;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rlf_dialogue::episode::Reply;
use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::{ToolCall, ToolDefinition};
use rlf_environments::session::EnvironmentSession;
use rlf_environments::snapshot::SessionSnapshot;
use rlf_plugins::turn::TurnContext;
use serde_json::{Value, json};

use crate::call::{read_arguments, unreadable, with_text};
use crate::error::{Failure, from_json, to_json};
use crate::fork::OfProcess;
use crate::pending::Pending;
use crate::serial::Serial;

struct Open {
    session: EnvironmentSession,
    trajectory_id: String,
    seed: u64,
    /// Number of actions so far, which numbers the turns.
    actions: u32,
}

/// An open session. Its actions run one after the other, in the order in which they were asked for.
#[pyclass(frozen)]
pub(crate) struct Session(OfProcess<Serial<Open>>);

impl Session {
    pub(crate) fn new(session: EnvironmentSession, trajectory_id: String, seed: u64) -> Self {
        let open = Open {
            session,
            trajectory_id,
            seed,
            actions: 0,
        };
        Self(OfProcess::new(Serial::new("session", open)))
    }

    /// An operation on the open session whose result is JSON.
    fn ask(
        &self,
        ask: impl for<'a> FnOnce(&'a mut Open) -> BoxFuture<'a, Result<Value, Failure>> + Send + 'static,
    ) -> PyResult<Pending> {
        let turn = self.0.get()?.turn();
        Ok(Pending::text(async move {
            let mut active = turn.begin().await?;
            let answer = ask(active.value()?).await;
            active.done();
            to_json(&answer?)
        }))
    }
}

impl Open {
    fn turn(&mut self) -> TurnContext {
        let turn = self.actions;
        self.actions += 1;
        TurnContext {
            trajectory_id: self.trajectory_id.clone(),
            turn,
            seed: self.seed,
        }
    }
}

#[pymethods]
impl Session {
    /// `messages` at the start, as texts, `tools` on offer now, `terminated`, and `lost`: the reason why it cannot continue.
    fn status(&self) -> PyResult<Pending> {
        self.ask(|open| {
            Box::pin(async move {
                let session = &open.session;
                let tools: Vec<&ToolDefinition> = session.tools().collect();
                let messages = session.messages().iter();
                let messages: Vec<Value> = messages
                    .map(|message| json!({"role": message.role, "content": message.plain_text()}))
                    .collect();
                Ok(json!({
                    "messages": messages,
                    "tools": tools,
                    "terminated": session.is_terminated(),
                    "lost": session.lost(),
                }))
            })
        })
    }

    /// Calls a tool. The answer is the outcome, as trajectories keep it.
    fn call(&self, name: String, arguments: &str) -> PyResult<Pending> {
        let arguments = read_arguments(arguments);
        self.ask(|open| {
            Box::pin(async move {
                let turn = open.turn();
                let call_id = format!("{}/{}/0", turn.trajectory_id, turn.turn);
                let outcome = match arguments {
                    Ok(arguments) => {
                        let call = ToolCall {
                            call_id,
                            name,
                            arguments,
                        };
                        open.session.call(call, &turn).await
                    }
                    Err(why) => unreadable(call_id, name, &why),
                };
                Ok(json!({
                    "outcome": with_text(&outcome)?,
                    "tools_changed": open.session.take_tools_changed(),
                    "terminated": open.session.is_terminated(),
                    "lost": open.session.lost(),
                }))
            })
        })
    }

    /// Says something to the environment's user.
    fn say(&self, text: String) -> PyResult<Pending> {
        self.ask(|open| {
            Box::pin(async move {
                let turn = open.turn();
                let (reply, feedback) = open.session.say(&text, &turn).await?;
                let said = match &reply {
                    Reply::Said(content) => Some(plain_text(content)),
                    Reply::Silence | Reply::Ended => None,
                };
                Ok(json!({
                    "text": said,
                    "lost": open.session.lost(),
                    "terminated": open.session.is_terminated(),
                    "tools_changed": open.session.take_tools_changed(),
                    "step_reward": feedback.step_reward,
                }))
            })
        })
    }

    /// The state.
    fn state(&self) -> PyResult<Pending> {
        self.ask(|open| {
            Box::pin(async move {
                let text = open.session.state().await?;
                rlf_json::from_str(&text)
                    .map_err(|error| Failure::Session(format!("its state is no JSON: {error}")))
            })
        })
    }

    /// The environment's verdict.
    fn verify(&self, answer: Option<String>, reference: &str) -> PyResult<Pending> {
        let reference: Value = from_json(reference, "reference")?;
        self.ask(|open| {
            Box::pin(async move {
                let verdict = open.session.verify(answer.as_deref(), &reference).await?;
                Ok(json!(verdict))
            })
        })
    }

    /// A snapshot, as bytes.
    fn snapshot(&self) -> PyResult<Pending> {
        let turn = self.0.get()?.turn();
        let snapshot = async move {
            let mut active = turn.begin().await?;
            let snapshot = active.value()?.session.snapshot().await;
            active.done();
            Ok::<_, Failure>(snapshot?.to_bytes())
        };
        Ok(Pending::new(snapshot, |py, bytes| {
            Ok(PyBytes::new(py, &bytes).into_any().unbind())
        }))
    }

    /// Goes back to a snapshot.
    fn restore(&self, snapshot: Vec<u8>) -> PyResult<Pending> {
        self.ask(move |open| {
            Box::pin(async move {
                let snapshot = SessionSnapshot::from_bytes(&snapshot)?;
                open.session.restore(&snapshot).await?;
                Ok(Value::Null)
            })
        })
    }

    /// Frees the session's instance, once the earlier actions have ended.
    fn close(&self) -> PyResult<Pending> {
        let turn = self.0.get()?.turn();
        let close = async move {
            turn.close().await;
            Ok::<_, Failure>(())
        };
        Ok(Pending::new(close, |py, ()| Ok(py.None())))
    }
}
