//! The KL to the reference policy: its estimators, its place in the reward or in the loss, and its adaptive weight.

use std::fmt;

use rlf_policy::InvalidSetting;
use serde::{Deserialize, Serialize};

use crate::advantage::Sample;

/// The largest log-ratio of two policies, and minus the smallest, whose exponential a loss takes. It is verl's bound.
pub(crate) const LARGEST_LOG_RATIO: f32 = 20.0;

/// Estimators of KL(pi, pi_ref) from sampled tokens alone (Schulman, "Approximating KL Divergence", 2020). For a token `t`
/// with `x = log pi(t) - log pi_ref(t)`:
///
/// ```text
/// k1 = x        k2 = x^2 / 2        k3 = exp(-x) - 1 + x
/// ```
///
/// k3 counts `x` as at most 20 away from 0. Beyond it, its exponential would be larger than all other
/// terms together, and infinite at last.
///
/// The mean of k1 is the KL. So is that of k3, with less variance, and k3 is never negative. The mean of k2 is nearly the KL
/// while the two policies are close.
///
/// In a loss, the gradient counts. That of k2 is `x * grad log pi(t)`, and its mean is the gradient of KL(pi, pi_ref), the
/// reverse KL. That of k3 is `(1 - exp(-x)) * grad log pi(t)`, and its mean is the gradient of KL(pi_ref, pi), the forward
/// KL. The mean of `grad log pi(t)`, the gradient of k1, is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KlEstimator {
    /// `x`. Default in the reward. It is not for the loss.
    K1,
    /// `x^2 / 2`.
    K2,
    /// `exp(-x) - 1 + x`. Default in the loss.
    K3,
}

impl KlEstimator {
    /// The estimate for a token, from its log-ratio `x = log pi(t) - log pi_ref(t)`.
    pub fn estimate(self, x: f64) -> f64 {
        match self {
            Self::K1 => x,
            Self::K2 => x * x / 2.0,
            Self::K3 => {
                let bound = f64::from(LARGEST_LOG_RATIO);
                let r = (-x).clamp(-bound, bound);
                r.exp() - r - 1.0
            }
        }
    }
}

impl fmt::Display for KlEstimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::K1 => "k1",
            Self::K2 => "k2",
            Self::K3 => "k3",
        })
    }
}

/// The place of the KL penalty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KlPlace {
    /// A term of the loss, with a gradient of its own.
    Loss,
    /// Subtracted from the reward of each model token, so that the advantages count it.
    Reward,
}

impl fmt::Display for KlPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loss => "loss",
            Self::Reward => "reward",
        })
    }
}

/// Subtracts the KL of each model token, times `coefficient`, from the token's reward. Samples without reference
/// log-probabilities stay as they are.
pub(crate) fn penalise(samples: &mut [Sample], estimator: KlEstimator, coefficient: f64) {
    for sample in samples {
        let Some(reference) = sample.reference_log_probs() else {
            continue;
        };
        let tokens = sample.log_probs().iter().zip(reference);
        let penalties: Vec<f64> = tokens
            .map(|(own, reference)| {
                -(coefficient * estimator.estimate(f64::from(*own) - f64::from(*reference)))
            })
            .collect();
        sample.add_rewards(&penalties);
    }
}

/// `[rl.adaptive_kl]`: moves the weight of the KL so that the KL comes close to a target (Ziegler et al. 2019,
/// arXiv:1909.08593, section 2.2). `rl.kl_coefficient` is the weight of the first step. After each step:
///
/// ```text
/// e    = clip((KL - target) / target, -0.2, 0.2)
/// beta = beta * (1 + K e)                              K = trajectories of the step / horizon
/// ```
///
/// The KL is the mean over all tokens that the policy sampled in the step (`kl_sampled` in the metrics). The paper has a
/// constant K of 0.1; the horizon is that of its published code, and of TRL and verl.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdaptiveKl {
    /// The KL to come close to, in nats per sampled token. Default 0.05.
    pub target: f64,
    /// Number of trajectories over which an error of the KL changes the weight by that error. A smaller one reacts faster.
    /// Default 5120: with 512 trajectories a step, K is the paper's 0.1.
    pub horizon: f64,
}

/// Largest relative error of the KL that counts.
const LARGEST_ERROR: f64 = 0.2;

impl Default for AdaptiveKl {
    fn default() -> Self {
        Self {
            target: 0.05,
            horizon: 5120.0,
        }
    }
}

