//! The matrix product of few rows, as a step of decoding has them.
//!
//! Every weight is read for only a few multiplications, so reading decides the time. Up to four rows read the weight as it
//! lies in memory ([`streamed`]). For more, a strip of columns is first copied to the cache ([`copied`]). Several threads can
//! share one product: each has some of the columns.
//!
//! An element is one chain of fused multiply-adds for each 512 of `k`, and the chains are added in order. So both kernels
//! give the same bits.

#![allow(unsafe_code)] // Kernels read and write by pointers; each call stands behind an assertion on lengths.

mod copied;
mod streamed;

use std::cell::RefCell;
use std::ops::Range;

use super::columns::by_columns;
use super::weight::Factor;
use crate::simd::{self, LANES, Lanes};
use copied::Copied;
use streamed::Streamed;

thread_local! {
    /// Memory that a thread keeps between products.
    static BUFFERS: RefCell<Buffers> = const {
        RefCell::new(Buffers {
            copied: copied::Buffers::new(),
            sums: Vec::new(),
        })
    };
}

struct Buffers {
    copied: copied::Buffers,
    sums: Vec<f32>,
}

/// Some columns of a product, whose lengths were checked: the weight has `k` rows with these columns, and the result has
/// a row of `n` numbers for each row of `x`.
struct Product<'a> {
    x: &'a [f32],
    w: Factor<'a>,
    size: (usize, usize),
    out: *mut f32,
    columns: Range<usize>,
    accumulate: bool,
}

/// Computes `out[rows, n] = x[rows, k] w[k, n]`, or `+=`, with up to `threads` threads of the current pool.
pub(super) fn few_rows_into(
    x: &[f32],
    w: Factor<'_>,
    (k, n): (usize, usize),
    out: &mut [f32],
    accumulate: bool,
    threads: usize,
) {
    let rows = x.len() / k;
    assert!(x.len() == rows * k && out.len() == rows * n);
    assert!(w.covers(k, n) && w.column_stride == 1);
    by_columns(out, n, 2 * LANES, threads, |out, columns| {
        let product = Product {
            x,
            w,
            size: (k, n),
            out: out.start(),
            columns,
            accumulate,
        };
        BUFFERS.with_borrow_mut(|buffers| {
            if rows <= streamed::MAX_ROWS {
                simd::run(Streamed {
                    product,
                    sums: &mut buffers.sums,
                });
            } else {
                simd::run(Copied {
                    product,
                    buffers: &mut buffers.copied,
                });
            }
        });
    });
}

/// Writes the first `columns` sums to the result, or adds them if `add` is true.
///
/// # Safety
/// `columns` numbers, at most [`LANES`], can be read and written at `out`.
#[inline(always)]
unsafe fn write<L: Lanes>(l: L, sums: L::V, out: *mut f32, columns: usize, add: bool) {
    // SAFETY: as required of the caller.
    unsafe {
        let sums = if add {
            l.add(l.load_up_to(out, columns), sums)
        } else {
            sums
        };
        l.store_up_to(out, columns, sums);
    }
}

#[cfg(test)]
mod tests;
