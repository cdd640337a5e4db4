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
//! the length of the sequence beyond p, on slots, packing or threads: so a decoded row equals the training forward's.
//! Speed comes from computing up to eight query rows together, each with chains of its own.
//!
//! Keys are stored in tiles of sixteen positions, `[tile][dimension][position in tile]`, so that the lanes of step 2
//! run over positions; values are stored row by row.

#![allow(unsafe_code)] // Vector loads; every length is asserted before a kernel starts.

use std::cell::RefCell;
use std::sync::Arc;

use candle_core::{D, Result, Tensor};

use super::norm::{inverse_rms, plain_rms_norm, sum_of_squares};
use super::rotary::{RotaryTable, plain_rotate, rotate};
use crate::batch::Span;
use crate::simd::{self, Kernel, LANES, Lanes};

/// How many query rows are computed together at most.
const ROWS: usize = 8;

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

/// Query rows of one head against keys and values of one sequence.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// Prepared and scaled, `[rows, dim]`.
    pub(super) queries: &'a [f32],
    pub(super) tiles: &'a [f32],
    /// Value `j` starts at `j * value_stride`.
    pub(super) values: &'a [f32],
    pub(super) value_stride: usize,
    pub(super) dim: usize,
    /// Positions that the first row sees.
    pub(super) visible: usize,
    /// How many more each following row sees: 1 for consecutive positions, 0 for heads of one position.
    pub(super) step: usize,
}

impl Rows<'_> {
    fn count(&self) -> usize {
        self.queries.len() / self.dim
    }

    /// Checks every length that the kernels rely on; gives the positions that the last row sees.
    pub(super) fn check(&self) -> usize {
        let rows = self.count();
        assert!(
            rows > 0 && self.visible > 0 && self.dim > 0 && self.queries.len() == rows * self.dim
        );
        let last = self.visible + self.step * (rows - 1);
        assert!(
            last.div_ceil(LANES) * LANES * self.dim <= self.tiles.len(),
            "keys are too short"
        );
        assert!(
            (last - 1) * self.value_stride + self.dim <= self.values.len(),
            "values are too short"
        );
        last
    }
}

/// Steps 2 to 4 for `R` rows from `row` on: e(j) into `weights` (rows `stride` apart, zeros from what a row sees up to
/// its tile's end), and the inverse of each sum.
///
/// # Safety
/// [`Rows::check`] passed, `row + R` rows exist, and `weights` holds `R` rows of `stride` numbers, `stride` being a
/// multiple of 16 that is at least what the last of them sees.
#[inline(always)]
pub(super) unsafe fn softmax_rows<L: Lanes, const R: usize>(
    l: L,
    rows: &Rows<'_>,
    row: usize,
    weights: *mut f32,
    stride: usize,
) -> [f32; R] {
    let dim = rows.dim;
    let last = rows.visible + rows.step * (row + R - 1);
    let tiles = last.div_ceil(LANES);
    let mut inverses = [0.0; R];
    // SAFETY: `tiles` tiles of `dim * 16` numbers, `R` queries of `dim`, `R` rows of `tiles * 16 <= stride` weights.
    unsafe {
        let queries = rows.queries.as_ptr().add(row * dim);
        let tile_at = |tile: usize| rows.tiles.as_ptr().add(tile * LANES * dim);
        let mut tile = 0;
        while tile + 2 <= tiles {
            let (k0, k1) = (tile_at(tile), tile_at(tile + 1));
            let mut scores = [[l.splat(0.0); 2]; R];
            for d in 0..dim {
                let (a, b) = (l.load(k0.add(d * LANES)), l.load(k1.add(d * LANES)));
                for (r, scores) in scores.iter_mut().enumerate() {
                    let q = l.splat(*queries.add(r * dim + d));
                    scores[0] = l.fma(q, a, scores[0]);
                    scores[1] = l.fma(q, b, scores[1]);
                }
            }
            for (r, scores) in scores.iter().enumerate() {
                let at = weights.add(r * stride + tile * LANES);
                l.store(at, scores[0]);
                l.store(at.add(LANES), scores[1]);
            }
            tile += 2;
        }
        if tile < tiles {
            let k = tile_at(tile);
            let mut scores = [l.splat(0.0); R];
            for d in 0..dim {
                let a = l.load(k.add(d * LANES));
                for (r, score) in scores.iter_mut().enumerate() {
                    *score = l.fma(l.splat(*queries.add(r * dim + d)), a, *score);
                }
            }
            for (r, score) in scores.iter().enumerate() {
                l.store(weights.add(r * stride + tile * LANES), *score);
            }
        }
        for (r, inverse) in inverses.iter_mut().enumerate() {
            let seen = rows.visible + rows.step * (row + r);
            let end = seen.div_ceil(LANES) * LANES;
            let weights = weights.add(r * stride);
            for j in seen..end {
                *weights.add(j) = f32::NEG_INFINITY;
            }
            let mut largest = l.splat(f32::NEG_INFINITY);
            for j in (0..end).step_by(LANES) {
                largest = l.max(largest, l.load(weights.add(j)));
            }
            let largest = l.splat(l.largest(largest));
            let mut sum = l.splat(0.0);
            for j in (0..end).step_by(LANES) {
                let e = l.exp(l.sub(l.load(weights.add(j)), largest));
                l.store(weights.add(j), e);
                if j + LANES <= seen {
                    sum = l.add(sum, e);
                } else {
                    for masked in seen..end {
                        *weights.add(masked) = 0.0;
                    }
                    sum = l.add(sum, l.load(weights.add(j)));
                }
            }
            *inverse = 1.0 / l.sum(sum);
        }
    }
    inverses
}

