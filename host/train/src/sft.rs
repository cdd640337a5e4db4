//! Supervised fine-tuning: demonstrated tokens become likelier.

use std::time::Instant;

use futures_util::future::BoxFuture;
use rlf_dialogue::trajectory::{CallToken, MaskedTokens};
use rlf_policy::Model;

use crate::ahead::Ahead;
use crate::config::SftConfig;
use crate::error::TrainError;
use crate::loss::Objective;
use crate::metrics::{MetricsLine, names};
use crate::observer::Observer;
use crate::phase::{Phase, PhaseEnd};
use crate::phase_loop::{self, Course};
use crate::rollouts::{BoxError, DemonstrationSource};
use crate::run::{Checkpoint, RunDirectory};
use crate::update::{self, PromptTokens, WeightedSequence};

/// Trains `model` on `demonstrations` and writes checkpoints into `run`.
///
/// `resumed` is the checkpoint that [`RunDirectory::resume`] returned, and `model` was loaded from it.
pub fn train<'a>(
    config: &'a SftConfig,
    seed: u64,
    model: &'a mut Model,
    demonstrations: &'a mut dyn DemonstrationSource,
    run: &'a mut RunDirectory,
    resumed: Option<&'a Checkpoint>,
    observer: &'a mut dyn Observer,
) -> BoxFuture<'a, Result<PhaseEnd, TrainError>> {
    Box::pin(async move {
        config.validate()?;
        let course = Course {
            steps: config.steps,
            patience: 0,
        };
        let start = phase_loop::start(
            Phase::Sft,
            course,
            resumed,
            seed,
            model,
            config.optimizer,
            None,
        );
        let Some((mut learner, mut state)) = start? else {
            return Ok(PhaseEnd::AlreadyDone);
        };
        // SFT plays no steps.
        let mut ahead = Ahead::new(0, 0);

        if state.unobserved {
            let ended = phase_loop::after_step(
                observer, &mut ahead, None, course, &mut state, run, model, &learner,
            );
            if let Some(end) = ended.await? {
                return Ok(end);
            }
        }
        while state.step < course.steps {
            let (step, started) = (state.step, Instant::now());
            let refused = |source: BoxError| TrainError::Demonstrations { step, source };
            let batch = demonstrations.batch(step, config.batch_size).await;
            let batch = batch.map_err(refused)?;

            if config.weighs_calls() && batch.iter().any(|one| one.calls.len() != one.ids.len()) {
                return Err(refused("the tokens of their calls are not marked".into()));
            }
            let factors: Vec<Vec<f32>> =
                batch.iter().map(|tokens| factors(config, tokens)).collect();
            let total: f64 = (batch.iter().zip(&factors))
                .map(|(tokens, factors)| total_weight(tokens, factors))
                .sum();
            // The weight of a token whose factor is 1. The weights of all tokens that the policy writes sum to 1.
            let weight = 1.0 / total;
            let all: Vec<Vec<bool>> = batch.iter().map(read_or_imitated).collect();
            let sequences: Vec<WeightedSequence<'_>> = batch
                .iter()
                .zip(factors.iter().zip(&all))
                .filter(|(tokens, (factors, _))| total_weight(tokens, factors) > 0.0)
                .map(|(tokens, (factors, all))| WeightedSequence {
                    ids: &tokens.ids,
                    mask: tokens.mask.as_slice(),
                    weight: weight as f32,
                    factors,
                    prompt: (config.prompt_loss_weight > 0.0).then(|| PromptTokens {
                        all,
                        weight: (weight * config.prompt_loss_weight) as f32,
                    }),
                    advantages: &[],
                    old_log_probs: &[],
                    reference_log_probs: &[],
                    value_targets: &[],
                    old_values: &[],
                })
                .collect();
            if sequences.is_empty() {
                return Err(refused(
                    "none of them has a token that the model should say and whose weight is above 0".into(),
                ));
            }

            let done = update::gradient(
                model,
                &Objective::Supervised,
                None,
                &sequences,
                config.micro_batch_tokens,
                &config.pass(),
            )?;
            let statistics = done.statistics;
            phase_loop::refuse_not_finite(Phase::Sft, step, statistics.loss)?;
            let learning_rate = config.optimizer.rate_at(step, config.steps);
            let stepped = learner.policy.step(model, &done.gradients, learning_rate);
            let report = stepped.map_err(TrainError::of_update(Phase::Sft, step))?;

            state.step += 1;
            state.updates += 1;
            state.data_position += batch.len() as u64;
            let tokens: usize = batch.iter().map(|tokens| tokens.ids.len()).sum();
            let seconds = started.elapsed().as_secs_f64();
            let line = MetricsLine::new(Phase::Sft, state.step)
                .loss(&statistics)
                .number(names::GRAD_NORM, report.grad_norm)
                .number("learning_rate", learning_rate)
                .count("trained_tokens", statistics.tokens)
                .number(names::TRAIN_TOKENS_PER_S, tokens as f64 / seconds)
                .number(names::STEP_S, seconds);
            run.metrics().write(&line)?;
            let ended = phase_loop::after_step(
                observer,
                &mut ahead,
                Some(&line),
                course,
                &mut state,
                run,
                model,
                &learner,
            );
            if let Some(end) = ended.await? {
                return Ok(end);
            }
        }
        Ok(PhaseEnd::Finished)
    })
}

/// The weight of each token of a sequence relative to others that the policy writes; empty if all are 1.
fn factors(config: &SftConfig, tokens: &MaskedTokens) -> Vec<f32> {
    if !config.weighs_calls() {
        return Vec::new();
    }
    let kinds = tokens.calls.iter();
    kinds
        .map(|kind| match kind {
            CallToken::Outside => 1.0,
            CallToken::Name => config.tool_name_weight as f32,
            CallToken::Arguments => config.arguments_weight as f32,
        })
        .collect()
}

/// The sum of the factors of a sequence's tokens in the loss mask.
fn total_weight(tokens: &MaskedTokens, factors: &[f32]) -> f64 {
    if factors.is_empty() {
        return tokens.mask.count() as f64;
    }
    let in_loss = tokens.mask.as_slice().iter().zip(factors);
    in_loss
        .filter(|(is_in_loss, _)| **is_in_loss)
        .map(|(_, factor)| f64::from(*factor))
        .sum()
}

/// A loss mask with every token but those of turns that are not to be imitated. Nothing predicts the first.
fn read_or_imitated(tokens: &MaskedTokens) -> Vec<bool> {
    let places = tokens.left_out.iter().enumerate();
    places
        .map(|(position, left_out)| position > 0 && !left_out)
        .collect()
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::TrainingSequence;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_turn_that_is_left_out_has_not_even_the_weight_of_what_is_read() {
        let sequence: TrainingSequence = serde_json::from_value(json!([
            {"prompt": [1, 2]},
            {"model": {"demonstrated": {"ids": [3, 4], "imitated": false}}},
            {"observation": [5]},
            {"model": {"demonstrated": {"ids": [6]}}},
        ]))
        .unwrap();
        let tokens = sequence.masked().unwrap();
        let last = [false, false, false, false, false, true];
        assert_eq!(tokens.mask.as_slice(), last);
        let all = [false, true, false, false, true, true];
        assert_eq!(read_or_imitated(&tokens), all);
    }
}
