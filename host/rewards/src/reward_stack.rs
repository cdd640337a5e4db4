//! One reward from many reward plugins: the weighted sum of their terms, gated, with every term kept.
//!
//! Each plugin grades the whole group in one call, and all plugins run at once. A trajectory that a plugin could not
//! grade is excluded with a reason, never scored 0.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use rlf_dialogue::score::{Excluded, ExclusionCause, Graded};
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::Trajectory;
use rlf_plugins::counters::{CallCounts, Unhealthy};
use rlf_plugins::gates::NestedCalls;
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::registry::Registry;
use rlf_sandbox::BoxFuture;

use crate::error::RewardsError;
use crate::expression::Condition;
use crate::formula::Formula;
use crate::grading::{Grading, GradingRequest};
use crate::reward::RewardPlugin;
use crate::rewards_config::RewardsConfig;
use crate::turn_terms::SettledTerms;

/// The rewards of a configuration, with the plugins of a registry.
#[derive(Debug)]
pub struct RewardStack {
    /// Each plugin once, in the order of first mention.
    plugins: Vec<Arc<RewardPlugin>>,
    formula: Formula,
    tools: Option<Arc<dyn NestedCalls>>,
    /// The terms of `turns` of which no warning is due.
    settled_terms: SettledTerms,
}

impl RewardStack {
    /// Finds the plugins of a configuration and checks everything that can be checked before the first grading. The
    /// terms that a plugin returns are known only then.
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
        // A misspelt plugin name is reported before conditions on plugins without an entry.
        for entry in &config.stack {
            find(&entry.plugin)?;
        }
        if let Some(drift) = &config.drift {
            let wrong = |(key, reason)| RewardsError::Drift { key, reason };
            drift.check().map_err(wrong)?;
            for (key, plugin) in drift.plugins() {
                if config.stack.iter().all(|entry| entry.plugin != plugin) {
                    let reason = format!(
                        "plugin `{plugin}` is not in the stack; add a [[rewards.stack]] entry, with weight = 0 if it shall \
                         earn nothing"
                    );
                    return Err(wrong((key, reason)));
                }
            }
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
            settled_terms: SettledTerms::default(),
        })
    }

    /// Sets the tools that the plugins may call while they grade, as far as their grants allow.
    #[must_use]
    pub fn with_tools(self, tools: &(impl NestedCalls + Clone + 'static)) -> Self {
        Self {
            tools: Some(Arc::new(tools.clone())),
            ..self
        }
    }

    /// The names of the plugins that grade, in the order of first mention.
    pub fn plugins(&self) -> impl Iterator<Item = &str> {
        self.formula.names.iter().map(String::as_str)
    }

    /// The condition under which a trajectory counts as a success.
    pub fn success(&self) -> &Condition {
        &self.formula.success
    }

    /// Grades trajectories of one task. Returns one result for each, in order. The plugins do not see trajectories that
    /// the rollout excluded.
    pub fn grade<'a>(
        &'a self,
        task: &'a Task,
        group: &'a [Trajectory],
        grading: &'a Grading,
    ) -> BoxFuture<'a, Vec<Graded>> {
        Box::pin(async move {
            let gradable: Vec<&Trajectory> =
                group.iter().filter(|t| t.excluded.is_none()).collect();
            if gradable.is_empty() {
                return group.iter().map(|t| Err(excluded_by_rollout(t))).collect();
            }
            let request = Arc::new(GradingRequest::new(task, &gradable, *grading));
            let tools = self.tools.as_ref();
            let answers = join_all(
                self.plugins
                    .iter()
                    .map(|plugin| plugin.grade(&request, tools)),
            )
            .await;
            let scores = self.formula.scores(&answers, gradable.len());
            self.warn_of_turns(&scores);
            let mut scores = scores.into_iter();
            group
                .iter()
                .map(|trajectory| {
                    if trajectory.excluded.is_some() {
                        return Err(excluded_by_rollout(trajectory));
                    }
                    let score = scores
                        .next()
                        .unwrap_or_else(|| unreachable!("one score per gradable one"));
                    score.map(|mut score| {
                        let (formula, credits) = (&self.formula, &score.per_event);
                        score.turn_rewards = formula.turn_rewards(credits, &trajectory.events);
                        score
                    })
                })
                .collect()
        })
    }

    /// Warns once of each term of `turns` that a group lacks.
    fn warn_of_turns(&self, scores: &[Graded]) {
        let turns = &self.formula.turns;
        for lacking in self.settled_terms.new_without_credit(turns, scores) {
            tracing::warn!("{lacking}");
        }
    }

    /// Counts of calls so far, by plugin.
    pub fn counts(&self) -> BTreeMap<String, CallCounts> {
        self.plugins
            .iter()
            .map(|plugin| (plugin.name().to_owned(), plugin.counts()))
            .collect()
    }

    /// Fails if a reward plugin trapped in more than this share of its calls since `earlier`, which is a result of
    /// [`Self::counts`].
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
