//! Turns that an engine beside this program samples: SGLang or vLLM.
//!
//! The engine gets token ids and returns token ids with their log-probabilities. It gets the policy's weights before
//! the first turn of each [`ExternalGenerator`], so that all turns of one rollout are sampled with the same weights.
//! Its log-probabilities are not exactly those that training computes: see `rl.importance_cap`.
//!
//! | looking for | module |
//! |---|---|
//! | `[external_engine]` | `config`: [`ExternalEngineConfig`] |
//! | the connection: turns and weights | `engine`: [`ExternalEngine`] |
//! | requests and answers of both protocols, and the check of answers | `protocol` |
//! | weights on disk, and the operator's command that loads them | `weights` |

mod config;
mod engine;
mod protocol;
mod weights;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use crate::generate::{
    GenerateError, GenerateRequest, Generated, Generator, GeneratorTimes, SequenceId,
};
use protocol::Turn;
use weights::UpdateError;

pub use config::{EngineKind, ExternalEngineConfig};
pub use engine::ExternalEngine;
pub use weights::{BoxError, SaveWeights, SavedWeights};

/// Seeds that are sent. Engines accept 32 or 64 bits, signed or unsigned. Such a value fits all of them.
const SEED_BITS: u64 = 0x7fff_ffff;

/// Limits of a policy's sequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceLimits {
    /// The ids that end a turn.
    pub stop_ids: Vec<u32>,
    /// Maximum length of a sequence, in tokens.
    pub context: usize,
    /// Number of ids that the policy may sample, from 0.
    pub vocabulary: usize,
}

/// An external engine as a [`Generator`] with the weights of one policy.
pub struct ExternalGenerator {
    engine: Arc<ExternalEngine>,
    limits: SequenceLimits,
    save: SaveWeights,
    /// The name of the adapter with the weights, if they are one; or the reason why the engine does not have them.
    /// Empty until the first turn.
    loaded: OnceCell<Result<Option<String>, String>>,
    state: Mutex<State>,
}

/// The open sequences, and what was measured.
struct State {
    /// All ids of each sequence, as far as the engine has read or sampled them.
    sequences: HashMap<SequenceId, Vec<u32>>,
    /// Number of turns under way.
    under_way: usize,
    /// The moment up to which the times are counted.
    counted: Instant,
    times: GeneratorTimes,
}

impl State {
    /// Counts the time since this was last called.
    fn count(&mut self) {
        let now = Instant::now();
        let passed = now.saturating_duration_since(self.counted);
        self.counted = now;
        if self.under_way > 0 {
            self.times.busy += passed;
        } else if !self.sequences.is_empty() {
            self.times.waiting += passed;
        }
    }
}

/// A turn under way, until it is dropped.
struct UnderWay<'a>(&'a ExternalGenerator);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.count();
        state.under_way -= 1;
    }
}

impl ExternalGenerator {
    /// Samples with the weights that `save` saves. Nothing is saved or sent before the first turn. No other generator
    /// may use the engine at the same time, and the weights must not change.
    pub fn new(engine: Arc<ExternalEngine>, limits: SequenceLimits, save: SaveWeights) -> Self {
        Self {
            engine,
            limits,
            save,
            loaded: OnceCell::new(),
            state: Mutex::new(State {
                sequences: HashMap::new(),
                under_way: 0,
                counted: Instant::now(),
                times: GeneratorTimes::default(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Saves the weights and has the engine load them. Returns the name of the adapter, if they are one.
    async fn load(&self) -> Result<Option<String>, UpdateError> {
        let save = Arc::clone(&self.save);
        let saved = spawn_blocking(move || save()).await;
        let saved = saved.unwrap_or_else(|error| Err(error.into()));
        self.engine.load(&saved.map_err(UpdateError::Save)?).await
    }

    /// The ids that the engine must read for a request.
    fn begin(&self, request: &GenerateRequest) -> Result<Vec<u32>, GenerateError> {
        let mut state = self.state();
        state.count();
        let mut prompt = state.sequences.entry(request.sequence).or_default().clone();
        prompt.extend_from_slice(&request.append);
        let (wanted, capacity) = (prompt.len() + request.max_new_tokens, self.limits.context);
        if wanted > capacity || prompt.is_empty() {
            return Err(GenerateError::TooLong { wanted, capacity });
        }
        state.under_way += 1;
        Ok(prompt)
    }

    /// Keeps the ids of a turn, unless its sequence was closed in the meantime.
    fn end(&self, request: &GenerateRequest, mut prompt: Vec<u32>, generated: &Generated) {
        let mut state = self.state();
        state.times.fed += request.append.len() as u64;
        state.times.sampled += generated.ids.len() as u64;
        if let Some(ids) = state.sequences.get_mut(&request.sequence) {
            prompt.extend_from_slice(&generated.ids);
            *ids = prompt;
        }
    }
}

#[async_trait]
impl Generator for ExternalGenerator {
    async fn generate(&self, request: GenerateRequest) -> Result<Generated, GenerateError> {
        let loaded = self
            .loaded
            .get_or_init(|| async { self.load().await.map_err(|error| error.to_string()) })
            .await;
        let adapter = loaded.as_ref().map_err(|why| {
            GenerateError::Stopped(format!("the external engine has no weights: {why}"))
        })?;
        let prompt = self.begin(&request)?;
        let _under_way = UnderWay(self);
        let seed = request.sampler.seed(request.key) & SEED_BITS;
        let turn = Turn {
            prompt: &prompt,
            max_new_tokens: request.max_new_tokens,
            params: request.sampler.params(),
            seed: self.engine.sends_seeds().then_some(seed),
            model: self.engine.model(),
            adapter: adapter.as_deref(),
            stop_ids: &self.limits.stop_ids,
            vocabulary: self.limits.vocabulary,
        };
        let generated = self.engine.sample(&turn, seed).await?;
        self.end(&request, prompt, &generated);
        Ok(generated)
    }

    fn close(&self, sequence: SequenceId) {
        let mut state = self.state();
        state.count();
        state.sequences.remove(&sequence);
    }

    async fn take_times(&self) -> GeneratorTimes {
        let mut state = self.state();
        state.count();
        std::mem::take(&mut state.times)
    }
}