impl AdaptiveKl {
    /// Refuses settings that cannot be trained with.
    pub(crate) fn validate(&self) -> Result<(), InvalidSetting> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        InvalidSetting::require(
            positive(self.target),
            "rl.adaptive_kl.target",
            &self.target,
            "is a KL in nats per token, above 0, such as 0.05",
        )?;
        InvalidSetting::require(
            self.horizon.is_finite() && self.horizon >= 1.0,
            "rl.adaptive_kl.horizon",
            &self.horizon,
            "is a number of trajectories, at least 1; ten times those of a step is usual",
        )
    }

    /// The weight after a step with this weight, KL and number of trajectories. A KL that is not a number leaves it as it is.
    pub fn next_coefficient(&self, coefficient: f64, kl: f64, trajectories: usize) -> f64 {
        if !kl.is_finite() {
            return coefficient;
        }
        let error = ((kl - self.target) / self.target).clamp(-LARGEST_ERROR, LARGEST_ERROR);
        // A step of more trajectories than the horizon changes the weight by the whole error, and no more.
        let gain = (trajectories as f64 / self.horizon).min(1.0);
        coefficient * (1.0 + gain * error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advantage::{AdvantageEstimator, ReinforcePlusPlus};

    const ALL: [KlEstimator; 3] = [KlEstimator::K1, KlEstimator::K2, KlEstimator::K3];

    #[test]
    fn golden_values_of_the_estimators() {
        // Python: x, x**2 / 2, math.exp(-x) - 1 + x
        for (x, wanted) in [
            (0.5, [0.5, 0.125, 0.106_530_659_712_633]),
            (-0.3, [-0.3, 0.045, 0.049_858_807_576_003]),
            (0.0, [0.0, 0.0, 0.0]),
        ] {
            for (estimator, wanted) in ALL.into_iter().zip(wanted) {
                let got = estimator.estimate(x);
                assert!((got - wanted).abs() < 1e-12, "{estimator} of {x}: {got}");
            }
        }
    }

    #[test]
    fn the_means_of_k1_and_k3_are_the_kl_and_that_of_k2_is_close() {
        let (p, q): ([f64; 3], [f64; 3]) = ([0.5, 0.3, 0.2], [0.45, 0.33, 0.22]);
        let mean = |of: &dyn Fn(f64) -> f64| -> f64 {
            let pairs = p.iter().zip(&q);
            pairs.map(|(p, q)| p * of((p / q).ln())).sum()
        };
        let kl = mean(&|x| x);
        for (estimator, tolerance) in ALL.into_iter().zip([1e-12, 0.05 * kl, 1e-12]) {
            let estimate = mean(&|x| estimator.estimate(x));
            assert!((estimate - kl).abs() < tolerance, "{estimator}: {estimate}");
        }
    }

    #[test]
    fn a_penalty_is_subtracted_from_model_tokens_only() {
        let mut samples = vec![
            Sample::from_mask(0, &[true, false, true], 1.0)
                .with_log_probs(vec![-1.0, -9.0, -0.5])
                .with_reference_log_probs(vec![-1.5, 0.0, -0.5]),
            Sample::single_turn(1, 2, 0.5),
        ];
        penalise(&mut samples, KlEstimator::K2, 0.1);
        // x is 0.5 and 0.
        assert_eq!(samples[0].rewards(), [-0.0125, 0.0, 1.0]);
        assert_eq!(samples[1].rewards(), [0.0, 0.5], "it has no reference");
    }

    #[test]
    fn golden_values_of_reinforce_plus_plus_with_kl_in_the_reward_across_an_observation() {
        // verl's two functions (returns, then masked_whiten) transcribed to plain Python in double precision, the running
        // return carried over masked tokens.
        let mut batch = vec![
            Sample::from_mask(0, &[true, true, false, false, true], 1.0)
                .with_log_probs(vec![-1.0, -2.0, 0.0, 0.0, -0.5])
                .with_reference_log_probs(vec![-1.5, -1.0, 0.0, 0.0, -0.5]),
            Sample::single_turn(1, 2, 0.0)
                .with_log_probs(vec![-0.1, -0.2])
                .with_reference_log_probs(vec![-0.3, -0.2]),
        ];
        penalise(&mut batch, KlEstimator::K1, 0.1);
        let advantages = ReinforcePlusPlus { gamma: 0.9 }.advantages(&batch);
        let wanted = [
            &[0.536_441_4, 0.819_773_1, 0.0, 0.0, 0.819_773_1][..],
            &[-1.106_882_6, -1.069_105],
        ];
        for (got, wanted) in advantages.iter().zip(wanted) {
            assert_eq!(got.len(), wanted.len());
            for (g, w) in got.iter().zip(wanted) {
                assert!((g - w).abs() < 1e-6, "{got:?} is not {wanted:?}");
            }
        }
    }

    #[test]
    fn the_weight_follows_the_formula_of_the_paper() {
        let adaptive = AdaptiveKl {
            target: 0.1,
            horizon: 1000.0,
        };
        // K is 100 / 1000. Errors: 0, 0.1, 4 and -1, of which 0.2 count at most.
        for (kl, wanted) in [(0.1, 0.02), (0.11, 0.0202), (0.5, 0.0204), (0.0, 0.0196)] {
            let got = adaptive.next_coefficient(0.02, kl, 100);
            assert!((got - wanted).abs() < 1e-12, "{kl}: {got}");
        }
        assert_eq!(adaptive.next_coefficient(0.02, f64::NAN, 100), 0.02);
        assert!((adaptive.next_coefficient(0.02, 0.5, 5000) - 0.024).abs() < 1e-12);
    }
}
