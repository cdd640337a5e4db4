//! The report of one step of RL: its metrics line and its trajectory records.

use std::collections::BTreeMap;
use std::time::Duration;

use rlf_dialogue::group::Group;
use rlf_dialogue::message::Message;
use rlf_dialogue::score::Score;
use rlf_dialogue::trajectory::Trajectory;
use serde::Serialize;
use serde_json::{Value, json};

use crate::batch::Batch;
use crate::importance::Importance;
use crate::metrics::{Means, MetricsLine, names};
use crate::phase::Phase;
use crate::replay_buffer::ReplayedGroups;
use crate::rollouts::Experience;
use crate::update::Updates;

/// One line of `trajectories/<phase>-<step>.jsonl`.
#[derive(Debug, Clone, Serialize)]
pub struct TrajectoryRecord<'a> {
    /// Number of the step, from 1.
    pub step: u64,
    /// Index of the group within the step.
    pub group: usize,
    /// Id of the task.
    pub task: &'a str,
    /// Kind of the task.
    pub kind: &'a str,
    /// The question: the last message of the prompt.
    pub question: String,
    /// The score, if there is one.
    pub score: Option<&'a Score>,
    /// The reason why it is excluded from training, if it is.
    pub excluded: Option<&'a str>,
    /// The advantage of its last model token.
    pub advantage: f32,
    /// The trajectory itself, with the outcome of every call.
    pub trajectory: &'a Trajectory,
}

impl<'a> TrajectoryRecord<'a> {
    /// The record of one trajectory of a group.
    pub fn new(step: u64, index: usize, group: &'a Group, member: usize) -> Self {
        let trajectory = &group.trajectories[member];
        let score = group.scores.get(member);
        Self {
            step,
            group: index,
            task: &group.task.id,
            kind: group.task.kind(),
            question: group
                .task
                .prompt
                .last()
                .map_or_else(String::new, Message::plain_text),
            score: score.and_then(|score| score.as_ref().ok()),
            excluded: trajectory.excluded.as_deref().or_else(|| {
                score
                    .and_then(|score| score.as_ref().err())
                    .map(|excluded| excluded.reason.as_str())
            }),
            advantage: 0.0,
            trajectory,
        }
    }
}

pub(crate) fn is_due(every: u64, step: u64) -> bool {
    every > 0 && step.is_multiple_of(every)
}

/// All trajectories of a step, in order.
pub(crate) fn records<'a>(
    step: u64,
    experience: &'a Experience,
    batch: &Batch,
    advantages: &[Vec<f32>],
) -> Vec<TrajectoryRecord<'a>> {
    let mut records = Vec::with_capacity(batch.samples.len());
    for (index, group) in experience.groups.iter().enumerate() {
        for member in 0..group.trajectories.len() {
            let mut record = TrajectoryRecord::new(step, index, group, member);
            let (sample, advantages) = (&batch.samples[records.len()], &advantages[records.len()]);
            if record.excluded.is_none() && sample.excluded() {
                record.excluded = Some("too few of its group could be scored");
            }
            let last = sample.mask().iter().rposition(|seen| *seen);
            record.advantage = last.map_or(0.0, |t| advantages[t]);
            records.push(record);
        }
    }
    records
}