/// Step 5 for `R` rows and `C` vectors of output dimensions, the last of them `width` wide.
///
/// # Safety
/// As for [`softmax_rows`]; `values` and `out` point to dimension `16 c`, `out` may be written for `R` rows.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn weigh<L: Lanes, const R: usize, const C: usize>(
    l: L,
    rows: &Rows<'_>,
    row: usize,
    weights: *const f32,
    stride: usize,
    inverses: &[f32; R],
    values: *const f32,
    width: usize,
    out: *mut f32,
    out_stride: usize,
) {
    let shared = rows.visible + rows.step * row;
    let mut sums = [[l.splat(0.0); C]; R];
    // SAFETY: as required of the caller.
    unsafe {
        let value = |j: usize, c: usize| {
            let n = if c + 1 == C { width } else { LANES };
            l.load_up_to(values.add(j * rows.value_stride + c * LANES), n)
        };
        for j in 0..shared {
            let v: [L::V; C] = std::array::from_fn(|c| value(j, c));
            for (r, sums) in sums.iter_mut().enumerate() {
                let e = l.splat(*weights.add(r * stride + j));
                for (sum, v) in sums.iter_mut().zip(v) {
                    *sum = l.fma(e, v, *sum);
                }
            }
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            for j in shared..shared + rows.step * r {
                let e = l.splat(*weights.add(r * stride + j));
                for (c, sum) in sums.iter_mut().enumerate() {
                    *sum = l.fma(e, value(j, c), *sum);
                }
            }
            let inverse = l.splat(inverses[r]);
            for (c, sum) in sums.iter().enumerate() {
                let n = if c + 1 == C { width } else { LANES };
                l.store_up_to(out.add(r * out_stride + c * LANES), n, l.mul(*sum, inverse));
            }
        }
    }
}

struct Attend<'a> {
    rows: Rows<'a>,
    weights: &'a mut [f32],
    stride: usize,
    out: &'a mut [f32],
    out_stride: usize,
}

impl Attend<'_> {
    /// # Safety
    /// `row + R` rows exist.
    #[inline(always)]
    unsafe fn block<L: Lanes, const R: usize>(&mut self, l: L, row: usize) {
        let rows = &self.rows;
        let weights = self.weights.as_mut_ptr();
        // SAFETY: `attend` has checked all lengths.
        unsafe {
            let inverses = softmax_rows::<L, R>(l, rows, row, weights, self.stride);
            let mut d = 0;
            while d < rows.dim {
                let (values, left) = (rows.values.as_ptr().add(d), rows.dim - d);
                let out = self.out.as_mut_ptr().add(row * self.out_stride + d);
                let (s, os) = (self.stride, self.out_stride);
                if left > LANES {
                    let width = LANES.min(left - LANES);
                    weigh::<L, R, 2>(l, rows, row, weights, s, &inverses, values, width, out, os);
                } else {
                    weigh::<L, R, 1>(l, rows, row, weights, s, &inverses, values, left, out, os);
                }
                d += 2 * LANES;
            }
        }
    }
}

impl Kernel for Attend<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(mut self, l: L) {
        let count = self.rows.count();
        let mut row = 0;
        // SAFETY: `row` plus the block's rows never exceed `count`.
        unsafe {
            while row + ROWS <= count {
                self.block::<L, ROWS>(l, row);
                row += ROWS;
            }
            if row + 4 <= count {
                self.block::<L, 4>(l, row);
                row += 4;
            }
            if row + 2 <= count {
                self.block::<L, 2>(l, row);
                row += 2;
            }
            if row < count {
                self.block::<L, 1>(l, row);
            }
        }
    }
}

