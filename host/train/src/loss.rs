//! Losses of SFT and RL, through one entry point: [`Objective::loss`].
//!
//! Everything here is per model token. The loss mask was applied before: a `PackedBatch` has the
//! log-probabilities of model tokens only (and of prompt tokens, where SFT trains them too). The weight of each token is fixed for the whole mini-batch
//! before it is cut into micro-batches ([`token_weights`]). So a loss is a weighted sum, and the sum over
//! micro-batches is the loss of the mini-batch.

use std::borrow::Cow;
use std::collections::BTreeMap;

use candle_core::{Device, Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::kl::{KlEstimator, LARGEST_LOG_RATIO};

/// The way in which the tokens of a mini-batch are averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregation {
    /// Every model token of the mini-batch has the same weight, 1 / their number (DAPO,
    /// arXiv:2503.14476, equation 8). Default.
    #[default]
    TokenMean,
    /// Every trajectory has the same weight, and so has every token within it: 1 / the trajectory's
    /// model tokens / the number of trajectories (GRPO, arXiv:2402.03300, equation 3).
    SequenceMean,
}

/// The weight of a model token, for each trajectory of one mini-batch, given each one's number of model
/// tokens. The weights of all tokens sum to 1; trajectories with advantage 0 count like all others.
pub fn token_weights(aggregation: Aggregation, model_tokens: &[usize]) -> Vec<f64> {
    let total: usize = model_tokens.iter().sum();
    let trajectories = model_tokens.iter().filter(|n| **n > 0).count();
    model_tokens
        .iter()
        .map(|n| match aggregation {
            _ if *n == 0 => 0.0,
            Aggregation::TokenMean => 1.0 / total as f64,
            Aggregation::SequenceMean => 1.0 / (trajectories * n) as f64,
        })
        .collect()
}

/// The importance ratio of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ratio {
    /// The token's own: `pi(t) / pi_old(t)`. Default.
    #[default]
    Token,
    /// That of its sequence of tokens: the geometric mean of the ratios of the sequence's model tokens (GSPO, Zheng et al.
    /// 2025, arXiv:2507.18071, equation 7). A trajectory has several sequences where its history is written anew. A token's
    /// gradient is that of its own log-probability times this ratio.
    Sequence,
}

/// The objective that an update minimises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Objective {
    /// Cross-entropy of demonstrated tokens.
    Supervised,
    /// The clipped policy gradient.
    Policy(ClippedPolicy),
}

/// PPO's clipped surrogate (Schulman et al. 2017, arXiv:1707.06347, equation 7) with a lower and an
/// upper clip (DAPO, arXiv:2503.14476, equation 10), a bound for negative advantages (Ye et al. 2020,
/// arXiv:1912.09729, equation 5), a KL penalty and an entropy bonus:
///
/// ```text
/// rho_t = pi(t) / pi_old(t)                             or the ratio of its sequence: see Ratio
/// L = sum_t w_t * ( -max(min(rho_t A_t, clip(rho_t, 1 - low, 1 + high) A_t), [A_t < 0] dual A_t)
///                   + kl * KL_t
///                   - entropy * H_t )                     KL_t: see KlEstimator
/// ```
///
/// A ratio that nothing else bounds is clipped above at e^20, so that no loss is infinite.
///
/// The KL term is k3 by default, as in GRPO's equation 4. All log-probabilities are at the temperature of sampling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClippedPolicy {
    /// The importance ratio.
    pub ratio: Ratio,
    /// The ratio is clipped below at 1 minus this value.
    pub clip_low: f64,
    /// The ratio is clipped above at 1 plus this value.
    pub clip_high: f64,
    /// For negative advantages, the ratio is clipped above at this value; none leaves it unbounded.
    pub dual_clip: Option<f64>,
    /// Weight of the KL to the reference policy; 0 needs no reference policy.
    pub kl_coefficient: f64,
    /// The estimator of that KL.
    pub kl_estimator: KlEstimator,
    /// Weight of the entropy bonus.
    pub entropy_coefficient: f64,
}

