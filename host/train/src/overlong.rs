//! A soft punishment of long trajectories.

use rlf_policy::InvalidSetting;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;

/// The soft punishment of overlong answers of DAPO (arXiv:2503.14476, equation 13). A trajectory with `n` model tokens gets
/// this in addition to its reward:
///
/// - 0 if `n <= max_tokens - buffer`;
/// - `((max_tokens - buffer) - n) / buffer` if `n` is in between;
/// - -1 if `n > max_tokens`.
///
/// Tokens of all turns count, observations do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlong {
    /// Number of model tokens beyond which the punishment is whole.
    pub max_tokens: usize,
    /// Number of model tokens over which it grows from 0 to 1.
    pub buffer: usize,
}

impl Overlong {
    /// Refuses numbers for which the formula has no meaning.
    pub(crate) fn validate(&self) -> Result<(), InvalidSetting> {
        InvalidSetting::require(
            (1..=self.max_tokens).contains(&self.buffer),
            "rl.overlong.buffer",
            &self.buffer,
            "must be at least 1 and at most rl.overlong.max_tokens",
        )
    }

    /// The punishment for this number of model tokens, from -1 to 0.
    pub fn punishment(&self, model_tokens: usize) -> f64 {
        let beyond = model_tokens.saturating_sub(self.max_tokens - self.buffer);
        -(beyond as f64 / self.buffer as f64).min(1.0)
    }

    /// Adds the punishment to the rewards of a batch. Returns the mean over the trajectories that train.
    pub(crate) fn punish(&self, batch: &mut Batch) -> f64 {
        let (mut sum, mut count) = (0.0, 0_usize);
        for sample in &mut batch.samples {
            let punishment = self.punishment(sample.model_tokens());
            if !sample.excluded() {
                sum += punishment;
                count += 1;
            }
            sample.add_outcome(punishment);
        }
        sum / count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{group, scored, two_turns};

    const OVERLONG: Overlong = Overlong {
        max_tokens: 100,
        buffer: 20,
    };

    #[test]
    fn the_punishment_is_that_of_the_paper() {
        // ((100 - 20) - n) / 20 in between.
        for (tokens, expected) in [
            (0, 0.0),
            (80, 0.0),
            (85, -0.25),
            (99, -0.95),
            (100, -1.0),
            (101, -1.0),
            (900, -1.0),
        ] {
            assert!(
                (OVERLONG.punishment(tokens) - expected).abs() < 1e-12,
                "{tokens}"
            );
        }
    }

    #[test]
    fn it_counts_model_tokens_and_adds_to_the_reward() {
        // The trajectories have 3 and 5 model tokens, among others that they read.
        let trajectories = vec![two_turns(0, 0, 11), two_turns(0, 1, 11)];
        let graded = vec![scored(1.0), scored(1.0)];
        let mut batch = Batch::new(&[group(0, trajectories, graded)], 2).unwrap();
        let overlong = Overlong {
            max_tokens: 6,
            buffer: 4,
        };
        assert_eq!(overlong.punish(&mut batch), -0.5);
        let rewards: Vec<f64> = batch
            .samples
            .iter()
            .map(crate::advantage::Sample::total_reward)
            .collect();
        assert_eq!(rewards, [0.75, 0.25]);
    }

    #[test]
    fn numbers_without_a_meaning_are_refused() {
        for (max_tokens, buffer) in [(10, 0), (10, 11), (0, 0)] {
            assert!(Overlong { max_tokens, buffer }.validate().is_err());
        }
        assert!(OVERLONG.validate().is_ok());
    }
}
