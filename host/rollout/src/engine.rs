//! The parts that play and grade trajectories.

use std::sync::Arc;

use rlf_rewards::reward_stack::RewardStack;

use crate::agent::Agent;
use crate::context::EpisodeContext;
use crate::generate::Generator;

/// Everything that plays and grades trajectories.
pub struct RolloutEngine {
    /// The surroundings of each episode.
    pub context: EpisodeContext,
    /// Grades groups.
    pub rewards: Arc<RewardStack>,
    /// Produces the model's turns.
    pub generator: Arc<dyn Generator>,
    /// Leads every trajectory; none for our own loop.
    pub agent: Option<Arc<dyn Agent>>,
}
