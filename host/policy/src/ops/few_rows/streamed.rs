//! The product of one to four rows, as decoding of the last open trajectories has them.
//!
//! The weight is read once, row by row in strips of [`STRIP`] columns. The sums of a strip wait in the first-level cache
//! meanwhile. A copy of the weight would take longer than multiplying.

use super::{Product, write};
use crate::ops::weight::K_BLOCK;
use crate::simd::{Kernel, LANES, Lanes};

/// Rows of a product at most.
pub(super) const MAX_ROWS: usize = 4;
/// Columns of a strip. Its sums for [`MAX_ROWS`] rows take 16 KB.
const STRIP: usize = 1024;
/// Rows of the weight that are read together, so that a sum is loaded and stored once for all of them.
const UNROLLED_ROWS: usize = 4;

const _: () = assert!(STRIP.is_multiple_of(LANES));

pub(super) struct Streamed<'a> {
    pub(super) product: Product<'a>,
    /// Room for the sums of a strip: `[row][STRIP]`.
    pub(super) sums: &'a mut Vec<f32>,
}

impl Kernel for Streamed<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        match self.product.x.len() / self.product.size.0 {
            1 => self.rows::<L, 1>(l),
            2 => self.rows::<L, 2>(l),
            3 => self.rows::<L, 3>(l),
            MAX_ROWS => self.rows::<L, MAX_ROWS>(l),
            rows => unreachable!("a product of {rows} rows"),
        }
    }
}

impl Streamed<'_> {
    #[inline(always)]
    fn rows<L: Lanes, const R: usize>(self, l: L) {
        let Product {
            x,
            w,
            size: (k, n),
            out,
            columns,
            accumulate,
        } = self.product;
        let stride = w.row_stride;
        let x: [&[f32]; R] = std::array::from_fn(|row| &x[row * k..][..k]);
        self.sums.resize(MAX_ROWS * STRIP, 0.0);
        for start in columns.clone().step_by(STRIP) {
            let width = STRIP.min(columns.end - start);
            for from in (0..k).step_by(K_BLOCK) {
                let to = k.min(from + K_BLOCK);
                for sums in self.sums.chunks_exact_mut(STRIP).take(R) {
                    sums[..width.next_multiple_of(LANES)].fill(0.0);
                }
                let sums = self.sums.as_mut_ptr();
                let mut at = from;
                while at < to {
                    let w = w.data[at * stride + start..].as_ptr();
                    let x = x.map(|row| &row[at..]);
                    // SAFETY: the weight has the rows up to `to` and `width` columns from `start` on, and there are `R` rows
                    // of sums.
                    unsafe {
                        if at + UNROLLED_ROWS <= to {
                            add::<L, R, UNROLLED_ROWS>(l, x, w, stride, width, sums);
                            at += UNROLLED_ROWS;
                        } else {
                            add::<L, R, 1>(l, x, w, stride, width, sums);
                            at += 1;
                        }
                    }
                }
                for (row, sums) in self.sums.chunks_exact(STRIP).take(R).enumerate() {
                    for first in (0..width).step_by(LANES) {
                        let columns = LANES.min(width - first);
                        // SAFETY: a strip has whole vectors of sums; the row and the columns are in the result.
                        unsafe {
                            let sums = l.load(sums[first..].as_ptr());
                            let out = out.add(row * n + start + first);
                            write(l, sums, out, columns, accumulate || from > 0);
                        }
                    }
                }
            }
        }
    }
}

/// Adds the products of `U` numbers of each row with as many rows of the weight to the sums of a strip.
///
/// # Safety
/// `U` rows of `width` numbers, at most [`STRIP`], can be read at `w`, `stride` apart. At `sums`, `R` rows of [`STRIP`]
/// numbers can be read and written.
#[inline(always)]
unsafe fn add<L: Lanes, const R: usize, const U: usize>(
    l: L,
    x: [&[f32]; R],
    w: *const f32,
    stride: usize,
    width: usize,
    sums: *mut f32,
) {
    let mut numbers = [[l.splat(0.0); U]; R];
    for (numbers, row) in numbers.iter_mut().zip(x) {
        for (number, x) in numbers.iter_mut().zip(row) {
            *number = l.splat(*x);
        }
    }
    let x = &numbers;
    let whole = width - width % LANES;
    for first in (0..whole).step_by(LANES) {
        // SAFETY: as required of the caller.
        unsafe { add_lanes(l, x, w.add(first), stride, LANES, sums.add(first)) };
    }
    if whole < width {
        // SAFETY: the same; a strip has whole vectors of sums.
        unsafe { add_lanes(l, x, w.add(whole), stride, width - whole, sums.add(whole)) };
    }
}

/// [`add`] for `columns` columns.
///
/// # Safety
/// `U` rows of `columns` numbers, at most [`LANES`], can be read at `w`, `stride` apart. [`LANES`] numbers can be read and
/// written at each of `R` places, which are [`STRIP`] apart, the first at `sums`.
#[inline(always)]
unsafe fn add_lanes<L: Lanes, const R: usize, const U: usize>(
    l: L,
    x: &[[L::V; U]; R],
    w: *const f32,
    stride: usize,
    columns: usize,
    sums: *mut f32,
) {
    let mut sum = [l.splat(0.0); R];
    for (row, sum) in sum.iter_mut().enumerate() {
        // SAFETY: as required of the caller.
        *sum = unsafe { l.load(sums.add(row * STRIP)) };
    }
    for i in 0..U {
        // SAFETY: the same.
        let w = unsafe { l.load_up_to(w.add(i * stride), columns) };
        for (sum, x) in sum.iter_mut().zip(x) {
            *sum = l.fma(x[i], w, *sum);
        }
    }
    for (row, sum) in sum.into_iter().enumerate() {
        // SAFETY: the same.
        unsafe { l.store(sums.add(row * STRIP), sum) };
    }
}
