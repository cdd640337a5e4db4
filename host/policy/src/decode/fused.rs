//! One worker's share of a decoding step on the CPU: its entries through all layers, through the network of training.

use super::{Entry, rows_of};
use crate::cpu::Cpu;
use crate::ops::attention::{Heads, attend_cached, prepare_head, store_keys};
use crate::qwen3::{Layer, Network};

/// One sequence's keys and values, all layers.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Positions filled.
    pub(super) len: usize,
    /// `[layer][kv head][tile][dim][16]`.
    pub(super) keys: Vec<f32>,
    /// `[layer][kv head][position][dim]`.
    pub(super) values: Vec<f32>,
}

/// Buffers of one worker, kept between steps.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Keys or queries of a head, normed and rotated.
    prepared: Vec<f32>,
    /// Attention's weights.
    weights: Vec<f32>,
}

/// An entry and its slot, for one step.
pub(super) struct Job<'a> {
    pub(super) index: usize,
    pub(super) entry: Entry<'a>,
    pub(super) slot: &'a mut Slot,
}

/// The cache's layout.
pub(super) struct CacheShape {
    pub(super) heads: Heads,
    pub(super) context: usize,
}

/// Grows a buffer if it is too short, and returns its first `len` numbers. They may have any value.
fn resized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}

impl<'w> Network<Cpu<'w>> {
    /// Takes jobs through all layers, one thread, and hands their logits to `f`.
    pub(super) fn run<R>(
        &self,
        shape: &CacheShape,
        jobs: &mut [Job<'_>],
        scratch: &mut Scratch,
        f: &impl Fn(usize, &[f32]) -> R,
    ) -> candle_core::Result<Vec<R>> {
        let (ids, last) = rows_of(jobs.iter().map(|job| &job.entry));
        let rows = ((&ids, ids.len()), (&last, last.len()));
        let logits = self.decode(rows.0, rows.1, |number, layer, packed, mixed| {
            let (mut packed, mut mixed) = (&packed[..], &mut mixed[..]);
            for job in &mut *jobs {
                let count = job.entry.tokens.len();
                let (of_packed, rest) = packed.split_at(count * shape.heads.packed_width());
                let (of_mixed, after) = mixed.split_at_mut(count * shape.heads.out_width());
                self.attend(shape, layer, number, job, of_packed, of_mixed, scratch);
                (packed, mixed) = (rest, after);
            }
            Ok(())
        })?;
        let rows = jobs.iter_mut().zip(logits.chunks_exact(self.head.n));
        Ok(rows
            .map(|(job, logits)| {
                job.slot.len = job.entry.start + job.entry.tokens.len();
                f(job.index, logits)
            })
            .collect())
    }

    /// Writes one entry's keys and values and attends its rows.
    #[allow(clippy::too_many_arguments)]
    fn attend(
        &self,
        shape: &CacheShape,
        layer: &Layer<Cpu<'w>>,
        number: usize,
        job: &mut Job<'_>,
        packed: &[f32],
        mixed: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let Scratch { prepared, weights } = scratch;
        let heads = &shape.heads;
        let (dim, width, start) = (heads.dim, heads.packed_width(), job.entry.start);
        let count = job.entry.tokens.len();
        let group = heads.group();
        for head in 0..heads.key_value {
            let place = number * heads.key_value + head;
            let tiles_len = heads.tiles_len(shape.context);
            let tiles = &mut job.slot.keys[place * tiles_len..(place + 1) * tiles_len];
            let values = &mut job.slot.values
                [place * shape.context * dim..(place + 1) * shape.context * dim];
            let keys = resized(prepared, count * dim);
            prepare_head(
                heads,
                self.backend.table,
                packed,
                heads.key_column(head),
                layer.k_norm,
                start,
                1.0,
                keys,
            );
            store_keys(keys, dim, start, tiles);
            let column = heads.value_column(head);
            for (row, value) in values[start * dim..]
                .chunks_exact_mut(dim)
                .take(count)
                .enumerate()
            {
                value.copy_from_slice(&packed[row * width + column..][..dim]);
            }
            let first = head * group;
            if count == 1 {
                // The heads of the group share keys and values, and are computed together.
                let queries = resized(prepared, group * dim);
                for (query, out) in queries.chunks_exact_mut(dim).enumerate() {
                    let column = (first + query) * dim;
                    prepare_head(
                        heads,
                        self.backend.table,
                        packed,
                        column,
                        layer.q_norm,
                        start,
                        heads.scale(),
                        out,
                    );
                }
                let out = &mut mixed[first * dim..(first + group) * dim];
                attend_cached(queries, tiles, values, dim, start + 1, 0, weights, out, dim);
            } else {
                for query in first..first + group {
                    let queries = resized(prepared, count * dim);
                    prepare_head(
                        heads,
                        self.backend.table,
                        packed,
                        query * dim,
                        layer.q_norm,
                        start,
                        heads.scale(),
                        queries,
                    );
                    let out = &mut mixed[query * dim..];
                    attend_cached(
                        queries,
                        tiles,
                        values,
                        dim,
                        start + 1,
                        1,
                        weights,
                        out,
                        heads.out_width(),
                    );
                }
            }
        }
    }
}
