//! One trajectory whose turns a model behind an endpoint takes: ask, parse, invoke, and again.
//!
//! The endpoint returns text, reasoning and calls, and no token ids. So nothing can be trained on such a trajectory: it
//! measures the model. The episode, its budgets and its rules are those of the policy. They count tokens with the
//! tokenizer of the dialogue, whatever the model's own tokenizer is.
//!
//! - `chat`: the conversation as the endpoint reads it

mod chat;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rlf_dialogue::episode::NextInput;
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{ToolCall, ToolDefinition};
use rlf_dialogue::trajectory::Trajectory;
use rlf_endpoint::{ChatMessage, ChatTool, Completion, Endpoint, EndpointError, Sampling};
use rlf_plugins::seed;
use rlf_plugins::turn::TurnContext;
use rlf_policy::SamplingParams;
use serde::Serialize;

use self::chat::{Chat, arguments};
use crate::context::EpisodeContext;
use crate::error::RolloutError;
use crate::player::Player;
use crate::settings::{RolloutSettings, TrajectoryIndex};
use crate::task_environment::TaskEnvironment;

/// Plays trajectories with a model behind an endpoint. Of the sampling parameters, only the temperature is sent.
pub struct EndpointPlayer {
    endpoint: Endpoint,
    spent: Mutex<TokensSpent>,
}

/// The answers of an endpoint so far, and their tokens as the endpoint counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TokensSpent {
    /// Number of answers.
    pub answers: u64,
    /// Number of answers whose tokens the endpoint did not count.
    pub uncounted: u64,
    /// Tokens of questions.
    pub prompt_tokens: u64,
    /// Tokens of answers, reasoning included.
    pub completion_tokens: u64,
}

impl EndpointPlayer {
    /// Plays with the model behind this endpoint.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            spent: Mutex::default(),
        }
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The tokens spent so far.
    pub fn spent(&self) -> TokensSpent {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, TokensSpent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(
        &self,
        messages: &[ChatMessage],
        tools: &[ToolDefinition],
        sampling: Sampling,
    ) -> Result<Completion, EndpointError> {
        let tools: Vec<ChatTool> = tools.iter().map(offered).collect();
        let answer = self
            .endpoint
            .complete_with_tools(messages, &tools, sampling)
            .await?;
        let mut spent = self.lock();
        spent.answers += 1;
        if let Some(usage) = answer.usage {
            spent.prompt_tokens += usage.prompt_tokens;
            spent.completion_tokens += usage.completion_tokens;
        } else {
            spent.uncounted += 1;
        }
        Ok(answer)
    }

    /// The settings of one question.
    fn sampling(&self, params: SamplingParams, max_new_tokens: usize, seed: u64) -> Sampling {
        // 0 in the configuration leaves the length to the endpoint. The episode cuts the turn.
        let max_tokens = match self.endpoint.config().max_tokens {
            0 => 0,
            _ => u32::try_from(max_new_tokens).unwrap_or(u32::MAX),
        };
        // Without the digits that come from the conversion of an f32.
        let temperature = (f64::from(params.temperature) * 1e6).round() / 1e6;
        Sampling {
            max_tokens: Some(max_tokens),
            temperature: Some(temperature),
            seed: Some(seed),
        }
    }
}

#[async_trait]
impl Player for EndpointPlayer {
    async fn play(
        &self,
        context: &EpisodeContext,
        settings: RolloutSettings,
        task: Arc<Task>,
        index: TrajectoryIndex,
    ) -> Result<Trajectory, RolloutError> {
        let id = settings.trajectory_id(&task, index);
        let entered = TaskEnvironment::enter(context, &task, settings.split, &id).await;
        let (mut environment, mut episode) = match entered {
            Ok(entered) => entered,
            Err(error) => return error.into_trajectory(id, &task),
        };
        let mut chat = Chat::default();
        let mut turn = 0_u32;
        loop {
            // Ask.
            let max_new_tokens = match episode.next_input() {
                NextInput::Continue { max_new_tokens, .. }
                | NextInput::Restart { max_new_tokens, .. } => max_new_tokens,
                NextInput::Finished => {
                    environment.judge(&mut episode, &task).await;
                    return Ok(episode.finish());
                }
            };
            chat.read(episode.messages());
            let seed = seed::derive(settings.seed, "endpoint", &[&id, &turn.to_string()]);
            let sampling = self.sampling(settings.sampler.params(), max_new_tokens, seed);
            let asked = self.ask(chat.messages(), episode.tools(), sampling).await;
            let answer = match asked {
                Ok(answer) => answer,
                // A model that has answered before is there, and so is its key.
                Err(error) if error.meets_every_question() && self.spent().answers == 0 => {
                    return Err(RolloutError::Endpoint { source: error });
                }
                Err(error) => {
                    episode.abort(error.to_string());
                    continue;
                }
            };

            // Parse.
            let step = episode.push_message(&message(&answer), !answer.cut_short);
            chat.say(answer);

            // Invoke.
            let turn_context = TurnContext {
                trajectory_id: id.clone(),
                turn,
                seed: settings.seed,
            };
            environment.act(step, &turn_context, &mut episode).await?;
            turn += 1;
        }
    }
}

/// A tool in the form of a question.
fn offered(tool: &ToolDefinition) -> ChatTool {
    ChatTool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.input_schema.clone(),
    }
}

/// The turn of an answer. Arguments that are not JSON stay a text, which is no object.
fn message(answer: &Completion) -> Message {
    let calls = answer.calls.iter().map(|call| ToolCall {
        call_id: String::new(),
        name: call.name.clone(),
        arguments: arguments(&call.arguments),
    });
    Message {
        reasoning_content: answer.reasoning.clone(),
        tool_calls: calls.collect(),
        ..Message::text(Role::Assistant, answer.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use rlf_endpoint::{ChatCall, EndpointConfig};

    use super::*;

    #[test]
    fn arguments_are_those_that_the_model_wrote() {
        let call = |arguments: &str| ChatCall {
            id: "a".into(),
            name: "add".into(),
            arguments: arguments.into(),
        };
        let turn = message(&Completion {
            text: "I add.".into(),
            reasoning: Some("Hm.".into()),
            calls: [r#"{"b": 1, "a": 2}"#, " ", "[1]", r#"{"a": "#]
                .map(call)
                .to_vec(),
            ..Completion::default()
        });
        assert_eq!(turn.plain_text(), "I add.");
        assert_eq!(turn.reasoning_content.as_deref(), Some("Hm."));
        let calls = turn.tool_calls.iter();
        let read = calls.map(|call| call.arguments.to_string());
        assert_eq!(
            read.collect::<Vec<_>>(),
            [r#"{"b":1,"a":2}"#, "{}", "[1]", r#""{\"a\": ""#]
        );
        assert_eq!(turn.tool_calls[0].name, "add");
    }

    #[test]
    fn a_question_has_the_temperature_as_it_was_written_and_the_budget_of_the_turn() {
        let player = |max_tokens| {
            let config = EndpointConfig {
                url: "http://127.0.0.1:1/v1".into(),
                model: "m".into(),
                max_tokens,
                ..EndpointConfig::default()
            };
            EndpointPlayer::new(Endpoint::open(config).unwrap())
        };
        let params = SamplingParams {
            temperature: 0.7,
            ..SamplingParams::default()
        };
        let sampling = player(1024).sampling(params, 3000, 5);
        assert_eq!(sampling.temperature, Some(0.7));
        assert_eq!(sampling.max_tokens, Some(3000));
        let sampling = player(0).sampling(params, 3000, 5);
        assert_eq!(sampling.max_tokens, Some(0));
    }
}