/// Attends `rows` into `out`, whose rows of `dim` numbers are `out_stride` apart. `weights` is scratch.
pub(super) fn attend(rows: Rows<'_>, weights: &mut Vec<f32>, out: &mut [f32], out_stride: usize) {
    let last = rows.check();
    assert!((rows.count() - 1) * out_stride + rows.dim <= out.len());
    let stride = last.div_ceil(LANES) * LANES;
    if weights.len() < ROWS * stride {
        weights.resize(ROWS * stride, 0.0);
    }
    simd::run(Attend {
        rows,
        weights,
        stride,
        out,
        out_stride,
    });
}

/// One head of one sequence, given keys as tiles: what the decoder calls. Row `r` is at position `visible - 1 + step r`.
#[allow(clippy::too_many_arguments)]
pub(crate) fn attend_cached(
    queries: &[f32],
    tiles: &[f32],
    values: &[f32],
    dim: usize,
    visible: usize,
    step: usize,
    weights: &mut Vec<f32>,
    out: &mut [f32],
    out_stride: usize,
) {
    let rows = Rows {
        queries,
        tiles,
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

/// Norms, rotary positions and causal attention on packed rows `x[tokens, queries | keys | values]`, with the norms of
/// queries and keys, into `out[tokens, heads * dim]`.
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
                        tiles: &tiles[..tiles_len],
                        values: &packed[heads.value_column(head)..],
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

/// The twin of [`attention_into`] in candle's operators: sequences padded to the longest.
pub(crate) fn plain_attention(
    x: &Tensor,
    q_norm: &Tensor,
    k_norm: &Tensor,
    attention: &Attention,
) -> Result<Tensor> {
    let Attention {
        heads,
        spans,
        table,
    } = attention;
    let device = x.device();
    let (batch, longest) = (
        spans.len(),
        spans.iter().map(|span| span.len).max().unwrap_or(0),
    );
    // Padding repeats the first row; it comes after every real position, so nothing real sees it.
    let mut padded = vec![0u32; batch * longest];
    let mut packed = Vec::new();
    for (sequence, span) in spans.iter().enumerate() {
        for position in 0..span.len {
            padded[sequence * longest + position] = (span.start + position) as u32;
            packed.push((sequence * longest + position) as u32);
        }
    }
    let padded = Tensor::from_slice(&padded, batch * longest, device)?;
    let rows = x
        .index_select(&padded, 0)?
        .reshape((batch, longest, heads.packed_width()))?;
    let part = |from: usize, count: usize| -> Result<Tensor> {
        rows.narrow(D::Minus1, from, count * heads.dim)?
            .contiguous()?
            .reshape((batch, longest, count, heads.dim))?
            .transpose(1, 2)?
            .contiguous()
    };
    let (cos, sin) = table.tensors(longest, device)?;
    let q = plain_rotate(
        &plain_rms_norm(&part(0, heads.query)?, q_norm, heads.eps)?,
        &cos,
        &sin,
    )?;
    let keys = part(heads.key_column(0), heads.key_value)?;
    let k = plain_rotate(&plain_rms_norm(&keys, k_norm, heads.eps)?, &cos, &sin)?;
    let v = part(heads.value_column(0), heads.key_value)?;
    let mask: Vec<f32> = (0..longest)
        .flat_map(|i| (0..longest).map(move |j| if j <= i { 0.0 } else { f32::NEG_INFINITY }))
        .collect();
    let mask = Tensor::from_vec(mask, (1, 1, longest, longest), device)?;
    let out = plain_masked_attention(&q, &k, &v, &mask, heads)?;
    let out = out
        .transpose(1, 2)?
        .contiguous()?
        .reshape((batch * longest, heads.out_width()))?;
    out.index_select(&Tensor::from_slice(&packed, packed.len(), device)?, 0)
}

/// softmax(q kᵀ / sqrt(dim) + mask) v with grouped heads, for q `[batch, heads, rows, dim]`, k and v `[batch, kv heads,
/// positions, dim]`, in candle's operators. No row may be masked as a whole.
pub(crate) fn plain_masked_attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: &Tensor,
    heads: &Heads,
) -> Result<Tensor> {
    let repeat = |t: &Tensor| -> Result<Tensor> {
        let (batch, kv, positions, dim) = t.dims4()?;
        let group = heads.group();
        t.unsqueeze(2)?
            .broadcast_as((batch, kv, group, positions, dim))?
            .contiguous()?
            .reshape((batch, kv * group, positions, dim))
    };
    let (k, v) = (repeat(k)?, repeat(v)?);
    let scores = (q.matmul(&k.transpose(2, 3)?.contiguous()?)? * f64::from(heads.scale()))?
        .broadcast_add(mask)?;
    let scores = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?.detach())?;
    let weights = scores.exp()?;
    weights
        .broadcast_div(&weights.sum_keepdim(D::Minus1)?)?
        .matmul(&v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::attention_backward::attention_backward_into;
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
                |of| plain_attention(&of[0], &of[1], &of[2], &attention),
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
