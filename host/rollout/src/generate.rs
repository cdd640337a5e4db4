//! The trait between a rollout and the generator that produces its tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rlf_policy::{DrawKey, Sampler};

/// The id of one token sequence for which a generator keeps state, such as keys and values. Later sequences have
/// larger ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub u64);

/// One turn to generate.
#[derive(Debug, Clone)]
pub struct GenerateRequest {
    /// The sequence to continue; unknown to the generator until its first request.
    pub sequence: SequenceId,
    /// Ids to read before sampling: the whole prompt at first, observations later. Tokens that the
    /// generator sampled itself are already part of the sequence and are not repeated.
    pub append: Vec<u32>,
    /// Maximum number of sampled tokens; at least 1.
    pub max_new_tokens: usize,
    /// Draws the tokens; keyed by the run's seed.
    pub sampler: Sampler,
    /// The key of the first draw. Its position counts the tokens that this trajectory has sampled before, so that no
    /// draw is repeated. The same key gives the same tokens, whatever runs at the same time.
    pub key: DrawKey,
}

/// A generated turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// Sampled ids, including the stop token if one was drawn.
    pub ids: Vec<u32>,
    /// Natural log-probability of each id under the distribution it was sampled from.
    pub log_probs: Vec<f32>,
}

/// The reason why a turn could not be generated.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GenerateError {
    /// The generator's thread is gone. The text is the cause.
    #[error("the generator stopped: {0}")]
    Stopped(String),
    /// This turn is lost by an infrastructure failure, and others may succeed. Its trajectory is excluded. The text is
    /// the cause.
    #[error("the turn could not be generated: {0}")]
    Unavailable(String),
    /// The sequence would be longer than the generator allows.
    #[error(
        "a sequence of {wanted} tokens exceeds the generator's {capacity}; lower `dialogue.context`"
    )]
    TooLong {
        /// Length of the sequence with this request, in tokens.
        wanted: usize,
        /// Maximum length of a sequence, in tokens.
        capacity: usize,
    },
}

/// The generator's time and token counts since they were last taken.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GeneratorTimes {
    /// Time in forward passes and sampling; of an external engine, the time with at least one request under way.
    pub busy: Duration,
    /// Time without anything to decode while at least one sequence was open: it waited for tools or
    /// rewards.
    pub waiting: Duration,
    /// Tokens sampled.
    pub sampled: u64,
    /// Tokens fed: prompts, observations, sampled tokens, and those that are read again.
    pub fed: u64,
    /// Tokens fed again, because their sequence had lost its pages of the KV cache; 0 for an external engine.
    pub read_again: u64,
    /// Sequences that lost their pages while no turn was under way; 0 for an external engine.
    pub evicted: u64,
    /// Sequences that lost their pages while a turn was under way; 0 for an external engine.
    pub preempted: u64,
    /// Forward passes; 0 for an external engine.
    pub passes: u64,
}

/// Produces turns, one per call. Implementations batch the calls of many trajectories.
#[async_trait]
pub trait Generator: Send + Sync {
    /// Reads `append` and samples until a stop token or `max_new_tokens`.
    async fn generate(&self, request: GenerateRequest) -> Result<Generated, GenerateError>;

    /// Forgets a sequence. Unknown ones are ignored.
    fn close(&self, sequence: SequenceId);

    /// Times and counts since this was last called. Zero for a generator that does not measure.
    async fn take_times(&self) -> GeneratorTimes {
        GeneratorTimes::default()
    }
}

static NEXT_SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// Closes the generator's sequence however the trajectory ends, cancellation included.
pub(crate) struct OpenSequence {
    generator: Arc<dyn Generator>,
    id: SequenceId,
}

impl OpenSequence {
    pub(crate) fn new(generator: &Arc<dyn Generator>) -> Self {
        Self {
            generator: Arc::clone(generator),
            id: SequenceId(NEXT_SEQUENCE.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// The id of the sequence.
    pub(crate) fn id(&self) -> SequenceId {
        self.id
    }

    /// Closes this sequence, and opens another one.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(&Arc::clone(&self.generator));
    }
}

impl Drop for OpenSequence {
    fn drop(&mut self) {
        self.generator.close(self.id);
    }
}
