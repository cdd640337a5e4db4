//! Reinforcement learning: the sampled tokens of better trajectories become likelier.
//!
//! One step follows GRPO's algorithm 1 (arXiv:2402.03300). It gets groups that the current policy played, already graded
//! (see [`Rollouts`]), and turns their rewards into advantages. Then it updates for a few epochs of mini-batches, with the
//! clipped ratio to the policy that played.

use std::time::Instant;

use futures_util::future::{BoxFuture, Either, select};
use rlf_policy::{Model, Sequence};

use crate::batch::Batch;
use crate::config::RlConfig;
use crate::curriculum::is_constant;
use crate::error::TrainError;
use crate::loss::{Objective, token_weights};
use crate::minibatch::{mini_batches, shuffled};
use crate::observer::Observer;
use crate::phase::{Phase, PhaseEnd};
use crate::phase_loop::{self, Course};
use crate::rollouts::{Experience, Rollouts};
use crate::run::{Checkpoint, RunDirectory};
use crate::summary;
use crate::update::{self, Updates, WeightedSequence};

/// Trains `model` on the trajectories that it plays through `rollouts`, and writes checkpoints into `run`.
///
/// `resumed` is the checkpoint that [`RunDirectory::resume`] returned, and `model` was loaded from it.
pub fn train<'a>(
    config: &'a RlConfig,
    seed: u64,
    model: &'a mut Model,
    rollouts: &'a mut dyn Rollouts,
    run: &'a mut RunDirectory,
    resumed: Option<&'a Checkpoint>,
    observer: &'a mut dyn Observer,
) -> BoxFuture<'a, Result<PhaseEnd, TrainError>> {
    Box::pin(async move {
        config.validate()?;
        let course = Course {
            steps: config.steps,
            patience: config.patience,
        };
        let begun = phase_loop::start(Phase::Rl, course, resumed, seed, model, config.optimizer)?;
        let Some((mut optimizer, mut state)) = begun else {
            return Ok(PhaseEnd::AlreadyDone);
        };
        if let Some(known) = &state.rollouts {
            let resumed = rollouts.resume(known);
            let step = state.step;
            resumed.map_err(|source| TrainError::Rollouts { step, source })?;
        }
        let estimator = config.estimator();
        let reference = match config.kl_coefficient {
            0.0 => None,
            _ => Some(phase_loop::reference(run, model)?),
        };

        if state.unobserved {
            let ended =
                phase_loop::after_step(observer, None, course, &mut state, run, model, &optimizer);
            if let Some(end) = ended.await? {
                return Ok(end);
            }
        }
        while state.step < config.steps {
            let step = state.step;

            // Play and grade.
            let started = Instant::now();
            let Some(experience) = play(rollouts, observer, model, step).await? else {
                return phase_loop::abandon_step(0, &state, run, model, &optimizer);
            };
            let rollout_time = started.elapsed();

            // Advantages.
            let started = Instant::now();
            let mut batch = Batch::new(&experience.groups, estimator.smallest_group())?;
            let punished = config.overlong.map(|overlong| overlong.punish(&mut batch));
            let refused = refuse_biased(&batch, step, config.max_dropped_share).and_then(|()| {
                let guards = &config.guards;
                Ok(guards.refuse_excluded(step + 1, &batch.exclusions)?)
            });
            if let Err(refused) = refused {
                // What was learnt so far is kept.
                phase_loop::abandon_step(0, &state, run, model, &optimizer)?;
                return Err(refused);
            }
            if let Some(reference) = &reference {
                add_reference_log_probs(&mut batch, reference, config)?;
            }
            let advantages = estimator.advantages(&batch.samples);

            // Update.
            let learning_rate = config.optimizer.rate_at(step, config.steps);
            let mut updates = Updates::default();
            let mut trained = batch.trained();
            if config.refill > 0 {
                // Others were played in the place of groups without variance.
                let differ = |group: usize| is_constant(&experience.groups[group]) == Some(false);
                trained.retain(|i| differ(batch.samples[*i].group()));
            }
            for epoch in 0..config.epochs {
                let order = shuffled(seed, step, epoch, trained.len());
                for part in mini_batches(order.len(), config.mini_batches) {
                    if phase_loop::is_abandoned(observer) {
                        return phase_loop::abandon_step(
                            updates.done,
                            &state,
                            run,
                            model,
                            &optimizer,
                        );
                    }
                    let members: Vec<usize> = order[part].iter().map(|i| trained[*i]).collect();
                    let sequences = weighted_sequences(config, &batch, &advantages, &members);
                    if sequences.is_empty() {
                        updates.without_gradient += 1;
                        continue;
                    }
                    let (gradients, statistics) = update::gradient(
                        model,
                        &Objective::Policy(config.policy_loss()),
                        &sequences,
                        config.micro_batch_tokens,
                        &config.pass(),
                    )?;
                    phase_loop::refuse_not_finite(Phase::Rl, step, statistics.loss)?;
                    let report = optimizer.step(model, &gradients, learning_rate)?;
                    updates.add(&statistics, report.grad_norm, &sequences);
                }
            }
            let train_time = started.elapsed();

            // Report.
            state.step += 1;
            state.in_a_row = config.guards.count(state.in_a_row, &batch, updates.done);
            state.updates += updates.done;
            state.data_position += experience.groups.len() as u64;
            state.rollouts = rollouts.learn(step, &experience);
            let line = summary::line(state.step, &experience, &batch, &advantages)
                .optional("overlong", punished)
                .updates(&updates)
                .number("learning_rate", learning_rate)
                .times(rollout_time, train_time, updates.tokens);
            run.metrics().write(&line)?;
            if summary::is_due(run.keep().trajectories_every, state.step) {
                let records = summary::records(state.step, &experience, &batch, &advantages);
                run.write_trajectories(Phase::Rl, state.step, records)?;
            }
            let ended = phase_loop::after_step(
                observer,
                Some(&line),
                course,
                &mut state,
                run,
                model,
                &optimizer,
            );
            if let Some(end) = ended.await? {
                return Ok(end);
            }
            if let Err(refused) = config.guards.refuse_row(state.step, &batch, state.in_a_row) {
                phase_loop::abandon_step(0, &state, run, model, &optimizer)?;
                return Err(refused.into());
            }
        }
        Ok(PhaseEnd::Finished)
    })
}

