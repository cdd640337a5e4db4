use candle_core::Var;
use proptest::prelude::*;

use super::*;

const CLIP: ClippedPolicy = ClippedPolicy {
    ratio: Ratio::Token,
    clip_low: 0.2,
    clip_high: 0.28,
    dual_clip: None,
    kl_coefficient: 0.0,
    kl_estimator: KlEstimator::K3,
    entropy_coefficient: 0.0,
};

fn targets() -> TokenTargets {
    TokenTargets {
        weights: vec![0.25; 4],
        advantages: vec![1.0, 1.0, -1.0, -0.5],
        old_log_probs: vec![-1.0, -0.9, -1.2, -0.1],
        reference_log_probs: vec![-1.1, -0.6, -1.5, -0.3],
        prompt: vec![],
        sequences: vec![0, 0, 1, 1],
        ..TokenTargets::default()
    }
}

/// Loss, gradient to the log-probabilities, gradient to the entropies.
fn differentiate(
    policy: ClippedPolicy,
    log_probs: &[f32],
    targets: &TokenTargets,
) -> (f32, Vec<f32>, Option<Vec<f32>>, LossStatistics) {
    let variable = |values: &[f32]| Var::new(values, &Device::Cpu).unwrap();
    let (log_probs, entropy) = (variable(log_probs), variable(&vec![0.7; log_probs.len()]));
    let (loss, statistics) = Objective::Policy(policy)
        .loss(&log_probs, &entropy, targets)
        .unwrap();
    let gradients = loss.backward().unwrap();
    let gradient = |v: &Var| gradients.get(v).map(|g| g.to_vec1::<f32>().unwrap());
    (
        loss.to_scalar().unwrap(),
        gradient(&log_probs).unwrap(),
        gradient(&entropy),
        statistics,
    )
}

#[test]
fn golden_value_of_the_clipped_loss() {
    // Python, double precision, from the formula in this file.
    let (loss, gradient, _, statistics) =
        differentiate(CLIP, &[-1.0, -0.5, -2.0, -0.1], &targets());
    assert!((loss + 0.245).abs() < 1e-6, "{loss}");
    // Ratio 1.49 with A > 0 and 0.45 with A < 0 are clipped: no gradient.
    assert_eq!(gradient, vec![-0.25, 0.0, 0.0, 0.125]);
    assert_eq!(statistics.clipped, 2);
}

#[test]
fn no_log_ratio_makes_a_loss_or_a_gradient_infinite() {
    // Two policies that agree on nothing: log-ratios of 200 and -200, to the old policy and to the reference.
    let policy = ClippedPolicy {
        kl_coefficient: 0.05,
        ..CLIP
    };
    for (ratio, advantage) in [
        (Ratio::Token, 1.0),
        (Ratio::Token, 0.0),
        (Ratio::Sequence, 1.0),
        (Ratio::Sequence, 0.0),
    ] {
        let targets = TokenTargets {
            old_log_probs: vec![-201.0, -1.0, -201.0, -1.0],
            reference_log_probs: vec![-1.0, -201.0, -1.0, -201.0],
            sequences: vec![0, 1, 2, 3],
            // Tokens that only the KL term trains are among them.
            advantages: vec![advantage, 1.0, -1.0, advantage],
            ..targets()
        };
        let policy = ClippedPolicy { ratio, ..policy };
        let log_probs = [-1.0, -201.0, -1.0, -201.0];
        let (loss, gradient, _, statistics) = differentiate(policy, &log_probs, &targets);
        assert!(loss.is_finite(), "{loss}");
        assert!(gradient.iter().all(|g| g.is_finite()), "{gradient:?}");
        assert!(statistics.kl_old.is_finite() && statistics.kl_reference.is_finite());
        // The third token has a negative advantage and is 200 nats likelier than it was: it is clipped.
        assert!((gradient[2]).abs() < 1e-3, "{gradient:?}");
    }
}

#[test]
fn golden_value_with_kl_to_the_reference() {
    let policy = ClippedPolicy {
        kl_coefficient: 0.05,
        ..CLIP
    };
    let (loss, gradient, _, statistics) =
        differentiate(policy, &[-1.0, -0.5, -2.0, -0.1], &targets());
    assert!((loss + 0.242_785_91).abs() < 1e-6, "{loss}");
    // d k3 / d log pi = 1 - exp(r); also on tokens whose ratio is clipped.
    let wanted = 0.25 * 0.05 * (1.0 - 0.5f32.exp());
    assert!((gradient[2] - wanted).abs() < 1e-6);
    assert!((statistics.kl_reference - 0.177_126_859).abs() < 1e-6);
}

