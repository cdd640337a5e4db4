//! The parts that a rollout needs: dialogue, tools, environments, users, rewards and a generator.

use std::sync::Arc;

use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::split::Split;
use rlf_environments::environments::Environments;
use rlf_policy::Sampler;
use rlf_rewards::reward_stack::RewardStack;
use rlf_tools::tool_manager::ToolManager;

use crate::generate::Generator;
use crate::shown_tools::ShownTools;
use crate::user::User;

/// Everything around an episode except the model that writes its turns. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EpisodeContext {
    /// Template, protocol and budgets.
    pub dialogue: Arc<Dialogue>,
    /// Invokes the tools of plugins.
    pub tools: ToolManager,
    /// The environments that tasks may name.
    pub environments: Environments,
    /// Changes to the tools as the model sees them.
    pub shown: ShownTools,
    /// Plays the users of tasks that ask for a model as their user; none if no task does.
    pub user: Option<Arc<dyn User>>,
}

/// Everything that plays and grades trajectories.
pub struct RolloutEngine {
    /// The surroundings of each episode.
    pub context: EpisodeContext,
    /// Grades groups.
    pub rewards: Arc<RewardStack>,
    /// Produces the model's turns.
    pub generator: Arc<dyn Generator>,
}

/// The settings of one rollout: how to sample, and the keys of all its randomness.
#[derive(Debug, Clone)]
pub struct RolloutSettings {
    /// Draws tokens. Keyed by the run's seed, and by a purpose that keeps training and evaluation apart.
    pub sampler: Sampler,
    /// The run's seed, from which tools get their randomness.
    pub seed: u64,
    /// Training step, 0 before the first.
    pub step: u64,
    /// Planned steps of the run; 0 outside training.
    pub steps: u64,
    /// The split that the tasks belong to.
    pub split: Split,
}
