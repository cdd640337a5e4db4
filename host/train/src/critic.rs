//! The critic of PPO: its settings, and its value head with an optimiser of its own.

use std::path::Path;

use rlf_policy::{
    AdamW, Gradients, InvalidSetting, Model, OptimizerConfig, PolicyError, ValueHead,
};
use serde::{Deserialize, Serialize};

use crate::advantage::Sample;
use crate::value_loss::ValueLoss;

/// The file of the head in a checkpoint.
pub(crate) const HEAD: &str = "value_head.safetensors";
/// The file of the state of the head's optimiser in a checkpoint.
pub(crate) const HEAD_OPTIMIZER: &str = "value_head_optimizer.safetensors";

/// `[rl.critic]`: the critic of `algorithm = "ppo"`. It is a linear head on the policy's last hidden state, and it begins
/// with the value 0 everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CriticConfig {
    /// Peak learning rate of the head. Warm-up and schedule are those of `rl.optimizer`. Default 1e-4: the head is new, so
    /// it learns faster than the policy.
    pub learning_rate: f64,
    /// Weight of the value loss beside the loss of the policy, for the part of the gradient that they share: that of the
    /// policy's weights. Default 0.1, as in TRL.
    pub loss_coefficient: f64,
    /// Values that moved farther than this in a step towards their target get no gradient. It has the unit of the reward.
    /// Default 0.2. 0 clips nothing.
    pub clip: f64,
    /// True lets the gradient of the value loss flow into the policy's weights, too. False trains the head alone. Default
    /// true.
    pub trains_trunk: bool,
}

impl Default for CriticConfig {
    fn default() -> Self {
        Self {
            learning_rate: 1e-4,
            loss_coefficient: 0.1,
            clip: 0.2,
            trains_trunk: true,
        }
    }
}

impl CriticConfig {
    /// True if every setting is the default.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses settings that cannot be trained with.
    pub(crate) fn validate(&self) -> Result<(), InvalidSetting> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        InvalidSetting::require(
            positive(self.learning_rate),
            "rl.critic.learning_rate",
            &self.learning_rate,
            "must be a number above 0, such as 1e-4",
        )?;
        InvalidSetting::require(
            positive(self.loss_coefficient),
            "rl.critic.loss_coefficient",
            &self.loss_coefficient,
            "must be above 0, such as 0.1; `trains_trunk = false` keeps values out of the policy's weights",
        )?;
        InvalidSetting::require(
            self.clip.is_finite() && self.clip >= 0.0,
            "rl.critic.clip",
            &self.clip,
            "must be 0 or more; 0 clips nothing",
        )
    }

    /// The loss of values.
    pub fn loss(&self) -> ValueLoss {
        ValueLoss {
            coefficient: self.loss_coefficient,
            clip: self.clip,
        }
    }
}

/// A value head and its optimiser.
pub(crate) struct Critic {
    pub(crate) head: ValueHead,
    optimizer: AdamW,
    config: OptimizerConfig,
}

impl Critic {
    /// A new critic for a model. `policy` has the settings of the policy's optimiser.
    pub(crate) fn new(
        config: &CriticConfig,
        policy: OptimizerConfig,
        model: &Model,
    ) -> Result<Self, PolicyError> {
        let own = OptimizerConfig {
            learning_rate: config.learning_rate,
            ..policy
        };
        let head = ValueHead::new(model, config.trains_trunk)?;
        Ok(Self {
            optimizer: AdamW::new(&head, own)?,
            config: own,
            head,
        })
    }

    /// The critic of the checkpoint in `folder`; a new one if the checkpoint has none, because another algorithm made it.
    pub(crate) fn load(
        folder: &Path,
        config: &CriticConfig,
        policy: OptimizerConfig,
        model: &Model,
    ) -> Result<Self, PolicyError> {
        let mut critic = Self::new(config, policy, model)?;
        let file = folder.join(HEAD);
        if file.exists() {
            critic.head = ValueHead::load(&file, model, config.trains_trunk)?;
            let state = folder.join(HEAD_OPTIMIZER);
            critic.optimizer = AdamW::load(&state, &critic.head, critic.config)?;
        }
        Ok(critic)
    }

