//! PPO's advantages: generalised advantage estimation with the values of a critic.

use super::whitening::whitened;
use super::{AdvantageEstimator, Estimates, Sample};

/// Generalised advantage estimation (Schulman et al. 2016, arXiv:1506.02438, equation 16), as PPO uses it (Schulman et
/// al. 2017, arXiv:1707.06347, equations 11 and 12). `t` counts model tokens only, and `V_t` is the critic's value before
/// token `t`:
///
/// ```text
/// delta_t = r_t + gamma V_{t+1} - V_t                     V is 0 after the last token
/// A'_t    = delta_t + gamma lambda A'_{t+1}               = sum_l (gamma lambda)^l delta_{t+l}
/// R_t     = A'_t + V_t                                    the critic's target
/// A_t     = (A' - mean(A')) / sqrt(var(A') + 1e-8)        over all model tokens of the batch
/// ```
///
/// The outcome is the reward of the last token. The reward of a turn belongs to the turn's last token. A token after an
/// observation follows the last model token before it directly. So an observation of any length discounts nothing, and its
/// values are never read. The whitening and the skipping are those of verl (`compute_gae_advantage_return`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gae {
    /// Discount per model token.
    pub gamma: f64,
    /// `lambda`: 1 sums all rewards that follow, 0 trusts the value of the next token.
    pub lambda: f64,
}

impl AdvantageEstimator for Gae {
    fn name(&self) -> &'static str {
        "ppo"
    }

    fn smallest_group(&self) -> usize {
        1
    }

    fn needs_values(&self) -> bool {
        true
    }

    fn advantages(&self, batch: &[Sample]) -> Vec<Vec<f32>> {
        self.estimates(batch).advantages
    }

    fn estimates(&self, batch: &[Sample]) -> Estimates {
        let (advantages, targets): (Vec<_>, Vec<_>) =
            batch.iter().map(|sample| self.of(sample)).unzip();
        Estimates {
            advantages: whitened(batch, &advantages),
            value_targets: Some(targets),
        }
    }
}

impl Gae {
    /// `A'_t` and `R_t` on model tokens, 0 elsewhere. A sample without values has the value 0 everywhere.
    fn of(self, sample: &Sample) -> (Vec<f64>, Vec<f32>) {
        let mut r = sample.rewards().to_vec();
        for (turn, reward) in sample
            .turns()
            .iter()
            .zip(sample.turn_rewards().unwrap_or_default())
        {
            r[turn.end - 1] += reward;
        }
        let v = |t: usize| sample.values().map_or(0.0, |values| f64::from(values[t]));
        let (mut advantages, mut targets) = (vec![0.0; r.len()], vec![0.0; r.len()]);
        let (mut next_v, mut next_advantage) = (0.0, 0.0);
        for t in (0..r.len()).rev().filter(|t| sample.mask()[*t]) {
            let delta = r[t] + self.gamma * next_v - v(t);
            next_advantage = delta + self.gamma * self.lambda * next_advantage;
            next_v = v(t);
            advantages[t] = next_advantage;
            targets[t] = (next_advantage + next_v) as f32;
        }
        (advantages, targets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advantage::ReinforcePlusPlus;

    /// Two turns with an observation between them, and a turn that earns nothing. The values of observations are absurd.
    fn batch() -> Vec<Sample> {
        vec![
            Sample::from_mask(0, &[true, true, false, false, true], 1.0)
                .with_turn_rewards(vec![0.25, 0.0])
                .with_values(vec![0.2, 0.4, 9.0, -9.0, 0.6]),
            Sample::single_turn(1, 2, 0.0).with_values(vec![0.1, -0.3]),
        ]
    }

    fn assert_close(got: &[f32], wanted: &[f32]) {
        assert_eq!(got.len(), wanted.len());
        for (g, w) in got.iter().zip(wanted) {
            assert!((g - w).abs() < 1e-6, "{got:?} is not {wanted:?}");
        }
    }

    #[test]
    fn golden_values() {
        // verl's compute_gae_advantage_return and masked_whiten, transcribed to plain Python in double precision, with the
        // reward of the first turn on its last token.
        for (gamma, lambda, advantages, targets) in [
            (
                1.0,
                1.0,
                [
                    &[1.203_786_4, 0.766_045_9, 0.0, 0.0, -0.218_870_3][..],
                    &[-1.313_221_5, -0.437_740_5],
                ],
                [&[1.25, 1.25, 0.0, 0.0, 1.0][..], &[0.0, 0.0]],
            ),
            (
                0.9,
                0.8,
                [
                    &[0.813_828_4, 0.902_546_5, 0.0, 0.0, 0.076_016_9][..],
                    &[-1.571_096, -0.221_295_9],
                ],
                [&[0.848_16, 1.078, 0.0, 0.0, 1.0][..], &[-0.054, 0.0]],
            ),
            (
                1.0,
                0.0,
                [
                    &[0.029_111_1, 0.756_889_2, 0.0, 0.0, 0.611_333_6][..],
                    &[-1.717_556_3, 0.320_222_4],
                ],
                [&[0.4, 0.85, 0.0, 0.0, 1.0][..], &[-0.3, 0.0]],
            ),
        ] {
            let estimates = Gae { gamma, lambda }.estimates(&batch());
            let value_targets = estimates.value_targets.unwrap();
            for i in 0..2 {
                assert_close(&estimates.advantages[i], advantages[i]);
                assert_close(&value_targets[i], targets[i]);
            }
        }
    }

    #[test]
    fn with_gamma_and_lambda_1_it_is_the_return_minus_the_value() {
        let sample = &batch()[0];
        let gae = Gae {
            gamma: 1.0,
            lambda: 1.0,
        };
        let (advantages, targets) = gae.of(sample);
        assert_close(&targets, &[1.25, 1.25, 0.0, 0.0, 1.0]);
        let model = [0, 1, 4].map(|t| advantages[t] as f32);
        assert_close(&model, &[1.05, 0.85, 0.4]);
    }

    #[test]
    fn without_values_it_is_reinforce_plus_plus() {
        let batch = [(0, 3, 1.0), (1, 2, 0.0)]
            .map(|(group, tokens, reward)| Sample::single_turn(group, tokens, reward));
        let gae = Gae {
            gamma: 0.9,
            lambda: 1.0,
        };
        let reinforce = ReinforcePlusPlus { gamma: 0.9 };
        assert_eq!(gae.advantages(&batch), reinforce.advantages(&batch));
    }
}
