//! The trajectories that agents may ask, by their tokens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use rlf_dialogue::tool::ToolDefinition;
use rlf_rollout::agent::{AgentEnd, AgentTrajectory, Called};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::refusal::Refusal;

/// A trajectory that its agent may ask.
#[derive(Clone)]
pub(crate) struct OpenTrajectory {
    pub(crate) trajectory: Arc<AgentTrajectory>,
    /// The temperature at which training samples.
    pub(crate) temperature: f32,
    /// Takes the report of an agent that ends its trajectory over HTTP.
    end: Arc<Mutex<Option<oneshot::Sender<AgentEnd>>>>,
}

impl OpenTrajectory {
    /// The tools of the task and its environment, as the policy sees them now.
    pub(crate) async fn tools(&self) -> Result<Vec<ToolDefinition>, Refusal> {
        Ok(self.trajectory.tools().await?)
    }

    /// Calls a tool. `id` is that of the policy's call; none for a call of the agent's own.
    pub(crate) async fn call(
        &self,
        id: Option<String>,
        name: String,
        arguments: Value,
    ) -> Result<Called, Refusal> {
        // The tools of an environment are known when the call before has ended. A plugin's tool need not wait.
        let tools = if self.trajectory.is_tool_of_plugin(&name) {
            None
        } else {
            Some(self.tools().await?)
        };
        if let Some(tools) = tools.filter(|tools| tools.iter().all(|tool| tool.name != name)) {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            let shown: String = name.chars().take(64).collect();
            let why = format!(
                "the task has no tool `{shown}`; its tools are: {}",
                names.join(", ")
            );
            return Err(Refusal::new(StatusCode::NOT_FOUND, "no_tool", why));
        }
        Ok(self.trajectory.call(id, name, arguments).await?)
    }

    /// Ends the trajectory. Returns false if it has ended before.
    pub(crate) fn end(&self, end: AgentEnd) -> bool {
        self.trajectory.close("its agent has finished it");
        let sender = lock(&self.end).take();
        sender.is_some_and(|sender| sender.send(end).is_ok())
    }
}

/// All trajectories that agents may ask.
#[derive(Clone)]
pub(crate) struct OpenTrajectories {
    temperature: f32,
    by_token: Arc<Mutex<HashMap<String, OpenTrajectory>>>,
}

/// The lease of a trajectory to its agent. Dropping it closes the trajectory to the agent.
pub(crate) struct Lease {
    pub(crate) open: OpenTrajectory,
    pub(crate) token: String,
    all: OpenTrajectories,
}

impl OpenTrajectories {
    /// Makes an empty table. `temperature` is the one at which training samples.
    pub(crate) fn new(temperature: f32) -> Self {
        Self {
            temperature,
            by_token: Arc::default(),
        }
    }

    /// Opens a trajectory under a new token. The receiver gets the report of an agent that ends it over HTTP.
    pub(crate) fn open(
        &self,
        trajectory: Arc<AgentTrajectory>,
    ) -> Result<(Lease, oneshot::Receiver<AgentEnd>), getrandom::Error> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret)?;
        let token = format!("{:032x}", u128::from_le_bytes(secret));
        let (sender, ended) = oneshot::channel();
        let open = OpenTrajectory {
            trajectory,
            temperature: self.temperature,
            end: Arc::new(Mutex::new(Some(sender))),
        };
        lock(&self.by_token).insert(token.clone(), open.clone());
        let lease = Lease {
            open,
            token,
            all: self.clone(),
        };
        Ok((lease, ended))
    }

    /// The trajectory with this token.
    pub(crate) fn find(&self, token: &str) -> Option<OpenTrajectory> {
        lock(&self.by_token).get(token).cloned()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        lock(&self.all.by_token).remove(&self.token);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
