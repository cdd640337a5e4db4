//! The policy as a generator: one thread that batches the turns of all trajectories.
//!
//! One forward pass feeds the prompts that just arrived, the observations that came back, and the
//! last token of every turn under way. A trajectory whose tools run is not part of the pass. It keeps
//! its pages of the KV cache, unless others need them. Sequences that begin with the same prompt read
//! it once: later ones share the keys and values of the first.
//!
//! One generator can serve several sets of adapters beside the same weights: see
//! [`PolicyGenerator::generate_with`]. They share its thread and its cache. A round makes a pass for each set.

mod decode_loop;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use async_trait::async_trait;
use rlf_policy::{Decoder, Model, PAGE_TOKENS, PolicyError};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::generate::{
    GenerateError, GenerateRequest, Generated, Generator, GeneratorTimes, SequenceId,
};
use decode_loop::DecodeLoop;

/// Sizes of the policy's decoder.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyGeneratorConfig {
    /// Maximum number of sequences that generate in one pass, the oldest ones; further ones wait. A
    /// sequence whose tools run does not count, nor does one that waits for pages. Default 512.
    pub slots: usize,
    /// Tokens in the KV cache, of all sequences together. At least the context, so that one sequence
    /// always fits. A token takes `layers x kv_heads x head_dim x 8` bytes, or half of it in bf16 on CUDA.
    /// Default: `slots x context`, which is enough for `slots` open sequences of any length. A run takes a
    /// half, a quarter, .. of that if the machine has no memory for more. If more tokens are open than
    /// fit, some are read again: slower, with the same results on the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_tokens: Option<usize>,
    /// Maximum number of tokens fed in one pass. Sequences that decode take one each, and prompts the rest; longer prompts
    /// take several passes. Default 8192.
    pub step_tokens: usize,
}

/// A size that cannot work, or that no machine has the memory for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: write {min} to {max}")]
pub struct InvalidSize {
    /// The key in the configuration.
    pub key: &'static str,
    /// The configured value.
    pub value: usize,
    /// The minimum.
    pub min: usize,
    /// The maximum.
    pub max: usize,
}

impl PolicyGeneratorConfig {
    /// Refuses sizes that cannot work with sequences of up to `context` tokens, or that no machine has the memory for.
    pub fn validate(&self, context: usize) -> Result<(), InvalidSize> {
        let cache_tokens = self
            .cache_tokens
            .map(|tokens| ("cache_tokens", tokens, context, 1 << 31));
        let sizes = [
            ("slots", self.slots, 1, 16_384),
            ("step_tokens", self.step_tokens, 1, 1 << 20),
        ];
        for (key, value, min, max) in sizes.into_iter().chain(cache_tokens) {
            if !(min..=max).contains(&value) {
                return Err(InvalidSize {
                    key,
                    value,
                    min,
                    max,
                });
            }
        }
        Ok(())
    }

    /// Tokens in the KV cache, for sequences of up to `context` tokens: those of `cache_tokens`, or of its default.
    pub fn cache_tokens(&self, context: usize) -> usize {
        let of_all_slots = || self.slots * context.next_multiple_of(PAGE_TOKENS);
        self.cache_tokens.unwrap_or_else(of_all_slots)
    }
}

impl Default for PolicyGeneratorConfig {
    fn default() -> Self {
        Self {
            slots: 512,
            cache_tokens: None,
            step_tokens: 8192,
        }
    }
}

/// The channel for the result of a request.
type Reply = oneshot::Sender<Result<Generated, GenerateError>>;

enum Command {
    /// With the generator's own model, or with this one.
    Generate(GenerateRequest, Option<Arc<Model>>, Reply),
    Close(SequenceId),
    Times(oneshot::Sender<GeneratorTimes>),
}

/// The policy as a [`Generator`]. Dropping it ends its thread.
pub struct PolicyGenerator {
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<String>>>,
}

