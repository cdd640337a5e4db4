//! The product of more than [`super::streamed::MAX_ROWS`] rows: a strip of columns is copied in long reads to panels that
//! fit the cache, and all rows use it from there.

use super::{Product, write};
use crate::ops::weight::K_BLOCK;
use crate::simd::{Kernel, LANES, Lanes};

/// Columns of a strip. With [`K_BLOCK`] rows it is a quarter of a megabyte, which fits a second-level cache.
const STRIP: usize = 128;
/// Rows of a strip that are asked for before they are copied.
const AHEAD: usize = 4;
/// Columns that a tile has at most.
const PAIR: usize = 2 * LANES;

/// Memory that a thread keeps between products.
pub(super) struct Buffers {
    /// A piece of `x`, in tiles of rows: `[tile][k][row]`.
    rows: Vec<f32>,
    /// A strip of the weight: `[panel][k][LANES]`.
    panels: Vec<f32>,
}

impl Buffers {
    pub(super) const fn new() -> Self {
        Self {
            rows: Vec::new(),
            panels: Vec::new(),
        }
    }
}

pub(super) struct Copied<'a> {
    pub(super) product: Product<'a>,
    pub(super) buffers: &'a mut Buffers,
}

impl Kernel for Copied<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let Product {
            x: all,
            w,
            size: (k, n),
            out,
            columns,
            accumulate,
        } = self.product;
        let stride = w.row_stride;
        let rows = all.len() / k;
        // Tiles of nearly the same height, whose sums fit the registers.
        let tiles = rows.div_ceil(if L::WIDE { 12 } else { 6 });
        let tile = |index: usize| index * rows / tiles..(index + 1) * rows / tiles;
        let Buffers { rows: x, panels } = self.buffers;
        x.resize(rows * K_BLOCK, 0.0);
        panels.resize(STRIP * K_BLOCK, 0.0);
        for from in (0..k).step_by(K_BLOCK) {
            let depth = K_BLOCK.min(k - from);
            for rows in (0..tiles).map(tile) {
                let (first, height) = (rows.start, rows.len());
                let to = &mut x[first * depth..rows.end * depth];
                for row in rows {
                    let numbers = &all[row * k + from..][..depth];
                    for (to, number) in to.chunks_exact_mut(height).zip(numbers) {
                        to[row - first] = *number;
                    }
                }
            }
            for start in columns.clone().step_by(STRIP) {
                let width = STRIP.min(columns.end - start);
                let w = &w.data[from * stride + start..];
                // SAFETY: `depth` rows of `width` numbers follow in the weight.
                unsafe { copy_strip(l, w.as_ptr(), stride, (depth, width), panels) };
                for first in (0..width).step_by(PAIR) {
                    let panels = panels[first * depth..].as_ptr();
                    for rows in (0..tiles).map(tile) {
                        let x = x[rows.start * depth..].as_ptr();
                        let size = (depth, PAIR.min(width - first));
                        let add = accumulate || from > 0;
                        // SAFETY: the row and the columns are in the result.
                        let out = unsafe { out.add(rows.start * n + start + first) };
                        macro_rules! of_height {
                            ($($height:literal)*) => {
                                match rows.len() {
                                    // SAFETY: `x` and `panels` are filled for this size, and `out` has the rows.
                                    $($height => unsafe {
                                        pair_into::<L, $height>(l, size, x, panels, out, n, add);
                                    },)*
                                    height => unreachable!("a tile of {height} rows"),
                                }
                            };
                        }
                        of_height!(1 2 3 4 5 6 7 8 9 10 11 12);
                    }
                }
            }
        }
    }
}

/// Copies columns of a weight to panels. The last panel is filled up with zeros.
///
/// # Safety
/// `depth` rows of `width` numbers can be read.
#[inline(always)]
unsafe fn copy_strip<L: Lanes>(
    l: L,
    w: *const f32,
    stride: usize,
    (depth, width): (usize, usize),
    panels: &mut [f32],
) {
    for i in 0..depth {
        for first in (0..width).step_by(LANES) {
            l.prefetch(w.wrapping_add((i + AHEAD) * stride + first));
            let to = &mut panels[first * depth + i * LANES..][..LANES];
            // SAFETY: as required of the caller; `to` has 16 numbers.
            unsafe {
                let numbers = w.add(i * stride + first);
                let v = l.load_up_to(numbers, LANES.min(width - first));
                l.store(to.as_mut_ptr(), v);
            }
        }
    }
}

/// Multiplies `R` rows with one or two panels: together if their sums fit the registers.
///
/// # Safety
/// `x` has `R` times `depth` numbers, `panels` has enough for `width` columns, and `R` rows of as many can be written,
/// `n` numbers apart.
#[inline(always)]
unsafe fn pair_into<L: Lanes, const R: usize>(
    l: L,
    (depth, width): (usize, usize),
    x: *const f32,
    panels: *const f32,
    out: *mut f32,
    n: usize,
    add: bool,
) {
    // SAFETY: as required of the caller.
    unsafe {
        if width > LANES && (L::WIDE || R <= 3) {
            return tile_into::<L, R, 2>(l, (depth, width), x, panels, out, n, add);
        }
        for first in (0..width).step_by(LANES) {
            let (panel, out) = (panels.add(first * depth), out.add(first));
            let size = (depth, LANES.min(width - first));
            tile_into::<L, R, 1>(l, size, x, panel, out, n, add);
        }
    }
}

/// Multiplies `R` rows with `P` panels.
///
/// # Safety
/// As for [`pair_into`].
#[inline(always)]
unsafe fn tile_into<L: Lanes, const R: usize, const P: usize>(
    l: L,
    (depth, width): (usize, usize),
    x: *const f32,
    panels: *const f32,
    out: *mut f32,
    n: usize,
    add: bool,
) {
    let mut sums = [[l.splat(0.0); P]; R];
    for i in 0..depth {
        // SAFETY: as required of the caller.
        let w: [L::V; P] =
            std::array::from_fn(|panel| unsafe { l.load(panels.add((panel * depth + i) * LANES)) });
        for (row, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the same.
            let x = l.splat(unsafe { *x.add(i * R + row) });
            for (sum, w) in sums.iter_mut().zip(w) {
                *sum = l.fma(x, w, *sum);
            }
        }
    }
    for (row, sums) in sums.into_iter().enumerate() {
        for (panel, sum) in sums.into_iter().enumerate() {
            let columns = LANES.min(width - panel * LANES);
            // SAFETY: the same.
            unsafe { write(l, sum, out.add(row * n + panel * LANES), columns, add) };
        }
    }
}
