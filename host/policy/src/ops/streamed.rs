//! The matrix product of one to four rows, as decoding of the last open trajectories has them.
//!
//! Reading the weight takes all the time. So it is read once, in the order in which it lies in memory, and the sums of a
//! strip of columns wait in the first-level cache meanwhile. Copies of the weight, as [`few_rows`](super::few_rows) makes
//! them, would take longer than multiplying.

#![allow(unsafe_code)] // Kernels read and write by pointers; each call stands behind an assertion on lengths.

use std::ops::Range;

use super::weight::{Factor, K_BLOCK};
use crate::simd::{Kernel, LANES, Lanes};

/// Rows of a product at most.
pub(super) const MOST_ROWS: usize = 4;
/// Columns of a strip. Its sums for [`MOST_ROWS`] rows take 16 KB.
const STRIP: usize = 1024;
/// Rows of the weight that are read together, so that a sum is loaded and stored once for all of them.
const TOGETHER: usize = 4;

/// Some columns of a product, whose lengths were checked. Elements are those of [`few_rows`](super::few_rows), bit for bit.
pub(super) struct Streamed<'a> {
    pub(super) x: &'a [f32],
    pub(super) w: Factor<'a>,
    pub(super) size: (usize, usize),
    pub(super) out: *mut f32,
    pub(super) columns: Range<usize>,
    pub(super) accumulate: bool,
    /// Room for the sums of a strip.
    pub(super) sums: &'a mut Vec<f32>,
}

impl Kernel for Streamed<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        match self.x.len() / self.size.0 {
            1 => self.rows::<L, 1>(l),
            2 => self.rows::<L, 2>(l),
            3 => self.rows::<L, 3>(l),
            MOST_ROWS => self.rows::<L, MOST_ROWS>(l),
            rows => unreachable!("a product of {rows} rows"),
        }
    }
}

impl Streamed<'_> {
    #[inline(always)]
    fn rows<L: Lanes, const R: usize>(self, l: L) {
        let ((k, n), stride) = (self.size, self.w.row_stride);
        let rows: [&[f32]; R] = std::array::from_fn(|row| &self.x[row * k..][..k]);
        self.sums.resize(MOST_ROWS * STRIP, 0.0);
        for start in self.columns.clone().step_by(STRIP) {
            let width = STRIP.min(self.columns.end - start);
            for from in (0..k).step_by(K_BLOCK) {
                let to = k.min(from + K_BLOCK);
                self.sums.fill(0.0);
                let sums = self.sums.as_mut_ptr();
                let mut at = from;
                while at < to {
                    let w = self.w.data[at * stride + start..].as_ptr();
                    // SAFETY: so many rows of the weight follow, each with `width` numbers, and there is a sum for each.
                    unsafe {
                        if at + TOGETHER <= to {
                            add::<L, R, TOGETHER>(
                                l,
                                rows.map(|row| &row[at..]),
                                w,
                                stride,
                                width,
                                sums,
                            );
                            at += TOGETHER;
                        } else {
                            add::<L, R, 1>(l, rows.map(|row| &row[at..]), w, stride, width, sums);
                            at += 1;
                        }
                    }
                }
                for (row, sums) in self.sums.chunks_exact(STRIP).take(R).enumerate() {
                    for first in (0..width).step_by(LANES) {
                        let columns = LANES.min(width - first);
                        // SAFETY: the row and the columns are in the result.
                        unsafe {
                            let out = self.out.add(row * n + start + first);
                            let mut sum = l.load(sums[first..].as_ptr());
                            if self.accumulate || from > 0 {
                                sum = l.add(l.load_up_to(out, columns), sum);
                            }
                            l.store_up_to(out, columns, sum);
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
/// `U` rows of `width` numbers can be read at `w`, `stride` apart, and `R` rows of [`STRIP`] sums can be written.
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
        // SAFETY: the same.
        unsafe { add_lanes(l, x, w.add(whole), stride, width - whole, sums.add(whole)) };
    }
}

/// [`add`] for `columns` columns, at most [`LANES`].
///
/// # Safety
/// As for [`add`].
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
