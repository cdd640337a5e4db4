//! One update: the gradient of a mini-batch, summed over its micro-batches.

use candle_core::Tensor;
use rlf_policy::{
    Gradients, Model, PackedBatch, PassOptions, PolicyError, Processor, Sequence, ValueHead,
    micro_batches,
};

use crate::error::TrainError;
use crate::loss::{LossStatistics, Objective, TokenTargets};
use crate::value_loss::ValueLoss;

/// A token sequence and the numbers that the loss needs, one entry per token in each slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WeightedSequence<'a> {
    pub(crate) ids: &'a [u32],
    /// The loss mask: true on model tokens.
    pub(crate) mask: &'a [bool],
    /// The weight of each of its model tokens in the loss of the mini-batch.
    pub(crate) weight: f32,
    /// Factors of that weight; empty if all are 1.
    pub(crate) factors: &'a [f32],
    /// The tokens that SFT trains besides model tokens, and their weight: `prompt_loss_weight`.
    pub(crate) prompt: Option<PromptTokens<'a>>,
    /// Empty for SFT.
    pub(crate) advantages: &'a [f32],
    /// Empty for SFT.
    pub(crate) old_log_probs: &'a [f32],
    /// Empty if there is no KL term.
    pub(crate) reference_log_probs: &'a [f32],
    /// Empty without a critic.
    pub(crate) value_targets: &'a [f32],
    /// Empty without a critic.
    pub(crate) old_values: &'a [f32],
}

/// The tokens of a sequence that are not the model's, in a loss that trains them too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptTokens<'a> {
    /// True on every token of the loss: these and those of the model.
    pub(crate) all: &'a [bool],
    /// The weight of each of these tokens.
    pub(crate) weight: f32,
}

/// The gradient of a mini-batch.
pub(crate) struct MiniBatch {
    pub(crate) gradients: Gradients,
    /// Gradients of the value head, if there is one.
    pub(crate) value_head: Option<Gradients>,
    pub(crate) statistics: LossStatistics,
}