#[test]
fn golden_values_of_the_other_estimators_of_the_kl() {
    // At ratio 1, without advantages, the loss is the KL. Python: with x the token's log-ratio to the reference, the loss is
    // 0.25 * 0.05 * sum(x) or 0.25 * 0.05 * sum(x^2 / 2), and the gradients are 0.25 * 0.05 and 0.25 * 0.05 * x.
    let log_probs = [-1.0, -0.5, -2.0, -0.1];
    let targets = TokenTargets {
        advantages: vec![0.0; 4],
        old_log_probs: log_probs.to_vec(),
        ..targets()
    };
    for (kl_estimator, wanted, gradients) in [
        (KlEstimator::K1, -0.001_25, [0.0125; 4]),
        (
            KlEstimator::K2,
            0.001_937_5,
            [0.001_25, 0.001_25, -0.006_25, 0.0025],
        ),
    ] {
        let policy = ClippedPolicy {
            kl_coefficient: 0.05,
            kl_estimator,
            ..CLIP
        };
        let (loss, gradient, _, _) = differentiate(policy, &log_probs, &targets);
        assert!((loss - wanted).abs() < 1e-7, "{kl_estimator}: {loss}");
        for (got, wanted) in gradient.iter().zip(gradients) {
            assert!((got - wanted).abs() < 1e-7, "{kl_estimator}: {gradient:?}");
        }
    }
}

#[test]
fn at_ratio_one_the_gradient_is_exactly_the_policy_gradient() {
    for aggregation in [Aggregation::TokenMean, Aggregation::SequenceMean] {
        let weights = token_weights(aggregation, &[3, 2]);
        let weights: Vec<f32> = [weights[0]; 3]
            .iter()
            .chain(&[weights[1]; 2])
            .map(|w| *w as f32)
            .collect();
        let old = vec![-0.3, -2.7, -0.001, -11.5, -0.9];
        let advantages = vec![1.3, 1.3, 1.3, -0.7, -0.7];
        let targets = TokenTargets {
            weights: weights.clone(),
            advantages: advantages.clone(),
            old_log_probs: old.clone(),
            ..TokenTargets::default()
        };
        let (_, gradient, _, statistics) = differentiate(CLIP, &old, &targets);
        let wanted: Vec<f32> = weights
            .iter()
            .zip(&advantages)
            .map(|(w, a)| -(w * a))
            .collect();
        assert_eq!(gradient, wanted);
        assert_eq!(statistics.ratio_deviation, 0.0);
        assert_eq!((statistics.clipped, statistics.kl_old), (0, 0.0));
    }
}

#[test]
fn a_ratio_on_the_bound_keeps_its_whole_gradient() {
    // exp(ln 0.5) is 0.5 and the bound 1 - 0.5 is too.
    let policy = ClippedPolicy {
        clip_low: 0.5,
        ..CLIP
    };
    let targets = TokenTargets {
        weights: vec![1.0],
        advantages: vec![-1.0],
        old_log_probs: vec![0.0],
        ..TokenTargets::default()
    };
    let log_prob = 0.5f32.ln();
    assert_eq!(log_prob.exp(), 0.5);
    let (_, gradient, _, _) = differentiate(policy, &[log_prob], &targets);
    assert!((gradient[0] - 0.5).abs() < 1e-6, "{gradient:?}");
}

#[test]
fn a_clipped_ratio_that_overflows_gives_no_nan() {
    let targets = TokenTargets {
        weights: vec![1.0],
        advantages: vec![1.0],
        old_log_probs: vec![-200.0],
        ..TokenTargets::default()
    };
    let (loss, gradient, _, _) = differentiate(CLIP, &[-0.1], &targets);
    assert!((loss + 1.28).abs() < 1e-6);
    assert_eq!(gradient, vec![0.0]);
}

#[test]
fn golden_value_with_the_ratio_of_sequences() {
    let policy = ClippedPolicy {
        ratio: Ratio::Sequence,
        ..CLIP
    };
    let (loss, gradient, _, statistics) =
        differentiate(policy, &[-1.0, -0.5, -2.0, -0.1], &targets());
    // Python: the first sequence's mean log-ratio is 0.2 and its ratio 1.2214; the second's are -0.4 and 0.6703, which is
    // clipped at 0.8 because both advantages are negative.
    let ratio = 0.2f32.exp();
    assert!(
        (loss - (-0.5 * ratio + 0.25 * 0.8 * 1.5)).abs() < 1e-6,
        "{loss}"
    );
    for (got, wanted) in gradient
        .iter()
        .zip([-0.25 * ratio, -0.25 * ratio, 0.0, 0.0])
    {
        assert!((got - wanted).abs() < 1e-6, "{gradient:?}");
    }
    assert_eq!(statistics.clipped, 2);
    // The distance from the old policy is measured by token in any case.
    let (_, _, _, by_token) = differentiate(CLIP, &[-1.0, -0.5, -2.0, -0.1], &targets());
    assert_eq!(statistics.kl_old, by_token.kl_old);
}

