//! Every estimator again, slowly: sums over indices as the papers print them, and nothing shared with the estimators. Each
//! is compared with its estimator on any batch.

use proptest::prelude::*;

use super::tests::batches;
use super::{
    AdvantageEstimator, DrGrpo, Gae, Grpo, MtGrpo, ReMax, ReinforcePlusPlus,
    ReinforcePlusPlusBaseline, Rloo, Sample,
};

/// The model tokens of trajectory `i`: their places, in order.
fn tokens(batch: &[Sample], i: usize) -> Vec<usize> {
    let mask = batch[i].mask();
    (0..mask.len()).filter(|t| mask[*t]).collect()
}

/// The trajectories of the group of `i` that count.
fn peers(batch: &[Sample], i: usize) -> Vec<usize> {
    let of_group = |j: &usize| batch[*j].group() == batch[i].group() && !batch[*j].excluded();
    (0..batch.len()).filter(of_group).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// The unbiased standard deviation; 0 of fewer than two numbers.
fn deviation(numbers: &[f64]) -> f64 {
    let squares: f64 = numbers.iter().map(|x| (x - mean(numbers)).powi(2)).sum();
    (squares / (numbers.len().max(2) as f64 - 1.0)).sqrt()
}

/// Values by trajectory and token, from a formula for each model token of each trajectory that counts: `of(i, k)` is that
/// of the `k`-th model token of trajectory `i`.
fn each(batch: &[Sample], of: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    let mut all: Vec<Vec<f64>> = batch.iter().map(|s| vec![0.0; s.mask().len()]).collect();
    for i in (0..batch.len()).filter(|i| !batch[*i].excluded()) {
        for (k, t) in tokens(batch, i).into_iter().enumerate() {
            all[i][t] = of(i, k);
        }
    }
    all
}

/// `(G - mean(G)) / sqrt(var(G) + 1e-8)` over the model tokens of the trajectories that count.
fn whitened(batch: &[Sample], values: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let counted = (0..batch.len()).filter(|i| !batch[*i].excluded());
    let all: Vec<f64> = counted
        .flat_map(|i| tokens(batch, i).into_iter().map(move |t| values[i][t]))
        .collect();
    let root = (deviation(&all).powi(2) + 1e-8).sqrt();
    each(batch, |i, k| {
        (values[i][tokens(batch, i)[k]] - mean(&all)) / root
    })
}

fn rewards(batch: &[Sample], trajectories: &[usize]) -> Vec<f64> {
    let reward = |j: &usize| batch[*j].total_reward();
    trajectories.iter().map(reward).collect()
}

/// arXiv:2402.03300, section 4.1.2.
fn grpo(batch: &[Sample], eps: f64) -> Vec<Vec<f64>> {
    each(batch, |i, _| {
        let r = rewards(batch, &peers(batch, i));
        (batch[i].total_reward() - mean(&r)) / (deviation(&r) + eps)
    })
}

/// arXiv:2503.20783, section 3.2.
fn dr_grpo(batch: &[Sample]) -> Vec<Vec<f64>> {
    each(batch, |i, _| {
        batch[i].total_reward() - mean(&rewards(batch, &peers(batch, i)))
    })
}

/// arXiv:2402.14740, section 3.3: the mean of the others.
fn rloo(batch: &[Sample]) -> Vec<Vec<f64>> {
    each(batch, |i, _| {
        let others: Vec<usize> = (peers(batch, i).into_iter()).filter(|j| *j != i).collect();
        if others.is_empty() {
            0.0
        } else {
            batch[i].total_reward() - mean(&rewards(batch, &others))
        }
    })
}

/// arXiv:2310.10505, algorithm 1.
fn remax(batch: &[Sample]) -> Vec<Vec<f64>> {
    each(batch, |i, _| {
        let greedy = batch[i].baseline().expect("every sample has one");
        batch[i].total_reward() - greedy
    })
}

/// arXiv:2505.11821, section 4.2, with a weight of 1. The paper has two turns; with more, only turns that others follow are
/// compared.
fn mt_grpo(batch: &[Sample], eps: f64) -> Vec<Vec<f64>> {
    let turn_reward = |j: usize, turn: usize| -> f64 {
        let rewards = batch[j].turn_rewards().unwrap_or_default();
        rewards.get(turn).copied().unwrap_or(0.0)
    };
    let outcome = grpo(batch, eps);
    each(batch, |i, k| {
        let t = tokens(batch, i)[k];
        let turns = batch[i].turns();
        let turn = (turns.iter().position(|turn| turn.contains(&t))).expect("a turn has the token");
        if turn + 1 == turns.len() {
            return outcome[i][t];
        }
        let goes_on = |j: &usize| batch[*j].turns().len() > turn + 1;
        let others = peers(batch, i).into_iter().filter(goes_on);
        let r: Vec<f64> = others.map(|j| turn_reward(j, turn)).collect();
        (turn_reward(i, turn) - mean(&r)) / (deviation(&r) + eps) + outcome[i][t]
    })
}

/// arXiv:2501.03262, section 3: the discounted sum of all rewards that follow, on model tokens alone. A reward has the KL
/// of its token.
fn reinforce_plus_plus(batch: &[Sample], gamma: f64) -> Vec<Vec<f64>> {
    let returns = each(batch, |i, k| {
        let following = tokens(batch, i).into_iter().skip(k).zip(0..);
        let discounted = following.map(|(t, l)| gamma.powi(l) * batch[i].rewards()[t]);
        discounted.sum()
    });
    whitened(batch, &returns)
}

/// arXiv:2501.03262, section 3, for several trajectories of each task.
fn reinforce_plus_plus_baseline(batch: &[Sample]) -> Vec<Vec<f64>> {
    whitened(batch, &dr_grpo(batch))
}

/// arXiv:1506.02438, equation 16: `A_t = sum_l (gamma lambda)^l delta_{t+l}`. Also the targets of values, `A_t + V_t`, of
/// the trajectories that count.
fn gae(batch: &[Sample], gamma: f64, lambda: f64) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let raw = each(batch, |i, k| {
        let places = tokens(batch, i);
        let values = batch[i].values().expect("every sample has them");
        let value = |k: usize| places.get(k).map_or(0.0, |t| f64::from(values[*t]));
        let reward = |k: usize| {
            let ends = |turn: &std::ops::Range<usize>| turn.end - 1 == places[k];
            let turn = batch[i].turns().iter().position(ends);
            let of_turn = turn.and_then(|turn| batch[i].turn_rewards().map(|r| r[turn]));
            of_turn.unwrap_or(0.0) + batch[i].rewards()[places[k]]
        };
        let delta = |k: usize| reward(k) + gamma * value(k + 1) - value(k);
        let discounted = |l: usize| (gamma * lambda).powi(l as i32) * delta(k + l);
        (0..places.len() - k).map(discounted).sum()
    });
    let targets = each(batch, |i, k| {
        let t = tokens(batch, i)[k];
        let values = batch[i].values().expect("every sample has them");
        raw[i][t] + f64::from(values[t])
    });
    (whitened(batch, &raw), targets)
}

