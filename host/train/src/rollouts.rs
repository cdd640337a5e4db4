//! What training needs from whoever plays the episodes: graded groups of trajectories.

use std::error::Error;

use async_trait::async_trait;
use rlf_dialogue::group::Group;
use rlf_dialogue::trajectory::MaskedTokens;
use rlf_policy::Model;

/// An error of the other side of a seam; its message reaches the user as it is.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// One step's experience.
#[derive(Debug, Clone, Default)]
pub struct Experience {
    /// In task order.
    pub groups: Vec<Group>,
    /// What the rollout itself measured, added to the step's metrics line as it is: decode tokens
    /// per second (`decode_tokens_per_s`), share of time waiting on tools (`tool_wait_share`).
    pub metrics: Vec<(String, f64)>,
}

/// Plays episodes with the current policy.
///
/// Must be a function of the weights and the step alone, so that a resumed run plays what the
/// interrupted one would have played.
#[async_trait]
pub trait Rollouts: Send {
    /// The groups of `step` (counted from 0), sampled from `policy` at the training temperature.
    async fn play(&mut self, policy: &Model, step: u64) -> Result<Experience, BoxError>;
}

/// Where demonstrations come from.
///
/// Must be a function of the step alone, for the same reason as [`Rollouts`].
pub trait DemonstrationSource: Send {
    /// The trajectories of one step (counted from 0): token sequences with their loss masks.
    fn batch(&mut self, step: u64, size: usize) -> Result<Vec<MaskedTokens>, BoxError>;
}