#[test]
fn at_ratio_one_the_ratio_of_a_sequence_changes_nothing() {
    let policy = ClippedPolicy {
        ratio: Ratio::Sequence,
        ..CLIP
    };
    let old = targets().old_log_probs;
    let (loss, gradient, _, statistics) = differentiate(policy, &old, &targets());
    assert_eq!((loss, gradient, statistics.ratio_deviation), {
        let (loss, gradient, _, _) = differentiate(CLIP, &old, &targets());
        (loss, gradient, 0.0)
    });
}

#[test]
fn a_bad_token_that_became_far_likelier_is_bounded_by_the_dual_clip() {
    let policy = ClippedPolicy {
        dual_clip: Some(3.0),
        ..CLIP
    };
    // Ratio 2 is below the bound, ratio 4 above it, and for the third the advantage is positive.
    let targets = TokenTargets {
        weights: vec![1.0; 3],
        advantages: vec![-0.5, -0.5, 0.5],
        old_log_probs: vec![-3.0; 3],
        ..TokenTargets::default()
    };
    let log_probs = [2.0f32, 4.0, 0.5].map(|ratio| ratio.ln() - 3.0);
    let (loss, gradient, _, statistics) = differentiate(policy, &log_probs, &targets);
    // 0.5 * 2 + 0.5 * 3 - 0.5 * 0.5
    assert!((loss - 2.25).abs() < 1e-5, "{loss}");
    assert!((gradient[0] - 1.0).abs() < 1e-5, "{gradient:?}");
    assert_eq!(gradient[1], 0.0);
    assert_eq!(statistics.clipped, 1);
    let (loss, _, _, _) = differentiate(CLIP, &log_probs, &targets);
    assert!((loss - 2.75).abs() < 1e-5, "{loss}");
}

#[test]
fn the_entropy_bonus_pulls_entropy_up() {
    let policy = ClippedPolicy {
        entropy_coefficient: 0.1,
        ..CLIP
    };
    let (_, _, entropy, _) = differentiate(policy, &[-1.0, -0.5, -2.0, -0.1], &targets());
    assert_eq!(entropy, Some(vec![-0.025; 4]));
    let (_, _, entropy, _) = differentiate(CLIP, &[-1.0, -0.5, -2.0, -0.1], &targets());
    assert_eq!(entropy, None);
}

#[test]
fn supervised_loss_is_the_mean_negative_log_probability() {
    let log_probs = Var::new(&[-1.0f32, -3.0], &Device::Cpu).unwrap();
    let entropy = Tensor::zeros(2, candle_core::DType::F32, &Device::Cpu).unwrap();
    let weights = token_weights(Aggregation::TokenMean, &[2]);
    let targets = TokenTargets {
        weights: vec![weights[0] as f32; 2],
        ..TokenTargets::default()
    };
    let (loss, statistics) = Objective::Supervised
        .loss(&log_probs, &entropy, &targets)
        .unwrap();
    assert_eq!(loss.to_scalar::<f32>().unwrap(), 2.0);
    assert_eq!(statistics.mean(statistics.negative_log_prob), 2.0);
    let gradient = loss.backward().unwrap();
    assert_eq!(
        gradient.get(&log_probs).unwrap().to_vec1::<f32>().unwrap(),
        vec![-0.5; 2]
    );
}

#[test]
fn tokens_that_are_read_are_in_the_loss_and_in_no_statistic() {
    let log_probs = Var::new(&[-1.0f32, -3.0, -8.0], &Device::Cpu).unwrap();
    let entropy = Tensor::ones(3, candle_core::DType::F32, &Device::Cpu).unwrap();
    let targets = TokenTargets {
        weights: vec![0.5, 0.5, 0.125],
        prompt: vec![false, false, true],
        ..TokenTargets::default()
    };
    let (loss, statistics) = Objective::Supervised
        .loss(&log_probs, &entropy, &targets)
        .unwrap();
    assert_eq!(loss.to_scalar::<f32>().unwrap(), 3.0);
    assert_eq!((statistics.loss, statistics.tokens), (2.0, 2));
    assert_eq!(statistics.mean(statistics.negative_log_prob), 2.0);
    assert_eq!(statistics.mean(statistics.entropy), 1.0);
}

#[test]
fn weights_of_a_mini_batch_sum_to_one_and_count_whole_trajectories() {
    assert_eq!(
        token_weights(Aggregation::TokenMean, &[1, 3]),
        vec![0.25, 0.25]
    );
    assert_eq!(
        token_weights(Aggregation::SequenceMean, &[1, 4]),
        vec![0.5, 0.125]
    );
}

