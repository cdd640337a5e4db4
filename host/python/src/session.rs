//! Sessions of environments: one trajectory's copy of an environment.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rlf_dialogue::episode::Reply;
use rlf_dialogue::tool::{ToolCall, ToolDefinition};
use rlf_environments::session::EnvironmentSession;
use rlf_environments::snapshot::SessionSnapshot;
use rlf_plugins::turn::TurnContext;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::error::{Failure, from_json, to_json};
use crate::pending::Pending;
use crate::process::OfProcess;

struct Open {
    session: EnvironmentSession,
    label: String,
    seed: u64,
    /// Number of actions so far, which numbers the turns.
    actions: u32,
}

/// An open session. Its actions run one after the other, in the order in which they were asked for.
#[pyclass(frozen)]
pub(crate) struct Session(OfProcess<Arc<Mutex<Option<Open>>>>);

impl Session {
    pub(crate) fn new(session: EnvironmentSession, label: String, seed: u64) -> Self {
        let open = Open {
            session,
            label,
            seed,
            actions: 0,
        };
        Self(OfProcess::new(Arc::new(Mutex::new(Some(open)))))
    }

    /// An operation on the open session whose result is JSON.
    fn ask(
        &self,
        ask: impl for<'a> FnOnce(&'a mut Open) -> BoxFuture<'a, Result<Value, Failure>> + Send + 'static,
    ) -> PyResult<Pending> {
        let shared = Arc::clone(self.0.get()?);
        Ok(Pending::text(async move {
            let mut open = shared.lock().await;
            let open = open.as_mut().ok_or_else(closed)?;
            to_json(&ask(open).await?)
        }))
    }
}

impl Open {
    fn turn(&mut self) -> TurnContext {
        let turn = self.actions;
        self.actions += 1;
        TurnContext {
            trajectory_id: self.label.clone(),
            turn,
            seed: self.seed,
        }
    }
}

fn closed() -> Failure {
    Failure::Session("the session is closed".into())
}

#[pymethods]
impl Session {
    /// `messages` at the start, `tools` on offer now, `terminated`, and `lost`: the reason why it cannot continue.
    fn status(&self) -> PyResult<Pending> {
        self.ask(|open| {
            Box::pin(async move {
                let session = &open.session;
                let tools: Vec<&ToolDefinition> = session.tools().collect();
                Ok(json!({
                    "messages": session.messages(),
                    "tools": tools,
                    "terminated": session.is_terminated(),
                    "lost": session.lost(),
                }))
            })
        })
    }

    /// Calls a tool. The answer is the outcome, as trajectories keep it.
    fn call(&self, name: String, arguments: &str) -> PyResult<Pending> {
        let arguments: Value = from_json(arguments, "arguments")?;
        self.ask(|open| {
            Box::pin(async move {
                let turn = open.turn();
                let call = ToolCall {
                    call_id: format!("{}/{}/0", turn.trajectory_id, turn.turn),
                    name,
                    arguments,
                };
                let outcome = open.session.call(call, &turn).await;
                Ok(json!({
                    "outcome": outcome,
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
                let content = match &reply {
                    Reply::Said(content) => Some(content),
                    Reply::Silence | Reply::Ended => None,
                };
                Ok(json!({
                    "content": content,
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
        let shared = Arc::clone(self.0.get()?);
        let snapshot = async move {
            let open = shared.lock().await;
            let open = open.as_ref().ok_or_else(closed)?;
            Ok::<_, Failure>(open.session.snapshot().await?.to_bytes())
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

    /// Frees its instance, once the action under way has ended.
    fn close(&self) -> PyResult<Pending> {
        let shared = Arc::clone(self.0.get()?);
        let close = async move {
            drop(shared.lock().await.take());
            Ok::<_, Failure>(())
        };
        Ok(Pending::new(close, |py, ()| Ok(py.None())))
    }
}
