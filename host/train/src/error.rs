//! Errors that stop training, with what to do about them.

use rlf_policy::PolicyError;

use crate::advantage::SampleError;
use crate::config::InvalidSetting;
use crate::guards::LOW_STEPS;
use crate::phase::Phase;
use crate::rollouts::BoxError;
use crate::run::RunError;

/// Any failure of a training loop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A setting cannot be used.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// The run directory could not be written or read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The policy could not compute.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A trajectory cannot be trained on.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// The rollouts failed.
    #[error("rollouts of step {step}: {source}")]
    Rollouts {
        /// Counted from 0.
        step: u64,
        /// The cause.
        source: BoxError,
    },
    /// The source of demonstrations failed, or none of its demonstrations has a token to train on.
    #[error("demonstrations of step {step}: {source}")]
    Demonstrations {
        /// Counted from 0.
        step: u64,
        /// The cause.
        source: BoxError,
    },
    /// The observer failed.
    #[error("after {phase} step {step}: {source}")]
    Observer {
        /// The phase.
        phase: Phase,
        /// Steps done.
        step: u64,
        /// The cause.
        source: BoxError,
    },
    /// Too many groups were dropped: the rest of the step would be a biased sample.
    #[error(
        "step {step} lost {dropped} of its {groups} groups, more than `rl.max_dropped_share = {limit}` allows; \
         most frequent reasons: {reasons}"
    )]
    TooManyDropped {
        /// Counted from 0.
        step: u64,
        /// Number of groups left with too few trajectories.
        dropped: usize,
        /// Number of groups played.
        groups: usize,
        /// The setting.
        limit: f64,
        /// The most frequent reasons for exclusion.
        reasons: String,
    },
    /// Too many trajectories were left out: the rest of the step would be a biased sample.
    #[error(
        "step {step} lost {excluded} of its {trajectories} trajectories, more than `rl.guards.max_excluded_share = {limit}` \
         allows; most frequent reasons: {reasons}. Mend what excludes them, or raise the limit, and go on with \
         `--resume --allow-changes`"
    )]
    TooManyExcluded {
        /// Counted from 1.
        step: u64,
        /// Number of trajectories that do not train.
        excluded: usize,
        /// Number of trajectories played.
        trajectories: usize,
        /// The setting.
        limit: f64,
        /// The most frequent reasons for exclusion.
        reasons: String,
    },
    /// The policy hardly explores any more.
    #[error(
        "step {step}: the entropy of the policy is {entropy:.4} nats per token, and has been below \
         `rl.guards.min_entropy = {limit}` for {LOW_STEPS} steps. Begin again with a lower \
         `rl.optimizer.learning_rate` or an `rl.entropy_coefficient`, or delete the newest folders in `checkpoints` and go on \
         with `--resume --allow-changes`"
    )]
    LowEntropy {
        /// Counted from 1.
        step: u64,
        /// Nats per sampled token.
        entropy: f64,
        /// The setting.
        limit: f64,
    },
    /// The rewards tell nothing apart.
    #[error(
        "step {step} is number {idle} in a row without an update: no trajectory has an advantage. The tasks are too easy or \
         too hard for the policy, or the rewards cannot tell its answers apart; look at some \
         (`rlf-host rollout RUN --task 1`), choose other tasks or rewards, or raise `rl.group_size`. \
         `--resume --allow-changes --set rl.guards.max_idle_steps=0` goes on anyway"
    )]
    NoAdvantage {
        /// Counted from 1.
        step: u64,
        /// Number of such steps.
        idle: u64,
    },
    /// Training diverged. The weights are those before the update.
    #[error(
        "{phase} step {step}: the loss is {loss}; lower `{phase}.optimizer.learning_rate`, or another setting of the loss or \
         the optimiser that is very large, and continue from the last checkpoint"
    )]
    NotFinite {
        /// The phase.
        phase: Phase,
        /// Counted from 0.
        step: u64,
        /// Infinite or not a number.
        loss: f64,
    },
}