/// The numbers that the loss needs for the model tokens of one micro-batch, `[n]` each, in packing
/// order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenTargets {
    /// Share of the mini-batch's loss, from [`token_weights`].
    pub weights: Vec<f32>,
    /// True for a token that is not the model's and that SFT trains too. It is in no statistic. Empty if all are model
    /// tokens.
    pub prompt: Vec<bool>,
    /// Each token's sequence, by its number in the micro-batch.
    pub sequences: Vec<u32>,
    /// Empty for SFT.
    pub advantages: Vec<f32>,
    /// The log-probabilities recorded when the tokens were sampled. Empty for SFT.
    pub old_log_probs: Vec<f32>,
    /// The log-probabilities under the frozen reference policy. Empty if the KL coefficient is 0.
    pub reference_log_probs: Vec<f32>,
    /// Targets of a critic's values. Empty without a critic.
    pub value_targets: Vec<f32>,
    /// A critic's values at the start of the step. Empty without a critic.
    pub old_values: Vec<f32>,
}

/// Sums over model tokens. They are added up over micro-batches and read as means at the end.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LossStatistics {
    /// Number of model tokens.
    pub tokens: usize,
    /// The weighted loss.
    pub loss: f64,
    /// Sum of entropies.
    pub entropy: f64,
    /// Sum of -log-probabilities.
    pub negative_log_prob: f64,
    /// Sum of the k3 estimates of KL(old policy, policy).
    pub kl_old: f64,
    /// Sum of the k3 estimates of KL(policy, reference).
    pub kl_reference: f64,
    /// Sum of the value losses of tokens, without their weights; 0 without a critic.
    pub value_loss: f64,
    /// Tokens whose ratio was clipped.
    pub clipped: usize,
    /// Largest |ratio - 1| of a single token. At a step's first update, it is 0 on the CPU and nearly 0 on CUDA.
    pub ratio_deviation: f64,
}

impl LossStatistics {
    /// Adds the sums of another micro-batch.
    pub fn add(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.loss += other.loss;
        self.entropy += other.entropy;
        self.negative_log_prob += other.negative_log_prob;
        self.kl_old += other.kl_old;
        self.kl_reference += other.kl_reference;
        self.value_loss += other.value_loss;
        self.clipped += other.clipped;
        self.ratio_deviation = self.ratio_deviation.max(other.ratio_deviation);
    }

    /// The mean of a sum over tokens; NaN for no tokens.
    pub fn mean(&self, sum: f64) -> f64 {
        sum / self.tokens as f64
    }
}

impl Objective {
    /// The loss of one micro-batch, a scalar with gradient to `log_probs` and `entropy` (`[n]`).
    pub fn loss(
        &self,
        log_probs: &Tensor,
        entropy: &Tensor,
        targets: &TokenTargets,
    ) -> Result<(Tensor, LossStatistics)> {
        let n = log_probs.dims1()?;
        let now = log_probs.to_vec1::<f32>()?;
        let mut statistics = LossStatistics::default();
        let is_model = |index: &usize| targets.prompt.get(*index) != Some(&true);
        let entropies = entropy.to_vec1::<f32>()?;
        for index in (0..n).filter(is_model) {
            statistics.tokens += 1;
            statistics.entropy += f64::from(entropies[index]);
            statistics.negative_log_prob -= f64::from(now[index]);
        }
        let per_token = match self {
            Self::Supervised => log_probs.neg()?,
            Self::Policy(policy) => {
                policy.per_token(log_probs, entropy, &now, targets, &mut statistics)?
            }
        };
        let weights = tensor(&targets.weights, n, "weights", log_probs.device())?;
        let weighted = (per_token * weights)?;
        let loss = weighted.sum_all()?;
        statistics.loss = if statistics.tokens == n {
            f64::from(loss.to_scalar::<f32>()?)
        } else {
            let weighted = weighted.to_vec1::<f32>()?;
            (0..n)
                .filter(is_model)
                .map(|index| f64::from(weighted[index]))
                .sum()
        };
        Ok((loss, statistics))
    }
}

