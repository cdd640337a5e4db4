//! The trait of a player: what takes the model's turns of one trajectory, from its first to its end.

use std::sync::Arc;

use async_trait::async_trait;
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::Trajectory;

use crate::context::EpisodeContext;
use crate::error::RolloutError;
use crate::settings::{RolloutSettings, TrajectoryIndex};

/// Plays trajectories, any number of them at once.
#[async_trait]
pub trait Player: Send + Sync {
    /// Plays one trajectory of `task` to its end.
    async fn play(
        &self,
        context: &EpisodeContext,
        settings: RolloutSettings,
        task: Arc<Task>,
        index: TrajectoryIndex,
    ) -> Result<Trajectory, RolloutError>;
}
