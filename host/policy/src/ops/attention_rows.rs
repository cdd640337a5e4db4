//! Steps 2 to 5 of [`attention`](super::attention), up to eight query rows at a time.

#![allow(unsafe_code)] // Vector loads; every length is asserted before a kernel starts.

use crate::simd::{self, Kernel, LANES, Lanes};

/// Maximum number of query rows that are computed together.
pub(super) const ROWS: usize = 8;

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
    /// Number of further positions that each following row sees: 1 for consecutive positions, 0 for heads of one position.
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

/// Does step 5 for `R` rows and `C` vectors of output dimensions, the last of them `width` wide.
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
