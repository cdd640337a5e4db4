//! Provides training with rollouts: one step's groups, played by the current policy.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rlf_dialogue::group::Group;
use rlf_dialogue::score::{Excluded, ExclusionCause};
use rlf_dialogue::split::Split;
use rlf_dialogue::task::NumberedTask;
use rlf_policy::{Model, Purpose, Sampler, SamplingParams};
use rlf_rewards::drift::Drift;
use rlf_rollout::rollout::rollout;
use rlf_rollout::{RolloutEngine, RolloutSettings};
use rlf_train::config::RlConfig;
use rlf_train::curriculum::{self, Curriculum, Draw};
use rlf_train::metrics::names;
use rlf_train::rollouts::{BoxError, Experience, Rollouts};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::ConfigurationError;
use crate::own_weights::Progress;
use crate::parts::RunParts;
use crate::reporter::RunReporter;

/// Plays the training tasks of each RL step with the current policy.
pub(crate) struct PolicyRollouts {
    /// The run.
    parts: Arc<RunParts>,
    /// Is told of alarms.
    reporter: Arc<dyn RunReporter>,
    /// Number of tasks in a step.
    prompts_per_step: usize,
    /// Number of trajectories for each task.
    group_size: usize,
    /// True if a greedy trajectory of each task is played besides, to compare with.
    needs_baseline: bool,
    /// Maximum number of rounds in a step that play further tasks in place of those whose rewards are all the same.
    refill: u32,
    /// Number of tasks that were taken, if steps take different numbers of them.
    taken: Option<u64>,
    /// Sampling temperature.
    temperature: f32,
    /// Draws tasks by the policy's success on them, if the configuration asks for it.
    curriculum: Option<Curriculum>,
    /// Compares a judge with a verifier, if the configuration asks for it.
    drift: Option<Drift>,
}

impl PolicyRollouts {
    /// The rollouts of a run by its `[rl]`.
    pub(crate) fn new(
        parts: Arc<RunParts>,
        config: &RlConfig,
        reporter: Arc<dyn RunReporter>,
    ) -> Result<Self, ConfigurationError> {
        let curriculum = match &config.curriculum {
            None => None,
            Some(settings) => {
                let tasks = parts.tasks.all_training_tasks().ok_or_else(|| {
                    let problem = "[rl.curriculum] needs a limited number of tasks";
                    ConfigurationError::value("rl.curriculum", problem)
                })?;
                let tasks = tasks
                    .iter()
                    .map(|task| (task.id.clone(), curriculum::level(task)));
                Some(Curriculum::new(settings.clone(), parts.config.seed, tasks))
            }
        };
        let drift = parts.config.rewards.drift.clone().map(Drift::new);
        Ok(Self {
            drift,
            reporter,
            parts,
            prompts_per_step: config.prompts_per_step,
            group_size: config.group_size,
            needs_baseline: config.estimator().needs_baseline(),
            refill: config.refill,
            taken: None,
            temperature: config.temperature as f32,
            curriculum,
        })
    }

    /// The number of the first task of a step.
    fn first(&self, step: u64) -> u64 {
        self.taken.unwrap_or(step * self.prompts_per_step as u64)
    }

    /// Plays `tasks`, and then others in place of those whose rewards are all the same, as far as `refill` goes.
    async fn play_enough(
        &self,
        engine: &Arc<RolloutEngine>,
        tasks: &[NumberedTask],
        settings: &RolloutSettings,
    ) -> Result<Vec<Group>, BoxError> {
        let mut groups = self.play_groups(engine, tasks, settings).await?;
        for _ in 0..self.refill {
            let useful = (groups.iter())
                .filter(|group| curriculum::is_constant(group) == Some(false))
                .count();
            let missing = self.prompts_per_step.saturating_sub(useful) as u64;
            if missing == 0 {
                break;
            }
            let next = self.first(settings.step) + groups.len() as u64;
            let tasks = self.parts.tasks.training_tasks(next..next + missing);
            groups.extend(self.play_groups(engine, &tasks, settings).await?);
        }
        Ok(groups)
    }

    /// Plays a group for each task, and what they are compared with. Without that, a group's trajectories are excluded.
    async fn play_groups(
        &self,
        engine: &Arc<RolloutEngine>,
        tasks: &[NumberedTask],
        settings: &RolloutSettings,
    ) -> Result<Vec<Group>, BoxError> {
        let mut groups = rollout(engine, tasks, self.group_size, settings).await?;
        if !self.needs_baseline {
            return Ok(groups);
        }
        let greedy = RolloutSettings {
            sampler: Sampler::new(
                SamplingParams::greedy(),
                self.parts.config.seed,
                Purpose::Rollout,
            )?,
            ..settings.clone()
        };
        let baselines = rollout(engine, tasks, 1, &greedy).await?;
        for (group, baseline) in groups.iter_mut().zip(&baselines) {
            if let Some(score) = curriculum::scores(baseline).next() {
                group.baseline = Some(score.reward);
            } else {
                let excluded = Excluded {
                    reason: "the greedy trajectory of its task could not be scored".to_owned(),
                    cause: ExclusionCause::Rollout,
                };
                group.scores.fill(Err(excluded));
            }
        }
        Ok(groups)
    }