impl PolicyGenerator {
    /// Starts the thread. It makes the KV cache when the first turn is asked for.
    ///
    /// `model` is a handle on the policy's weights (see [`Model::share`]). The generator must not
    /// outlive their next change, because one policy must sample a whole sequence. `context` is the
    /// number of tokens a sequence may have, `workers` the number of threads of a forward pass.
    pub fn start(
        model: Model,
        stop_ids: Vec<u32>,
        context: usize,
        workers: usize,
        config: PolicyGeneratorConfig,
    ) -> Result<Self, GenerateError> {
        let failure = Arc::new(Mutex::new(None));
        let (commands, inbox) = channel();
        let report = failure.clone();
        let thread = std::thread::Builder::new()
            .name("rlf-decode".into())
            .spawn(move || {
                // An engine that only plays demonstrations never needs a cache.
                let Some(first) = first_request(&inbox) else {
                    return;
                };
                let tokens = config.cache_tokens(context);
                let failed = |error: PolicyError| {
                    let mut failure = report.lock().unwrap_or_else(PoisonError::into_inner);
                    *failure = Some(error.to_string());
                };
                match Decoder::new(&model, tokens, context, workers) {
                    Ok(decoder) => {
                        let mut decoding = DecodeLoop::new(&model, decoder, stop_ids, config);
                        // Known before the turns under way end with the loop.
                        decoding.run(first, &inbox).unwrap_or_else(failed);
                    }
                    Err(error) => failed(error),
                }
            })
            .map_err(|error| GenerateError::Stopped(error.to_string()))?;
        Ok(Self {
            commands: Some(commands),
            thread: Some(thread),
            failure,
        })
    }

    /// As [`Generator::generate`], with another model than the one that it was started with. Both have the same shape and
    /// operators, and usually share their weights: they differ by their adapters. A sequence keeps the model of its first
    /// request.
    pub async fn generate_with(
        &self,
        request: GenerateRequest,
        model: Option<Arc<Model>>,
    ) -> Result<Generated, GenerateError> {
        let (reply, generated) = oneshot::channel();
        self.send(Command::Generate(request, model, reply));
        generated.await.unwrap_or_else(|_| Err(self.stopped()))
    }

    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // If the thread is gone, the reply sender is dropped with the command, and the caller sees that.
            let _ = commands.send(command);
        }
    }

    fn stopped(&self) -> GenerateError {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        GenerateError::Stopped(failure.clone().unwrap_or_else(|| "it was shut down".into()))
    }
}

/// Waits for a request for a turn. None if the generator is dropped before there is one. Until then, there are no times to
/// report, and no sequences to close.
fn first_request(inbox: &Receiver<Command>) -> Option<Command> {
    inbox
        .iter()
        .find(|command| matches!(command, Command::Generate(..)))
}

impl Drop for PolicyGenerator {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[async_trait]
impl Generator for PolicyGenerator {
    async fn generate(&self, request: GenerateRequest) -> Result<Generated, GenerateError> {
        self.generate_with(request, None).await
    }

    fn close(&self, sequence: SequenceId) {
        self.send(Command::Close(sequence));
    }

    async fn take_times(&self) -> GeneratorTimes {
        let (reply, times) = oneshot::channel();
        self.send(Command::Times(reply));
        times.await.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use rlf_policy::{DrawKey, Purpose, Qwen3Config, Sampler, SamplingParams};

    use super::*;

    const CONTEXT: usize = 16;

    fn model() -> Model {
        let config = Qwen3Config {
            vocab_size: 16,
            hidden_size: 16,
            intermediate_size: 16,
            num_hidden_layers: 1,
            num_attention_heads: 2,
            num_key_value_heads: 1,
            head_dim: 8,
            max_position_embeddings: CONTEXT,
            rms_norm_eps: 1e-6,
            rope_theta: 1e4,
            tie_word_embeddings: true,
            initializer_range: 0.1,
        };
        Model::init(&config, 0, &Device::Cpu).unwrap()
    }

    #[test]
    fn the_cache_is_made_when_the_first_turn_is_asked_for() {
        // There is no cache of a context that the model does not have, so it fails when it is made.
        let config = PolicyGeneratorConfig::default();
        let generator =
            PolicyGenerator::start(model(), Vec::new(), CONTEXT + 1, 1, config).unwrap();
        let request = GenerateRequest {
            sequence: SequenceId(0),
            append: vec![1],
            max_new_tokens: 1,
            sampler: Sampler::new(SamplingParams::default(), 0, Purpose::Test).unwrap(),
            key: DrawKey {
                step: 0,
                task: 0,
                sample: 0,
                position: 0,
            },
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            generator.close(SequenceId(1));
            assert_eq!(generator.take_times().await, GeneratorTimes::default());
            assert_eq!(*generator.failure.lock().unwrap(), None);
            let error = generator.generate(request).await.unwrap_err().to_string();
            assert!(error.contains("a decoding context of 17 tokens"), "{error}");
        });
    }
}
