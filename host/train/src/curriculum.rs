//! A curriculum: tasks are drawn by the policy's estimated success on them.
//!
//! A group whose trajectories all succeed, or all fail, has no advantage, so GRPO learns nothing from it. A success of
//! probability `p` has the variance `p (1 - p)`. Tasks are drawn in proportion to it, and a share of the draws is uniform,
//! so that every task is still met.
//!
//! An estimate has two layers. The outcomes of all tasks of one **level** give the level's success. It is what is expected
//! of a task before the task was played, and weighs against the task's own outcomes afterwards. Outcomes fade with the
//! steps, because the policy changes. So a task that was too hard is tried again later.
//!
//! Draws are systematic (Madow 1949, "On the theory of systematic sampling, II"): one random offset, then equal
//! distances along the tasks in random order. The expected number of draws of each task is exactly its share of them.
//! A task is drawn twice in a step only if its share is larger than one draw.
//!
//! ```
//! use rlf_train::curriculum::{Curriculum, CurriculumConfig};
//!
//! let tasks = (0..100).map(|number| (format!("task-{number}"), "easy".to_owned()));
//! let curriculum = Curriculum::new(CurriculumConfig::default(), 7, tasks);
//! let drawn = curriculum.draw(0, 8);
//! assert_eq!(drawn.len(), 8);
//! assert!(drawn.iter().all(|draw| (draw.share - 0.01).abs() < 1e-12));
//! ```

use std::collections::{BTreeMap, HashMap};

use rlf_dialogue::group::Group;
use rlf_dialogue::score::Score;
use rlf_dialogue::task::Task;
use rlf_policy::{InvalidSetting, Key, Purpose};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The key in a task's `extra` that says how hard it is by its structure: a number or a text. `forge tasks` writes it.
const LEVEL: &str = "level";
/// A task's outcomes are forgotten when they have faded to less than this many trajectories.
const FORGOTTEN: f64 = 0.01;
/// Maximum of `half_life`, in steps.
const MAX_HALF_LIFE: f64 = 10_000.0;

/// `[rl.curriculum]`: draws tasks by the policy's estimated success on them. Without this table, training goes through
/// all tasks epoch by epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CurriculumConfig {
    /// Share of the draws that are uniform over all tasks, above 0 and at most 1. With 1, all draws are. Default 0.1.
    pub floor: f64,
    /// Success that is expected before anything was played, above 0 and below 1. Default 0.5, which is optimistic: it
    /// makes new tasks the most attractive ones.
    pub prior_success: f64,
    /// Weight of an expectation against outcomes, in trajectories. Default 4.
    pub prior_weight: f64,
    /// Steps after which an outcome counts half. Default 20.
    pub half_life: f64,
}

impl Default for CurriculumConfig {
    fn default() -> Self {
        Self {
            floor: 0.1,
            prior_success: 0.5,
            prior_weight: 4.0,
            half_life: 20.0,
        }
    }
}

impl CurriculumConfig {
    /// Refuses settings that cannot be trained with.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        InvalidSetting::require(
            self.floor > 0.0 && self.floor <= 1.0,
            "rl.curriculum.floor",
            &self.floor,
            "is a share above 0 and at most 1: with 0, tasks that seem too hard would never be tried again",
        )?;
        InvalidSetting::require(
            self.prior_success > 0.0 && self.prior_success < 1.0,
            "rl.curriculum.prior_success",
            &self.prior_success,
            "must be above 0 and below 1; 0.5 is optimistic",
        )?;
        InvalidSetting::require(
            self.prior_weight > 0.0 && self.prior_weight <= 1e6,
            "rl.curriculum.prior_weight",
            &self.prior_weight,
            "is a number of trajectories, above 0 and at most 1,000,000; half of rl.group_size is usual",
        )?;
        InvalidSetting::require(
            self.half_life > 0.0 && self.half_life <= MAX_HALF_LIFE,
            "rl.curriculum.half_life",
            &self.half_life,
            "is a number of steps, above 0 and at most 10,000",
        )
    }
}

/// The level of a task: its kind, and `extra.level` if it has one.
pub fn level(task: &Task) -> String {
    match task.extra.get(LEVEL) {
        None | Some(Value::Null) => task.kind().to_owned(),
        Some(Value::String(level)) => format!("{} {level}", task.kind()),
        Some(level) => format!("{} {level}", task.kind()),
    }
}

