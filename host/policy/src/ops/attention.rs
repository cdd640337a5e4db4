//! Causal attention with norms and rotary positions on queries and keys, and its arithmetic, which is a specification.
//!
//! For a query row at position p of its sequence, and one head:
//!
//! 1. the query is normed, rotated, and multiplied by 1 / sqrt(head_dim); keys are normed and rotated;
//! 2. score(j), for j in 0..=p, is one chain of fused multiply-adds over the head's dimensions in order;
//! 3. m is the largest score, e(j) = exp(score(j) - m);
//! 4. the sum of e is kept in sixteen lanes, lane j mod 16 adding e(j) in order of j; the lanes are added as a fixed
//!    tree;
//! 5. each output is one chain of fused multiply-adds of e(j) v(j) over j in order, then divided by the sum (as a
//!    multiplication with its inverse).
//!
//! Positions count from the start of the sequence. Nothing above depends on how many rows are computed at once, on
//! the length of the sequence beyond p, on pages, packing or threads: so a decoded row equals the training forward's.
//! Speed comes from computing up to eight query rows together, each with chains of its own.
//!
//! Keys are stored in tiles of sixteen positions, `[tile][dimension][position in tile]`, so that the lanes of step 2
//! run over positions; values are stored row by row.

#![allow(unsafe_code)] // Vector loads; every length is asserted before a kernel starts.

use std::cell::RefCell;
use std::sync::Arc;

pub(crate) use super::attention_rows::Paged;
use super::attention_rows::{ROWS, Rows, attend};
use super::norm::{inverse_rms, sum_of_squares};
use super::rotary::{RotaryTable, rotate};
use crate::batch::Span;
use crate::simd::{self, Kernel, LANES, Lanes};

/// The shape of an attention block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heads {
    pub(crate) query: usize,
    pub(crate) key_value: usize,
    pub(crate) dim: usize,
    pub(crate) eps: f32,
}

impl Heads {
    /// Width of a packed row: queries, keys, values.
    pub(crate) fn packed_width(&self) -> usize {
        (self.query + 2 * self.key_value) * self.dim
    }

    pub(crate) fn out_width(&self) -> usize {
        self.query * self.dim
    }

    pub(crate) fn group(&self) -> usize {
        self.query / self.key_value
    }

    pub(crate) fn key_column(&self, head: usize) -> usize {
        (self.query + head) * self.dim
    }

    pub(crate) fn value_column(&self, head: usize) -> usize {
        (self.query + self.key_value + head) * self.dim
    }

    pub(crate) fn scale(&self) -> f32 {
        1.0 / (self.dim as f32).sqrt()
    }

    /// Numbers that the keys of `positions` positions take as tiles.
    pub(crate) fn tiles_len(&self, positions: usize) -> usize {
        positions.div_ceil(LANES) * LANES * self.dim
    }
}

/// Norms, rotates and scales one head of consecutive packed rows.
struct Prepare<'a> {
    /// From the head's first number of the first row on.
    packed: &'a [f32],
    packed_stride: usize,
    rows: usize,
    w: &'a [f32],
    eps: f32,
    table: &'a RotaryTable,
    first_position: usize,
    scale: f32,
    /// `[rows, dim]`.
    out: &'a mut [f32],
}

impl Kernel for Prepare<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let dim = self.w.len();
        for (row, out) in self.out.chunks_exact_mut(dim).take(self.rows).enumerate() {
            let x = &self.packed[row * self.packed_stride..][..dim];
            // SAFETY: `x` has `dim` numbers.
            let inverse = inverse_rms(unsafe { sum_of_squares(l, x.as_ptr(), dim) }, dim, self.eps);
            for ((y, x), w) in out.iter_mut().zip(x).zip(self.w) {
                *y = x * inverse * w;
            }
            let (cos, sin) = self.table.at(self.first_position + row);
            rotate(out, cos, sin);
            for y in out {
                *y *= self.scale;
            }
        }
    }
}

/// Norms, rotates and scales the head at `column` of consecutive packed rows into `out[rows, dim]`.
#[allow(clippy::too_many_arguments)]
pub(crate) fn prepare_head(
    heads: &Heads,
    table: &RotaryTable,
    packed: &[f32],
    column: usize,
    w: &[f32],
    first_position: usize,
    scale: f32,
    out: &mut [f32],
) {
    let rows = out.len() / heads.dim;
    assert!(w.len() == heads.dim && first_position + rows <= table.positions());
    simd::run(Prepare {
        packed: &packed[column..],
        packed_stride: heads.packed_width(),
        rows,
        w,
        eps: heads.eps,
        table,
        first_position,
        scale,
        out,
    });
}

