//! Compares a step that was played again with what the run recorded of it: its trajectories and its metrics.

use std::path::Path;

use rlf_dialogue::tokenizer::Tokenizer;
use rlf_dialogue::tool::{CallOutcome, Ended};
use rlf_rollout::agent::AGENT_CALL;
use rlf_train::metrics::names;
use serde::Serialize;

use super::record::{Record, metrics, trajectories};
use super::trajectory::{Found, first_difference, unequal};
use crate::error::RunFailure;

/// The comparison of a step with its record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Number of the step, from 1.
    pub step: u64,
    /// Number of trajectories that were compared. None if the run kept none of this step, so that only metrics were
    /// compared.
    pub trajectories: Option<usize>,
    /// Number of sampled tokens in them.
    pub tokens: usize,
    /// Number of metrics that were compared: those that do not measure time.
    pub metrics: usize,
    /// Number of calls, recorded or replayed, that time or the infrastructure stopped, or in which it stopped a call
    /// that a program made.
    pub stopped_calls: usize,
    /// Number of calls, recorded or replayed, that an agent made on its own, and not for a turn of the policy.
    pub agent_calls: usize,
    /// The first difference of each trajectory, and then every metric that differs.
    pub differences: Vec<Difference>,
}

/// A difference between what was recorded and what was replayed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The trajectory. None for a number of the whole step.
    pub trajectory: Option<Place>,
    /// The part that differs, such as `turn 2, token 5`.
    pub what: String,
    /// The value that the run recorded.
    pub recorded: String,
    /// The value that the replay has instead.
    pub replayed: String,
}

/// A trajectory of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Its id.
    pub id: String,
    /// Id of its task.
    pub task: String,
    /// Number of the sample within its group, from 0.
    pub sample: usize,
}

impl Difference {
    fn new(trajectory: Option<Place>, found: Found) -> Self {
        Self {
            trajectory,
            what: found.what,
            recorded: found.recorded,
            replayed: found.replayed,
        }
    }
}

/// Compares a step in the folder `replay` with the same step of the run in the folder `run`.
pub(super) fn compare(
    run: &Path,
    replay: &Path,
    step: u64,
    tokenizer: &Tokenizer,
) -> Result<Comparison, RunFailure> {
    let kept = trajectories(run, step)?;
    let recorded = kept.as_deref().unwrap_or_default();
    let replayed = trajectories(replay, step)?.unwrap_or_default();
    let mut differences = Vec::new();
    if kept.is_some() && recorded.len() != replayed.len() {
        let [old, new] = [recorded.len(), replayed.len()].map(|count| count.to_string());
        let found = Found::new("number of trajectories", old, new);
        differences.push(Difference::new(None, found));
    }
    for (index, (old, new)) in recorded.iter().zip(&replayed).enumerate() {
        if let Some(found) = first_difference(old, new, tokenizer) {
            let earlier = recorded[..index].iter();
            let place = Place {
                id: old.trajectory.id.clone(),
                task: old.task.clone(),
                sample: earlier.filter(|other| other.group == old.group).count(),
            };
            differences.push(Difference::new(Some(place), found));
        }
    }
    let mut lines = [metrics(run)?, metrics(replay)?].map(|mut lines| {
        let line = lines.remove(&step);
        line.unwrap_or_default()
    });
    for line in &mut lines {
        line.retain(|name, _| name != names::PHASE && name != names::STEP && !varies(name));
    }
    let [before, now] = &lines;
    differences.extend(unequal(before, now).map(|mut found| {
        found.what = format!("metric `{}`", found.what);
        Difference::new(None, found)
    }));
    let records = recorded.iter().chain(&replayed);
    let outcomes = records.flat_map(|record| record.trajectory.outcomes());
    let outcomes: Vec<&CallOutcome> = outcomes.collect();
    let count = |of: fn(&CallOutcome) -> bool| outcomes.iter().filter(|one| of(one)).count();
    Ok(Comparison {
        step,
        trajectories: kept.as_ref().map(Vec::len),
        tokens: recorded.iter().map(model_tokens).sum(),
        metrics: before.len(),
        stopped_calls: count(is_stopped),
        agent_calls: count(|outcome| outcome.call_id.contains(AGENT_CALL)),
        differences,
    })
}

fn model_tokens(record: &Record) -> usize {
    record.trajectory.model_tokens()
}

/// True if time or the infrastructure stopped a call, or one that a program made in it, so that it can end in another
/// way when it is made again.
pub(super) fn is_stopped(outcome: &CallOutcome) -> bool {
    let mut nested = outcome.nested.iter();
    matches!(outcome.ended, Ended::Timeout | Ended::Unavailable)
        || nested.any(|call| is_stopped(&call.outcome))
}

/// True if a metric measures time, or depends on how busy the machine was or on which answers were recorded before.
fn varies(name: &str) -> bool {
    name.ends_with("_s")
        || name.starts_with("model/") && name.ends_with("/recorded")
        || matches!(
            name,
            "tool_wait_share"
                | "decode_busy_share"
                | "cache_evicted"
                | "cache_preempted"
                | "cache_read_again"
                | "sessions_evicted"
                | "sessions_revived"
                | "sessions_recovered"
        )
}
