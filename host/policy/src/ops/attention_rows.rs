//! Steps 2 to 5 of [`attention`](super::attention), up to eight query rows at a time.

#![allow(unsafe_code)] // Vector loads; lengths are asserted before a kernel starts, or when it comes to a page.

use crate::simd::{self, Kernel, LANES, Lanes};

/// Maximum number of query rows that are computed together.
pub(super) const ROWS: usize = 8;

/// The keys, or the values, of one head of a sequence, in pages.
///
/// Pages change where numbers are, and nothing else: every sum runs over positions in order, from one page to the next.
#[derive(Clone, Copy)]
pub(crate) struct Paged<'a> {
    /// The first pages.
    pub(crate) read: &'a [&'a [f32]],
    /// The pages after those.
    pub(crate) own: &'a [Vec<f32>],
    /// Place of the head's first number in every page.
    pub(crate) first: usize,
    /// Positions of a page, a multiple of 16.
    pub(crate) positions: usize,
}

impl<'a> Paged<'a> {
    /// One page, which has all positions from its first number on.
    pub(super) fn whole(page: &'a [&'a [f32]; 1]) -> Self {
        Self {
            read: page,
            own: &[],
            first: 0,
            positions: usize::MAX / LANES * LANES,
        }
    }

    /// The head's first `len` numbers in a page.
    #[inline(always)]
    fn numbers(&self, page: usize, len: usize) -> &'a [f32] {
        let read = self.read.len();
        let page = if page < read {
            self.read[page]
        } else {
            &self.own[page - read]
        };
        &page[self.first..self.first + len]
    }
}

/// Query rows of one head against keys and values of one sequence.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// Prepared and scaled, `[rows, dim]`.
    pub(super) queries: &'a [f32],
    /// The keys, as tiles.
    pub(super) keys: Paged<'a>,
    /// Value `j` of a page starts at `j * value_stride`.
    pub(super) values: Paged<'a>,
    pub(super) value_stride: usize,
    pub(super) dim: usize,
    /// Positions that the first row sees.
    pub(super) visible: usize,
    /// Number of further positions that each following row sees: 1 for consecutive positions, 0 for heads of one position.
    pub(super) step: usize,
}

impl Rows<'_> {
    fn count(&self) -> usize {
        self.queries.len() / self.dim
    }

    /// Checks the lengths that the kernels rely on, those of pages apart: kernels check each page when they come to it.
    /// Gives the positions that the last row sees.
    pub(super) fn check(&self) -> usize {
        let rows = self.count();
        assert!(
            rows > 0 && self.visible > 0 && self.dim > 0 && self.queries.len() == rows * self.dim
        );
        for paged in [&self.keys, &self.values] {
            assert!(paged.positions > 0 && paged.positions.is_multiple_of(LANES));
        }
        self.visible + self.step * (rows - 1)
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
    let mut inverses = [0.0; R];
    // SAFETY: `tiles` tiles of `dim * 16` numbers in a page, `R` queries of `dim`, `R` rows of `stride` weights, which
    // is at least `last` rounded up to whole tiles.
    unsafe {
        let queries = rows.queries.as_ptr().add(row * dim);
        let (mut page, mut first) = (0, 0);
        while first < last {
            let count = rows.keys.positions.min(last - first);
            let tiles = count.div_ceil(LANES);
            let keys = rows.keys.numbers(page, tiles * LANES * dim).as_ptr();
            let tile_at = |tile: usize| keys.add(tile * LANES * dim);
            let weights = weights.add(first);
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
            (page, first) = (page + 1, first + count);
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

/// Does step 5 for `R` rows and `C` vectors of output dimensions from `d` on, the last of them `width` wide.
///
/// # Safety
/// As for [`softmax_rows`]; `out` points to dimension `d`, and may be written for `R` rows.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn weigh<L: Lanes, const R: usize, const C: usize>(
    l: L,
    rows: &Rows<'_>,
    row: usize,
    weights: *const f32,
    stride: usize,
    inverses: &[f32; R],
    d: usize,
    width: usize,
    out: *mut f32,
    out_stride: usize,
) {
    // Row r sees `step r` positions more than all rows see.
    let shared = rows.visible + rows.step * row;
    let last = shared + rows.step * (R - 1);
    let mut sums = [[l.splat(0.0); C]; R];
    // SAFETY: as required of the caller; a page has `count` values.
    unsafe {
        let (mut page, mut first) = (0, 0);
        while first < last {
            let count = rows.values.positions.min(last - first);
            let len = (count - 1) * rows.value_stride + rows.dim;
            let values = rows.values.numbers(page, len).as_ptr().add(d);
            let weights = weights.add(first);
            let value = |j: usize, c: usize| {
                let n = if c + 1 == C { width } else { LANES };
                l.load_up_to(values.add(j * rows.value_stride + c * LANES), n)
            };
            let of_all = shared.saturating_sub(first).min(count);
            for j in 0..of_all {
                let v: [L::V; C] = std::array::from_fn(|c| value(j, c));
                for (r, sums) in sums.iter_mut().enumerate() {
                    let e = l.splat(*weights.add(r * stride + j));
                    for (sum, v) in sums.iter_mut().zip(v) {
                        *sum = l.fma(e, v, *sum);
                    }
                }
            }
            for j in of_all..count {
                let v: [L::V; C] = std::array::from_fn(|c| value(j, c));
                for (r, sums) in sums.iter_mut().enumerate() {
                    if first + j < shared + rows.step * r {
                        let e = l.splat(*weights.add(r * stride + j));
                        for (sum, v) in sums.iter_mut().zip(v) {
                            *sum = l.fma(e, v, *sum);
                        }
                    }
                }
            }
            (page, first) = (page + 1, first + count);
        }
        for (r, sums) in sums.iter().enumerate() {
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
                let left = rows.dim - d;
                let out = self.out.as_mut_ptr().add(row * self.out_stride + d);
                let (s, os) = (self.stride, self.out_stride);
                if left > LANES {
                    let width = LANES.min(left - LANES);
                    weigh::<L, R, 2>(l, rows, row, weights, s, &inverses, d, width, out, os);
                } else {
                    weigh::<L, R, 1>(l, rows, row, weights, s, &inverses, d, left, out, os);
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
