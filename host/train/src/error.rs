//! What can stop training, said so that it can be mended.

use rlf_policy::PolicyError;

use crate::advantage::SampleError;
use crate::config::InvalidSetting;
use crate::metrics::Phase;
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
    /// Whoever plays episodes failed.
    #[error("rollouts of step {step}: {source}")]
    Rollouts {
        /// Counted from 0.
        step: u64,
        /// Its own words.
        source: BoxError,
    },
    /// Whoever makes demonstrations failed, or made none that can be learned from.
    #[error("demonstrations of step {step}: {source}")]
    Demonstrations {
        /// Counted from 0.
        step: u64,
        /// Its own words.
        source: BoxError,
    },
    /// Whoever watches the run failed.
    #[error("after {phase} step {step}: {source}")]
    Observer {
        /// The stage.
        phase: Phase,
        /// Steps done.
        step: u64,
        /// Its own words.
        source: BoxError,
    },
    /// What is left of the step would be a biased sample.
    #[error(
        "step {step} lost {dropped} of its {groups} groups, more than `rl.max_dropped_groups = {limit}` allows; \
         most frequent reasons: {reasons}"
    )]
    TooManyDropped {
        /// Counted from 0.
        step: u64,
        /// Groups left with too few trajectories.
        dropped: usize,
        /// Groups played.
        groups: usize,
        /// The setting.
        limit: f64,
        /// In the words of those who excluded them.
        reasons: String,
    },
    /// Training diverged; weights are those before the update.
    #[error(
        "{phase} step {step}: the loss is {loss}; lower `{phase}.optimizer.learning_rate`, and go on \
         from the last checkpoint"
    )]
    NotFinite {
        /// The stage.
        phase: Phase,
        /// Counted from 0.
        step: u64,
        /// Infinite or not a number.
        loss: f64,
    },
}
