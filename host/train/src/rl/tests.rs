//! The promises about masks, normalisation and cutting. Most are tested on logits that are free variables: a tensor
//! `[tokens, vocab]` in a model's place, so that each position can be changed alone.

use candle_core::{D, DType, Device, Tensor, Var};
use rlf_policy::{
    Gradients, Model, Operators, PackedBatch, PassOptions, Processor, Qwen3Config, Sequence,
    ValueHead, micro_batches,
};

use super::*;
use crate::config::Algorithm;
use crate::fixtures::{group, scored, two_turns, unscored};
use crate::loss::{Aggregation, Ratio};
use crate::training_set::members;
use crate::update::{PromptTokens, WeightedSequence};

const VOCAB: usize = 11;

fn configs() -> Vec<RlConfig> {
    let mut configs = Vec::new();
    for algorithm in [
        Algorithm::Grpo,
        Algorithm::MtGrpo,
        Algorithm::DrGrpo,
        Algorithm::Rloo,
        Algorithm::ReMax,
        Algorithm::ReinforcePlusPlus,
        Algorithm::ReinforcePlusPlusBaseline,
        Algorithm::Ppo,
    ] {
        for aggregation in [Aggregation::TokenMean, Aggregation::SequenceMean] {
            for kl_coefficient in [0.0, 0.1] {
                let base = RlConfig::default();
                configs.push(RlConfig {
                    algorithm,
                    aggregation,
                    kl_coefficient,
                    entropy_coefficient: kl_coefficient / 2.0,
                    gamma: 0.95,
                    ..base
                });
            }
        }
    }
    configs.push(RlConfig {
        importance_ratio: Ratio::Sequence,
        ..RlConfig::default()
    });
    configs
}

/// Two groups of four, of different lengths; one trajectory is excluded.
fn batch() -> Batch {
    let rewards = [[1.0, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.2]];
    let groups: Vec<_> = (0..2)
        .map(|g| {
            let trajectories = (0..4).map(|i| two_turns(g, i, VOCAB as u32)).collect();
            let mut scores: Vec<_> = rewards[g].iter().map(|r| scored(*r)).collect();
            if g == 1 {
                scores[3] = unscored("the judge was unavailable");
            }
            group(g, trajectories, scores)
        })
        .collect();
    let mut batch = Batch::new(&groups, 2).unwrap();
    for sample in &mut batch.samples {
        let reference = sample.log_probs().iter().map(|p| p * 0.9 - 0.05).collect();
        let values = sample.log_probs().iter().map(|p| p * 0.2 + 0.3).collect();
        *sample = sample
            .clone()
            .with_reference_log_probs(reference)
            .with_values(values)
            .with_baseline(Some(0.4));
    }
    batch
}

