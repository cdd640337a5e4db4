//! The result of a call or an utterance.

use crate::environment::Step;
use crate::{IntoObservation, Observation, ToolDefinition};

/// Builders, so that an arm of a `match` is one expression.
impl Step {
    /// Shows the model a value. A failed `Result` is a failed observation; see [`IntoObservation`].
    pub fn observed(shown: impl IntoObservation) -> Self {
        Self {
            observation: shown.into_observation(),
            reward: None,
            terminated: false,
            tools: None,
        }
    }

    /// Shows the model what failed and how to correct it. The episode continues.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::observed(Observation::failure(text))
    }

    /// Ends the episode and shows nothing.
    pub fn terminated() -> Self {
        Self::observed(Vec::new()).and_terminate()
    }

    /// Gives a reward for this step, finite.
    #[must_use]
    pub fn with_reward(mut self, reward: f64) -> Self {
        self.reward = Some(reward);
        self
    }

    /// Ends the episode with this step.
    #[must_use]
    pub fn and_terminate(mut self) -> Self {
        self.terminated = true;
        self
    }

    /// Replaces the model's tools from now on.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<ToolDefinition>) -> Self {
        self.tools = Some(tools);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_shown_and_does_not_end_the_episode() {
        let refused: Result<u8, &str> = Err("no such switch");
        assert_eq!(Step::observed(refused), Step::failed("no such switch"));
        let step = Step::failed("no such switch");
        assert!(step.observation.failed && !step.terminated);
    }

    #[test]
    fn what_a_step_does_adds_up() {
        let step = Step::observed(3)
            .with_reward(0.5)
            .with_tools(Vec::new())
            .and_terminate();
        assert_eq!(step.observation, Observation::text("3"));
        assert_eq!((step.reward, step.terminated), (Some(0.5), true));
        assert_eq!(step.tools, Some(Vec::new()));
        assert!(Step::terminated().terminated && Step::terminated().observation.content.is_empty());
    }
}
