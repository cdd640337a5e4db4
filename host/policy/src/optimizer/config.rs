//! The settings of the optimiser and of its learning rate.

use serde::{Deserialize, Serialize};

use crate::error::InvalidSetting;

/// The course of the learning rate after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// The rate stays at its peak. Default.
    #[default]
    Constant,
    /// The rate falls linearly to about `final_share` of its peak.
    Linear,
    /// The rate falls along half a cosine to about `final_share` of its peak.
    Cosine,
}

/// AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) with warm-up, schedule and clipping.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// Peak learning rate. Default 1e-5 in SFT and 1e-6 in RL, for all weights of a pretrained model. A small model that is
    /// trained from nothing needs about 2e-3 in SFT. In RL, the learning rate of SFT would unlearn SFT's result.
    pub learning_rate: f64,
    /// Steps over which the rate rises linearly from 0. Default 0.
    pub warmup_steps: u64,
    /// The course after the warm-up. Default `constant`.
    pub schedule: Schedule,
    /// The share of the peak to which the rate falls, with `linear` and `cosine`. A step after the last one would have it.
    /// Default 0.1.
    pub final_share: f64,
    /// Decay of matrices per update, times the learning rate; the weights of norms do not decay.
    /// Default 0.01.
    pub weight_decay: f64,
    /// Decay of the first moment, the mean of gradients. Default 0.9.
    pub beta1: f64,
    /// Decay of the second moment, the mean of squared gradients. Default 0.999.
    pub beta2: f64,
    /// Added to the root of the second moment. Default 1e-8.
    pub epsilon: f64,
    /// Gradients with a larger global 2-norm are scaled down to it; 0 clips nothing. Default 1.
    pub max_grad_norm: f64,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            learning_rate: 1e-5,
            warmup_steps: 0,
            schedule: Schedule::Constant,
            final_share: 0.1,
            weight_decay: 0.01,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            max_grad_norm: 1.0,
        }
    }
}

impl OptimizerConfig {
    /// The learning rate of `step` (from 0) in a phase of `steps`.
    pub fn rate_at(&self, step: u64, steps: u64) -> f64 {
        let warmup = ((step + 1) as f64 / self.warmup_steps.max(1) as f64).min(1.0);
        let after = steps.saturating_sub(self.warmup_steps).max(1);
        let progress = (step.saturating_sub(self.warmup_steps) as f64 / after as f64).min(1.0);
        let fall = match self.schedule {
            Schedule::Constant => 0.0,
            Schedule::Linear => progress,
            Schedule::Cosine => 0.5 * (1.0 - (std::f64::consts::PI * progress).cos()),
        };
        self.learning_rate * warmup * (1.0 - (1.0 - self.final_share) * fall)
    }

    /// Refuses settings that cannot be trained with.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        let share = |x: f64| (0.0..1.0).contains(&x);
        let positive = |x: f64| x.is_finite() && x > 0.0;
        InvalidSetting::require(
            positive(self.learning_rate),
            "optimizer.learning_rate",
            &self.learning_rate,
            "must be a number above 0, such as 1e-4",
        )?;
        InvalidSetting::require(
            (0.0..=1.0).contains(&self.final_share),
            "optimizer.final_share",
            &self.final_share,
            "is the share of the peak rate left at the end, from 0 to 1",
        )?;
        InvalidSetting::require(
            self.weight_decay.is_finite() && self.weight_decay >= 0.0,
            "optimizer.weight_decay",
            &self.weight_decay,
            "must be 0 or more",
        )?;
        InvalidSetting::require(
            share(self.beta1),
            "optimizer.beta1",
            &self.beta1,
            "must be in 0..1, such as 0.9",
        )?;
        InvalidSetting::require(
            share(self.beta2),
            "optimizer.beta2",
            &self.beta2,
            "must be in 0..1, such as 0.999",
        )?;
        InvalidSetting::require(
            positive(self.epsilon),
            "optimizer.epsilon",
            &self.epsilon,
            "must be above 0",
        )?;
        InvalidSetting::require(
            self.max_grad_norm.is_finite() && self.max_grad_norm >= 0.0,
            "optimizer.max_grad_norm",
            &self.max_grad_norm,
            "must be 0 or more; 0 clips nothing",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learning_rate_warms_up_then_falls_to_its_final_share() {
        let base = OptimizerConfig {
            learning_rate: 1.0,
            warmup_steps: 4,
            ..OptimizerConfig::default()
        };
        assert_eq!(
            [0, 1, 2, 3, 50].map(|s| base.rate_at(s, 100)),
            [0.25, 0.5, 0.75, 1.0, 1.0]
        );
        let linear = OptimizerConfig {
            schedule: Schedule::Linear,
            ..base
        };
        assert_eq!(linear.rate_at(4, 104), 1.0);
        assert!((linear.rate_at(54, 104) - 0.55).abs() < 1e-12);
        assert!((linear.rate_at(104, 104) - 0.1).abs() < 1e-12);
        let cosine = OptimizerConfig {
            schedule: Schedule::Cosine,
            ..base
        };
        assert!((cosine.rate_at(54, 104) - 0.55).abs() < 1e-12);
        assert!(
            (cosine.rate_at(29, 104)
                - (1.0 - 0.9 * 0.5 * (1.0 - (0.25 * std::f64::consts::PI).cos())))
            .abs()
                < 1e-12
        );
    }
}