/// Loss and gradient with respect to the logits of all `pieces`, in runs of `limit` tokens.
fn differentiate(
    config: &RlConfig,
    pieces: &[WeightedSequence<'_>],
    logits: &Tensor,
    limit: usize,
) -> (f64, Vec<Vec<f32>>, usize) {
    let logits = Var::from_tensor(logits).unwrap();
    let lengths: Vec<usize> = pieces.iter().map(|piece| piece.ids.len()).collect();
    let mut gradient = logits.zeros_like().unwrap();
    let (mut loss, mut runs, mut first) = (0.0, 0, 0);
    for run in micro_batches(&lengths, limit, Processor::Cpu) {
        let pieces = &pieces[run];
        let sequences: Vec<Sequence<'_>> = pieces
            .iter()
            .map(|piece| Sequence {
                ids: piece.ids,
                mask: piece.mask,
            })
            .collect();
        let batch = PackedBatch::new(&sequences).unwrap();
        let starts: Vec<usize> = pieces
            .iter()
            .scan(first, |next, piece| {
                Some(std::mem::replace(next, *next + piece.ids.len()))
            })
            .collect();
        first += batch.tokens();
        // A token is predicted by the row before it.
        let rows: Vec<u32> = batch
            .target_sequences()
            .iter()
            .zip(batch.target_positions())
            .map(|(s, p)| starts[*s as usize] as u32 + p - 1)
            .collect();
        let n = rows.len();
        let rows = logits
            .index_select(&Tensor::from_vec(rows, n, &Device::Cpu).unwrap(), 0)
            .unwrap();
        let sums = rows
            .exp()
            .unwrap()
            .sum_keepdim(D::Minus1)
            .unwrap()
            .log()
            .unwrap();
        let all = rows.broadcast_sub(&sums).unwrap();
        let ids = Tensor::from_slice(batch.targets(), (n, 1), &Device::Cpu).unwrap();
        let log_probs = all.gather(&ids, 1).unwrap().squeeze(1).unwrap();
        let entropy = (all.exp().unwrap() * &all)
            .unwrap()
            .sum(D::Minus1)
            .unwrap()
            .neg()
            .unwrap();
        let targets = update::token_targets(&batch, pieces);
        let objective = Objective::Policy(config.policy_loss(config.kl_coefficient));
        let (mut part, mut statistics) = objective.loss(&log_probs, &entropy, &targets).unwrap();
        if let Some(critic) = config.active_critic() {
            // A stand-in for the value head, which reads the rows that predict tokens, too.
            let values = rows.mean(D::Minus1).unwrap();
            let of_values = critic.loss().loss(&values, &targets, &mut statistics);
            let of_values = of_values.unwrap();
            statistics.loss += f64::from(of_values.to_scalar::<f32>().unwrap());
            part = (part + of_values).unwrap();
        }
        gradient = (gradient + part.backward().unwrap().get(&logits).unwrap()).unwrap();
        loss += statistics.loss;
        runs += 1;
    }
    (loss, gradient.to_vec2().unwrap(), runs)
}

/// [`batch`], with rewards of turns.
fn batch_with_turn_rewards() -> Batch {
    let mut batch = batch();
    for (index, sample) in batch.samples.iter_mut().enumerate() {
        let first = 0.2 * (index % 3) as f64;
        *sample = sample.clone().with_turn_rewards(vec![first, 0.1]);
    }
    batch
}

fn random_logits(tokens: usize) -> Tensor {
    let key = rlf_policy::Key::new(5, rlf_policy::Purpose::Test);
    let values: Vec<f32> = (0..tokens * VOCAB)
        .map(|i| key.normal(i as u64) as f32)
        .collect();
    Tensor::from_vec(values, (tokens, VOCAB), &Device::Cpu).unwrap()
}

#[test]
fn logits_that_predict_no_model_token_change_neither_loss_nor_gradient() {
    let batch = batch_with_turn_rewards();
    for config in configs() {
        let estimates = config.estimator().estimates(&batch.samples);
        let pieces = weighted_sequences(&config, &members(&batch, &estimates));
        let tokens: usize = pieces.iter().map(|piece| piece.ids.len()).sum();
        // Rows whose next token the model did not say.
        let silent: Vec<bool> = pieces
            .iter()
            .flat_map(|piece| piece.mask[1..].iter().chain([&false]).map(|seen| !seen))
            .collect();
        assert!(silent.iter().any(|s| *s) && !silent.iter().all(|s| *s));
        let logits = random_logits(tokens);
        let noise: Vec<f32> = silent
            .iter()
            .enumerate()
            .flat_map(|(row, s)| {
                (0..VOCAB).map(move |v| {
                    if *s {
                        ((row * VOCAB + v) % 7) as f32 - 3.0
                    } else {
                        0.0
                    }
                })
            })
            .collect();
        let noise = Tensor::from_vec(noise, (tokens, VOCAB), &Device::Cpu).unwrap();
        let (loss, gradient, _) = differentiate(&config, &pieces, &logits, 1 << 20);
        let changed = (&logits + noise).unwrap();
        let (loss_changed, gradient_changed, _) =
            differentiate(&config, &pieces, &changed, 1 << 20);
        assert_eq!(loss, loss_changed, "{config:?}");
        assert_eq!(gradient, gradient_changed, "{config:?}");
        for (row, silent) in gradient.iter().zip(&silent) {
            assert!(!silent || row.iter().all(|g| *g == 0.0));
        }
        assert!(gradient.iter().flatten().any(|g| *g != 0.0));
    }
}

#[test]
fn one_two_and_seven_micro_batches_agree() {
    let batch = batch_with_turn_rewards();
    for config in configs() {
        let estimates = config.estimator().estimates(&batch.samples);
        let pieces = weighted_sequences(&config, &members(&batch, &estimates));
        assert_eq!(pieces.len(), 7, "one of the eight is excluded");
        let tokens: usize = pieces.iter().map(|piece| piece.ids.len()).sum();
        let logits = random_logits(tokens);
        let (loss, gradient, runs) = differentiate(&config, &pieces, &logits, tokens);
        assert_eq!(runs, 1);
        for (limit, wanted) in [(tokens * 2 / 3, 2), (1, 7)] {
            let (other_loss, other, runs) = differentiate(&config, &pieces, &logits, limit);
            assert_eq!(runs, wanted);
            assert!(
                (loss - other_loss).abs() < 1e-6,
                "{loss} {other_loss} {config:?}"
            );
            for (a, b) in gradient.iter().flatten().zip(other.iter().flatten()) {
                assert!((a - b).abs() < 1e-6, "{a} {b} {config:?}");
            }
        }
    }
}

/// A critic's head with random weights, so that its loss reaches the network.
fn value_head(model: &Model) -> ValueHead {
    let head = ValueHead::new(model, true).unwrap();
    let key = rlf_policy::Key::new(6, rlf_policy::Purpose::Test);
    for (_, variable) in head.parameters() {
        let numbers = (0..variable.elem_count() as u64).map(|i| key.normal(i) as f32);
        let numbers = Tensor::from_iter(numbers, &Device::Cpu).unwrap();
        let shaped = numbers.reshape(variable.shape()).unwrap();
        variable.set(&shaped).unwrap();
    }
    head
}

/// The gradient of a mini-batch in a real network, parameter by parameter: with PPO, the critic's loss is a part, and the
/// gradient of its head comes last.
fn through_network(
    model: &Model,
    config: &RlConfig,
    pieces: &[WeightedSequence<'_>],
    limit: usize,
) -> Vec<Vec<f32>> {
    let objective = Objective::Policy(config.policy_loss(config.kl_coefficient));
    let pass = PassOptions::default();
    let head = value_head(model);
    let critic = config.active_critic().map(|critic| (&head, critic.loss()));
    let done = update::gradient(model, &objective, critic, pieces, limit, &pass).unwrap();
    let flat = |gradient: &Tensor| gradient.flatten_all().unwrap().to_vec1().unwrap();
    let of_head = done.value_head.iter().flat_map(Gradients::iter);
    let gradients = done.gradients.iter().chain(of_head);
    gradients.map(|(_, gradient)| flat(gradient)).collect()
}

#[test]
fn in_a_real_network_a_masked_token_weighs_nothing_and_cuts_change_nothing() {
    let shape = Qwen3Config {
        vocab_size: VOCAB,
        hidden_size: 16,
        intermediate_size: 32,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 8,
        max_position_embeddings: 64,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        initializer_range: 0.3,
    };
    let batch = batch_with_turn_rewards();
    for operators in [Operators::Fused, Operators::Plain] {
        let mut model = Model::init(&shape, 1, &Device::Cpu).unwrap();
        model.use_operators(operators).unwrap();
        for config in configs() {
            let estimates = config.estimator().estimates(&batch.samples);
            let pieces = weighted_sequences(&config, &members(&batch, &estimates));
            let gradient = through_network(&model, &config, &pieces, 1 << 20);
            let largest = gradient.iter().flatten().fold(0f32, |m, g| m.max(g.abs()));
            assert!(largest > 1e-4, "{largest} {config:?}");
            let agrees = |other: Vec<Vec<f32>>, what: &str| {
                for (a, b) in gradient.iter().flatten().zip(other.iter().flatten()) {
                    assert!((a - b).abs() < 1e-5 * largest, "{what}: {a} {b} {config:?}");
                }
            };
            let cut = through_network(&model, &config, &pieces, 1);
            agrees(cut, "seven micro-batches");
            if config.importance_ratio == Ratio::Sequence {
                // A token that is in the loss counts in the ratio of its sequence, whatever it weighs.
                continue;
            }
            let all: Vec<Vec<bool>> = pieces
                .iter()
                .map(|piece| (0..piece.ids.len()).map(|i| i > 0).collect())
                .collect();
            let unmasked: Vec<WeightedSequence<'_>> = (pieces.iter().zip(&all))
                .map(|(piece, all)| WeightedSequence {
                    prompt: Some(PromptTokens { all, weight: 0.0 }),
                    ..*piece
                })
                .collect();
            let weightless = through_network(&model, &config, &unmasked, 1 << 20);
            agrees(weightless, "observations that weigh nothing");
        }
    }
}

#[test]
fn zero_advantage_trajectories_count_in_the_normalisation_and_cost_nothing() {
    // One group is equal: all advantages 0. The other has one winner.
    let groups: Vec<_> = (0..2)
        .map(|g| {
            let trajectories = (0..4).map(|i| two_turns(g, i, VOCAB as u32)).collect();
            let scores = (0..4)
                .map(|i| scored(if g == 0 && i == 0 { 1.0 } else { 0.0 }))
                .collect();
            group(g, trajectories, scores)
        })
        .collect();
    let batch = Batch::new(&groups, 2).unwrap();
    let all = batch.trained();
    assert_eq!(all.len(), 8);
    let lengths: Vec<usize> = all
        .iter()
        .map(|i| batch.samples[*i].model_tokens())
        .collect();
    for aggregation in [Aggregation::TokenMean, Aggregation::SequenceMean] {
        let config = RlConfig {
            aggregation,
            ..RlConfig::default()
        };
        let estimates = config.estimator().estimates(&batch.samples);
        let pieces = weighted_sequences(&config, &members(&batch, &estimates));
        assert_eq!(pieces.len(), 4, "the equal group is not computed");
        for (piece, n) in pieces.iter().zip(&lengths) {
            let wanted = match aggregation {
                Aggregation::TokenMean => 1.0 / lengths.iter().sum::<usize>() as f32,
                Aggregation::SequenceMean => 1.0 / (8.0 * *n as f32),
            };
            assert!((piece.weight - wanted).abs() < 1e-9);
        }
        // With a term beside the advantage they are computed, and give the same weights.
        let config = RlConfig {
            entropy_coefficient: 0.01,
            ..config
        };
        let computed = weighted_sequences(&config, &members(&batch, &estimates));
        assert_eq!(computed.len(), 8);
        assert_eq!(computed[0].weight, pieces[0].weight);
    }
}

#[test]
fn with_a_critic_trajectories_without_an_advantage_are_computed_and_have_their_value_targets() {
    let mut batch = batch();
    for sample in &mut batch.samples {
        // Equal rewards and values: every advantage is 0, but the critic is wrong.
        let values = vec![0.25; sample.mask().len()];
        *sample = sample.clone().with_values(values).with_outcome(1.0);
    }
    let config = RlConfig {
        algorithm: Algorithm::Ppo,
        ..RlConfig::default()
    };
    let estimates = config.estimator().estimates(&batch.samples);
    assert!(estimates.advantages.iter().flatten().all(|a| *a == 0.0));
    let pieces = weighted_sequences(&config, &members(&batch, &estimates));
    assert_eq!(pieces.len(), 7);
    for piece in &pieces {
        assert_eq!(piece.old_values, vec![0.25; piece.ids.len()]);
        for (seen, target) in piece.mask.iter().zip(piece.value_targets) {
            assert_eq!(*target, if *seen { 1.0 } else { 0.0 });
        }
    }
    let grpo = RlConfig::default();
    let estimates = grpo.estimator().estimates(&batch.samples);
    let entropy = RlConfig {
        entropy_coefficient: 0.1,
        ..grpo
    };
    for piece in weighted_sequences(&entropy, &members(&batch, &estimates)) {
        assert!(piece.value_targets.is_empty());
    }
}

#[test]
fn excluded_trajectories_count_nowhere() {
    let played = |excluded: bool| {
        let mut trajectories: Vec<_> = (0..4).map(|i| two_turns(0, i, VOCAB as u32)).collect();
        let mut scores: Vec<_> = [1.0, 0.0, 0.0].into_iter().map(scored).collect();
        if excluded {
            scores.push(unscored("the search index was unavailable"));
        } else {
            trajectories.pop();
        }
        Batch::new(&[group(0, trajectories, scores)], 2).unwrap()
    };
    let (with, without) = (played(true), played(false));
    assert_eq!(
        (with.exclusions.excluded, with.exclusions.trajectories),
        (1, 4)
    );
    assert_eq!(
        with.exclusions.most_frequent_reasons(),
        "1 x the search index was unavailable"
    );
    for config in configs().into_iter().filter(|c| c.kl_coefficient == 0.0) {
        let weights = |batch: &Batch| -> Vec<(f32, Vec<f32>)> {
            let estimates = config.estimator().estimates(&batch.samples);
            weighted_sequences(&config, &members(batch, &estimates))
                .iter()
                .map(|piece| (piece.weight, piece.advantages.to_vec()))
                .collect()
        };
        assert_eq!(weights(&with), weights(&without));
    }
}

#[test]
fn a_group_left_with_one_is_dropped_and_counted_and_too_many_stop_the_run() {
    let groups: Vec<_> = (0..3)
        .map(|g| {
            let trajectories = (0..2).map(|i| two_turns(g, i, VOCAB as u32)).collect();
            let second = if g == 0 {
                unscored("timed out while queued")
            } else {
                scored(0.0)
            };
            group(g, trajectories, vec![scored(1.0), second])
        })
        .collect();
    let batch = Batch::new(&groups, 2).unwrap();
    assert_eq!(batch.exclusions.dropped_groups, 1);
    assert_eq!(batch.exclusions.in_dropped_groups, 1);
    assert_eq!(batch.trained(), vec![2, 3, 4, 5]);
    assert!((batch.exclusions.share() - 2.0 / 6.0).abs() < 1e-12);
    assert!(refuse_biased(&batch, 9, 0.34).is_ok());
    let message = refuse_biased(&batch, 9, 0.3).unwrap_err().to_string();
    assert!(
        message.contains("RL step 10 lost 1 of its 3 groups"),
        "{message}"
    );
    assert!(message.contains("1 x timed out while queued"), "{message}");
    // Reinforce++ compares over the batch, so one trajectory of a group is enough.
    assert_eq!(Batch::new(&groups, 1).unwrap().exclusions.dropped_groups, 0);
}

#[test]
fn a_trajectory_without_model_tokens_is_excluded() {
    let mut silent = two_turns(0, 0, VOCAB as u32);
    silent.sequences.clear();
    let trajectories = vec![
        silent,
        two_turns(0, 1, VOCAB as u32),
        two_turns(0, 2, VOCAB as u32),
    ];
    let scores = vec![scored(0.0), scored(1.0), scored(0.0)];
    let batch = Batch::new(&[group(0, trajectories, scores)], 2).unwrap();
    assert_eq!(batch.trained(), vec![1, 2]);
    assert!(
        batch
            .exclusions
            .most_frequent_reasons()
            .contains("fills the context")
    );
}

#[test]
fn several_sequences_of_one_trajectory_count_its_tokens_once() {
    // `history = "template"`: the second sequence begins anew with re-rendered history.
    let mut trajectory = two_turns(0, 1, VOCAB as u32);
    let second = two_turns(1, 2, VOCAB as u32).sequences.remove(0);
    trajectory.sequences.push(second);
    let trajectories = vec![trajectory, two_turns(0, 3, VOCAB as u32)];
    let tokens: Vec<usize> = trajectories
        .iter()
        .map(rlf_dialogue::trajectory::Trajectory::model_tokens)
        .collect();
    let batch = Batch::new(&[group(0, trajectories, vec![scored(1.0), scored(0.0)])], 2).unwrap();
    let config = RlConfig {
        aggregation: Aggregation::SequenceMean,
        ..RlConfig::default()
    };
    let estimates = config.estimator().estimates(&batch.samples);
    let pieces = weighted_sequences(&config, &members(&batch, &estimates));
    assert_eq!(pieces.len(), 3);
    assert_eq!(pieces[0].weight, pieces[1].weight);
    assert!((pieces[0].weight - 1.0 / (2.0 * tokens[0] as f32)).abs() < 1e-9);
    for piece in &pieces {
        assert_eq!(piece.ids.len(), piece.advantages.len());
        assert_eq!(piece.ids.len(), piece.old_log_probs.len());
        for (seen, advantage) in piece.mask.iter().zip(piece.advantages) {
            assert_eq!(*seen, *advantage != 0.0);
        }
    }
}

#[test]
fn the_first_update_has_ratio_one_exactly() {
    // The log-probabilities recorded are those computed: here, by the same toy forward.
    let batch = batch();
    let config = RlConfig::default();
    let estimates = config.estimator().estimates(&batch.samples);
    let pieces = weighted_sequences(&config, &members(&batch, &estimates));
    for piece in &pieces {
        let old: Vec<f32> = piece
            .mask
            .iter()
            .zip(piece.old_log_probs)
            .filter(|(m, _)| **m)
            .map(|(_, p)| *p)
            .collect();
        let n = old.len();
        let log_probs = Var::from_tensor(&Tensor::from_vec(old, n, &Device::Cpu).unwrap()).unwrap();
        let entropy = Tensor::zeros(n, DType::F32, &Device::Cpu).unwrap();
        let packed = PackedBatch::new(&[Sequence {
            ids: piece.ids,
            mask: piece.mask,
        }])
        .unwrap();
        let targets = update::token_targets(&packed, std::slice::from_ref(piece));
        let (_, statistics) = Objective::Policy(config.policy_loss(config.kl_coefficient))
            .loss(&log_probs, &entropy, &targets)
            .unwrap();
        assert_eq!(statistics.ratio_deviation, 0.0);
    }
}