/// One drawn task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draw {
    /// Index of the task.
    pub task: usize,
    /// Share of the step's draws that this task has on average.
    pub share: f64,
    /// The estimate of the policy's success on it.
    pub estimate: f64,
}

/// Scored trajectories of a task or of a level. They fade with the steps.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outcomes {
    successes: f64,
    trajectories: f64,
    /// The step up to which they have faded.
    step: u64,
}

impl Outcomes {
    /// The part of them that is left at a step.
    fn at(self, step: u64, half_life: f64) -> Self {
        let kept = (-(step.saturating_sub(self.step) as f64) / half_life).exp2();
        Self {
            successes: self.successes * kept,
            trajectories: self.trajectories * kept,
            step,
        }
    }

    /// The estimate from them and from what is expected.
    fn estimate(self, expected: f64, weight: f64) -> f64 {
        (weight * expected + self.successes) / (weight + self.trajectories)
    }
}

/// The state of a curriculum, as checkpoints keep it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    levels: BTreeMap<String, Outcomes>,
    tasks: BTreeMap<String, Outcomes>,
}

/// Estimates of the policy's success on all training tasks, and draws by them.
#[derive(Debug, Clone)]
pub struct Curriculum {
    config: CurriculumConfig,
    key: Key,
    /// The id of each task, and its level.
    tasks: Vec<(String, usize)>,
    levels: Vec<String>,
    by_id: HashMap<String, usize>,
    /// Outcomes of the tasks that were played, by index.
    played: BTreeMap<usize, Outcomes>,
    /// Outcomes of each level.
    level_outcomes: Vec<Outcomes>,
}

impl Curriculum {
    /// A curriculum over tasks, each with its id and its level. Nothing was played yet.
    pub fn new(
        config: CurriculumConfig,
        seed: u64,
        tasks: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let mut levels: Vec<String> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut all = Vec::new();
        for (id, level) in tasks {
            let place = *places.entry(level).or_insert_with_key(|level| {
                levels.push(level.clone());
                levels.len() - 1
            });
            all.push((id, place));
        }
        Self {
            config,
            key: Key::new(seed, Purpose::Order).named("curriculum"),
            by_id: all
                .iter()
                .enumerate()
                .map(|(index, (id, _))| (id.clone(), index))
                .collect(),
            tasks: all,
            level_outcomes: vec![Outcomes::default(); levels.len()],
            levels,
            played: BTreeMap::new(),
        }
    }

    /// The estimates of the policy's success on each task at a step.
    pub fn estimates(&self, step: u64) -> Vec<f64> {
        let CurriculumConfig {
            prior_success,
            prior_weight,
            half_life,
            ..
        } = self.config;
        let levels = self.level_outcomes.iter().map(|outcomes| {
            let left = outcomes.at(step, half_life);
            left.estimate(prior_success, prior_weight)
        });
        let levels: Vec<f64> = levels.collect();
        let mut estimates: Vec<f64> = self.tasks.iter().map(|(_, level)| levels[*level]).collect();
        for (task, outcomes) in &self.played {
            let left = outcomes.at(step, half_life);
            estimates[*task] = left.estimate(estimates[*task], prior_weight);
        }
        estimates
    }

    /// Draws the tasks of a step. It depends on the seed, the step, and the outcomes so far. Empty if there are no tasks.
    pub fn draw(&self, step: u64, count: usize) -> Vec<Draw> {
        let estimates = self.estimates(step);
        let weights: Vec<f64> = estimates.iter().map(|p| p * (1.0 - p)).collect();
        let total: f64 = weights.iter().sum();
        let uniform = 1.0 / self.tasks.len() as f64;
        let floor = self.config.floor;
        let draw = |task: usize| Draw {
            task,
            share: if total > 0.0 {
                floor * uniform + (1.0 - floor) * weights[task] / total
            } else {
                uniform
            },
            estimate: estimates[task],
        };
        let key = self.key.at(step);
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        key.shuffle(&mut order);
        let mut next = key.named("offset").uniform(0);
        let mut passed = 0.0;
        let mut drawn = Vec::with_capacity(count);
        for task in &order {
            let draw = draw(*task);
            passed += draw.share * count as f64;
            while passed > next && drawn.len() < count {
                drawn.push(draw);
                next += 1.0;
            }
        }
        // The shares can add up to a little less than 1.
        if let Some(last) = order.last() {
            drawn.resize(count, draw(*last));
        }
        drawn
    }