#[test]
fn targets_of_another_length_are_an_error() {
    let log_probs = Tensor::zeros(3, candle_core::DType::F32, &Device::Cpu).unwrap();
    let result = Objective::Supervised.loss(&log_probs, &log_probs, &TokenTargets::default());
    assert!(
        result
            .unwrap_err()
            .to_string()
            .contains("0 weights for 3 model tokens")
    );
}

/// The loss again, token by token in f64, as the papers print it: PPO (arXiv:1707.06347, equation 7) with DAPO's two
/// bounds (arXiv:2503.14476, equation 10) and the dual clip (arXiv:1912.09729, equation 5); GSPO's ratio
/// (arXiv:2507.18071, equation 7); Schulman's k1, k2 and k3. Returns the loss, and the gradient by each log-probability. With
/// the ratio of a sequence, that is GSPO-token's (section 4.3): of a token's own log-probability times the ratio.
fn printed(policy: &ClippedPolicy, log_probs: &[f32], targets: &TokenTargets) -> (f64, Vec<f64>) {
    let at = |numbers: &[f32], t: usize| f64::from(numbers[t]);
    let tokens = 0..log_probs.len();
    let log_ratio = |t: usize| at(log_probs, t) - at(&targets.old_log_probs, t);
    let ratio = |t: usize| match policy.ratio {
        Ratio::Token => log_ratio(t).exp(),
        Ratio::Sequence => {
            let same = |u: &usize| targets.sequences[*u] == targets.sequences[t];
            let own: Vec<f64> = tokens.clone().filter(same).map(log_ratio).collect();
            (own.iter().sum::<f64>() / own.len() as f64).exp()
        }
    };
    let (mut loss, mut derivatives) = (0.0, Vec::new());
    for t in tokens.clone() {
        let (rho, a, w) = (
            ratio(t),
            at(&targets.advantages, t),
            at(&targets.weights, t),
        );
        let bounded = rho.clamp(1.0 - policy.clip_low, 1.0 + policy.clip_high);
        let mut gain = (rho * a).min(bounded * a);
        if let Some(dual) = policy.dual_clip.filter(|_| a < 0.0) {
            gain = gain.max(dual * a);
        }
        let moves = gain == rho * a;
        let x = at(log_probs, t) - at(&targets.reference_log_probs, t);
        let (kl, of_kl) = match policy.kl_estimator {
            KlEstimator::K1 => (x, 1.0),
            KlEstimator::K2 => (x * x / 2.0, x),
            KlEstimator::K3 => ((-x).exp() - 1.0 + x, 1.0 - (-x).exp()),
        };
        let entropy = policy.entropy_coefficient * 0.7;
        loss += w * (policy.kl_coefficient * kl - gain - entropy);
        let of_gain = if moves { rho * a } else { 0.0 };
        derivatives.push(w * (policy.kl_coefficient * of_kl - of_gain));
    }
    (loss, derivatives)
}

proptest! {
    #[test]
    fn the_loss_and_its_gradient_are_those_that_the_papers_print(
        tokens in prop::collection::vec((-3.0f32..-0.01, -1.0f32..1.0, -1.0f32..1.0, -2.0f32..2.0, 0u32..3, 0.01f32..1.0), 1..9),
        of_sequences in any::<bool>(),
        dual_clip in prop::option::of(1.5f64..3.0),
        kl_estimator in prop::sample::select(vec![KlEstimator::K1, KlEstimator::K2, KlEstimator::K3]),
        [clip_low, clip_high, kl_coefficient, entropy_coefficient] in prop::array::uniform4(0.01f64..0.4),
    ) {
        let policy = ClippedPolicy {
            ratio: if of_sequences { Ratio::Sequence } else { Ratio::Token },
            clip_low,
            clip_high,
            dual_clip,
            kl_coefficient,
            kl_estimator,
            entropy_coefficient,
        };
        let log_probs: Vec<f32> = tokens.iter().map(|token| token.0).collect();
        let targets = TokenTargets {
            weights: tokens.iter().map(|token| token.5).collect(),
            advantages: tokens.iter().map(|token| token.3).collect(),
            old_log_probs: tokens.iter().map(|token| token.0 - token.1).collect(),
            reference_log_probs: tokens.iter().map(|token| token.0 - token.2).collect(),
            sequences: tokens.iter().map(|token| token.4).collect(),
            ..TokenTargets::default()
        };
        let (loss, gradient, _, _) = differentiate(policy, &log_probs, &targets);
        let (wanted, derivatives) = printed(&policy, &log_probs, &targets);
        prop_assert!((f64::from(loss) - wanted).abs() < 1e-4, "{loss} {wanted}");
        for (got, wanted) in gradient.iter().zip(&derivatives) {
            prop_assert!((f64::from(*got) - wanted).abs() < 1e-4, "{gradient:?} {derivatives:?}");
        }
    }
}
