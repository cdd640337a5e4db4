//! The backward pass of attention, in blocks of query rows. Weights are computed again instead of kept.
//!
//! Its order of sums depends on shapes only, so gradients repeat; unlike the forward pass it need not match anything
//! else bit for bit, and uses matrix products.

#![allow(unsafe_code)] // Calls the kernel that the forward pass uses; lengths are asserted.

use std::cell::RefCell;

use super::attention::{Attention, Heads, Paged, prepare_head, store_keys};
use super::attention_rows::{Rows, softmax_rows};
use super::linear::product;
use super::norm::backward_row;
use super::rotary::{RotaryTable, rotate_back};
use super::weight::Factor;
use crate::simd::{self, Kernel, LANES, Lanes};

/// Query rows per block: bounds scratch to this times the sequence's length, and skips what lies above the diagonal.
const BLOCK: usize = 64;

#[derive(Default)]
struct Scratch {
    queries: Vec<f32>,
    keys: Vec<f32>,
    tiles: Vec<f32>,
    d_queries: Vec<f32>,
    d_keys: Vec<f32>,
    weights: Vec<f32>,
    d_weights: Vec<f32>,
}

/// Numbers that [`attention_backward_into`] needs besides its operands, for sequences of up to `longest` tokens.
pub(crate) fn scratch_len(heads: &Heads, longest: usize) -> usize {
    // Queries, keys and their gradients; keys as tiles; weights and their gradients.
    4 * longest * heads.dim
        + heads.tiles_len(longest)
        + 2 * BLOCK.min(longest) * longest.next_multiple_of(LANES)
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// The first `len` numbers of a buffer, which grows if it is shorter. They may have any value.
fn room(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}

/// Softmax weights of a block of rows, normalised, with zeros where a row does not see.
struct Weights<'a> {
    rows: Rows<'a>,
    out: &'a mut [f32],
    stride: usize,
}

impl Weights<'_> {
    /// # Safety
    /// `row + R` rows exist.
    #[inline(always)]
    unsafe fn block<L: Lanes, const R: usize>(&mut self, l: L, row: usize) {
        let out = &mut self.out[row * self.stride..(row + R) * self.stride];
        // SAFETY: checked when the kernel was made; `out` has R rows.
        let inverses =
            unsafe { softmax_rows::<L, R>(l, &self.rows, row, out.as_mut_ptr(), self.stride) };
        for (r, (out, inverse)) in out.chunks_exact_mut(self.stride).zip(inverses).enumerate() {
            let (seen, rest) = out.split_at_mut(self.rows.visible + row + r);
            for w in seen {
                *w *= inverse;
            }
            rest.fill(0.0);
        }
    }
}

impl Kernel for Weights<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(mut self, l: L) {
        let count = self.rows.queries.len() / self.rows.dim;
        let mut row = 0;
        // SAFETY: never beyond `count`.
        unsafe {
            while row + 8 <= count {
                self.block::<L, 8>(l, row);
                row += 8;
            }
            while row < count {
                self.block::<L, 1>(l, row);
                row += 1;
            }
        }
    }
}

/// Backward pass of softmax, in place on `dp`: `d score = p (dp - sum(p dp))`.
struct SoftmaxBackward<'a> {
    p: &'a [f32],
    dp: &'a mut [f32],
    stride: usize,
}

impl Kernel for SoftmaxBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        for (p, dp) in self
            .p
            .chunks_exact(self.stride)
            .zip(self.dp.chunks_exact_mut(self.stride))
        {
            let mut sum = l.splat(0.0);
            // SAFETY: rows are `stride` long, a multiple of 16.
            unsafe {
                for i in (0..self.stride).step_by(LANES) {
                    sum = l.fma(l.load(p.as_ptr().add(i)), l.load(dp.as_ptr().add(i)), sum);
                }
            }
            let sum = l.sum(sum);
            for (p, dp) in p.iter().zip(dp) {
                *dp = p * (*dp - sum);
            }
        }
    }
}

/// The backward pass through rotation and norm, to the packed row.
struct HeadBackward<'a> {
    packed: &'a [f32],
    width: usize,
    column: usize,
    w: &'a [f32],
    eps: f32,
    table: &'a RotaryTable,
    scale: f32,
    /// Gradient of the prepared head, `[rows, dim]`; overwritten.
    d_head: &'a mut [f32],
    d_packed: &'a mut [f32],
    dw: &'a mut [f32],
}

impl Kernel for HeadBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let dim = self.w.len();
        for (position, d) in self.d_head.chunks_exact_mut(dim).enumerate() {
            for d in &mut *d {
                *d *= self.scale;
            }
            let (cos, sin) = self.table.at(position);
            rotate_back(d, cos, sin);
            let at = position * self.width + self.column;
            let x = &self.packed[at..at + dim];
            backward_row(
                l,
                x,
                self.w,
                d,
                self.eps,
                &mut self.d_packed[at..at + dim],
                self.dw,
            );
        }
    }
}

