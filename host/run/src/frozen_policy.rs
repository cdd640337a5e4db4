//! A policy that plugins ask, and that training does not change.
//!
//! It never shares the batch of the rollout, where a trajectory that waits for a judge would wait for itself. Its engine is
//! in `frozen_engine`.

use std::sync::Arc;

use rlf_dialogue::DialogueError;
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::episode::{Episode, NextInput};
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::task::Task;
use rlf_endpoint::{ChatMessage, ChatRole, Completion, Usage};
use rlf_models::{FrozenPolicyConfig, Source, SourceError};
use rlf_plugins::gates::ModelQuestion;
use rlf_policy::{DrawKey, Model, Purpose, Sampler, SamplingParams};
use rlf_rollout::generate::GenerateRequest;
use rlf_sandbox::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::error::RunFailure;
use crate::frozen_engine::FrozenEngine;

/// A policy that never changes, and answers questions.
pub(crate) struct FrozenPolicy {
    engine: Arc<FrozenEngine>,
    /// The weights with other adapters; None for those of the engine.
    adapted: Option<Arc<Model>>,
    dialogue: Arc<Dialogue>,
    temperature: f64,
    /// The questions that it may answer at once. The engine has the slots of all its policies.
    slots: Semaphore,
}

impl FrozenPolicy {
    /// A policy with the weights of `engine`, or with `adapted`, which has other adapters beside them.
    pub(crate) fn new(
        engine: Arc<FrozenEngine>,
        adapted: Option<Arc<Model>>,
        config: &FrozenPolicyConfig,
    ) -> Result<Self, RunFailure> {
        Ok(Self {
            dialogue: Arc::new(engine.dialogue(config)?),
            engine,
            adapted,
            temperature: config.temperature,
            slots: Semaphore::new(config.slots),
        })
    }

    /// Answers a question. The answer is not constrained to the question's schema.
    async fn complete(&self, question: ModelQuestion<'_>) -> Result<Completion, SourceError> {
        let ModelQuestion {
            messages, sampling, ..
        } = question;
        let sequence = self.engine.next();
        let task = Task {
            id: sequence.0.to_string(),
            source: String::new(),
            prompt: messages.iter().map(message).collect(),
            tools: None,
            reference: Value::Null,
            environment: None,
            setup: Value::Null,
            extra: Map::new(),
        };
        let mut episode = Episode::start(&self.dialogue, task.id.clone(), &task, Vec::new())
            .map_err(|error| match error {
                DialogueError::PromptTooLong {
                    tokens, context, ..
                } => SourceError::Question(format!(
                    "the question has {tokens} tokens, and the model takes fewer than {context}"
                )),
                error => SourceError::Question(error.to_string()),
            })?;
        let (NextInput::Continue {
            append: ids,
            max_new_tokens,
        }
        | NextInput::Restart {
            ids,
            max_new_tokens,
        }) = episode.next_input()
        else {
            return Err(SourceError::Question(
                "the conversation has no turn left for the model".into(),
            ));
        };
        let most = sampling
            .max_tokens
            .map_or(max_new_tokens, |most| max_new_tokens.min(most as usize));
        let params = SamplingParams {
            temperature: sampling.temperature.unwrap_or(self.temperature) as f32,
            ..SamplingParams::default()
        };
        let seed = sampling.seed.unwrap_or_default();
        let sampler = Sampler::new(params, seed, Purpose::Evaluation)
            .map_err(|error| SourceError::Question(error.to_string()))?;
        let prompt_tokens = ids.len() as u64;
        let request = GenerateRequest {
            sequence,
            append: ids,
            max_new_tokens: most.max(1),
            sampler,
            key: DrawKey {
                step: 0,
                task: 0,
                sample: 0,
                position: 0,
            },
        };
        let _slot = self.slots.acquire().await;
        let generated = self.engine.answer(request, self.adapted.clone());
        let mut ids = generated
            .await
            .map_err(|error| SourceError::Unavailable(error.to_string()))?
            .ids;
        let completion_tokens = ids.len() as u64;
        let stop_ids = self.dialogue.stop_ids();
        let is_whole = ids.last().is_some_and(|id| stop_ids.contains(id));
        if is_whole {
            ids.pop();
        }
        Ok(Completion {
            text: self.dialogue.tokenizer().decode(&ids),
            cut_short: !is_whole,
            usage: Some(Usage {
                prompt_tokens,
                completion_tokens,
            }),
            ..Completion::default()
        })
    }
}

impl Source for FrozenPolicy {
    fn max_tokens(&self) -> u32 {
        self.dialogue.config().max_tokens_per_turn
    }

    fn context_tokens(&self) -> u32 {
        self.dialogue.config().context
    }

    fn answer<'a>(
        &'a self,
        question: ModelQuestion<'a>,
    ) -> BoxFuture<'a, Result<Completion, SourceError>> {
        Box::pin(self.complete(question))
    }
}

fn message(message: &ChatMessage) -> Message {
    let role = match message.role {
        ChatRole::System => Role::System,
        ChatRole::User => Role::User,
        ChatRole::Assistant => Role::Assistant,
        ChatRole::Tool => Role::Tool,
    };
    Message::text(role, &*message.content)
}
