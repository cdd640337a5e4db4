//! A policy that plugins ask, and that training does not change.
//!
//! It has an engine of its own. It never shares the batch of the rollout, where a trajectory that waits for a judge would
//! wait for itself.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use candle_core::Device;
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::episode::{Episode, NextInput};
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::task::Task;
use rlf_dialogue::template::ChatTemplate;
use rlf_dialogue::tokenizer::Tokenizer;
use rlf_dialogue::{DialogueConfig, DialogueError};
use rlf_endpoint::{ChatMessage, ChatRole, Completion, Usage};
use rlf_models::{FrozenPolicyConfig, Source, SourceError};
use rlf_plugins::gates::ModelQuestion;
use rlf_policy::{DrawKey, GenerationConfig, Model, Purpose, Sampler, SamplingParams};
use rlf_rollout::generate::{GenerateRequest, Generator as _, SequenceId};
use rlf_rollout::policy_generator::{PolicyGenerator, PolicyGeneratorConfig};
use rlf_sandbox::BoxFuture;
use serde_json::{Map, Value};

use crate::error::{ConfigurationError, RunFailure};

/// A policy that never changes, and answers questions.
pub(crate) struct FrozenPolicy {
    dialogue: Arc<Dialogue>,
    generator: PolicyGenerator,
    temperature: f64,
    next: AtomicU64,
}

impl FrozenPolicy {
    /// Opens the weights in `folder` for the model `name`. It decodes with so many threads on the CPU.
    pub(crate) fn open(
        name: &str,
        folder: &Path,
        config: &FrozenPolicyConfig,
        workers: usize,
    ) -> Result<Self, RunFailure> {
        let model = Model::load(folder, &Device::Cpu);
        let model = model.map_err(|error| unreadable(name, config, &error))?;
        Self::with_weights(name, model, folder, config, workers)
    }

    /// The model `name` with these weights on the CPU, and the tokenizer and the template in `folder`.
    pub(crate) fn with_weights(
        name: &str,
        mut model: Model,
        folder: &Path,
        config: &FrozenPolicyConfig,
        workers: usize,
    ) -> Result<Self, RunFailure> {
        let tokenizer = Tokenizer::load(&folder.join("tokenizer.json"));
        let tokenizer = tokenizer.map_err(|error| unreadable(name, config, &error))?;
        let tokenizer = Arc::new(tokenizer);
        model.limit_vocabulary(tokenizer.vocab_size())?;
        let most = model.config().max_position_embeddings;
        if config.context as usize > most {
            let problem = format!(
                "models.{name}.policy.context = {} is more than the {most} positions of {}; lower it",
                config.context,
                folder.display()
            );
            return Err(ConfigurationError::value(format!("models.{name}"), problem).into());
        }
        let dialogue = DialogueConfig {
            context: config.context,
            max_tokens_per_turn: config.max_tokens,
            ..DialogueConfig::default()
        };
        let stop_ids = GenerationConfig::load(folder)?.map(|config| config.stop_ids());
        let template = ChatTemplate::load(folder)?;
        let dialogue = Dialogue::new(tokenizer, template, dialogue, &stop_ids.unwrap_or_default())
            .map_err(RunFailure::table("models"))?;
        let generator = PolicyGenerator::start(
            model,
            dialogue.stop_ids().to_vec(),
            config.context as usize,
            workers,
            sizes(config),
        )
        .map_err(RunFailure::table("models"))?;
        Ok(Self {
            dialogue: Arc::new(dialogue),
            generator,
            temperature: config.temperature,
            next: AtomicU64::new(0),
        })
    }

    /// Answers a question. The answer is not constrained to the question's schema.
    async fn complete(&self, question: ModelQuestion<'_>) -> Result<Completion, SourceError> {
        let ModelQuestion {
            messages, sampling, ..
        } = question;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let task = Task {
            id: number.to_string(),
            source: String::new(),
            prompt: messages.iter().map(message).collect(),
            tools: None,
            reference: Value::Null,
            environment: None,
            setup: Value::Null,
            extra: Map::new(),
        };
        let mut episode = Episode::start(&self.dialogue, number.to_string(), &task, Vec::new())
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
        let sequence = SequenceId(number);
        let generated = self.generator.generate(GenerateRequest {
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
        });
        let _open = OpenSequence(self, sequence);
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

/// Sizes of its engine.
pub(crate) fn sizes(config: &FrozenPolicyConfig) -> PolicyGeneratorConfig {
    PolicyGeneratorConfig {
        slots: config.slots,
        ..PolicyGeneratorConfig::default()
    }
}

/// The error of a model whose files cannot be read.
fn unreadable(
    name: &str,
    config: &FrozenPolicyConfig,
    error: &dyn fmt::Display,
) -> ConfigurationError {
    let source = match config.of_run {
        Some(_) => "of_run",
        None => "checkpoint",
    };
    let key = format!("models.{name}.policy.{source}");
    let problem = format!("{key}: {error}");
    ConfigurationError::value(key, problem)
}

/// Closes a sequence when it is dropped, also if nobody waits for the answer any more.
struct OpenSequence<'a>(&'a FrozenPolicy, SequenceId);

impl Drop for OpenSequence<'_> {
    fn drop(&mut self) {
        self.0.generator.close(self.1);
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