impl Attention {
    /// Adds one sequence's gradients for the key-value head `head` and its group of queries.
    #[allow(clippy::too_many_arguments)]
    fn head_backward(
        &self,
        scratch: &mut Scratch,
        head: usize,
        packed: &[f32],
        g: &[f32],
        q_norm: &[f32],
        k_norm: &[f32],
        d_packed: &mut [f32],
        (dq_norm, dk_norm): (&mut [f32], &mut [f32]),
    ) {
        let heads = &self.heads;
        let (dim, width, out_width) = (heads.dim, heads.packed_width(), heads.out_width());
        let len = packed.len() / width;
        let keys = room(&mut scratch.keys, len * dim);
        self.prepare(packed, heads.key_column(head), k_norm, 1.0, keys);
        let tiles = room(&mut scratch.tiles, heads.tiles_len(len));
        store_keys(keys, dim, 0, tiles);
        let d_keys = room(&mut scratch.d_keys, len * dim);
        d_keys.fill(0.0);
        let values = &packed[heads.value_column(head)..];
        let (tiles, all_values) = ([&*tiles], [values]);
        for query_head in head * heads.group()..(head + 1) * heads.group() {
            let column = query_head * dim;
            let queries = room(&mut scratch.queries, len * dim);
            self.prepare(packed, column, q_norm, heads.scale(), queries);
            let d_queries = room(&mut scratch.d_queries, len * dim);
            for first in (0..len).step_by(BLOCK) {
                let count = BLOCK.min(len - first);
                let end = first + count;
                let stride = end.div_ceil(LANES) * LANES;
                let p = room(&mut scratch.weights, count * stride);
                let rows = Rows {
                    queries: &queries[first * dim..end * dim],
                    keys: Paged::whole(&tiles),
                    values: Paged::whole(&all_values),
                    value_stride: width,
                    dim,
                    visible: first + 1,
                    step: 1,
                };
                rows.check();
                simd::run(Weights {
                    rows,
                    out: p,
                    stride,
                });
                let dp = room(&mut scratch.d_weights, count * stride);
                dp.fill(0.0);
                let d_out = Factor::rows(&g[first * out_width + column..], out_width);
                product(
                    (count, end, dim),
                    d_out,
                    Factor::transposed(values, width),
                    dp,
                    stride,
                    false,
                );
                let d_values = &mut d_packed[heads.value_column(head)..];
                product(
                    (end, dim, count),
                    Factor::transposed(p, stride),
                    d_out,
                    d_values,
                    width,
                    true,
                );
                simd::run(SoftmaxBackward { p, dp, stride });
                let d_scores = Factor::rows(dp, stride);
                product(
                    (count, dim, end),
                    d_scores,
                    Factor::rows(keys, dim),
                    &mut d_queries[first * dim..],
                    dim,
                    false,
                );
                let queries = Factor::rows(&queries[first * dim..], dim);
                product(
                    (end, dim, count),
                    Factor::transposed(dp, stride),
                    queries,
                    d_keys,
                    dim,
                    true,
                );
            }
            self.pull_back(
                packed,
                column,
                q_norm,
                heads.scale(),
                d_queries,
                d_packed,
                dq_norm,
            );
        }
        self.pull_back(
            packed,
            heads.key_column(head),
            k_norm,
            1.0,
            d_keys,
            d_packed,
            dk_norm,
        );
    }

    /// Norms, rotates and scales the head at `column` of a sequence into `out[len, dim]`.
    fn prepare(&self, packed: &[f32], column: usize, w: &[f32], scale: f32, out: &mut [f32]) {
        prepare_head(&self.heads, &self.table, packed, column, w, 0, scale, out);
    }

    #[allow(clippy::too_many_arguments)]
    fn pull_back(
        &self,
        packed: &[f32],
        column: usize,
        w: &[f32],
        scale: f32,
        d_head: &mut [f32],
        d_packed: &mut [f32],
        dw: &mut [f32],
    ) {
        let Heads { eps, .. } = self.heads;
        simd::run(HeadBackward {
            packed,
            width: self.heads.packed_width(),
            column,
            w,
            eps,
            table: &self.table,
            scale,
            d_head,
            d_packed,
            dw,
        });
    }
}

/// Computes the gradients of [`attention_into`] from `g[tokens, heads * dim]`. Adds those of the packed rows, of the
/// queries' norm and of the keys' norm to `d_packed`, `dq_norm` and `dk_norm`.
///
/// [`attention_into`]: super::attention::attention_into
#[allow(clippy::too_many_arguments)]
pub(crate) fn attention_backward_into(
    attention: &Attention,
    x: &[f32],
    q_norm: &[f32],
    k_norm: &[f32],
    g: &[f32],
    d_packed: &mut [f32],
    dq_norm: &mut [f32],
    dk_norm: &mut [f32],
) {
    let heads = &attention.heads;
    let (width, out_width) = (heads.packed_width(), heads.out_width());
    assert!(x.len() == d_packed.len() && x.len() / width == g.len() / out_width);
    SCRATCH.with_borrow_mut(|scratch| {
        for span in attention.spans.iter() {
            let (from, to) = (span.start, span.start + span.len);
            for head in 0..heads.key_value {
                attention.head_backward(
                    scratch,
                    head,
                    &x[from * width..to * width],
                    &g[from * out_width..to * out_width],
                    q_norm,
                    k_norm,
                    &mut d_packed[from * width..to * width],
                    (&mut *dq_norm, &mut *dk_norm),
                );
            }
        }
    });
}
