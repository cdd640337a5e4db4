//! The correction for turns that another engine or older weights sampled, by truncated importance sampling.
//!
//! An engine of its own computes other log-probabilities than training does, so its tokens are not quite those of the
//! policy that is trained (Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You Off-Policy Training").
//! With `rl.staleness`, the weights that played are those of earlier steps. With `pi_old` the policy at the start of
//! the step, as training computes it, and `pi_played` the policy that sampled, as it was recorded:
//!
//! ```text
//! w_t   = min(pi_old(t) / pi_played(t), cap)
//! L     = -sum_t w_t min(rho_t A_t, clip(rho_t) A_t)          rho_t = pi(t) / pi_old(t)
//! ```
//!
//! With older weights, this is the decoupled objective of PPO (Hilton et al. 2022, arXiv:2110.00641), which AReaL uses
//! for asynchronous training (arXiv:2505.24298): the clip is around `pi_old`, and not around the weights that sampled.
//!
//! A weight is positive, so the loss with weights is the loss whose advantages are `w_t A_t`. KL and entropy terms have
//! no weights.

use crate::advantage::Estimates;
use crate::batch::Batch;

/// The weights of one step.
pub(crate) struct Importance {
    /// One for each token of each trajectory; 1 off the mask.
    weights: Vec<Vec<f32>>,
    /// Number of model tokens that train.
    tokens: usize,
    /// Sum of |log pi_old - log pi_played| over them.
    distance: f64,
    /// Number of them whose weight is the cap.
    capped: usize,
}

impl Importance {
    /// Weighs the tokens of a batch. `log_probs` are those of training, `[tokens]` of each trajectory. They replace
    /// those of sampling in the batch.
    pub(crate) fn correct(batch: &mut Batch, log_probs: Vec<Vec<f32>>, cap: f64) -> Self {
        let mut importance = Self {
            weights: Vec::with_capacity(log_probs.len()),
            tokens: 0,
            distance: 0.0,
            capped: 0,
        };
        let trajectories = batch.samples.iter_mut().zip(&mut batch.sequences);
        for ((sample, sequences), log_probs) in trajectories.zip(log_probs) {
            let mut weights = vec![1.0; log_probs.len()];
            let tokens = sample.mask().iter().zip(sample.log_probs()).zip(&log_probs);
            for (weight, ((seen, played), own)) in weights.iter_mut().zip(tokens) {
                if !seen {
                    continue;
                }
                let log_ratio = f64::from(*own) - f64::from(*played);
                let ratio = log_ratio.exp();
                *weight = ratio.min(cap) as f32;
                if !sample.excluded() {
                    importance.tokens += 1;
                    importance.distance += log_ratio.abs();
                    importance.capped += usize::from(ratio > cap);
                }
            }
            importance.weights.push(weights);
            let mut start = 0;
            for sequence in sequences {
                let end = start + sequence.log_probs.len();
                sequence.log_probs.copy_from_slice(&log_probs[start..end]);
                start = end;
            }
            *sample = sample.clone().with_log_probs(log_probs);
        }
        importance
    }

    /// The estimates as the loss reads them: with weighed advantages.
    pub(crate) fn weigh(&self, estimates: &Estimates) -> Estimates {
        let advantages = estimates.advantages.iter().zip(&self.weights);
        let weighed = |(advantages, weights): (&Vec<f32>, &Vec<f32>)| {
            let tokens = advantages.iter().zip(weights);
            (tokens.map(|(advantage, weight)| advantage * weight)).collect::<Vec<f32>>()
        };
        Estimates {
            advantages: advantages.map(weighed).collect(),
            value_targets: estimates.value_targets.clone(),
        }
    }

    /// The mean of |log pi_old - log pi_played| over the model tokens that train; NaN for none.
    pub(crate) fn mismatch(&self) -> f64 {
        self.distance / self.tokens as f64
    }

    /// The share of these tokens whose ratio is above the cap; NaN for none.
    pub(crate) fn capped(&self) -> f64 {
        self.capped as f64 / self.tokens as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{group, scored, two_turns, unscored};

    /// Two trajectories that train, and one that is excluded.
    fn batch() -> Batch {
        let trajectories = (0..3).map(|sample| two_turns(0, sample, 11)).collect();
        let scores = vec![
            scored(1.0),
            scored(0.0),
            unscored("the judge was unavailable"),
        ];
        Batch::new(&[group(0, trajectories, scores)], 2).unwrap()
    }

    /// The log-probabilities of a batch, each greater by `change` on the mask.
    fn changed(batch: &Batch, change: f32) -> Vec<Vec<f32>> {
        let of = |sample: &crate::advantage::Sample| {
            let tokens = sample.mask().iter().zip(sample.log_probs());
            tokens
                .map(|(seen, log_prob)| if *seen { log_prob + change } else { 0.0 })
                .collect()
        };
        batch.samples.iter().map(of).collect()
    }

    fn ones(batch: &Batch) -> Estimates {
        let advantages = batch.samples.iter().map(|s| vec![1.0; s.mask().len()]);
        Estimates {
            advantages: advantages.collect(),
            value_targets: None,
        }
    }

    #[test]
    fn an_engine_with_the_log_probabilities_of_training_changes_nothing() {
        let (mut batch, before) = (batch(), batch());
        let same = changed(&before, 0.0);
        let importance = Importance::correct(&mut batch, same, 2.0);
        assert_eq!(batch.samples, before.samples);
        assert_eq!(batch.sequences, before.sequences);
        assert_eq!(importance.weigh(&ones(&batch)), ones(&batch));
        assert_eq!((importance.mismatch(), importance.capped()), (0.0, 0.0));
    }

    /// exp(0.5) = 1.6487.. is below the cap of 2, and exp(0.75) = 2.117 is above it.
    #[test]
    fn a_token_counts_by_its_ratio_but_at_most_by_the_cap() {
        for (change, weight, capped) in [(0.5_f32, 1.648_721_2_f32, 0.0), (0.75, 2.0, 1.0)] {
            let mut batch = batch();
            let own = changed(&batch, change);
            let importance = Importance::correct(&mut batch, own.clone(), 2.0);
            let weighed = importance.weigh(&ones(&batch));
            for (sample, weights) in batch.samples.iter().zip(&weighed.advantages) {
                for (seen, found) in sample.mask().iter().zip(weights) {
                    let wanted = if *seen { weight } else { 1.0 };
                    assert!((found - wanted).abs() < 1e-5, "{found} {wanted}");
                }
            }
            assert!((importance.mismatch() - f64::from(change)).abs() < 1e-6);
            assert_eq!(importance.capped(), capped);
            // The ratio of the update is to the policy as training computes it.
            for ((sample, sequences), own) in batch.samples.iter().zip(&batch.sequences).zip(&own) {
                assert_eq!(sample.log_probs(), own);
                assert_eq!(sequences[0].log_probs, *own);
            }
        }
    }
}
