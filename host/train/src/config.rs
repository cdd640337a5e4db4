//! Every setting of SFT and RL: default, unit, effect.

use rlf_policy::PassOptions;
use serde::{Deserialize, Serialize};

use crate::advantage::{AdvantageEstimator, Grpo, ReinforcePlusPlus};
use crate::loss::{Aggregation, ClippedPolicy};

pub use crate::optimizer::{OptimizerConfig, Schedule};

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key} = {value}`: {reason}")]
pub struct InvalidSetting {
    /// The key as written in a configuration, such as `rl.group_size`.
    pub key: &'static str,
    /// What was given.
    pub value: String,
    /// Why not, and what to write.
    pub reason: &'static str,
}

pub(crate) fn require(
    holds: bool,
    key: &'static str,
    value: &dyn std::fmt::Display,
    reason: &'static str,
) -> Result<(), InvalidSetting> {
    if holds {
        Ok(())
    } else {
        Err(InvalidSetting {
            key,
            value: value.to_string(),
            reason,
        })
    }
}

/// Supervised fine-tuning on demonstrations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SftConfig {
    /// Updates. Default 1000. 0 leaves the phase out.
    pub steps: u64,
    /// Demonstrations per update. Default 64.
    pub batch_size: usize,
    /// Tokens held in memory at once; changes speed, memory and the last bits of results. Default
    /// 8192.
    pub micro_batch_tokens: usize,
    /// Recomputes each layer in the backward pass: less memory, a third more time. Default false.
    pub activation_checkpointing: bool,
    /// Threads that share the micro-batches; absent: one per core. Changes no result, so it is no
    /// part of a configuration: whoever knows the machine sets it.
    #[serde(skip)]
    pub workers: Option<usize>,
    /// The optimiser.
    pub optimizer: OptimizerConfig,
}

impl Default for SftConfig {
    fn default() -> Self {
        Self {
            steps: 1000,
            batch_size: 64,
            micro_batch_tokens: 8192,
            activation_checkpointing: false,
            workers: None,
            optimizer: OptimizerConfig::default(),
        }
    }
}

impl SftConfig {
    /// Refuses what cannot be trained with.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        let at_least_one = "must be at least 1";
        require(
            (1..=MOST_TRAJECTORIES).contains(&self.batch_size),
            "sft.batch_size",
            &self.batch_size,
            "must be from 1 to 1,000,000",
        )?;
        require(
            self.micro_batch_tokens >= 1,
            "sft.micro_batch_tokens",
            &self.micro_batch_tokens,
            at_least_one,
        )?;
        self.optimizer.validate()
    }

    pub(crate) fn pass(&self) -> PassOptions {
        PassOptions {
            workers: workers(self.workers),
            temperature: 1.0,
            checkpointing: self.activation_checkpointing,
        }
    }
}

fn workers(asked: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.unwrap_or_else(cores).max(1)
}

/// Which advantage estimator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Algorithm {
    /// [`Grpo`]: normalised within the group; the KL penalty is in the loss. Default.
    #[default]
    #[serde(rename = "grpo")]
    Grpo,
    /// [`ReinforcePlusPlus`]: normalised over the batch; the KL penalty is in the reward.
    #[serde(rename = "reinforce++")]
    ReinforcePlusPlus,
}

/// Reinforcement learning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RlConfig {
    /// `grpo` (default) or `reinforce++`.
    pub algorithm: Algorithm,
    /// Steps of rollout and update. Default 100. 0 leaves the phase out.
    pub steps: u64,
    /// Tasks per step. Default 64.
    pub prompts_per_step: usize,
    /// Trajectories per task. Default 8; GRPO needs at least 2.
    pub group_size: usize,
    /// Updates per pass over a step's trajectories. Default 1, which is exactly on-policy.
    pub mini_batches: usize,
    /// Passes over a step's trajectories. Default 1.
    pub epochs: u64,
    /// The ratio gives no gradient below 1 - this (for negative advantages). Default 0.2.
    pub clip_low: f64,
    /// The ratio gives no gradient above 1 + this (for positive advantages). Default 0.28
    /// ("clip-higher" of DAPO, arXiv:2503.14476).
    pub clip_high: f64,
    /// Weight of the KL to the policy that RL began with; `grpo` has it in the loss, `reinforce++`
    /// in the reward. Default 0, which needs no reference policy in memory.
    pub kl_coefficient: f64,
    /// Weight of the entropy bonus in the loss. Default 0.
    pub entropy_coefficient: f64,
    /// Discount per model token; `reinforce++` only. Default 1.
    pub gamma: f64,
    /// `token-mean` (default) or `sequence-mean`.
    pub aggregation: Aggregation,
    /// Temperature of sampling, and of every log-probability in training. Default 1.
    pub temperature: f64,
    /// Refused: see [`RlConfig::validate`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Refused: see [`RlConfig::validate`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u64>,
    /// A step that loses more than this share of its groups to infrastructure failures stops the
    /// run: what is left would be a biased sample. Default 0.5.
    pub max_dropped_groups: f64,
    /// Tokens held in memory at once; changes speed, memory and the last bits of results. Default
    /// 8192.
    pub micro_batch_tokens: usize,
    /// Recomputes each layer in the backward pass: less memory, a third more time. Default false.
    pub activation_checkpointing: bool,
    /// Threads that share the micro-batches; absent: one per core. Changes no result, so it is no
    /// part of a configuration: whoever knows the machine sets it.
    #[serde(skip)]
    pub workers: Option<usize>,
    /// The optimiser.
    pub optimizer: OptimizerConfig,
}

impl Default for RlConfig {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Grpo,
            steps: 100,
            prompts_per_step: 64,
            group_size: 8,
            mini_batches: 1,
            epochs: 1,
            clip_low: 0.2,
            clip_high: 0.28,
            kl_coefficient: 0.0,
            entropy_coefficient: 0.0,
            gamma: 1.0,
            aggregation: Aggregation::TokenMean,
            temperature: 1.0,
            top_p: None,
            top_k: None,
            max_dropped_groups: 0.5,
            micro_batch_tokens: 8192,
            activation_checkpointing: false,
            workers: None,
            optimizer: OptimizerConfig::default(),
        }
    }
}

/// Of one step; above what any machine plays.
const MOST_TRAJECTORIES: usize = 1_000_000;

const TRUNCATION: &str = "truncated sampling is for evaluation: the log-probability that training computes is that of \
     the full distribution, so tokens drawn from a truncated one would be off-policy from the start; \
     remove it here and set it under the evaluation";

impl RlConfig {
    /// Refuses what cannot be trained with, truncated sampling included.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        let at_least_one = "must be at least 1";
        let not_negative = |x: f64| x.is_finite() && x >= 0.0;
        if let Some(top_p) = self.top_p {
            return Err(InvalidSetting {
                key: "rl.top_p",
                value: top_p.to_string(),
                reason: TRUNCATION,
            });
        }
        if let Some(top_k) = self.top_k {
            return Err(InvalidSetting {
                key: "rl.top_k",
                value: top_k.to_string(),
                reason: TRUNCATION,
            });
        }
        let smallest_group = self.estimator().smallest_group();
        require(
            self.group_size >= smallest_group,
            "rl.group_size",
            &self.group_size,
            if smallest_group > 1 {
                "a group is normalised by its own mean and deviation, and one trajectory alone always \
                 gets advantage 0; write at least 2 (8 is usual), or use `algorithm = \"reinforce++\"`"
            } else {
                at_least_one
            },
        )?;
        require(
            self.group_size.saturating_mul(self.prompts_per_step) <= MOST_TRAJECTORIES,
            "rl.prompts_per_step",
            &self.prompts_per_step,
            "times rl.group_size, is more than 1,000,000 trajectories a step",
        )?;
        require(
            self.prompts_per_step >= 1,
            "rl.prompts_per_step",
            &self.prompts_per_step,
            at_least_one,
        )?;
        require(
            self.mini_batches >= 1,
            "rl.mini_batches",
            &self.mini_batches,
            at_least_one,
        )?;
        require(self.epochs >= 1, "rl.epochs", &self.epochs, at_least_one)?;
        require(
            self.micro_batch_tokens >= 1,
            "rl.micro_batch_tokens",
            &self.micro_batch_tokens,
            at_least_one,
        )?;
        require(
            (0.0..=1.0).contains(&self.clip_low),
            "rl.clip_low",
            &self.clip_low,
            "the lower bound of the ratio is 1 - clip_low: from 0 to 1, 0.2 is usual",
        )?;
        require(
            not_negative(self.clip_high),
            "rl.clip_high",
            &self.clip_high,
            "the upper bound of the ratio is 1 + clip_high: 0 or more, 0.2 to 0.28 is usual",
        )?;
        require(
            not_negative(self.kl_coefficient),
            "rl.kl_coefficient",
            &self.kl_coefficient,
            "must be 0 or more, such as 0.001",
        )?;
        require(
            not_negative(self.entropy_coefficient),
            "rl.entropy_coefficient",
            &self.entropy_coefficient,
            "must be 0 or more",
        )?;
        require(
            self.gamma > 0.0 && self.gamma <= 1.0,
            "rl.gamma",
            &self.gamma,
            "must be above 0 and at most 1",
        )?;
        require(
            self.temperature.is_finite() && self.temperature > 0.0,
            "rl.temperature",
            &self.temperature,
            "must be above 0: greedy rollouts explore nothing and have no probabilities; 1.0 is usual",
        )?;
        require(
            (0.0..=1.0).contains(&self.max_dropped_groups),
            "rl.max_dropped_groups",
            &self.max_dropped_groups,
            "is a share of a step's groups, from 0 to 1",
        )?;
        self.optimizer.validate()
    }

    pub(crate) fn pass(&self) -> PassOptions {
        PassOptions {
            workers: workers(self.workers),
            temperature: self.temperature as f32,
            checkpointing: self.activation_checkpointing,
        }
    }

    /// The advantage estimator these settings choose.
    pub fn estimator(&self) -> Box<dyn AdvantageEstimator> {
        match self.algorithm {
            Algorithm::Grpo => Box::new(Grpo::default()),
            Algorithm::ReinforcePlusPlus => Box::new(ReinforcePlusPlus {
                gamma: self.gamma,
                kl_coefficient: self.kl_coefficient,
            }),
        }
    }

    /// The loss these settings choose.
    pub fn policy_loss(&self) -> ClippedPolicy {
        ClippedPolicy {
            clip_low: self.clip_low,
            clip_high: self.clip_high,
            kl_coefficient: match self.algorithm {
                Algorithm::Grpo => self.kl_coefficient,
                // In the reward instead.
                Algorithm::ReinforcePlusPlus => 0.0,
            },
            entropy_coefficient: self.entropy_coefficient,
        }
    }
}

/// What a run keeps on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckpointConfig {
    /// Steps between checkpoints; the end of a phase always has one. Default 50.
    pub every: u64,
    /// Checkpoints kept, beside the last one of every finished phase. Default 2.
    pub keep_last: usize,
    /// Steps between those whose trajectories are written; 0 writes none. Default 1.
    pub trajectories_every: u64,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self {
            every: 50,
            keep_last: 2,
            trajectories_every: 1,
        }
    }
}

impl CheckpointConfig {
    /// Refuses what would leave nothing to resume from.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        require(
            self.every >= 1,
            "checkpoint.every",
            &self.every,
            "must be at least 1 step",
        )?;
        require(
            self.keep_last >= 1,
            "checkpoint.keep_last",
            &self.keep_last,
            "must be at least 1: a run resumes from its last checkpoint",
        )
    }
}

#[cfg(test)]
mod tests;