    /// The tasks of a step, and how the curriculum drew them, if there is one.
    fn tasks(&self, step: u64) -> (Vec<NumberedTask>, Vec<Draw>) {
        let source = &self.parts.tasks;
        let (Some(curriculum), Some(all)) = (&self.curriculum, source.all_training_tasks()) else {
            let first = self.first(step);
            let tasks = source.training_tasks(first..first + self.prompts_per_step as u64);
            return (tasks, Vec::new());
        };
        let drawn = curriculum.draw(step, self.prompts_per_step);
        // A task that is drawn twice is sampled with other numbers.
        let first = step * self.prompts_per_step as u64;
        let tasks = drawn
            .iter()
            .map(|draw| all[draw.task].clone())
            .zip(first..)
            .map(|(task, number)| NumberedTask { number, task });
        (tasks.collect(), drawn)
    }

    /// Metrics of the curriculum about a step.
    fn measures(&self, step: u64, drawn: &[Draw], groups: &[Group]) -> Vec<(String, f64)> {
        let curriculum = self.curriculum.as_ref();
        curriculum.map_or_else(Vec::new, |curriculum| {
            curriculum.metrics(step, drawn, groups)
        })
    }
}

#[async_trait]
impl Rollouts for PolicyRollouts {
    async fn play(&mut self, policy: &Model, step: u64) -> Result<Experience, BoxError> {
        let (run, progress) = (&self.parts.config.output, Progress::Rl { steps: step });
        (self.parts.own_weights).advance(run, progress, Some(policy))?;
        let (tasks, drawn) = self.tasks(step);
        let params = SamplingParams {
            temperature: self.temperature,
            ..SamplingParams::default()
        };
        let settings = self
            .parts
            .settings(params, Purpose::Rollout, Split::Train, step)?;
        let (engine, generator) = self.parts.rollout_engine(policy)?;
        let health = self.parts.health();
        let asked = self.parts.models.spending();
        let sessions = self.parts.environments.sessions();
        let started = Instant::now();
        let groups = self.play_enough(&engine, &tasks, &settings).await?;
        let elapsed = started.elapsed().as_secs_f64();
        let times = generator.take_times().await;
        health.check()?;
        let now = self.parts.environments.sessions();
        let mut metrics = vec![
            (
                names::DECODE_TOKENS_PER_S.into(),
                times.sampled as f64 / elapsed,
            ),
            ("fed_tokens_per_s".into(), times.fed as f64 / elapsed),
            (
                "tool_wait_share".into(),
                times.waiting.as_secs_f64() / elapsed,
            ),
            (
                "decode_busy_share".into(),
                times.busy.as_secs_f64() / elapsed,
            ),
        ];
        if times.evicted + times.preempted > 0 {
            for (name, count) in [
                ("cache_evicted", times.evicted),
                ("cache_preempted", times.preempted),
                ("cache_read_again", times.read_again),
            ] {
                metrics.push((name.into(), count as f64));
            }
        }
        if now.opened > sessions.opened {
            for (name, count) in [
                ("opened", now.opened - sessions.opened),
                ("evicted", now.evicted - sessions.evicted),
                ("revived", now.revived - sessions.revived),
                ("recovered", now.recovered - sessions.recovered),
            ] {
                metrics.push((format!("sessions_{name}"), count as f64));
            }
        }
        metrics.extend(self.parts.models.metrics_since(&asked));
        metrics.extend(self.measures(step, &drawn, &groups));
        if self.needs_baseline {
            let baselines: Vec<f64> = groups.iter().filter_map(|group| group.baseline).collect();
            let mean = baselines.iter().sum::<f64>() / baselines.len() as f64;
            metrics.push(("baseline".into(), mean));
        }
        if let Some(drift) = &self.drift {
            let (measured, alarm) = drift.measure(&groups);
            metrics.extend(measured);
            if let Some(alarm) = alarm {
                self.reporter.warn(&format!("step {}: {alarm}", step + 1));
            }
        }
        Ok(Experience { groups, metrics })
    }

    fn learn(&mut self, step: u64, experience: &Experience) -> Option<Value> {
        let curriculum = self.curriculum.as_mut().map(|curriculum| {
            curriculum.learn(step, &experience.groups);
            curriculum.state()
        });
        let drift = self.drift.as_mut().map(|drift| {
            drift.learn(&experience.groups);
            drift.state()
        });
        if self.refill > 0 || self.taken.is_some() {
            self.taken = Some(self.first(step) + experience.groups.len() as u64);
        }
        let taken = self.taken;
        let is_needed = curriculum.is_some() || drift.is_some() || taken.is_some();
        is_needed.then(|| {
            json!(State {
                curriculum,
                drift,
                taken
            })
        })
    }

    fn resume(&mut self, state: &Value) -> Result<(), BoxError> {
        let state = State::deserialize(state)
            .map_err(|error| format!("the state of rollouts in the checkpoint: {error}"))?;
        if let (Some(curriculum), Some(state)) = (&mut self.curriculum, &state.curriculum) {
            curriculum
                .resume(state)
                .map_err(|error| format!("the curriculum in the checkpoint: {error}"))?;
        }
        if let (Some(drift), Some(state)) = (&mut self.drift, &state.drift) {
            drift
                .resume(state)
                .map_err(|error| format!("the drift in the checkpoint: {error}"))?;
        }
        self.taken = state.taken;
        Ok(())
    }
}

/// The state that later steps depend on, as checkpoints keep it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    curriculum: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drift: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taken: Option<u64>,
}