/// Plays and grades the groups of a step. None if the observer abandoned the step.
async fn play(
    rollouts: &mut dyn Rollouts,
    observer: &dyn Observer,
    model: &Model,
    step: u64,
) -> Result<Option<Experience>, TrainError> {
    let played = match select(rollouts.play(model, step), observer.step_abandoned()).await {
        Either::Left((played, _)) => played,
        Either::Right(_) => return Ok(None),
    };
    let experience = played.map_err(|source| TrainError::Rollouts { step, source })?;
    Ok((!phase_loop::is_abandoned(observer)).then_some(experience))
}

fn refuse_biased(batch: &Batch, step: u64, limit: f64) -> Result<(), TrainError> {
    let lost = &batch.exclusions;
    if lost.dropped_share() <= limit {
        return Ok(());
    }
    Err(TrainError::TooManyDropped {
        step,
        dropped: lost.dropped_groups,
        groups: lost.groups,
        limit,
        reasons: lost.most_frequent_reasons(),
    })
}

/// The sequences of the mini-batch of the trajectories `members`, with their weights in the loss.
///
/// Every member counts in the normalisation. A member with no advantage other than 0 has no gradient,
/// so it is not computed, unless the loss has a term that does not depend on the advantage.
fn weighted_sequences<'a>(
    config: &RlConfig,
    batch: &'a Batch,
    advantages: &'a [Vec<f32>],
    members: &[usize],
) -> Vec<WeightedSequence<'a>> {
    let loss = config.policy_loss();
    let only_advantages = loss.kl_coefficient == 0.0 && loss.entropy_coefficient == 0.0;
    let lengths: Vec<usize> = members
        .iter()
        .map(|i| batch.samples[*i].model_tokens())
        .collect();
    let weights = token_weights(config.aggregation, &lengths);
    let mut sequences = Vec::new();
    for (i, weight) in members.iter().zip(weights) {
        let (sample, advantages) = (&batch.samples[*i], &advantages[*i]);
        if only_advantages && advantages.iter().all(|a| *a == 0.0) {
            continue;
        }
        let mut start = 0;
        for sequence in &batch.sequences[*i] {
            let tokens = start..start + sequence.ids.len();
            start = tokens.end;
            if sequence.mask.count() == 0 {
                continue;
            }
            sequences.push(WeightedSequence {
                ids: &sequence.ids,
                mask: sequence.mask.as_slice(),
                weight: weight as f32,
                prompt: None,
                advantages: &advantages[tokens.clone()],
                old_log_probs: &sequence.log_probs,
                reference_log_probs: sample.reference_log_probs().map_or(&[], |all| &all[tokens]),
            });
        }
    }
    sequences
}

fn add_reference_log_probs(
    batch: &mut Batch,
    reference: &Model,
    config: &RlConfig,
) -> Result<(), TrainError> {
    let sequences: Vec<Sequence<'_>> = batch
        .sequences
        .iter()
        .flatten()
        .map(|tokens| Sequence {
            ids: &tokens.ids,
            mask: tokens.mask.as_slice(),
        })
        .collect();
    let log_probs = update::reference_log_probs(
        reference,
        &sequences,
        config.micro_batch_tokens,
        &config.pass(),
    )?;
    let mut log_probs = log_probs.into_iter();
    for (sample, sequences) in batch.samples.iter_mut().zip(&batch.sequences) {
        let all: Vec<f32> = log_probs.by_ref().take(sequences.len()).flatten().collect();
        *sample = sample.clone().with_reference_log_probs(all);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
