//! Reinforcement learning: the sampled tokens of better trajectories become likelier.
//!
//! One step follows GRPO's algorithm 1 (arXiv:2402.03300). It gets groups that the policy played, already graded
//! (see [`Rollouts`]), and turns their rewards into advantages. Then it updates for a few epochs of mini-batches, with the
//! clipped ratio to the policy that played. With `rl.staleness`, older weights play: see the module `ahead`. With
//! `rl.replay_buffer`, groups of earlier steps train again: see the module `replay_buffer`.

use std::time::Instant;

use futures_util::future::{BoxFuture, Either, select};
use rlf_policy::Model;

use crate::ahead::Ahead;
use crate::batch::Batch;
use crate::config::RlConfig;
use crate::critic::explained_variance;
use crate::curriculum::is_constant;
use crate::error::TrainError;
use crate::importance::Importance;
use crate::loss::Objective;
use crate::minibatch::{mini_batches, shuffled};
use crate::observer::Observer;
use crate::older_policies::OlderPolicies;
use crate::phase::{Phase, PhaseEnd};
use crate::phase_loop::{self, Course};
use crate::replay_buffer::ReplayBuffer;
use crate::rollouts::{Experience, Play, Rollouts};
use crate::run::{Checkpoint, RunDirectory};
use crate::summary;
use crate::training_set::{Member, StepModels, TrainingSet, weighted_sequences};
use crate::update::{self, Updates};

