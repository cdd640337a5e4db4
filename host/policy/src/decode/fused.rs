//! One worker's share of a decoding step on the CPU: its entries through all layers, with the functions of training.

use super::Entry;
use crate::cpu::Cpu;
use crate::ops::attention::{Heads, attend_cached, prepare_head, store_keys};
use crate::ops::embedding::embed_into;
use crate::ops::linear::linear_into;
use crate::ops::norm::rms_norm_into;
use crate::ops::swiglu::swiglu_into;
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
    x: Vec<f32>,
    normed: Vec<f32>,
    packed: Vec<f32>,
    mixed: Vec<f32>,
    wide: Vec<f32>,
    gated: Vec<f32>,
    head: Vec<f32>,
    weights: Vec<f32>,
    last: Vec<f32>,
    logits: Vec<f32>,
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
    ) -> Vec<R> {
        let rows: usize = jobs.iter().map(|job| job.entry.tokens.len()).sum();
        let heads = &shape.heads;
        let hidden = self.norm.len();
        let ids = jobs.iter().flat_map(|job| job.entry.tokens.iter().copied());
        let x = resized(&mut scratch.x, rows * hidden);
        embed_into(self.embedding.data, self.embedding.stride, ids, x);
        let normed = resized(&mut scratch.normed, rows * hidden);
        let packed = resized(&mut scratch.packed, rows * heads.packed_width());
        let mixed = resized(&mut scratch.mixed, rows * heads.out_width());
        let wide = resized(&mut scratch.wide, rows * 2 * self.widths.inner);
        let gated = resized(&mut scratch.gated, rows * self.widths.inner);
        for (number, layer) in self.layers.iter().enumerate() {
            rms_norm_into(x, layer.input_norm, self.backend.eps, normed);
            linear_into(normed, layer.qkv, packed, false);
            let mut row = 0;
            for job in &mut *jobs {
                let count = job.entry.tokens.len();
                let packed =
                    &packed[row * heads.packed_width()..(row + count) * heads.packed_width()];
                let mixed = &mut mixed[row * heads.out_width()..(row + count) * heads.out_width()];
                self.attend(
                    shape,
                    layer,
                    number,
                    job,
                    packed,
                    mixed,
                    (&mut scratch.head, &mut scratch.weights),
                );
                row += count;
            }
            linear_into(mixed, layer.out, x, true);
            rms_norm_into(x, layer.post_norm, self.backend.eps, normed);
            linear_into(normed, layer.gate_up, wide, false);
            swiglu_into(wide, self.widths.inner, gated);
            linear_into(gated, layer.down, x, true);
        }
        let last = resized(&mut scratch.last, jobs.len() * hidden);
        let mut row = 0;
        for (job, last) in jobs.iter_mut().zip(last.chunks_exact_mut(hidden)) {
            row += job.entry.tokens.len();
            last.copy_from_slice(&x[(row - 1) * hidden..row * hidden]);
            job.slot.len = job.entry.start + job.entry.tokens.len();
        }
        let normed = &mut normed[..jobs.len() * hidden];
        rms_norm_into(last, self.norm, self.backend.eps, normed);
        let logits = resized(&mut scratch.logits, jobs.len() * self.head.n);
        linear_into(normed, self.head, logits, false);
        jobs.iter()
            .zip(logits.chunks_exact(self.head.n))
            .map(|(job, logits)| f(job.index, logits))
            .collect()
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
        (prepared, weights): (&mut Vec<f32>, &mut Vec<f32>),
    ) {
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