/// Puts prepared keys `[rows, dim]` of consecutive positions into their tiles.
pub(crate) fn store_keys(keys: &[f32], dim: usize, first_position: usize, tiles: &mut [f32]) {
    for (row, key) in keys.chunks_exact(dim).enumerate() {
        let position = first_position + row;
        let tile = &mut tiles[position / LANES * LANES * dim..][..LANES * dim];
        for (k, cell) in key
            .iter()
            .zip(tile[position % LANES..].iter_mut().step_by(LANES))
        {
            *cell = *k;
        }
    }
}

/// Computes the attention of one head of one sequence, given pages of keys as tiles and of values `[position, dim]`.
/// The decoder calls it. Row `r` is at position `visible - 1 + step r`.
#[allow(clippy::too_many_arguments)]
pub(crate) fn attend_cached(
    queries: &[f32],
    keys: Paged<'_>,
    values: Paged<'_>,
    dim: usize,
    visible: usize,
    step: usize,
    weights: &mut Vec<f32>,
    out: &mut [f32],
    out_stride: usize,
) {
    let rows = Rows {
        queries,
        keys,
        values,
        value_stride: dim,
        dim,
        visible,
        step,
    };
    attend(rows, weights, out, out_stride);
}

/// Attention over packed sequences.
#[derive(Debug, Clone)]
pub(crate) struct Attention {
    pub(crate) heads: Heads,
    pub(crate) spans: Arc<[Span]>,
    pub(crate) table: Arc<RotaryTable>,
}

thread_local! {
    /// Queries, key tiles and weights of one head, kept between calls.
    static SCRATCH: RefCell<(Vec<f32>, Vec<f32>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new(), Vec::new())) };
}

/// Numbers that [`attention_into`] needs besides its operands, for sequences of up to `longest` tokens.
pub(crate) fn scratch_len(heads: &Heads, longest: usize) -> usize {
    longest * heads.dim + heads.tiles_len(longest) + ROWS * longest.next_multiple_of(LANES)
}

