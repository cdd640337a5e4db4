//! Reinforce++: REINFORCE with a KL reward per token and one normalisation over the batch.

use super::whitening::whitened;
use super::{AdvantageEstimator, Sample};

/// Reinforce++ (Hu 2025, "REINFORCE++: A Simple and Efficient Approach for Aligning Large Language
/// Models", arXiv:2501.03262, section 3), with `t` counting model tokens only:
///
/// ```text
/// r_t  = [t is the last] R - beta KL_t
/// G_t  = r_t + gamma * G_{t+1}
/// A_t  = (G_t - mean(G)) / sqrt(var(G) + 1e-8)        over all model tokens of the batch
/// ```
///
/// The rewards `r_t` are those of the sample, which have the KL already; by default it is `log pi_old(t) - log pi_ref(t)`.
///
/// The whitening, with Bessel's correction, is that of verl (`verl/utils/torch_functional.py`,
/// `masked_whiten`). Returns are carried across observations. verl's own `core_algos.py` multiplies the
/// running return by the response mask, so turns before the last observation get no credit for the
/// outcome.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReinforcePlusPlus {
    /// Discount per model token; 1 gives every token the whole outcome.
    pub gamma: f64,
}

impl AdvantageEstimator for ReinforcePlusPlus {
    fn name(&self) -> &'static str {
        "reinforce++"
    }

    fn smallest_group(&self) -> usize {
        1
    }

    fn advantages(&self, batch: &[Sample]) -> Vec<Vec<f32>> {
        let returns: Vec<Vec<f64>> = batch.iter().map(|sample| self.returns(sample)).collect();
        whitened(batch, &returns)
    }
}

impl ReinforcePlusPlus {
    /// `G_t` on model tokens, 0 elsewhere.
    fn returns(self, sample: &Sample) -> Vec<f64> {
        let mut returns = vec![0.0; sample.mask().len()];
        let mut future = 0.0;
        for t in (0..returns.len()).rev().filter(|t| sample.mask()[*t]) {
            future = sample.rewards()[t] + self.gamma * future;
            returns[t] = future;
        }
        returns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(got: &[f32], wanted: &[f32]) {
        assert_eq!(got.len(), wanted.len());
        for (g, w) in got.iter().zip(wanted) {
            assert!((g - w).abs() < 1e-6, "{got:?} is not {wanted:?}");
        }
    }

    // Golden values: verl's two functions (returns, then masked_whiten) transcribed to plain
    // Python in double precision, the running return carried over masked tokens.

    #[test]
    fn golden_values_without_discount() {
        let batch = vec![
            Sample::single_turn(0, 3, 1.0),
            Sample::single_turn(1, 2, 0.0),
        ];
        let advantages = ReinforcePlusPlus { gamma: 1.0 }.advantages(&batch);
        assert_close(&advantages[0], &[0.730_296_7; 3]);
        assert_close(&advantages[1], &[-1.095_445_1; 2]);
    }

    #[test]
    fn golden_values_with_discount() {
        let batch = vec![
            Sample::single_turn(0, 3, 1.0),
            Sample::single_turn(1, 2, 0.0),
        ];
        let advantages = ReinforcePlusPlus { gamma: 0.9 }.advantages(&batch);
        assert_close(&advantages[0], &[0.536_730_4, 0.716_975_7, 0.917_248_3]);
        assert_close(&advantages[1], &[-1.085_477_2; 2]);
    }

    #[test]
    fn the_discount_skips_observations() {
        // Rewards [0, 0, 1] and mask [1, 0, 1]: the first token is one model token before the last.
        let sample = Sample::from_mask(0, &[true, false, true], 1.0);
        let returns = ReinforcePlusPlus { gamma: 0.5 }.returns(&sample);
        assert_eq!(returns, [0.5, 0.0, 1.0]);
    }

    #[test]
    fn the_outcome_reaches_the_turns_before_an_observation() {
        let two_turns = [true, true, false, false, false, true];
        let batch = vec![
            Sample::from_mask(0, &two_turns, 1.0),
            Sample::from_mask(1, &two_turns, 0.0),
        ];
        let advantages = ReinforcePlusPlus { gamma: 1.0 }.advantages(&batch);
        assert!(advantages[0][0] > 0.0);
        assert_eq!(advantages[0][0], advantages[0][5]);
    }

    #[test]
    fn the_statistics_are_those_of_all_model_tokens_of_the_batch() {
        let batch = vec![
            Sample::from_mask(0, &[false, true, false, true], 2.0),
            Sample::single_turn(1, 5, -1.0),
            Sample::single_turn(2, 1, 0.5),
        ];
        let advantages = ReinforcePlusPlus { gamma: 0.95 }.advantages(&batch);
        let model: Vec<f64> = batch
            .iter()
            .zip(&advantages)
            .flat_map(|(s, a)| s.mask().iter().zip(a))
            .filter(|(seen, _)| **seen)
            .map(|(_, a)| f64::from(*a))
            .collect();
        assert_eq!(model.len(), 8);
        let mean = model.iter().sum::<f64>() / 8.0;
        let variance = model.iter().map(|a| (a - mean).powi(2)).sum::<f64>() / 7.0;
        assert!(
            mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-5,
            "{mean} {variance}"
        );
    }

    #[test]
    fn a_batch_without_differences_gives_exactly_zero() {
        let batch = vec![
            Sample::single_turn(0, 3, 0.1),
            Sample::single_turn(1, 4, 0.1),
        ];
        let advantages = ReinforcePlusPlus { gamma: 1.0 }.advantages(&batch);
        assert!(advantages.iter().flatten().all(|a| *a == 0.0));
    }
}
