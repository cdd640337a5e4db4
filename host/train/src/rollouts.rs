//! What training needs from whoever plays the episodes: graded groups of trajectories.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::{MaskedTokens, Trajectory};
use rlf_policy::Model;
use serde::{Deserialize, Serialize};

/// An error of the other side of a seam; its message reaches the user as it is.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What the rewards said about one trajectory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Score {
    /// The sum of weighted, gated terms: what training maximises.
    pub reward: f64,
    /// The configured success expression; reported, never trained on.
    pub success: bool,
    /// Every term by its name (`plugin.term`), for logs.
    pub terms: Vec<(String, f64)>,
    /// Credit for single events as (index of the event, `plugin.term`, value); kept with the
    /// trajectory, for those who train on turns or read it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_event: Vec<(usize, String, f64)>,
    /// Numbers for logs as (`plugin.metric`, value).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<(String, f64)>,
    /// One reward per turn of the model, where the rewards or the environment judge turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_rewards: Option<Vec<f64>>,
}

/// The samples of one task in one step.
#[derive(Debug, Clone)]
pub struct Group {
    /// The task they tried.
    pub task: Arc<Task>,
    /// In sample order.
    pub trajectories: Vec<Trajectory>,
    /// One per trajectory: its score, or why it must not be scored.
    pub scores: Vec<Result<Score, String>>,
}

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
