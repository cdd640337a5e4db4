//! Evaluation: greedy and sampled success on a split, by kind of task, with intervals.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rlf_dialogue::group::Group;
use rlf_dialogue::split::Split;
use rlf_dialogue::task::NumberedTask;
use serde::{Deserialize, Serialize};

use crate::engine::RolloutEngine;
use crate::error::RolloutError;
use crate::rollout::rollout;
use crate::settings::RolloutSettings;
use crate::statistics::{Rate, pass_at_k, pass_hat_k};

/// The results of an evaluation. Excluded trajectories are counted and otherwise left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The split that the tasks belong to.
    pub split: Split,
    /// Success of one greedy sample per task.
    pub greedy: Rate,
    /// Success of `samples` samples per task.
    pub sampled: Rate,
    /// Greedy success by kind of task.
    pub greedy_by_kind: BTreeMap<String, Rate>,
    /// Sampled success by kind of task.
    pub sampled_by_kind: BTreeMap<String, Rate>,
    /// Mean over tasks of the unbiased pass@k, by k.
    pub pass_at_k: BTreeMap<usize, f64>,
    /// Mean over tasks of the unbiased pass^k, by k: the probability that all of k samples succeed.
    #[serde(default)]
    pub pass_hat_k: BTreeMap<usize, f64>,
    /// Mean reward of the sampled trajectories that could be scored; `None` if there are none.
    pub reward: Option<f64>,
    /// Mean of every reward term over the sampled trajectories.
    pub terms: BTreeMap<String, f64>,
    /// Samples per task.
    pub samples: usize,
    /// Share of all trajectories that were excluded.
    pub excluded: f64,
    /// The reason why the first of them was excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_because: Option<String>,
    /// Mean number of calls per sampled trajectory.
    pub calls: f64,
}

/// Evaluates on `tasks`: once with `greedy`, and `samples` times with `sampled`. The two settings
/// differ in their samplers only.
///
/// Also returns the sampled groups.
pub fn evaluate<'a>(
    engine: &'a Arc<RolloutEngine>,
    tasks: &'a [NumberedTask],
    samples: usize,
    greedy: &'a RolloutSettings,
    sampled: &'a RolloutSettings,
) -> BoxFuture<'a, Result<(Evaluation, Vec<Group>), RolloutError>> {
    Box::pin(async move {
        let (greedy_groups, sampled_groups) = tokio::try_join!(
            rollout(engine, tasks, 1, greedy),
            rollout(engine, tasks, samples, sampled),
        )?;
        let summary = summarise(sampled.split, samples, &greedy_groups, &sampled_groups);
        Ok((summary, sampled_groups))
    })
}

fn summarise(split: Split, samples: usize, greedy: &[Group], sampled: &[Group]) -> Evaluation {
    let (greedy_rate, greedy_by_kind) = rates(greedy);
    let (sampled_rate, sampled_by_kind) = rates(sampled);
    let scores = || {
        sampled
            .iter()
            .flat_map(|g| &g.scores)
            .filter_map(|s| s.as_ref().ok())
    };
    let scored = scores().count().max(1) as f64;
    let mut terms = BTreeMap::new();
    for (name, value) in scores().flat_map(|score| &score.terms) {
        *terms.entry(name.clone()).or_insert(0.0) += value / scored;
    }
    let trajectories = || sampled.iter().flat_map(|g| &g.trajectories);
    let all = greedy.iter().chain(sampled);
    let (mut total, mut excluded, mut excluded_because) = (0, 0, None);
    for score in all.flat_map(|g| &g.scores) {
        total += 1;
        if let Err(why) = score {
            excluded += 1;
            excluded_because.get_or_insert_with(|| why.reason.clone());
        }
    }
    Evaluation {
        split,
        greedy: greedy_rate,
        sampled: sampled_rate,
        greedy_by_kind,
        sampled_by_kind,
        pass_at_k: by_k(sampled, samples, pass_at_k),
        pass_hat_k: by_k(sampled, samples, pass_hat_k),
        reward: scores()
            .next()
            .map(|_| scores().map(|score| score.reward).sum::<f64>() / scored),
        terms,
        samples,
        excluded: excluded as f64 / total.max(1) as f64,
        excluded_because,
        calls: trajectories().map(|t| t.outcomes().count()).sum::<usize>() as f64
            / trajectories().count().max(1) as f64,
    }
}

/// Successes and trials of a group, excluded trajectories left out.
fn counts(group: &Group) -> (usize, usize) {
    let scored = group.scores.iter().filter_map(|s| s.as_ref().ok());
    scored.fold((0, 0), |(c, n), score| {
        (c + usize::from(score.success), n + 1)
    })
}

fn rates(groups: &[Group]) -> (Rate, BTreeMap<String, Rate>) {
    let mut all = Vec::new();
    let mut by_kind: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for group in groups {
        let (c, n) = counts(group);
        if n > 0 {
            let mean = c as f64 / n as f64;
            all.push(mean);
            by_kind
                .entry(group.task.kind().to_owned())
                .or_default()
                .push(mean);
        }
    }
    let by_kind = by_kind
        .into_iter()
        .map(|(kind, means)| (kind, Rate::by_task(&means)))
        .collect();
    (Rate::by_task(&all), by_kind)
}

/// The mean over tasks of `estimate(n, c, k)`, for k = 1, 2, 4 .. and all samples.
fn by_k(
    groups: &[Group],
    samples: usize,
    estimate: impl Fn(usize, usize, usize) -> Option<f64>,
) -> BTreeMap<usize, f64> {
    (1..=samples)
        .filter(|k| k.is_power_of_two() || *k == samples)
        .filter_map(|k| {
            let values: Vec<f64> = groups
                .iter()
                .filter_map(|group| {
                    let (c, n) = counts(group);
                    estimate(n, c, k)
                })
                .collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (!values.is_empty()).then_some((k, mean))
        })
        .collect()
}