/// Trains `model` on the trajectories that it plays through `rollouts`, and writes checkpoints into `run`.
///
/// `resumed` is the checkpoint that [`RunDirectory::resume`] returned, and `model` was loaded from it.
///
/// Updates compute on the thread that polls the future. So that steps are played meanwhile, poll it outside of the
/// runtime's own threads, as `block_on` of a runtime with several threads does.
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
        let start = phase_loop::start(
            Phase::Rl,
            course,
            resumed,
            seed,
            model,
            config.optimizer,
            config.active_critic(),
        );
        let Some((mut learner, mut state)) = start? else {
            return Ok(PhaseEnd::AlreadyDone);
        };
        learner.older = OlderPolicies::new(config.staleness, resumed, model)?;
        learner.replay = ReplayBuffer::new(config.replay_buffer.as_ref(), resumed)?;
        let mut ahead = Ahead::new(config.staleness, config.steps.min(observer.last_step()));
        let estimator = config.estimator();
        let reference = match config.kl_coefficient {
            0.0 => None,
            _ => Some(phase_loop::reference(run, model, state.step)?),
        };

        if state.unobserved {
            let ended = phase_loop::after_step(
                observer, &mut ahead, None, course, &mut state, run, model, &learner,
            );
            if let Some(end) = ended.await? {
                return Ok(end);
            }
        }
        if !run.allows_changes() {
            // A guard stopped the run here, or was about to.
            config.guards.refuse_row(state.step, state.in_a_row)?;
        }
        ahead.start(rollouts, &mut learner.older, model, &state)?;
        while state.step < config.steps {
            let step = state.step;

            // Play and grade.
            let started = Instant::now();
            let begun = ahead.take(rollouts, model, step);
            let staleness = step - begun.weights;
            let Some(mut experience) = wait_for(begun.play, observer, step).await? else {
                return phase_loop::abandon_step(0, &state, run, model, &learner);
            };
            let waited = started.elapsed();
            let started = Instant::now();
            ahead.extend(rollouts, &mut learner.older, model, &state)?;

            // Advantages.
            let mut batch = Batch::new(&experience.groups, estimator.smallest_group())?;
            let punished = config.overlong.map(|overlong| overlong.punish(&mut batch));
            let tells_apart = batch.tells_apart(&*estimator);
            let refused = refuse_biased(&batch, step, config.max_dropped_share).and_then(|()| {
                let guards = &config.guards;
                Ok(guards.refuse_excluded(step + 1, &batch.exclusions)?)
            });
            if let Err(refused) = refused {
                // What was learnt so far is kept.
                phase_loop::abandon_step(0, &state, run, model, &learner)?;
                return Err(refused);
            }
            let kl_coefficient = match config.adaptive_kl {
                Some(_) => state.kl_coefficient.unwrap_or(config.kl_coefficient),
                None => config.kl_coefficient,
            };
            let models = StepModels {
                config,
                policy: model,
                reference: reference.as_ref(),
                critic: learner.critic.as_ref(),
                kl_coefficient,
            };
            let played = TrainingSet::new(batch, config.importance_cap, &models)?;
            let replayed = learner.replay.replay(seed, step, &models)?;

            // Update.
            let learning_rate = config.optimizer.rate_at(step, config.steps);
            let mut updates = Updates::default();
            // With refill, others were played in the place of groups without variance.
            let counts = |group: usize| {
                config.refill == 0 || is_constant(&experience.groups[group]) == Some(false)
            };
            let mut trained = played.members(counts);
            let is_idle = !tells_apart || weighted_sequences(config, &trained).is_empty();
            if let Some(replayed) = &replayed {
                trained.extend(replayed.set.members(|_| true));
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
                            &learner,
                        );
                    }
                    let members: Vec<Member<'_>> =
                        order[part].iter().map(|i| trained[*i]).collect();
                    let sequences = weighted_sequences(config, &members);
                    if sequences.is_empty() {
                        updates.without_gradient += 1;
                        continue;
                    }
                    // From here on, no checkpoint of the weights before this step can be written.
                    learner.older.forget();
                    let critic = learner.critic.as_ref();
                    let done = update::gradient(
                        model,
                        &Objective::Policy(config.policy_loss(kl_coefficient)),
                        critic.map(|critic| (&critic.head, config.critic.loss())),
                        &sequences,
                        config.micro_batch_tokens,
                        &config.pass(),
                    )?;
                    let statistics = done.statistics;
                    let loss = statistics.loss + statistics.value_loss;
                    phase_loop::refuse_not_finite(Phase::Rl, step, loss)?;
                    let refused = TrainError::of_update(Phase::Rl, step);
                    let stepped = learner.policy.step(model, &done.gradients, learning_rate);
                    let report = stepped.map_err(refused)?;
                    if let (Some(critic), Some(gradients)) = (&mut learner.critic, &done.value_head)
                    {
                        (critic.learn(gradients, step, config.steps)).map_err(refused)?;
                    }
                    updates.add(&statistics, report.grad_norm, &sequences);
                }
            }
            let train_time = started.elapsed();

            // Report.
            let TrainingSet {
                batch,
                estimates,
                importance,
                ..
            } = &played;
            state.step += 1;
            state.in_a_row = config.guards.count(state.in_a_row, batch, is_idle);
            state.updates += updates.done;
            state.data_position += experience.groups.len() as u64;
            state.rollouts = rollouts.learn(step, &mut experience);
            state.kl_coefficient = config.adaptive_kl.map(|adaptive| {
                let kl = batch.sampled_kl().unwrap_or(f64::NAN);
                adaptive.next_coefficient(kl_coefficient, kl, batch.samples.len())
            });
            let advantages = &estimates.advantages;
            let explained = estimates.value_targets.as_ref();
            let explained = explained.map(|targets| explained_variance(&batch.samples, targets));
            let value_loss = updates.statistics.mean(updates.statistics.value_loss);
            let is_ahead = config.staleness > 0;
            let line = summary::line(state.step, &experience, batch, advantages)
                .optional("overlong", punished)
                .optional(
                    "importance_mismatch",
                    importance.as_ref().map(Importance::mismatch),
                )
                .optional(
                    "importance_capped",
                    importance.as_ref().map(Importance::capped),
                )
                .optional("kl_coefficient", config.adaptive_kl.map(|_| kl_coefficient))
                .optional("value_loss", explained.map(|_| value_loss))
                .optional("explained_variance", explained)
                .updates(&updates)
                .number("learning_rate", learning_rate)
                .optional("staleness", is_ahead.then_some(staleness as f64))
                .optional("wait_s", is_ahead.then_some(waited.as_secs_f64()))
                .times(
                    experience.played.unwrap_or(waited),
                    waited,
                    train_time,
                    updates.tokens,
                );
            let line = match config.replay_buffer {
                None => line,
                Some(_) => line.replayed(replayed.as_ref()),
            };
            run.metrics().write(&line)?;
            if summary::is_due(run.keep().trajectories_every, state.step) {
                let records = summary::records(state.step, &experience, batch, advantages);
                run.write_trajectories(Phase::Rl, state.step, records)?;
            }
            learner.replay.add(step, experience.groups);
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
            if let Err(refused) = config.guards.refuse_row(state.step, state.in_a_row) {
                phase_loop::abandon_step(0, &state, run, model, &learner)?;
                return Err(refused.into());
            }
        }
        Ok(PhaseEnd::Finished)
    })
}

/// Waits for the graded groups of a step. None if the observer abandoned the step.
async fn wait_for(
    play: Play,
    observer: &dyn Observer,
    step: u64,
) -> Result<Option<Experience>, TrainError> {
    let played = match select(play, observer.step_abandoned()).await {
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

#[cfg(test)]
mod tests;
