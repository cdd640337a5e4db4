//! The rewards and failures of one episode, and the verdict.

use std::sync::Arc;

use rlf_dialogue::tool::Ended;
use rlf_dialogue::trajectory::Verdict;
use rlf_environments::error::SessionError;
use rlf_environments::server::ServerStep;
use rlf_plugins::bindings::types;
use rlf_plugins::outcome::{CallEnd, invalid_arguments};

use crate::config::{RemoteConfig, RewardOf};
use crate::host_form::brief;
use crate::protocol::Protocol;

/// The reason why a step has no result, although the server answered.
#[derive(Debug, PartialEq)]
pub(crate) enum Failure {
    /// The call does not fit the environment. Nothing was done.
    Arguments(String),
    /// The environment failed while it did as it was asked.
    Inside(String),
}

/// The rewards and failures of an episode so far.
#[derive(Debug)]
pub(crate) struct Rewards {
    pub(crate) config: Arc<RemoteConfig>,
    /// The combination of rewards: the last or the sum.
    reward_of: RewardOf,
    /// The combined reward so far.
    reward: Option<f64>,
    /// The last failure inside the environment. If the last reward counts, a reward after the failure removes it.
    failure: Option<String>,
}

impl Rewards {
    /// The rewards of an episode that begins. `reward` is that of its beginning.
    pub(crate) fn new(protocol: Protocol, config: &Arc<RemoteConfig>, reward: Option<f64>) -> Self {
        Self {
            reward_of: config.reward.unwrap_or(RewardOf::default_of(protocol)),
            config: Arc::clone(config),
            reward,
            failure: None,
        }
    }

    /// Takes what the server answered to a step, and returns the end of the step.
    pub(crate) fn step(
        &mut self,
        result: Result<types::Observation, Failure>,
        reward: Option<f64>,
        terminated: bool,
    ) -> ServerStep {
        if let Some(reward) = reward {
            self.reward = Some(match self.reward_of {
                RewardOf::Sum => self.reward.unwrap_or(0.0) + reward,
                RewardOf::Last => {
                    self.failure = None;
                    reward
                }
            });
        }
        let end = match result {
            Ok(result) => CallEnd::from_result(Ok(result), self.config.result_bytes),
            Err(Failure::Arguments(message)) => {
                let message = invalid_arguments(&brief(&message));
                CallEnd::by_model(Ended::InvalidArguments, message)
            }
            // It may be the model's mistake or the environment's own. So the step's reward is not known.
            Err(Failure::Inside(message)) => {
                let message = self.failure.insert(brief(&message));
                CallEnd::by_model(Ended::Failed, format!("error: {message}"))
            }
        };
        ServerStep {
            end,
            reward,
            terminated,
            lost: None,
        }
    }

    /// The verdict on what has been done so far.
    pub(crate) fn verdict(&self) -> Result<Verdict, SessionError> {
        let [least, most] = self.config.reward_range;
        let Some(reward) = self.reward.filter(|_| self.failure.is_none()) else {
            if let Some(failure) = &self.failure {
                let so = match self.reward_of {
                    RewardOf::Sum => "so the sum of the rewards is not known",
                    RewardOf::Last => "and no reward came after it",
                };
                return Err(SessionError::Contract(format!(
                    "a step failed inside the environment, {so}: {failure}"
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

/// The end of a step whose session is lost.
pub(crate) fn lost(why: String) -> ServerStep {
    ServerStep {
        end: CallEnd::by_infrastructure(Ended::Unavailable, why.clone()),
        reward: None,
        terminated: false,
        lost: Some(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_form::of_content;

    /// The verdict on an episode whose step fails between two that are paid.
    fn failed_between(reward_of: RewardOf) -> Result<Verdict, SessionError> {
        let config = RemoteConfig {
            reward: Some(reward_of),
            ..RemoteConfig::default()
        };
        let mut rewards = Rewards::new(Protocol::Ors, &Arc::new(config), None);
        let done = || Ok(of_content(types::Content::Text("done".to_owned()), false));
        rewards.step(done(), Some(0.5), false);
        rewards.step(Err(Failure::Inside("broken".to_owned())), None, false);
        assert!(rewards.verdict().is_err(), "{reward_of:?}");
        rewards.step(done(), Some(0.5), true);
        rewards.verdict()
    }

    #[test]
    fn a_later_reward_stands_for_a_failed_step_only_if_the_last_one_counts() {
        assert_eq!(failed_between(RewardOf::Last).unwrap().score, 0.5);
        let error = failed_between(RewardOf::Sum).unwrap_err().to_string();
        let says = "so the sum of the rewards is not known: broken";
        assert!(error.contains(says), "{error}");
    }
}
