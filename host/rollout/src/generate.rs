//! The seam between a rollout and whatever produces tokens.

use async_trait::async_trait;
use rlf_policy::{DrawKey, Sampler};

/// Names one token sequence that a generator keeps state for (a slot in a KV cache).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub u64);

/// One turn to generate.
#[derive(Debug, Clone)]
pub struct GenerateRequest {
    /// The sequence to continue; unknown to the generator until its first request.
    pub sequence: SequenceId,
    /// Ids to read before sampling: the whole prompt at first, observations later. What the
    /// generator sampled itself is already part of the sequence and is not repeated.
    pub append: Vec<u32>,
    /// Sampling stops after this many tokens at the latest; at least 1.
    pub max_new_tokens: usize,
    /// Draws from the distribution asked for, keyed by the run's seed.
    pub sampler: Sampler,
    /// Keys the first draw; its position counts the tokens that this trajectory has sampled
    /// before, so that none is drawn twice. With the same key the same tokens come out, whatever
    /// runs beside.
    pub key: DrawKey,
}

/// A generated turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// Sampled ids, the stop token included where one came.
    pub ids: Vec<u32>,
    /// Natural log-probability of each id under the distribution it was sampled from.
    pub log_probs: Vec<f32>,
}

/// Why a turn could not be generated.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GenerateError {
    /// The generator's thread is gone; the cause was reported where it ended.
    #[error("the generator stopped: {0}")]
    Stopped(String),
    /// The sequence would outgrow what the generator can hold.
    #[error(
        "a sequence of {wanted} tokens exceeds the generator's {capacity}; lower `dialogue.context`"
    )]
    TooLong {
        /// Tokens the request leads to.
        wanted: usize,
        /// Tokens a sequence may have.
        capacity: usize,
    },
}

/// Produces turns. One call per turn; implementations batch the calls of many trajectories.
#[async_trait]
pub trait Generator: Send + Sync {
    /// Reads `append` and samples until a stop token or `max_new_tokens`.
    async fn generate(&self, request: GenerateRequest) -> Result<Generated, GenerateError>;

    /// Forgets a sequence. Unknown ones are ignored.
    fn close(&self, sequence: SequenceId);
}
