//! The traits to implement to feed training: graded groups of trajectories, and demonstrations.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use rlf_dialogue::group::Group;
use rlf_dialogue::trajectory::MaskedTokens;
use rlf_policy::Model;
use serde_json::Value;

/// An error of an implementation; its message reaches the user unchanged.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// One step's experience.
#[derive(Debug, Clone, Default)]
pub struct Experience {
    /// In task order.
    pub groups: Vec<Group>,
    /// The rollout's own measurements, which are added to the step's metrics line: decoded tokens per
    /// second (`decode_tokens_per_s`), share of time waiting for tools (`tool_wait_share`).
    pub metrics: Vec<(String, f64)>,
    /// Time that the play took. None if it was not measured: it is then the time that the step waited for it.
    pub played: Option<Duration>,
}

/// The experience of a step that is being played. Dropping it breaks the play off.
pub type Play = BoxFuture<'static, Result<Experience, BoxError>>;

/// Plays episodes with the policy.
///
/// A run implements it in the crate `rlf-run`, module `rollouts`.
///
/// The result must be a function of the weights, the step and the state that [`Rollouts::learn`] had returned last when
/// the play began, so that a resumed run plays what the interrupted one would have played.
pub trait Rollouts: Send {
    /// Begins to play `step` (counted from 0), sampled from `policy` at the training temperature. The weights of
    /// `policy` are those after `weights` steps, and do not change before the play is over.
    ///
    /// Everything that depends on what was learnt, such as the draw of tasks, is decided before this returns. With
    /// `rl.staleness`, the play should go on by itself from then on: nobody polls it while an earlier step updates.
    fn play(&mut self, step: u64, policy: Arc<Model>, weights: u64) -> Play;

    /// Learns from a step whose updates are made; `step` is the same number as in [`Rollouts::play`]. Called in the
    /// order of steps. It may add measurements that compare the step with earlier ones.
    ///
    /// Returns the state that later steps depend on, which checkpoints keep. None if there is no such state, which is
    /// the default.
    fn learn(&mut self, _step: u64, _experience: &mut Experience) -> Option<Value> {
        None
    }

    /// Goes on from the state of a checkpoint. By default it is ignored.
    fn resume(&mut self, _state: &Value) -> Result<(), BoxError> {
        Ok(())
    }
}

/// A source of demonstrations.
///
/// The result must be a function of the step alone, for the same reason as in [`Rollouts`].
#[async_trait]
pub trait DemonstrationSource: Send {
    /// The trajectories of one step (counted from 0): token sequences with their loss masks.
    async fn batch(&mut self, step: u64, size: usize) -> Result<Vec<MaskedTokens>, BoxError>;
}