    /// Learns from the groups of a step.
    pub fn learn(&mut self, step: u64, groups: &[Group]) {
        let half_life = self.config.half_life;
        for group in groups {
            let Some(&task) = self.by_id.get(&group.task.id) else {
                continue;
            };
            let level = self.tasks[task].1;
            for outcomes in [
                self.played.entry(task).or_default(),
                &mut self.level_outcomes[level],
            ] {
                *outcomes = outcomes.at(step, half_life);
                for score in scores(group) {
                    outcomes.trajectories += 1.0;
                    outcomes.successes += f64::from(u8::from(score.success));
                }
            }
        }
        self.played
            .retain(|_, outcomes| outcomes.at(step, half_life).trajectories >= FORGOTTEN);
    }

    /// The outcomes so far, for a checkpoint.
    pub fn state(&self) -> Value {
        let levels = self.levels.iter().zip(&self.level_outcomes);
        let played = self.played.iter();
        let state = State {
            levels: levels.map(|(name, seen)| (name.clone(), *seen)).collect(),
            tasks: played
                .map(|(task, seen)| (self.tasks[*task].0.clone(), *seen))
                .collect(),
        };
        serde_json::to_value(state).unwrap_or_default()
    }

    /// Continues from the state of a checkpoint. Outcomes of tasks and levels that no longer exist are dropped.
    pub fn resume(&mut self, state: &Value) -> Result<(), serde_json::Error> {
        let State { levels, tasks } = State::deserialize(state)?;
        let known = |name: &String| levels.get(name).copied().unwrap_or_default();
        self.level_outcomes = self.levels.iter().map(known).collect();
        self.played = tasks
            .into_iter()
            .filter_map(|(id, outcomes)| Some((*self.by_id.get(&id)?, outcomes)))
            .collect();
        Ok(())
    }

    /// The measurements of a step for its metrics line: `drawn` were played as `groups`. They are made before
    /// [`Curriculum::learn`].
    pub fn metrics(&self, step: u64, drawn: &[Draw], groups: &[Group]) -> Vec<(String, f64)> {
        let mut measured = vec![
            (
                "curriculum/estimate",
                mean(drawn.iter().map(|draw| draw.estimate)),
            ),
            (
                "curriculum/estimate_uniform",
                mean(self.estimates(step).into_iter()),
            ),
        ];
        let judged: Vec<(f64, bool)> = drawn
            .iter()
            .zip(groups)
            .filter_map(|(draw, group)| Some((draw.share, is_constant(group)?)))
            .collect();
        if !judged.is_empty() {
            let constant = judged.iter().filter(|(_, constant)| *constant);
            // Weights of importance sampling: a task that is drawn more often than by chance counts for less.
            let weight = |(share, _): &(f64, bool)| 1.0 / share;
            measured.push((
                "curriculum/no_variance",
                constant.clone().count() as f64 / judged.len() as f64,
            ));
            measured.push((
                "curriculum/no_variance_uniform",
                constant.map(weight).sum::<f64>() / judged.iter().map(weight).sum::<f64>(),
            ));
        }
        measured
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// The scores of the trajectories that are not excluded.
pub fn scores(group: &Group) -> impl Iterator<Item = &Score> {
    let pairs = group.trajectories.iter().zip(&group.scores);
    pairs.filter_map(|(trajectory, score)| match &trajectory.excluded {
        None => score.as_ref().ok(),
        Some(_) => None,
    })
}

/// True if all trajectories of a group have the same reward. None if fewer than two have one.
pub fn is_constant(group: &Group) -> Option<bool> {
    let mut rewards = scores(group).map(|score| score.reward);
    let first = rewards.next()?;
    let mut others = rewards.peekable();
    others.peek()?;
    Some(others.all(|reward| reward == first))
}

#[cfg(test)]
mod tests;
