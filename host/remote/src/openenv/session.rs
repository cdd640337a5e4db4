//! One session on a server: calls, rewards and the verdict.

use std::sync::Arc;

use rlf_dialogue::trajectory::Verdict;
use rlf_environments::error::SessionError;
use rlf_environments::server::{ServerSession, ServerStep};
use rlf_sandbox::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::connection::{Answer, Connection, Observed, Refusal, Reward};
use super::convert::{Acting, action_result, tool_result};
use crate::host_form::brief;
use crate::rewards::{Failure, Rewards, lost};

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) acting: Arc<Acting>,
    pub(crate) connection: Mutex<Connection>,
    pub(crate) rewards: Rewards,
}

impl Session {
    async fn act(&mut self, tool: &str, arguments: &Value) -> ServerStep {
        let action = match &*self.acting {
            Acting::Tools => {
                json!({"type": "call_tool", "tool_name": tool, "arguments": arguments})
            }
            Acting::Action(_) => arguments.clone(),
        };
        let message = json!({"type": "step", "data": action});
        let deadline = self.rewards.config.deadline;
        let asked = self.connection.get_mut().ask(&message, deadline);
        match asked.await {
            Ok(Answer::Observation(observed)) => self.observe(&observed),
            Ok(Answer::Error(refusal)) => self.refused(&refusal),
            Ok(_) => lost("it answered a step with something else".to_owned()),
            Err(why) => lost(why.to_string()),
        }
    }

    fn observe(&mut self, observed: &Observed) -> ServerStep {
        let result = match &*self.acting {
            Acting::Action(_) => Ok(action_result(&observed.observation)),
            Acting::Tools => tool_result(&observed.observation),
        };
        let reward = observed.reward.map(Reward::value);
        self.rewards.step(result, reward, observed.done)
    }

    /// The end of a step that the server refused.
    fn refused(&mut self, refusal: &Refusal) -> ServerStep {
        let failure = match refusal.code.as_str() {
            "VALIDATION_ERROR" => Failure::Arguments(refusal.reason()),
            "EXECUTION_ERROR" => Failure::Inside(refusal.reason()),
            _ => return lost(format!("it refused a step: {}", brief(&refusal.reason()))),
        };
        self.rewards.step(Err(failure), None, false)
    }
}

impl ServerSession for Session {
    fn call<'a>(&'a mut self, tool: &'a str, arguments: &'a Value) -> BoxFuture<'a, ServerStep> {
        Box::pin(self.act(tool, arguments))
    }

    fn state(&self) -> BoxFuture<'_, Result<Value, SessionError>> {
        Box::pin(async {
            let mut connection = self.connection.lock().await;
            let message = json!({"type": "state"});
            match connection.ask(&message, self.rewards.config.deadline).await {
                Ok(Answer::State(state)) => Ok(state),
                Ok(Answer::Error(refusal)) => Err(SessionError::Lost(format!(
                    "it does not tell its state: {}",
                    brief(&refusal.reason())
                ))),
                Ok(_) => Err(SessionError::Lost(
                    "it answered the question for its state with something else".to_owned(),
                )),
                Err(why) => Err(SessionError::Lost(why.to_string())),
            }
        })
    }

    fn verify(&self) -> Result<Verdict, SessionError> {
        self.rewards.verdict()
    }
}
