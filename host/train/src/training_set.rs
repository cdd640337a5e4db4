//! The inputs of the loss for each trajectory of a step.

use std::ops::Range;

use candle_core::Tensor;
use rlf_dialogue::trajectory::SampledTokens;
use rlf_policy::{Model, PackedBatch, PassOptions, PolicyError, Processor, Sequence};

use crate::advantage::{Estimates, Sample};
use crate::batch::Batch;
use crate::config::RlConfig;
use crate::critic::Critic;
use crate::error::TrainError;
use crate::importance::Importance;
use crate::kl::{self, KlPlace};
use crate::loss::token_weights;
use crate::update::{self, WeightedSequence};

/// A batch, with its advantages and what they follow from.
pub(crate) struct TrainingSet {
    pub(crate) batch: Batch,
    /// As the estimator gives them.
    pub(crate) estimates: Estimates,
    /// The correction for the policy that played, if there is one.
    pub(crate) importance: Option<Importance>,
    /// The estimates with this correction.
    weighed: Option<Estimates>,
}

/// The models whose numbers advantages and losses need, at the start of a step.
pub(crate) struct StepModels<'a> {
    pub(crate) config: &'a RlConfig,
    /// The policy in training.
    pub(crate) policy: &'a Model,
    pub(crate) reference: Option<&'a Model>,
    pub(crate) critic: Option<&'a Critic>,
    /// The weight of the KL in this step.
    pub(crate) kl_coefficient: f64,
}

impl TrainingSet {
    /// Gives `batch` its log-probabilities, values and advantages. With `importance_cap`, other weights or another engine
    /// may have sampled it.
    pub(crate) fn new(
        mut batch: Batch,
        importance_cap: Option<f64>,
        models: &StepModels<'_>,
    ) -> Result<Self, TrainError> {
        let config = models.config;
        let importance = match importance_cap {
            None => None,
            Some(cap) => {
                let log_probs = log_probs(models.policy, &batch, config)?;
                Some(Importance::correct(&mut batch, log_probs, cap))
            }
        };
        if let Some(reference) = models.reference {
            let log_probs = log_probs(reference, &batch, config)?;
            for (sample, log_probs) in batch.samples.iter_mut().zip(log_probs) {
                *sample = sample.clone().with_reference_log_probs(log_probs);
            }
            if config.kl_place() == KlPlace::Reward {
                kl::penalise(&mut batch.samples, config.kl(), models.kl_coefficient);
            }
        }
        if let Some(critic) = models.critic {
            let values = per_token(&batch, config, models.policy, |batches, pass| {
                models.policy.values(batches, pass, &critic.head)
            })?;
            for (sample, values) in batch.samples.iter_mut().zip(values) {
                *sample = sample.clone().with_values(values);
            }
        }
        let estimates = config.estimator().estimates(&batch.samples);
        let weighed = (importance.as_ref()).map(|importance| importance.weigh(&estimates));
        Ok(Self {
            batch,
            estimates,
            importance,
            weighed,
        })
    }

    /// The trajectories that train, out of the groups that `wanted` accepts by index.
    pub(crate) fn members(&self, wanted: impl Fn(usize) -> bool) -> Vec<Member<'_>> {
        let mut members = members(
            &self.batch,
            self.weighed.as_ref().unwrap_or(&self.estimates),
        );
        members.retain(|member| wanted(member.sample.group()));
        members
    }
}

/// A trajectory that trains.
#[derive(Clone, Copy)]
pub(crate) struct Member<'a> {
    sample: &'a Sample,
    sequences: &'a [SampledTokens],
    /// One per token, as are the value targets.
    advantages: &'a [f32],
    value_targets: Option<&'a [f32]>,
}

/// The trajectories of a batch that train, with their estimates.
pub(crate) fn members<'a>(batch: &'a Batch, estimates: &'a Estimates) -> Vec<Member<'a>> {
    let member = |i: usize| Member {
        sample: &batch.samples[i],
        sequences: &batch.sequences[i],
        advantages: &estimates.advantages[i],
        value_targets: (estimates.value_targets.as_ref()).map(|all| all[i].as_slice()),
    };
    batch.trained().into_iter().map(member).collect()
}

/// The sequences of the mini-batch of the trajectories `members`, with their weights in the loss.
///
/// Every member counts in the normalisation. A member with no advantage other than 0 has no gradient,
/// so it is not computed, unless the loss has a term that does not depend on the advantage.
pub(crate) fn weighted_sequences<'a>(
    config: &RlConfig,
    members: &[Member<'a>],
) -> Vec<WeightedSequence<'a>> {
    let loss = config.policy_loss(config.kl_coefficient);
    let only_advantages = loss.kl_coefficient == 0.0 && loss.entropy_coefficient == 0.0;
    let lengths: Vec<usize> = (members.iter())
        .map(|member| member.sample.model_tokens())
        .collect();
    let weights = token_weights(config.aggregation, &lengths);
    let mut sequences = Vec::new();
    for (member, weight) in members.iter().zip(weights) {
        let has_no_gradient = only_advantages && member.value_targets.is_none();
        if has_no_gradient && member.advantages.iter().all(|a| *a == 0.0) {
            continue;
        }
        let mut start = 0;
        for sequence in member.sequences {
            let tokens = start..start + sequence.ids.len();
            start = tokens.end;
            if sequence.mask.count() == 0 {
                continue;
            }
            sequences.push(WeightedSequence {
                ids: &sequence.ids,
                mask: sequence.mask.as_slice(),
                weight: weight as f32,
                factors: &[],
                prompt: None,
                advantages: &member.advantages[tokens.clone()],
                old_log_probs: &sequence.log_probs,
                reference_log_probs: part_of(member.sample.reference_log_probs(), &tokens),
                value_targets: part_of(member.value_targets, &tokens),
                old_values: part_of(member.sample.values(), &tokens),
            });
        }
    }
    sequences
}

/// The numbers of a range of tokens; none if there are none at all.
fn part_of<'a>(all: Option<&'a [f32]>, tokens: &Range<usize>) -> &'a [f32] {
    all.map_or(&[], |all| &all[tokens.clone()])
}

/// The log-probability under `policy` of each model token of each trajectory, 0 off the mask.
fn log_probs(
    policy: &Model,
    batch: &Batch,
    config: &RlConfig,
) -> Result<Vec<Vec<f32>>, TrainError> {
    per_token(batch, config, policy, |batches, pass| {
        let stats = policy.log_probs(batches, pass)?;
        Ok(stats.into_iter().map(|tokens| tokens.log_probs).collect())
    })
}

/// A number for each model token of each trajectory, 0 off the mask.
fn per_token(
    batch: &Batch,
    config: &RlConfig,
    policy: &Model,
    compute: impl FnOnce(&[PackedBatch], &PassOptions) -> Result<Vec<Tensor>, PolicyError>,
) -> Result<Vec<Vec<f32>>, TrainError> {
    let sequences: Vec<Sequence<'_>> = batch
        .sequences
        .iter()
        .flatten()
        .map(|tokens| Sequence {
            ids: &tokens.ids,
            mask: tokens.mask.as_slice(),
        })
        .collect();
    let processor = Processor::of(policy.device());
    let tokens = config.micro_batch_tokens;
    let numbers = update::per_token(&sequences, tokens, processor, |batches| {
        compute(batches, &config.pass())
    })?;
    let mut numbers = numbers.into_iter();
    let of_trajectories = batch.sequences.iter();
    Ok(of_trajectories
        .map(|own| numbers.by_ref().take(own.len()).flatten().collect())
        .collect())
}
