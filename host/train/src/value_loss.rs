//! The loss of a critic's values.

use candle_core::{Result, Tensor};

use crate::loss::{LossStatistics, TokenTargets, tensor};

/// The clipped value loss, as PPO's first implementation (OpenAI's baselines, `ppo2`), TRL and verl have it:
///
/// ```text
/// L = c * sum_t w_t * max((V_t - R_t)^2, (clip(V_t, V_old,t - eps, V_old,t + eps) - R_t)^2) / 2
/// ```
///
/// `V_t` is the value of token `t`, `V_old,t` the value at the start of the step, `R_t` its target, and `w_t` the weight of the
/// token in the loss of the policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueLoss {
    /// `c`, the weight beside the loss of the policy.
    pub coefficient: f64,
    /// `eps`: values that moved farther in a step towards their target get no gradient. 0 clips nothing.
    pub clip: f64,
}

impl ValueLoss {
    /// The loss of one micro-batch, a scalar with gradient to `values` (`[n]`). Adds to the statistics.
    pub fn loss(
        &self,
        values: &Tensor,
        targets: &TokenTargets,
        statistics: &mut LossStatistics,
    ) -> Result<Tensor> {
        let (n, device) = (values.dims1()?, values.device());
        if targets.old_values.len() != n {
            candle_core::bail!(
                "{} old values for {n} model tokens",
                targets.old_values.len()
            );
        }
        let value_targets = tensor(&targets.value_targets, n, "value targets", device)?;
        let weights = tensor(&targets.weights, n, "weights", device)?;
        let error = (values - value_targets)?;

        // The clip is decided per token, on numbers, as that of the policy's ratio.
        let (now, clip) = (values.to_vec1::<f32>()?, self.clip as f32);
        let mut clipped = vec![0u8; n];
        let mut bound = vec![0f32; n];
        if clip > 0.0 {
            for t in 0..n {
                let (old, target) = (targets.old_values[t], targets.value_targets[t]);
                bound[t] = now[t].min(old + clip).max(old - clip) - target;
                clipped[t] = u8::from(bound[t].powi(2) > (now[t] - target).powi(2));
            }
        }
        let clipped = Tensor::from_vec(clipped, n, device)?;
        let bound = tensor(&bound, n, "value bounds", device)?;
        let per_token = (clipped.where_cond(&bound, &error)?.sqr()? * 0.5)?;
        let sum = per_token.sum_all()?;
        statistics.value_loss += f64::from(sum.to_scalar::<f32>()?);
        (per_token * weights)?.sum_all()? * self.coefficient
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    fn targets() -> TokenTargets {
        TokenTargets {
            weights: vec![0.4, 0.3, 0.2, 0.1],
            value_targets: vec![1.0, 1.0, -0.5, 0.3],
            old_values: vec![0.0, 0.6, 0.1, 0.3],
            ..TokenTargets::default()
        }
    }

    /// The loss, its gradient, and the sum of the tokens' losses.
    fn differentiate(loss: ValueLoss, values: &[f32]) -> (f32, Vec<f32>, f64) {
        let values = Var::new(values, &Device::Cpu).unwrap();
        let mut statistics = LossStatistics::default();
        let loss = loss.loss(&values, &targets(), &mut statistics).unwrap();
        let gradients = loss.backward().unwrap();
        let gradient = gradients.get(&values).unwrap().to_vec1().unwrap();
        (loss.to_scalar().unwrap(), gradient, statistics.value_loss)
    }

    fn assert_close(got: &[f32], wanted: &[f32]) {
        assert_eq!(got.len(), wanted.len());
        for (g, w) in got.iter().zip(wanted) {
            assert!((g - w).abs() < 1e-6, "{got:?} is not {wanted:?}");
        }
    }

    #[test]
    fn golden_value_of_the_clipped_loss() {
        let loss = ValueLoss {
            coefficient: 0.5,
            clip: 0.2,
        };
        // Python, from the formula in this file. The first value moved beyond its bound towards its target: its loss is that
        // of the bound, 0.2, and it has no gradient. The third moved beyond its bound away from its target.
        let (got, gradient, sum) = differentiate(loss, &[0.5, 0.7, 0.6, 0.3]);
        assert!((got - 0.131_25).abs() < 1e-6, "{got}");
        assert_close(&gradient, &[0.0, -0.045, 0.11, 0.0]);
        assert!((sum - 0.97).abs() < 1e-6, "{sum}");
    }

    #[test]
    fn without_a_clip_it_is_half_the_squared_error() {
        let loss = ValueLoss {
            coefficient: 1.0,
            clip: 0.0,
        };
        let (got, gradient, _) = differentiate(loss, &[0.5, 0.7, 0.6, 0.3]);
        assert!((got - 0.1845).abs() < 1e-6, "{got}");
        assert_close(&gradient, &[-0.2, -0.09, 0.22, 0.0]);
    }
}