/// The gradient and the loss of the mini-batch of `sequences`. With a critic, the loss of its values is a part.
///
/// Gradients are summed over micro-batches in order, so the result is the same on any number of
/// workers. There must be at least one sequence, and each must have a model token.
pub(crate) fn gradient(
    model: &Model,
    objective: &Objective,
    critic: Option<(&ValueHead, ValueLoss)>,
    sequences: &[WeightedSequence<'_>],
    micro_batch_tokens: usize,
    pass: &PassOptions,
) -> Result<MiniBatch, TrainError> {
    let lengths: Vec<usize> = sequences
        .iter()
        .map(|sequence| sequence.ids.len())
        .collect();
    let (mut batches, mut targets) = (Vec::new(), Vec::new());
    for run in micro_batches(&lengths, micro_batch_tokens, Processor::of(model.device())) {
        let members = &sequences[run];
        let packed: Vec<Sequence<'_>> = members
            .iter()
            .map(|sequence| Sequence {
                ids: sequence.ids,
                mask: sequence.prompt.map_or(sequence.mask, |prompt| prompt.all),
            })
            .collect();
        let batch = PackedBatch::new(&packed)?;
        targets.push(token_targets(&batch, members));
        batches.push(batch);
    }
    let head = critic.map(|(head, _)| head);
    let done = model.accumulate_with_values(&batches, pass, head, |index, tokens| {
        let targets = &targets[index];
        let (loss, mut statistics) = objective.loss(&tokens.log_probs, &tokens.entropy, targets)?;
        let (Some((_, value_loss)), Some(values)) = (critic, &tokens.values) else {
            return Ok((loss, statistics));
        };
        let of_values = value_loss.loss(values, targets, &mut statistics)?;
        Ok(((loss + of_values)?, statistics))
    })?;
    let mut statistics = LossStatistics::default();
    for micro_batch in &done.outputs {
        statistics.add(micro_batch);
    }
    Ok(MiniBatch {
        gradients: done.gradients,
        value_head: done.value_head,
        statistics,
    })
}

/// The numbers of each target of the batch, in the order of the batch.
pub(crate) fn token_targets(
    batch: &PackedBatch,
    sequences: &[WeightedSequence<'_>],
) -> TokenTargets {
    let mut targets = TokenTargets::default();
    for (index, position) in batch
        .target_sequences()
        .iter()
        .zip(batch.target_positions())
    {
        let (sequence, position) = (&sequences[*index as usize], *position as usize);
        let prompt = sequence.prompt.filter(|_| !sequence.mask[position]);
        let factor = sequence.factors.get(position).copied().unwrap_or(1.0);
        let weight = prompt.map_or(sequence.weight * factor, |prompt| prompt.weight);
        targets.weights.push(weight);
        targets.prompt.push(prompt.is_some());
        targets.sequences.push(*index);
        targets.advantages.extend(sequence.advantages.get(position));
        targets
            .old_log_probs
            .extend(sequence.old_log_probs.get(position));
        targets
            .reference_log_probs
            .extend(sequence.reference_log_probs.get(position));
        targets
            .value_targets
            .extend(sequence.value_targets.get(position));
        targets.old_values.extend(sequence.old_values.get(position));
    }
    targets
}

/// Sums over the updates of one step.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    /// Updates made.
    pub(crate) done: u64,
    /// Mini-batches without an update, because no trajectory was better than another.
    pub(crate) without_gradient: u64,
    /// Sums over all updates.
    pub(crate) statistics: LossStatistics,
    /// Largest |ratio - 1| of the first update: 0 if the arithmetic is exact.
    pub(crate) first_ratio_deviation: f64,
    /// Sum of the gradients' norms before clipping.
    pub(crate) grad_norms: f64,
    /// Number of computed rows, including prompt and observation tokens.
    pub(crate) tokens: usize,
}

impl Updates {
    pub(crate) fn add(
        &mut self,
        statistics: &LossStatistics,
        grad_norm: f64,
        sequences: &[WeightedSequence<'_>],
    ) {
        if self.done == 0 {
            self.first_ratio_deviation = statistics.ratio_deviation;
        }
        self.done += 1;
        self.statistics.add(statistics);
        self.grad_norms += grad_norm;
        self.tokens += sequences
            .iter()
            .map(|sequence| sequence.ids.len())
            .sum::<usize>();
    }
}

/// A number for each model token of `sequences`: one vector per sequence, one entry per token, 0 off the mask. `compute`
/// gets micro-batches, and returns the numbers of each one's targets, `[targets]`.
pub(crate) fn per_token(
    sequences: &[Sequence<'_>],
    micro_batch_tokens: usize,
    processor: Processor,
    compute: impl FnOnce(&[PackedBatch]) -> Result<Vec<Tensor>, PolicyError>,
) -> Result<Vec<Vec<f32>>, TrainError> {
    let mut all: Vec<Vec<f32>> = sequences.iter().map(|s| vec![0.0; s.ids.len()]).collect();
    // Sequences without a model token are not computed.
    let wanted: Vec<usize> = (0..sequences.len())
        .filter(|i| sequences[*i].mask.contains(&true))
        .collect();
    let lengths: Vec<usize> = wanted.iter().map(|i| sequences[*i].ids.len()).collect();
    let runs = micro_batches(&lengths, micro_batch_tokens, processor);
    let batches = runs
        .iter()
        .map(|run| {
            let packed: Vec<Sequence<'_>> =
                wanted[run.clone()].iter().map(|i| sequences[*i]).collect();
            PackedBatch::new(&packed)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let computed = compute(&batches)?;
    for ((run, batch), numbers) in runs.into_iter().zip(&batches).zip(computed) {
        let numbers = numbers.to_vec1::<f32>().map_err(PolicyError::from)?;
        let places = batch
            .target_sequences()
            .iter()
            .zip(batch.target_positions());
        for ((sequence, position), number) in places.zip(numbers) {
            all[wanted[run.start + *sequence as usize]][*position as usize] = number;
        }
    }
    Ok(all)
}