    /// Writes the head and the state of its optimiser into the folder of a checkpoint. Programs that load the folder as a
    /// model read neither.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), PolicyError> {
        self.head.save(&folder.join(HEAD))?;
        self.optimizer
            .save(&folder.join(HEAD_OPTIMIZER), &self.head)
    }

    /// Updates the head in `step` (from 0) of a phase of `steps`.
    pub(crate) fn learn(
        &mut self,
        gradients: &Gradients,
        step: u64,
        steps: u64,
    ) -> Result<(), PolicyError> {
        let learning_rate = self.config.rate_at(step, steps);
        self.optimizer.step(&self.head, gradients, learning_rate)?;
        Ok(())
    }
}

/// The share of the targets' variance that the values explain: `1 - var(R - V) / var(R)`, over all model tokens that train.
/// 1 is perfect, 0 is no better than a constant, and below 0 is worse. Not a number if the targets do not differ.
pub(crate) fn explained_variance(samples: &[Sample], targets: &[Vec<f32>]) -> f64 {
    let rows = samples.iter().zip(targets);
    let rows = rows.filter(|(sample, _)| !sample.excluded());
    let (mut wanted, mut errors) = (Vec::new(), Vec::new());
    for (sample, targets) in rows {
        for (t, target) in targets
            .iter()
            .enumerate()
            .filter(|(t, _)| sample.mask()[*t])
        {
            let value = sample.values().map_or(0.0, |values| values[t]);
            wanted.push(f64::from(*target));
            errors.push(f64::from(*target) - f64::from(value));
        }
    }
    if wanted.iter().all(|target| *target == wanted[0]) {
        return f64::NAN;
    }
    1.0 - variance(&errors) / variance(&wanted)
}

fn variance(numbers: &[f64]) -> f64 {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let squares = numbers.iter().map(|x| (x - mean).powi(2));
    squares.sum::<f64>() / n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explained_variance_is_over_model_tokens_that_train() {
        let mask = [true, false, true];
        let sample = |values: [f32; 3]| {
            Sample::from_mask(0, &mask, 1.0)
                .with_values(values.to_vec())
                .with_excluded(values[0] > 8.0)
        };
        let samples = [sample([0.5, 7.0, 2.5]), sample([9.0, 9.0, 9.0])];
        let explained =
            |first: [f32; 3]| explained_variance(&samples, &[first.to_vec(), vec![99.0; 3]]);
        // The errors are 0.5 and 0.5: the same, so nothing but a constant is missing.
        assert_eq!(explained([1.0, 0.0, 3.0]), 1.0);
        // The errors 0.5 and -0.5 vary as much as the targets 1 and 2.
        assert_eq!(explained([1.0, 0.0, 2.0]), 0.0);
        assert!(explained([1.0, 0.0, 1.0]).is_nan());
    }

    #[test]
    fn a_critic_of_a_checkpoint_goes_on_and_a_checkpoint_without_one_begins_anew() {
        let model = Model::init(
            &rlf_policy::measure::quickstart_shape(),
            0,
            &candle_core::Device::Cpu,
        )
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (config, policy) = (CriticConfig::default(), OptimizerConfig::default());
        let load = || Critic::load(folder.path(), &config, policy, &model).unwrap();
        assert_eq!(load().optimizer.steps(), 0);
        let mut critic = load();
        let batch = rlf_policy::PackedBatch::new(&[rlf_policy::Sequence {
            ids: &[5, 6, 7],
            mask: &[false, true, true],
        }])
        .unwrap();
        let done = model
            .accumulate_with_values(
                &[batch],
                &rlf_policy::PassOptions::default(),
                Some(&critic.head),
                |_, tokens| Ok((tokens.values.as_ref().unwrap().sum_all()?, ())),
            )
            .unwrap();
        critic.learn(&done.value_head.unwrap(), 0, 1).unwrap();
        critic.save(folder.path()).unwrap();
        let numbers = |critic: &Critic| -> Vec<f32> {
            let all = critic.head.parameters();
            all.flat_map(|(_, v)| v.flatten_all().unwrap().to_vec1::<f32>().unwrap())
                .collect()
        };
        let loaded = load();
        assert_eq!(loaded.optimizer.steps(), 1);
        assert_eq!(numbers(&loaded), numbers(&critic));
        assert!(numbers(&loaded).iter().any(|w| *w != 0.0));
    }
}
