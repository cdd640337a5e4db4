//! `[rl.optimizer]`: the keys of [`OptimizerConfig`], with a default learning rate for RL.

use rlf_policy::{OptimizerConfig, Schedule};
use serde::{Deserialize, Deserializer};

/// The optimiser of RL: the default learning rate is 1e-6, which is usual for all weights of a pretrained model.
pub(super) fn default() -> OptimizerConfig {
    OptimizerConfig {
        learning_rate: 1e-6,
        ..OptimizerConfig::default()
    }
}

/// Reads the table. A key that it does not have is that of [`default`].
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    table: D,
) -> Result<OptimizerConfig, D::Error> {
    Keys::deserialize(table)
}

/// The keys, which are those of [`OptimizerConfig`].
#[derive(Deserialize)]
#[serde(remote = "OptimizerConfig", deny_unknown_fields, default = "default")]
struct Keys {
    learning_rate: f64,
    warmup_steps: u64,
    schedule: Schedule,
    final_share: f64,
    weight_decay: f64,
    beta1: f64,
    beta2: f64,
    epsilon: f64,
    max_grad_norm: f64,
}
