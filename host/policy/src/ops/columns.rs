//! Columns of a product's result that several threads compute.

#![allow(unsafe_code)] // Threads write to one slice; each has other columns.

use std::ops::Range;

use rayon::prelude::*;

/// The result, of which each thread writes other columns.
#[derive(Clone, Copy)]
pub(super) struct Out(*mut f32);

// SAFETY: `by_columns` gives no column to two threads.
unsafe impl Send for Out {}
// SAFETY: the same.
unsafe impl Sync for Out {}

impl Out {
    /// The first number. A method, because a closure that read the field would capture the pointer alone.
    pub(super) fn start(self) -> *mut f32 {
        self.0
    }
}

/// Divides the columns of `out` among up to `threads` threads of the current pool, and lets each compute its own. All but
/// the last have a multiple of `unit`.
pub(super) fn by_columns(
    out: &mut [f32],
    columns: usize,
    unit: usize,
    threads: usize,
    compute: impl Fn(Out, Range<usize>) + Sync,
) {
    let out = Out(out.as_mut_ptr());
    let width = columns.div_ceil(threads).next_multiple_of(unit);
    if width >= columns {
        compute(out, 0..columns);
    } else {
        (0..columns.div_ceil(width))
            .into_par_iter()
            .for_each(|part| compute(out, part * width..columns.min((part + 1) * width)));
    }
}
