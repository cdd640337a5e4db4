//! One update: the gradient of a mini-batch, summed over its micro-batches.

use rlf_policy::{
    Gradients, Model, PackedBatch, PassOptions, PolicyError, Sequence, micro_batches,
};

use crate::error::TrainError;
use crate::loss::{LossStatistics, Objective, TokenTargets};

/// A token sequence with what the loss needs to know of it, one entry per token throughout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub(crate) ids: &'a [u32],
    pub(crate) mask: &'a [bool],
    /// Of each of its model tokens in the loss of the mini-batch.
    pub(crate) weight: f32,
    /// Empty for SFT.
    pub(crate) advantages: &'a [f32],
    /// Empty for SFT.
    pub(crate) old_log_probs: &'a [f32],
    /// Empty where no KL is computed.
    pub(crate) reference_log_probs: &'a [f32],
}

/// The gradient of the mini-batch that `pieces` make up, and what its loss was.
///
/// Sums over micro-batches in order, which is what makes the result the same on any number of
/// workers. There must be at least one piece, and each must have a model token.
pub(crate) fn gradient(
    model: &Model,
    objective: &Objective,
    pieces: &[Piece<'_>],
    micro_batch_tokens: usize,
    pass: &PassOptions,
) -> Result<(Gradients, LossStatistics), TrainError> {
    let lengths: Vec<usize> = pieces.iter().map(|piece| piece.ids.len()).collect();
    let (mut batches, mut targets) = (Vec::new(), Vec::new());
    for run in micro_batches(&lengths, micro_batch_tokens) {
        let pieces = &pieces[run];
        let sequences: Vec<Sequence<'_>> = pieces
            .iter()
            .map(|piece| Sequence {
                ids: piece.ids,
                mask: piece.mask,
            })
            .collect();
        let batch = PackedBatch::new(&sequences)?;
        targets.push(targets_of(&batch, pieces));
        batches.push(batch);
    }
    let done = model.accumulate(&batches, pass, |index, tokens| {
        objective.loss(&tokens.log_probs, &tokens.entropy, &targets[index])
    })?;
    let mut statistics = LossStatistics::default();
    for micro_batch in &done.outputs {
        statistics.add(micro_batch);
    }
    Ok((done.gradients, statistics))
}

/// Picks each target's numbers, in the order of the batch.
pub(crate) fn targets_of(batch: &PackedBatch, pieces: &[Piece<'_>]) -> TokenTargets {
    let mut targets = TokenTargets::default();
    for (sequence, position) in batch
        .target_sequences()
        .iter()
        .zip(batch.target_positions())
    {
        let (piece, position) = (&pieces[*sequence as usize], *position as usize);
        targets.weights.push(piece.weight);
        targets.advantages.extend(piece.advantages.get(position));
        targets
            .old_log_probs
            .extend(piece.old_log_probs.get(position));
        targets
            .reference_log_probs
            .extend(piece.reference_log_probs.get(position));
    }
    targets
}

/// Log-probabilities under a frozen policy, one vector per sequence, one entry per token (0 off
/// the mask).
pub(crate) fn reference_log_probs(
    reference: &Model,
    sequences: &[Sequence<'_>],
    micro_batch_tokens: usize,
    pass: &PassOptions,
) -> Result<Vec<Vec<f32>>, TrainError> {
    let mut all: Vec<Vec<f32>> = sequences.iter().map(|s| vec![0.0; s.ids.len()]).collect();
    // Sequences without a model token have nothing to compute.
    let wanted: Vec<usize> = (0..sequences.len())
        .filter(|i| sequences[*i].mask.contains(&true))
        .collect();
    let lengths: Vec<usize> = wanted.iter().map(|i| sequences[*i].ids.len()).collect();
    let runs = micro_batches(&lengths, micro_batch_tokens);
    let batches = runs
        .iter()
        .map(|run| {
            let packed: Vec<Sequence<'_>> =
                wanted[run.clone()].iter().map(|i| sequences[*i]).collect();
            PackedBatch::new(&packed)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let computed = reference.log_probs(&batches, pass)?;
    for ((run, batch), tokens) in runs.into_iter().zip(&batches).zip(computed) {
        let log_probs = tokens
            .log_probs
            .to_vec1::<f32>()
            .map_err(PolicyError::from)?;
        let places = batch
            .target_sequences()
            .iter()
            .zip(batch.target_positions());
        for ((sequence, position), log_prob) in places.zip(log_probs) {
            all[wanted[run.start + *sequence as usize]][*position as usize] = log_prob;
        }
    }
    Ok(all)
}
