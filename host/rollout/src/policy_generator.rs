//! The policy as a generator: one thread that batches the turns of all trajectories.
//!
//! One forward pass feeds the prompts that just arrived, the observations that came back, and the
//! last token of every turn under way. A trajectory whose tools run keeps its slot in the KV cache
//! and is not part of the pass. Sequences that begin with the same prompt read it once: later ones
//! copy the keys and values of the first.

mod decode_loop;

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use async_trait::async_trait;
use rlf_policy::{Decoder, Model};
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
    /// Sequences in the KV cache at once; further trajectories wait for a slot. The cache takes
    /// `slots x context x layers x kv_heads x head_dim x 8` bytes. Default 512.
    pub slots: usize,
    /// Maximum number of tokens fed in one pass; longer prompts take several passes. Default 8192.
    pub step_tokens: usize,
}

/// A size that cannot work, or that no machine has the memory for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: write 1 to {max}")]
pub struct InvalidSize {
    /// The key in the configuration.
    pub key: &'static str,
    /// The configured value.
    pub value: usize,
    /// The maximum.
    pub max: usize,
}

impl PolicyGeneratorConfig {
    /// Refuses sizes that cannot work, or that no machine has the memory for.
    pub fn validate(&self) -> Result<(), InvalidSize> {
        for (key, value, max) in [
            ("slots", self.slots, 16_384),
            ("step_tokens", self.step_tokens, 1 << 20),
        ] {
            if !(1..=max).contains(&value) {
                return Err(InvalidSize { key, value, max });
            }
        }
        Ok(())
    }
}

impl Default for PolicyGeneratorConfig {
    fn default() -> Self {
        Self {
            slots: 512,
            step_tokens: 8192,
        }
    }
}

/// The channel for the result of a request.
type Reply = oneshot::Sender<Result<Generated, GenerateError>>;

enum Command {
    Generate(GenerateRequest, Reply),
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
    /// Starts the thread.
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
                let decoder = Decoder::new(&model, config.slots, context, workers);
                let ended = decoder.and_then(|decoder| {
                    DecodeLoop::new(&model, decoder, stop_ids, config).run(&inbox)
                });
                if let Err(error) = ended {
                    *report
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner) =
                        Some(error.to_string());
                }
            })
            .map_err(|error| GenerateError::Stopped(error.to_string()))?;
        Ok(Self {
            commands: Some(commands),
            thread: Some(thread),
            failure,
        })
    }

    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // If the thread is gone, the reply sender is dropped with the command, and the caller sees that.
            let _ = commands.send(command);
        }
    }

    fn stopped(&self) -> GenerateError {
        let failure = self
            .failure
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        GenerateError::Stopped(failure.clone().unwrap_or_else(|| "it was shut down".into()))
    }
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
        let (reply, generated) = oneshot::channel();
        self.send(Command::Generate(request, reply));
        generated.await.unwrap_or_else(|_| Err(self.stopped()))
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
