//! The parts that play and grade trajectories.

use std::sync::Arc;

use rlf_rewards::reward_stack::RewardStack;

use crate::context::EpisodeContext;
use crate::player::Player;

/// Everything that plays and grades trajectories.
pub struct RolloutEngine {
    /// The surroundings of each episode.
    pub context: EpisodeContext,
    /// Grades groups.
    pub rewards: Arc<RewardStack>,
    /// Plays the trajectories.
    pub player: Arc<dyn Player>,
}
