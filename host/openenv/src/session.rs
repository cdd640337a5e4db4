//! One session on a server: calls, rewards and the verdict.

use std::sync::Arc;

use rlf_dialogue::tool::Ended;
use rlf_dialogue::trajectory::Verdict;
use rlf_environments::error::SessionError;
use rlf_environments::server::{ServerSession, ServerStep};
use rlf_plugins::outcome::{CallEnd, invalid_arguments};
use rlf_sandbox::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::config::{OpenEnvConfig, RewardOf};
use crate::connection::{Answer, Connection, Observed, Refusal, Reward};
use crate::convert::{Acting, action_result, safe, tool_result};

/// Maximum number of characters of a server's words in an error for the model.
const MAX_ERROR_CHARS: usize = 500;

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    config: Arc<OpenEnvConfig>,
    acting: Arc<Acting>,
    connection: Mutex<Connection>,
    /// Rewards so far, taken together as the configuration says.
    reward: Option<f64>,
    /// The last failure inside the environment after which no reward came.
    failure: Option<String>,
}

impl Session {
    pub(crate) fn new(
        config: Arc<OpenEnvConfig>,
        acting: Arc<Acting>,
        connection: Connection,
        first: Option<f64>,
    ) -> Self {
        Self {
            config,
            acting,
            connection: Mutex::new(connection),
            reward: first,
            failure: None,
        }
    }

    async fn act(&mut self, tool: &str, arguments: &Value) -> ServerStep {
        let action = match &*self.acting {
            Acting::Tools => {
                json!({"type": "call_tool", "tool_name": tool, "arguments": arguments})
            }
            Acting::Action(_) => arguments.clone(),
        };
        let message = json!({"type": "step", "data": action});
        let asked = (self.connection.get_mut()).ask(&message, self.config.deadline);
        match asked.await {
            Ok(Answer::Observation(observed)) => self.observe(&observed),
            Ok(Answer::Error(refusal)) => self.refused(&refusal),
            Ok(_) => lost("it answered a step with something else".to_owned()),
            Err(why) => lost(why.to_string()),
        }
    }

    fn observe(&mut self, observed: &Observed) -> ServerStep {
        let reward = observed.reward.map(Reward::value);
        if let Some(reward) = reward {
            self.failure = None;
            self.reward = Some(match (self.config.reward, self.reward) {
                (RewardOf::Sum, Some(before)) => before + reward,
                _ => reward,
            });
        }
        let most = self.config.result_bytes;
        let end = match &*self.acting {
            Acting::Action(_) => {
                CallEnd::from_result(Ok(action_result(&observed.observation)), most)
            }
            Acting::Tools => match tool_result(&observed.observation) {
                Ok(result) => CallEnd::from_result(Ok(result), most),
                Err((kind, message)) => self.failed(&kind, &message),
            },
        };
        ServerStep {
            end,
            reward,
            terminated: observed.done,
            lost: None,
        }
    }

    /// The end of a call that failed between the server and its tool.
    fn failed(&mut self, kind: &str, message: &str) -> CallEnd {
        let message = brief(message);
        match kind {
            "invalid_args" | "tool_not_found" => {
                CallEnd::by_model(Ended::InvalidArguments, invalid_arguments(&message))
            }
            // It may be the model's mistake or the environment's own. A verdict needs a later reward.
            _ => {
                self.failure = Some(message.clone());
                CallEnd::by_model(Ended::Failed, format!("error: {message}"))
            }
        }
    }

    /// The end of a step that the server refused.
    fn refused(&mut self, refusal: &Refusal) -> ServerStep {
        let message = brief(&refusal.reason());
        let end = match refusal.code.as_str() {
            "VALIDATION_ERROR" => {
                CallEnd::by_model(Ended::InvalidArguments, invalid_arguments(&message))
            }
            "EXECUTION_ERROR" => {
                // It may be the model's mistake or the environment's own. A verdict needs a later reward.
                self.failure = Some(message.clone());
                CallEnd::by_model(Ended::Failed, format!("error: {message}"))
            }
            _ => return lost(format!("it refused a step: {message}")),
        };
        ServerStep {
            end,
            reward: None,
            terminated: false,
            lost: None,
        }
    }

    fn verdict(&self) -> Result<Verdict, SessionError> {
        let [least, most] = self.config.reward_range;
        let Some(reward) = self.reward.filter(|_| self.failure.is_none()) else {
            if let Some(failure) = &self.failure {
                return Err(SessionError::Contract(format!(
                    "a step failed inside the environment, and no reward came after it: {failure}"
                )));
            }
            return Ok(Verdict {
                success: false,
                score: 0.0,
                reason: "the environment gave no reward".to_owned(),
            });
        };
        // Sums of rewards are inexact.
        let slack = 1e-9 * (most - least);
        if !(least - slack..=most + slack).contains(&reward) {
            return Err(SessionError::Contract(format!(
                "the reward {reward} is outside of `reward_range`, which is {least} to {most}"
            )));
        }
        Ok(Verdict {
            success: reward + slack >= self.config.success_reward.unwrap_or(most),
            score: ((reward - least) / (most - least)).clamp(0.0, 1.0),
            reason: format!("the environment's reward is {reward}"),
        })
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
            match connection.ask(&message, self.config.deadline).await {
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
        self.verdict()
    }
}

fn lost(why: String) -> ServerStep {
    ServerStep {
        end: CallEnd::by_infrastructure(Ended::Unavailable, why.clone()),
        reward: None,
        terminated: false,
        lost: Some(why),
    }
}

/// A server's words, short enough for a model.
fn brief(message: &str) -> String {
    safe(&message.chars().take(MAX_ERROR_CHARS).collect::<String>())
}
