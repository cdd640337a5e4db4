//! Errors that stop training, with what to do about them.

use rlf_policy::PolicyError;

use crate::advantage::SampleError;
use crate::config::InvalidSetting;
use crate::guards::GuardError;
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
    #[error("rollouts of RL step {}: {source}", step + 1)]
    Rollouts {
        /// Counted from 0.
        step: u64,
        /// The cause.
        source: BoxError,
    },
    /// The source of demonstrations failed, or none of its demonstrations has a token to train on.
    #[error("demonstrations of SFT step {}: {source}", step + 1)]
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
        "RL step {} lost {dropped} of its {groups} groups, more than `rl.max_dropped_share = {limit}` allows; \
         most frequent reasons: {reasons}",
        step + 1
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
    /// A guard stopped RL.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// The optimiser cannot make an update. If it is the critic's, the policy already has its own.
    #[error("{phase} step {}: {source}. Continue from the last checkpoint", step + 1)]
    Update {
        /// The phase.
        phase: Phase,
        /// Counted from 0.
        step: u64,
        /// The cause.
        source: PolicyError,
    },
    /// Training diverged. The weights are those before the update.
    #[error(
        "{phase} step {}: the loss is {loss}; lower `{phase}.optimizer.learning_rate`, or another setting of the loss or the \
         optimiser that is very large, and continue from the last checkpoint",
        step + 1
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

impl TrainError {
    /// The error of an optimiser in `step` (from 0).
    pub(crate) fn of_update(phase: Phase, step: u64) -> impl Fn(PolicyError) -> Self + Copy {
        move |source| Self::Update {
            phase,
            step,
            source,
        }
    }
}