/// Computes norms, rotary positions and causal attention on packed rows `x[tokens, queries | keys | values]`, with the
/// norms of queries and keys, into `out[tokens, heads * dim]`.
pub(crate) fn attention_into(
    attention: &Attention,
    x: &[f32],
    q_norm: &[f32],
    k_norm: &[f32],
    out: &mut [f32],
) {
    let Attention {
        heads,
        spans,
        table,
    } = attention;
    let (dim, width, out_width) = (heads.dim, heads.packed_width(), heads.out_width());
    assert_eq!(x.len() / width, out.len() / out_width);
    SCRATCH.with_borrow_mut(|(queries, tiles, weights)| {
        for span in spans.iter() {
            let packed = &x[span.start * width..(span.start + span.len) * width];
            let rows = span.len * dim;
            if queries.len() < rows {
                queries.resize(rows, 0.0);
            }
            let tiles_len = heads.tiles_len(span.len);
            if tiles.len() < tiles_len {
                tiles.resize(tiles_len, 0.0);
            }
            for head in 0..heads.key_value {
                let keys = &mut queries[..rows];
                prepare_head(
                    heads,
                    table,
                    packed,
                    heads.key_column(head),
                    k_norm,
                    0,
                    1.0,
                    keys,
                );
                store_keys(keys, dim, 0, tiles);
                let (tiles, values) =
                    ([&tiles[..tiles_len]], [&packed[heads.value_column(head)..]]);
                for query_head in head * heads.group()..(head + 1) * heads.group() {
                    let column = query_head * dim;
                    let queries = &mut queries[..rows];
                    prepare_head(
                        heads,
                        table,
                        packed,
                        column,
                        q_norm,
                        0,
                        heads.scale(),
                        queries,
                    );
                    let rows = Rows {
                        queries,
                        keys: Paged::whole(&tiles),
                        values: Paged::whole(&values),
                        value_stride: width,
                        dim,
                        visible: 1,
                        step: 1,
                    };
                    attend(
                        rows,
                        weights,
                        &mut out[span.start * out_width + column..],
                        out_width,
                    );
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::ops::attention_backward::attention_backward_into;
    use crate::ops::attention_plain::{Padded, plain_attention};
    use crate::ops::twin;

    fn shape(query: usize, key_value: usize, dim: usize, lengths: &[usize]) -> Attention {
        let mut start = 0;
        let spans: Vec<Span> = lengths
            .iter()
            .map(|&len| {
                start += len;
                Span {
                    start: start - len,
                    len,
                }
            })
            .collect();
        Attention {
            heads: Heads {
                query,
                key_value,
                dim,
                eps: 1e-6,
            },
            spans: spans.into(),
            table: Arc::new(RotaryTable::new(dim, 1e4, 256)),
        }
    }

    #[test]
    fn it_and_its_gradient_are_those_of_its_twin() {
        for (query, key_value, dim) in [(4, 2, 24), (3, 1, 8), (2, 2, 128)] {
            let attention = shape(query, key_value, dim, &[1, 7, 16, 17, 33, 70, 131]);
            let padded = Padded::new(&attention, &Device::Cpu).unwrap();
            let tokens = 275;
            let (width, out_width) = (attention.heads.packed_width(), attention.heads.out_width());
            let x = twin::random(1, tokens * width);
            let (q_norm, k_norm) = (twin::random(2, dim), twin::random(3, dim));
            let g = twin::random(4, tokens * out_width);
            let mut out = vec![0.0; g.len()];
            attention_into(&attention, &x, &q_norm, &k_norm, &mut out);
            let (mut dx, mut dq, mut dk) = (vec![0.0; x.len()], vec![0.0; dim], vec![0.0; dim]);
            attention_backward_into(
                &attention, &x, &q_norm, &k_norm, &g, &mut dx, &mut dq, &mut dk,
            );
            twin::check(
                &[(&x, &[tokens, width]), (&q_norm, &[dim]), (&k_norm, &[dim])],
                (&g, &out, &[&dx, &dq, &dk]),
                |of| plain_attention(&of[0], &of[1], &of[2], &padded),
            );
        }
    }

    /// Step by step as the module's documentation says, in plain loops: the specification itself.
    fn specified(heads: &Heads, query: &[f32], keys: &[Vec<f32>], values: &[Vec<f32>]) -> Vec<f32> {
        let scores: Vec<f32> = keys
            .iter()
            .map(|key| {
                query
                    .iter()
                    .zip(key)
                    .fold(0.0f32, |sum, (q, k)| q.mul_add(*k, sum))
            })
            .collect();
        let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let exps: Vec<f32> = scores
            .iter()
            .map(|score| simd::run(Exp(score - largest)))
            .collect();
        let mut lanes = [0.0f32; LANES];
        for (j, e) in exps.iter().enumerate() {
            lanes[j % LANES] += e;
        }
        for width in [8, 4, 2, 1] {
            for i in 0..width {
                lanes[i] += lanes[i + width];
            }
        }
        let inverse = 1.0 / lanes[0];
        (0..heads.dim)
            .map(|d| {
                exps.iter()
                    .zip(values)
                    .fold(0.0f32, |sum, (e, v)| e.mul_add(v[d], sum))
                    * inverse
            })
            .collect()
    }

    struct Exp(f32);

    impl Kernel for Exp {
        type Output = f32;

        #[inline(always)]
        fn run<L: Lanes>(self, l: L) -> f32 {
            l.to_array(l.exp(l.splat(self.0)))[0]
        }
    }

    #[test]
    fn every_bit_is_as_the_specification_says() {
        for (query, key_value, dim, len) in [(4, 2, 24, 75), (2, 1, 128, 40), (3, 3, 8, 33)] {
            let attention = shape(query, key_value, dim, &[len]);
            let Attention { heads, table, .. } = &attention;
            let (width, out_width) = (heads.packed_width(), heads.out_width());
            let x = twin::random(1, len * width);
            let (q_norm, k_norm) = (twin::random(2, dim), twin::random(3, dim));
            let mut out = vec![0.0; len * out_width];
            attention_into(&attention, &x, &q_norm, &k_norm, &mut out);
            for head in 0..query {
                let (mut queries, mut keys) = (vec![0.0; len * dim], vec![0.0; len * dim]);
                let kv = head / heads.group();
                prepare_head(
                    heads,
                    table,
                    &x,
                    head * dim,
                    &q_norm,
                    0,
                    heads.scale(),
                    &mut queries,
                );
                prepare_head(
                    heads,
                    table,
                    &x,
                    heads.key_column(kv),
                    &k_norm,
                    0,
                    1.0,
                    &mut keys,
                );
                let keys: Vec<Vec<f32>> = keys.chunks(dim).map(<[f32]>::to_vec).collect();
                let value = |j: usize| x[j * width + heads.value_column(kv)..][..dim].to_vec();
                let values: Vec<Vec<f32>> = (0..len).map(value).collect();
                for (p, q) in queries.chunks(dim).enumerate() {
                    let expected = specified(heads, q, &keys[..=p], &values[..=p]);
                    let got = &out[p * out_width + head * dim..][..dim];
                    assert!(
                        got.iter()
                            .zip(&expected)
                            .all(|(a, b)| a.to_bits() == b.to_bits()),
                        "head {head}, position {p}"
                    );
                }
            }
        }
    }
}
