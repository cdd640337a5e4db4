//! Counts how plugins' calls end during a part of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use rlf_environments::environments::Environments;
use rlf_plugins::counters::{CallCounts, Unhealthy};
use rlf_rewards::reward_stack::RewardStack;
use rlf_tools::tool_manager::ToolManager;

/// Call counts of all plugins at one moment, compared with later counts.
#[derive(Debug)]
pub struct PluginHealth {
    tools: ToolManager,
    environments: Environments,
    rewards: Arc<RewardStack>,
    max_trap_share: f64,
    tool_counts: BTreeMap<String, CallCounts>,
    environment_counts: BTreeMap<String, CallCounts>,
    reward_counts: BTreeMap<String, CallCounts>,
}

impl PluginHealth {
    /// Starts counting.
    pub(crate) fn new(
        tools: &ToolManager,
        environments: &Environments,
        rewards: &Arc<RewardStack>,
        max_trap_share: f64,
    ) -> Self {
        Self {
            tool_counts: tools.counts(),
            environment_counts: environments.counts(),
            reward_counts: rewards.counts(),
            tools: tools.clone(),
            environments: environments.clone(),
            rewards: rewards.clone(),
            max_trap_share,
        }
    }

    /// Returns an error if a plugin has trapped too often since the start.
    pub fn check(&self) -> Result<(), Unhealthy> {
        let most = self.max_trap_share;
        self.tools.check_health(&self.tool_counts, most)?;
        (self.environments).check_health(&self.environment_counts, most)?;
        self.rewards.check_health(&self.reward_counts, most)
    }
}