/// Refuses numbers that are not `wanted`, up to the rounding of f32.
fn close(name: &str, got: &[Vec<f32>], wanted: &[Vec<f64>]) -> Result<(), TestCaseError> {
    prop_assert_eq!(got.len(), wanted.len());
    for (got, wanted) in got.iter().zip(wanted) {
        prop_assert_eq!(got.len(), wanted.len());
        for (got, wanted) in got.iter().zip(wanted) {
            let distance = (f64::from(*got) - wanted).abs();
            prop_assert!(
                distance < 1e-4 * wanted.abs().max(1.0),
                "{} {} {}",
                name,
                got,
                wanted
            );
        }
    }
    Ok(())
}

type Pair = (Box<dyn AdvantageEstimator>, Vec<Vec<f64>>);

proptest! {
    #[test]
    fn every_estimator_is_the_formula_of_its_paper(batch in batches(), gamma in 0.5f64..1.0, lambda in 0.0f64..1.0) {
        let eps = Grpo::default().eps;
        let pairs: [Pair; 8] = [
            (Box::new(Grpo::default()), grpo(&batch, eps)),
            (Box::new(DrGrpo), dr_grpo(&batch)),
            (Box::new(Rloo), rloo(&batch)),
            (Box::new(ReMax), remax(&batch)),
            (Box::new(MtGrpo::default()), mt_grpo(&batch, eps)),
            (Box::new(ReinforcePlusPlus { gamma }), reinforce_plus_plus(&batch, gamma)),
            (Box::new(ReinforcePlusPlusBaseline), reinforce_plus_plus_baseline(&batch)),
            (Box::new(Gae { gamma, lambda }), gae(&batch, gamma, lambda).0),
        ];
        for (estimator, wanted) in pairs {
            close(estimator.name(), &estimator.advantages(&batch), &wanted)?;
        }
    }

    #[test]
    fn a_critic_learns_the_advantage_and_its_own_value(batch in batches(), gamma in 0.5f64..1.0, lambda in 0.0f64..1.0) {
        let counted: Vec<Sample> = batch.into_iter().filter(|sample| !sample.excluded()).collect();
        let targets = Gae { gamma, lambda }.estimates(&counted).value_targets.unwrap();
        close("value targets", &targets, &gae(&counted, gamma, lambda).1)?;
    }
}
