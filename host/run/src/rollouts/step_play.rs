//! The play of one step: its groups, and what was measured meanwhile.

use std::sync::Arc;
use std::time::Instant;

use rlf_dialogue::group::Group;
use rlf_dialogue::score::{Excluded, ExclusionCause};
use rlf_dialogue::split::Split;
use rlf_dialogue::task::NumberedTask;
use rlf_policy::{Model, Purpose, Sampler, SamplingParams};
use rlf_rollout::rollout::rollout;
use rlf_rollout::{RolloutEngine, RolloutSettings};
use rlf_train::config::RlConfig;
use rlf_train::curriculum::{self, Curriculum, Draw};
use rlf_train::metrics::names;
use rlf_train::rollouts::{BoxError, Experience};

use crate::own_weights::Progress;
use crate::parts::RunParts;

/// Settings of all steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepSettings {
    /// Number of tasks in a step.
    pub(super) prompts_per_step: usize,
    /// Number of trajectories for each task.
    group_size: usize,
    /// True if a greedy trajectory of each task is played besides, to compare with.
    needs_baseline: bool,
    /// Maximum number of rounds in a step that play further tasks in place of those whose rewards are all the same.
    pub(super) refill: u32,
    /// Sampling temperature.
    temperature: f32,
}

impl StepSettings {
    /// The settings of `[rl]`.
    pub(super) fn new(config: &RlConfig) -> Self {
        Self {
            prompts_per_step: config.prompts_per_step,
            group_size: config.group_size,
            needs_baseline: config.estimator().needs_baseline(),
            refill: config.refill,
            temperature: config.temperature as f32,
        }
    }
}

/// A step to play. Nothing in it changes any more, whatever is learnt meanwhile.
pub(super) struct StepPlay {
    /// The run.
    pub(super) parts: Arc<RunParts>,
    pub(super) settings: StepSettings,
    /// Number of the step, from 0.
    pub(super) step: u64,
    /// Policy that plays the step.
    pub(super) policy: Arc<Model>,
    /// Steps done by these weights.
    pub(super) weights: u64,
    /// The tasks of the step.
    pub(super) tasks: Vec<NumberedTask>,
    /// The number of the first task that takes the place of another one.
    pub(super) replacements: u64,
    /// The curriculum that drew the tasks, as it was then.
    pub(super) curriculum: Option<Arc<Curriculum>>,
    /// Draws of the curriculum, one for each task.
    pub(super) drawn: Vec<Draw>,
}

impl StepPlay {
    /// Plays the step and grades it.
    pub(super) async fn play(self) -> Result<Experience, BoxError> {
        let _turn = self.parts.turn.lock().await;
        let started = Instant::now();
        let run = &self.parts.config.output;
        let progress = Progress::Rl {
            steps: self.weights,
        };
        (self.parts.own_weights).advance(run, progress, Some(&self.policy))?;
        let params = SamplingParams {
            temperature: self.settings.temperature,
            ..SamplingParams::default()
        };
        let settings = self
            .parts
            .settings(params, Purpose::Rollout, Split::Train, self.step)?;
        let (engine, generator) = self.parts.rollout_engine(&self.policy)?;
        let health = self.parts.health();
        let asked = self.parts.models.spending();
        let sessions = self.parts.environments.sessions();
        let decoding = Instant::now();
        let groups = self.play_enough(&engine, &settings).await?;
        let elapsed = decoding.elapsed().as_secs_f64();
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
        if let Some(curriculum) = &self.curriculum {
            metrics.extend(curriculum.metrics(self.step, &self.drawn, &groups));
        }
        if self.settings.needs_baseline {
            let baselines: Vec<f64> = groups.iter().filter_map(|group| group.baseline).collect();
            let mean = baselines.iter().sum::<f64>() / baselines.len() as f64;
            metrics.push(("baseline".into(), mean));
        }
        Ok(Experience {
            groups,
            metrics,
            played: Some(started.elapsed()),
        })
    }

    /// Plays the tasks, and then others in place of those whose rewards are all the same, as far as `refill` goes.
    async fn play_enough(
        &self,
        engine: &Arc<RolloutEngine>,
        settings: &RolloutSettings,
    ) -> Result<Vec<Group>, BoxError> {
        let mut groups = self.play_groups(engine, &self.tasks, settings).await?;
        let mut next = self.replacements;
        for _ in 0..self.settings.refill {
            let useful = (groups.iter())
                .filter(|group| curriculum::is_constant(group) == Some(false))
                .count();
            let missing = self.settings.prompts_per_step.saturating_sub(useful) as u64;
            if missing == 0 {
                break;
            }
            let tasks = self.parts.tasks.training_tasks(next..next + missing);
            next += missing;
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
        let mut groups = rollout(engine, tasks, self.settings.group_size, settings).await?;
        if !self.settings.needs_baseline {
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
}
