//! Many reward plugins, one reward: the weighted sum of their terms, gated, with every term kept.
//!
//! Each plugin grades the whole group in one call, all plugins at once. What none of them could
//! grade is excluded with a reason, never scored 0.

use std::collections::BTreeMap;
use std::sync::Arc;

use rlf_dialogue::score::{Excluded, ExclusionCause, Graded};
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::Trajectory;

use crate::concurrently::all;
use crate::counters::{CallCounts, Unhealthy};
use crate::expression::Condition;
use crate::formula::Formula;
use crate::manifest::PluginKind;
use crate::registry::Registry;
pub use crate::reward::Grading;
use crate::reward::{GradingRequest, RewardPlugin};
pub use crate::rewards_config::RewardsConfig;
use crate::tool_manager::ToolManager;

/// Why a `[rewards]` table cannot be used with a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewardsError {
    /// Nothing to grade with.
    #[error("`rewards.stack` is empty: add a [[rewards.stack]] entry with a reward plugin")]
    Empty,
    /// Not in the registry.
    #[error("[[rewards.stack]] entry {entry}: there is no plugin `{plugin}`{hint}")]
    NoSuchPlugin {
        /// From 1.
        entry: usize,
        /// The name in the entry.
        plugin: String,
        /// Why it is missing, or what there is instead.
        hint: String,
    },
    /// In the registry, but no reward.
    #[error("[[rewards.stack]] entry {entry}: plugin `{plugin}` is {kind}, not a reward")]
    NotAReward {
        /// From 1.
        entry: usize,
        /// The name in the entry.
        plugin: String,
        /// What it is, with its article.
        kind: &'static str,
    },
    /// Weights that contradict each other or are not numbers.
    #[error("[[rewards.stack]] entry {entry} (`{plugin}`): {what}")]
    BadWeights {
        /// From 1.
        entry: usize,
        /// The name in the entry.
        plugin: String,
        /// What is wrong.
        what: String,
    },
    /// A condition over a plugin that does not grade.
    #[error(
        "{place} = \"{condition}\" is about plugin `{plugin}`, which is not in the stack; add a \
         [[rewards.stack]] entry with plugin = \"{plugin}\" and weight = 0 if it shall earn nothing"
    )]
    NotInStack {
        /// `rewards.success` or the gate of an entry.
        place: String,
        /// The condition.
        condition: String,
        /// The plugin it names.
        plugin: String,
    },
}

/// The rewards of a configuration over the plugins of a registry.
#[derive(Debug)]
pub struct RewardStack {
    /// Each plugin once, in order of first mention.
    plugins: Vec<Arc<RewardPlugin>>,
    formula: Formula,
    tools: Option<ToolManager>,
}

impl RewardStack {
    /// Finds the plugins of a configuration and checks everything that can be checked before the
    /// first grading. Which terms a plugin returns is known only then.
    pub fn new(registry: &Registry, config: &RewardsConfig) -> Result<Self, RewardsError> {
        let entry_of = |name: &str| {
            let entry = config.stack.iter().position(|entry| entry.plugin == name);
            1 + entry.unwrap_or_default()
        };
        let find = |name: &str| {
            registry
                .plugin(name)
                .ok_or_else(|| RewardsError::NoSuchPlugin {
                    entry: entry_of(name),
                    plugin: name.to_owned(),
                    hint: registry.explain_missing(name, PluginKind::Reward),
                })
        };
        // A misspelt name is told before terms that no entry of that name has.
        for entry in &config.stack {
            find(&entry.plugin)?;
        }
        let formula = Formula::new(config)?;
        let mut plugins = Vec::new();
        for name in &formula.names {
            let plugin = find(name)?;
            let Some(reward) = RewardPlugin::new(plugin) else {
                let kind = plugin.kind().with_article();
                return Err(RewardsError::NotAReward {
                    entry: entry_of(name),
                    plugin: name.clone(),
                    kind,
                });
            };
            plugins.push(Arc::new(reward));
        }
        Ok(Self {
            plugins,
            formula,
            tools: None,
        })
    }

    /// With the tools that its plugins may ask about what they grade, as far as their policies open them.
    #[must_use]
    pub fn with_tools(self, tools: &ToolManager) -> Self {
        Self {
            tools: Some(tools.clone()),
            ..self
        }
    }

    /// The names of the plugins that grade, in order of first mention.
    pub fn plugins(&self) -> impl Iterator<Item = &str> {
        self.formula.names.iter().map(String::as_str)
    }

    /// When a trajectory counts as a success.
    pub fn success(&self) -> &Condition {
        &self.formula.success
    }

    /// Grades trajectories of one task: one result for each, in order. Trajectories that the
    /// rollout excluded are not shown to the plugins.
    pub async fn grade(&self, task: &Task, group: &[Trajectory], grading: &Grading) -> Vec<Graded> {
        let gradable: Vec<&Trajectory> = group.iter().filter(|t| t.excluded.is_none()).collect();
        if gradable.is_empty() {
            return group.iter().map(|t| Err(excluded_by_rollout(t))).collect();
        }
        let request = Arc::new(GradingRequest::new(task, &gradable, *grading));
        let tools = self.tools.as_ref();
        let answers = all(self
            .plugins
            .iter()
            .map(|plugin| plugin.grade(&request, tools)))
        .await;
        let mut scores = self.formula.scores(&answers, gradable.len()).into_iter();
        group
            .iter()
            .map(|trajectory| match &trajectory.excluded {
                Some(_) => Err(excluded_by_rollout(trajectory)),
                None => scores
                    .next()
                    .unwrap_or_else(|| unreachable!("one score per gradable one")),
            })
            .collect()
    }

    /// Calls so far, by plugin.
    pub fn counts(&self) -> BTreeMap<String, CallCounts> {
        self.plugins
            .iter()
            .map(|plugin| (plugin.name().to_owned(), plugin.counts()))
            .collect()
    }

    /// An error if a reward plugin trapped in more than this share of its calls since `earlier`, an
    /// answer of [`Self::counts`].
    pub fn check_health(
        &self,
        earlier: &BTreeMap<String, CallCounts>,
        max_trap_share: f64,
    ) -> Result<(), Unhealthy> {
        self.plugins.iter().try_for_each(|plugin| {
            let before = earlier.get(plugin.name()).copied().unwrap_or_default();
            plugin.check_health(&before, max_trap_share)
        })
    }
}

fn excluded_by_rollout(trajectory: &Trajectory) -> Excluded {
    Excluded {
        reason: trajectory.excluded.clone().unwrap_or_default(),
        cause: ExclusionCause::Rollout,
    }
}
