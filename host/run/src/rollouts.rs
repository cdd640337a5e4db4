//! Provides training with rollouts: one step's groups, played by the current policy.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rlf_dialogue::split::Split;
use rlf_policy::{Model, Purpose, SamplingParams};
use rlf_rollout::rollout::rollout;
use rlf_train::rollouts::{BoxError, Experience, Rollouts};

use crate::parts::RunParts;

/// Plays the training tasks of each RL step with the current policy.
pub(crate) struct PolicyRollouts {
    /// The run.
    pub(crate) parts: Arc<RunParts>,
    /// Number of tasks in a step.
    pub(crate) prompts_per_step: usize,
    /// Number of trajectories for each task.
    pub(crate) group_size: usize,
    /// Sampling temperature.
    pub(crate) temperature: f32,
}

#[async_trait]
impl Rollouts for PolicyRollouts {
    async fn play(&mut self, policy: &Model, step: u64) -> Result<Experience, BoxError> {
        let tasks = self.parts.tasks.practice(step, self.prompts_per_step);
        let params = SamplingParams {
            temperature: self.temperature,
            ..SamplingParams::default()
        };
        let settings = self
            .parts
            .settings(params, Purpose::Rollout, Split::Train, step)?;
        let (engine, generator) = self.parts.rollout_engine(policy)?;
        let health = self.parts.health();
        let sessions = self.parts.environments.sessions();
        let started = Instant::now();
        let groups = rollout(&engine, &tasks, self.group_size, &settings).await?;
        let elapsed = started.elapsed().as_secs_f64();
        let times = generator.take_times().await;
        health.check()?;
        let now = self.parts.environments.sessions();
        let mut metrics = vec![
            ("decode_tokens_per_s".into(), times.sampled as f64 / elapsed),
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
        Ok(Experience { groups, metrics })
    }
}
