//! Batches of sequences laid end to end, without padding.

use std::ops::Range;
use std::sync::Arc;

use crate::device::Processor;
use crate::error::{PolicyError, Result};

/// One training sequence, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct Sequence<'a> {
    /// Token ids.
    pub ids: &'a [u32],
    /// The loss mask, as long as `ids`: true on the tokens that need a log-probability. The row before a token predicts it, so the first
    /// entry cannot be true.
    pub mask: &'a [bool],
}

/// The rows of one sequence among the packed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// Several sequences as one list of rows, and the tokens to be predicted in them.
///
/// Rows attend only within their sequence. No row's numbers depend on the other sequences of the batch.
#[derive(Debug, Clone)]
pub struct PackedBatch {
    pub(crate) ids: Arc<[u32]>,
    pub(crate) spans: Arc<[Span]>,
    /// The row that predicts each target.
    pub(crate) rows: Arc<[u32]>,
    pub(crate) targets: Arc<[u32]>,
    target_sequences: Vec<u32>,
    target_positions: Vec<u32>,
}

impl PackedBatch {
    /// Packs `sequences` in the given order. Targets are ordered by sequence, then by position.
    ///
    /// # Errors
    /// If lengths differ, a sequence is empty, its first token is in the mask, or no token at all is.
    pub fn new(sequences: &[Sequence<'_>]) -> Result<Self> {
        let tokens = sequences.iter().map(|sequence| sequence.ids.len()).sum();
        let mut ids = Vec::with_capacity(tokens);
        let mut spans = Vec::with_capacity(sequences.len());
        let (mut rows, mut targets) = (Vec::new(), Vec::new());
        let (mut target_sequences, mut target_positions) = (Vec::new(), Vec::new());
        for (index, sequence) in sequences.iter().enumerate() {
            let (start, len) = (ids.len(), sequence.ids.len());
            if len == 0 || sequence.mask.len() != len {
                return Err(PolicyError::Input(format!(
                    "sequence {index} of a batch has {len} ids and a mask of {}; both must be the same and not 0",
                    sequence.mask.len()
                )));
            }
            if sequence.mask[0] {
                return Err(PolicyError::Input(format!(
                    "sequence {index} of a batch wants the log-probability of its first token, which nothing predicts"
                )));
            }
            spans.push(Span { start, len });
            ids.extend_from_slice(sequence.ids);
            for position in 1..len {
                if sequence.mask[position] {
                    rows.push((start + position - 1) as u32);
                    targets.push(sequence.ids[position]);
                    target_sequences.push(index as u32);
                    target_positions.push(position as u32);
                }
            }
        }
        if targets.is_empty() {
            return Err(PolicyError::Input(format!(
                "a batch of {} sequences has no token with mask 1, so there is nothing to compute",
                sequences.len()
            )));
        }
        Ok(Self {
            ids: ids.into(),
            spans: spans.into(),
            rows: rows.into(),
            targets: targets.into(),
            target_sequences,
            target_positions,
        })
    }

    /// Number of rows in the batch.
    pub fn tokens(&self) -> usize {
        self.ids.len()
    }

    /// Number of sequences in the batch.
    pub fn sequences(&self) -> usize {
        self.spans.len()
    }

    /// The tokens whose log-probability is computed, in order.
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }

    /// The index of each target's sequence in the list that the batch was made from.
    pub fn target_sequences(&self) -> &[u32] {
        &self.target_sequences
    }

    /// The position of each target in its sequence.
    pub fn target_positions(&self) -> &[u32] {
        &self.target_positions
    }

    pub(crate) fn longest(&self) -> usize {
        self.spans.iter().map(|span| span.len).max().unwrap_or(0)
    }
}

/// Cuts consecutive sequences of the given lengths into micro-batches of at most `micro_batch_tokens` tokens; a longer
/// sequence is a micro-batch by itself. On a GPU, each sequence counts as long as the longest of its micro-batch, because
/// attention fills them up to that length. The cut depends on nothing else, so gradients are the same for any number of
/// workers.
pub fn micro_batches(
    lengths: &[usize],
    micro_batch_tokens: usize,
    processor: Processor,
) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let (mut start, mut tokens, mut longest) = (0, 0usize, 0usize);
    for (index, &length) in lengths.iter().enumerate() {
        tokens += length;
        longest = longest.max(length);
        let taken = match processor {
            Processor::Cpu => tokens,
            Processor::Cuda => longest.saturating_mul(index + 1 - start),
        };
        if index > start && taken > micro_batch_tokens {
            cuts.push(start..index);
            (start, tokens, longest) = (index, length, length);
        }
    }
    if start < lengths.len() {
        cuts.push(start..lengths.len());
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_masked_tokens_and_rows_are_one_before() {
        let batch = PackedBatch::new(&[
            Sequence {
                ids: &[5, 6, 7],
                mask: &[false, false, true],
            },
            Sequence {
                ids: &[8, 9],
                mask: &[false, true],
            },
        ])
        .unwrap();
        assert_eq!(batch.targets(), [7, 9]);
        assert_eq!(&batch.rows[..], [1, 3]);
        assert_eq!(batch.target_sequences(), [0, 1]);
        assert_eq!(batch.target_positions(), [2, 1]);
    }

    #[test]
    fn what_cannot_be_predicted_is_refused() {
        let message = |sequence| PackedBatch::new(&[sequence]).unwrap_err().to_string();
        assert!(
            message(Sequence {
                ids: &[1],
                mask: &[true]
            })
            .contains("first token")
        );
        assert!(
            message(Sequence {
                ids: &[1, 2],
                mask: &[false]
            })
            .contains("mask of 1")
        );
        assert!(
            message(Sequence {
                ids: &[1, 2],
                mask: &[false, false]
            })
            .contains("no token with mask 1")
        );
    }

    #[test]
    fn micro_batches_hold_at_most_their_tokens() {
        for processor in [Processor::Cpu, Processor::Cuda] {
            let cut = |lengths, tokens| micro_batches(lengths, tokens, processor);
            assert_eq!(cut(&[3, 3, 3, 10, 1], 6), [0..2, 2..3, 3..4, 4..5]);
            assert!(cut(&[], 6).is_empty());
            assert_eq!(cut(&[9, 9], 1), [0..1, 1..2]);
        }
    }

    #[test]
    fn on_a_gpu_sequences_count_as_long_as_the_longest_of_their_micro_batch() {
        let lengths = [1, 1, 4, 1, 1, 1, 1, 1, 4];
        let cut = |processor| micro_batches(&lengths, 8, processor);
        assert_eq!(cut(Processor::Cpu), [0..5, 5..9]);
        assert_eq!(cut(Processor::Cuda), [0..2, 2..4, 4..8, 8..9]);
    }
}