impl ClippedPolicy {
    fn per_token(
        &self,
        log_probs: &Tensor,
        entropy: &Tensor,
        now: &[f32],
        targets: &TokenTargets,
        statistics: &mut LossStatistics,
    ) -> Result<Tensor> {
        let (n, device) = (now.len(), log_probs.device());
        let advantages = tensor(&targets.advantages, n, "advantages", device)?;
        let old = match self.ratio {
            Ratio::Token => Cow::from(&targets.old_log_probs),
            Ratio::Sequence => Cow::from(with_sequence_ratios(now, targets)?),
        };
        let old_tensor = tensor(&old, n, "old log-probabilities", device)?;

        // The clip is decided per token, on numbers. `clamp` would halve the gradient at its bound, and
        // `minimum` would split it at a tie, where every token of a first update is.
        let (low, high) = (1.0 - self.clip_low as f32, 1.0 + self.clip_high as f32);
        let largest = LARGEST_LOG_RATIO.exp();
        let high = high.min(largest);
        let dual = (self.dual_clip).map_or(largest, |bound| largest.min(bound as f32));
        let mut clipped = vec![0u8; n];
        let mut bound = vec![0f32; n];
        for t in 0..n {
            let (ratio, advantage) = ((now[t] - old[t]).exp(), targets.advantages[t]);
            (clipped[t], bound[t]) = if advantage > 0.0 && ratio > high {
                (1, high)
            } else if advantage < 0.0 && ratio < low {
                (1, low)
            } else if advantage < 0.0 && ratio > dual {
                (1, dual)
            } else if advantage == 0.0 && ratio > largest {
                // Times 0, an infinite ratio would be no number.
                (1, largest)
            } else {
                (0, 1.0)
            };
            statistics.clipped += usize::from(clipped[t]);
            let own = now[t] - targets.old_log_probs[t];
            statistics.kl_old += KlEstimator::K3.estimate(f64::from(-own));
            statistics.ratio_deviation = statistics
                .ratio_deviation
                .max((f64::from(own.exp()) - 1.0).abs());
        }
        let clipped = Tensor::from_vec(clipped, n, device)?;
        let bound = tensor(&bound, n, "clip bounds", device)?;
        // Clipped tokens are masked before the exponential. Masked after it, an overflowing ratio would
        // give 0 * inf in the backward pass.
        let log_ratio = (log_probs - old_tensor)?;
        let log_ratio = clipped.where_cond(&log_ratio.zeros_like()?, &log_ratio)?;
        let ratio = (log_ratio.exp()? * bound)?;
        let mut per_token = (ratio * advantages)?.neg()?;

        if self.kl_coefficient != 0.0 {
            let reference = tensor(
                &targets.reference_log_probs,
                n,
                "reference log-probabilities",
                device,
            )?;
            let r = (reference - log_probs)?;
            let kl = match self.kl_estimator {
                KlEstimator::K1 => r.neg()?,
                KlEstimator::K2 => (r.sqr()? * 0.5)?,
                KlEstimator::K3 => {
                    let r = r.clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)?;
                    ((r.exp()? - &r)? - 1.0)?
                }
            };
            per_token = (per_token + (kl * self.kl_coefficient)?)?;
        }
        for (p, reference) in now.iter().zip(&targets.reference_log_probs) {
            let log_ratio = f64::from(*p) - f64::from(*reference);
            statistics.kl_reference += KlEstimator::K3.estimate(log_ratio);
        }
        if self.entropy_coefficient != 0.0 {
            per_token = (per_token - (entropy * self.entropy_coefficient)?)?;
        }
        Ok(per_token)
    }
}

/// Old log-probabilities from which each token has the ratio of its sequence: the present one minus the mean of the
/// sequence's log-ratios.
fn with_sequence_ratios(now: &[f32], targets: &TokenTargets) -> Result<Vec<f32>> {
    let (old, sequences) = (&targets.old_log_probs, &targets.sequences);
    if old.len() != now.len() || sequences.len() != now.len() {
        candle_core::bail!(
            "{} sequences' numbers for {} model tokens",
            sequences.len(),
            now.len()
        );
    }
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (t, sequence) in sequences.iter().enumerate() {
        let (sum, count) = sums.entry(*sequence).or_default();
        *sum += f64::from(now[t] - old[t]);
        *count += 1.0;
    }
    let tokens = now.iter().zip(sequences);
    let mean = |sequence: &u32| sums.get(sequence).map_or(0.0, |(sum, count)| sum / count);
    Ok(tokens
        .map(|(now, sequence)| now - mean(sequence) as f32)
        .collect())
}

/// A tensor of one number per model token.
pub(crate) fn tensor(values: &[f32], n: usize, what: &str, device: &Device) -> Result<Tensor> {
    if values.len() != n {
        candle_core::bail!("{} {what} for {n} model tokens", values.len());
    }
    Tensor::from_slice(values, n, device)
}

#[cfg(test)]
mod tests;