/// The part of the line that results from the trajectories. Means are over scored trajectories. Calls
/// are counted in all trajectories, and a tool's metrics are means over its calls.
pub(crate) fn line(
    step: u64,
    experience: &Experience,
    batch: &Batch,
    advantages: &[Vec<f32>],
) -> MetricsLine {
    let mut means = Means::default();
    let mut by_kind: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut calls: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut finishes: BTreeMap<String, usize> = BTreeMap::new();
    for group in &experience.groups {
        for trajectory in &group.trajectories {
            *finishes.entry(name_of(&trajectory.finish)).or_default() += 1;
            for outcome in trajectory.outcomes() {
                let tool = calls.entry(&outcome.name).or_default();
                *tool.entry(outcome.ended.as_str()).or_default() += 1;
                for metric in outcome.observation.iter().flat_map(|seen| &seen.metrics) {
                    means.add(
                        &format!("metric/{}.{}", outcome.name, metric.name),
                        metric.value,
                    );
                }
            }
        }
        for (trajectory, score) in group.trajectories.iter().zip(&group.scores) {
            let Some(score) = score
                .as_ref()
                .ok()
                .filter(|_| trajectory.excluded.is_none())
            else {
                continue;
            };
            means.add(names::REWARD, score.reward);
            means.add(names::SUCCESS, f64::from(u8::from(score.success)));
            for (term, value) in &score.terms {
                means.add(&format!("reward/{term}"), *value);
            }
            for (metric, value) in &score.metrics {
                means.add(&format!("metric/{metric}"), *value);
            }
            means.add(names::RESPONSE_TOKENS, trajectory.model_tokens() as f64);
            means.add("observation_tokens", trajectory.observation_tokens() as f64);
            means.add("turns", trajectory.turns().count() as f64);
            means.add(
                names::CALLS_PER_TRAJECTORY,
                trajectory.outcomes().count() as f64,
            );
            means.add(
                "malformed_calls",
                trajectory
                    .turns()
                    .map(|turn| turn.malformed.len())
                    .sum::<usize>() as f64,
            );
            means.add("closed_turns", f64::from(trajectory.closed_turns));
            let kind = by_kind.entry(group.task.kind()).or_default();
            kind.0 += usize::from(score.success);
            kind.1 += 1;
        }
    }
    let mut line = MetricsLine::new(Phase::Rl, step);
    for (name, mean) in means.iter() {
        line = line.number(name, mean);
    }
    let by_kind: serde_json::Map<String, Value> = by_kind
        .into_iter()
        .map(|(kind, (good, all))| (kind.to_owned(), json!(good as f64 / all as f64)))
        .collect();
    let zero = advantages
        .iter()
        .zip(&batch.samples)
        .filter(|(a, sample)| !sample.excluded() && a.iter().all(|a| *a == 0.0))
        .count();
    let trained = batch.trained().len().max(1);
    let lost = &batch.exclusions;
    line = line
        .value("success_by_kind", Value::Object(by_kind))
        .value(names::CALLS, json!(calls))
        .value("finish", json!(finishes))
        .count(names::TRAJECTORIES, lost.trajectories)
        .number(names::EXCLUDED, lost.share())
        .count("dropped_groups", lost.dropped_groups)
        .number("zero_advantage", zero as f64 / trained as f64)
        .number("entropy_sampled", batch.sampled_entropy())
        .optional("kl_sampled", batch.sampled_kl());
    if !lost.reasons.is_empty() {
        line = line.value("excluded_reasons", json!(lost.reasons));
    }
    for (name, value) in &experience.metrics {
        line = line.number(name, *value);
    }
    line
}

fn name_of<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        other => format!("{other:?}"),
    }
}

impl MetricsLine {
    /// Adds the part of the line that results from the updates.
    ///
    /// Means of the loss are over the computed tokens: those of trajectories with an advantage, unless
    /// the loss has a term for all. Without an update these numbers are null, not 0.
    pub(crate) fn updates(self, updates: &Updates) -> Self {
        let made = updates.done as f64;
        let mut statistics = updates.statistics;
        statistics.loss /= made;
        self.loss(&statistics)
            .number(names::GRAD_NORM, updates.grad_norms / made)
            .value(
                "ratio_deviation",
                json!((updates.done > 0).then_some(updates.first_ratio_deviation)),
            )
            .count("updates", updates.done as usize)
            .count(
                "updates_without_gradient",
                updates.without_gradient as usize,
            )
            .count("trained_tokens", statistics.tokens)
    }

    /// Adds the part of the line that results from groups of earlier steps that trained again. There may be none.
    pub(crate) fn replayed(self, replayed: Option<&ReplayedGroups>) -> Self {
        let importance = replayed.and_then(|replayed| replayed.set.importance.as_ref());
        let of = |number: fn(&Importance) -> f64| importance.map_or(f64::NAN, number);
        self.count(
            names::REPLAYED_GROUPS,
            replayed.map_or(0, |replayed| replayed.count),
        )
        .number(
            "replay_age",
            replayed.map_or(f64::NAN, |replayed| replayed.age),
        )
        .number("replay_mismatch", of(Importance::mismatch))
        .number("replay_capped", of(Importance::capped))
    }

    /// Adds the part of the line that the clock measures, which no seed reproduces. The trajectories took `rollout`,
    /// and the step waited for them for `waited`.
    pub(crate) fn times(
        self,
        rollout: Duration,
        waited: Duration,
        train: Duration,
        tokens: usize,
    ) -> Self {
        let responses = self.get(names::RESPONSE_TOKENS).unwrap_or(0.0);
        let trajectories = self.get(names::TRAJECTORIES).unwrap_or(0.0);
        // If the rollout engine measured its decoder, its number is better than this quotient.
        let line = match self.get(names::DECODE_TOKENS_PER_S) {
            Some(_) => self,
            None => self.number(
                names::DECODE_TOKENS_PER_S,
                responses * trajectories / rollout.as_secs_f64().max(1e-9),
            ),
        };
        line.number(
            names::TRAIN_TOKENS_PER_S,
            tokens as f64 / train.as_secs_f64().max(1e-9),
        )
        .number("rollout_s", rollout.as_secs_f64())
        .number("train_s", train.as_secs_f64())
        .number(names::STEP_S, (waited + train).as_secs_f64())
    }
}
