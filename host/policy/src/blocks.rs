//! The blocks in which CUDA computes scores and logits, so that their memory is limited.
//!
//! `cuda` allocates them, and [`crate::memory`] counts them, also in a build without CUDA.

/// Sequences are padded to a multiple of this length, with which matrix products are faster and rows have whole packs.
const PADDING: usize = 8;
/// Attention scores that are computed at once: 512 MB.
const SCORES: usize = 1 << 27;
/// Query rows, at most, whose scores are computed at once. With more, products compute more scores of keys that come
/// later, which nothing reads.
const QUERY_ROWS: usize = 256;
/// Logits that are computed at once: 1 GB.
const LOGITS: usize = 1 << 28;

/// The length that sequences of at most `longest` tokens are padded to.
pub(crate) fn padded(longest: usize) -> usize {
    longest.next_multiple_of(PADDING)
}

/// The blocks of query rows whose scores are computed at once: first row and number of rows. `batch` is the number of
/// sequences times that of query heads, `longest` the padded length of the sequences.
pub(crate) fn attention_blocks(
    batch: usize,
    longest: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let of_row = batch * longest;
    let rows = (SCORES / of_row.max(1)).clamp(16, QUERY_ROWS) / PADDING * PADDING;
    chunks(longest, rows)
}

/// Number of rows whose logits are computed at once.
pub(crate) fn logit_rows(columns: usize) -> usize {
    (LOGITS / columns).max(1)
}

/// Parts of `0..count` of at most `most`: the first of each, and their number.
pub(crate) fn chunks(count: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count)
        .step_by(most)
        .map(move |first| (first, most.min(count - first)))
}
