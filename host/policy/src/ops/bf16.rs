//! The matrix product of bf16 numbers, with sums in f32.
//!
//! Operands are rounded to bf16. An element is one chain of sums for each [`K_BLOCK`] of `k`, in the order of
//! [`Lanes::dot_pairs`], and the chains are added in order. So a row has the same bits whatever rows are beside it, and
//! they are the same on all levels, but for sums below 2^-126. AVX512-BF16 multiplies twice as many numbers at once as f32.
//!
//! Both factors are copied to panels: sixteen rows of the left one, or sixteen columns of the right one, with two
//! neighbours along `k` in one lane.

#![allow(unsafe_code)] // Kernels read and write by pointers; each call stands behind an assertion on lengths.

use std::cell::RefCell;
use std::ops::Range;

use candle_core::{CpuStorage, InplaceOp2, Layout, Result, bail};
use half::bf16;

use super::columns::by_columns;
use super::numbers;
use super::weight::{Factor, K_BLOCK};
use crate::simd::{self, Kernel, LANES, Lanes};

/// Rows whose panels are kept while all columns are computed: half a megabyte, which fits a second-level cache.
const ROWS: usize = 512;
/// Panels of columns that a tile has at most.
const PANELS: usize = 3;
/// Columns whose panels are made together: whole cache lines of bf16.
const STRIP: usize = 2 * PANELS * LANES;
/// Rows of a strip that are asked for before they are copied.
const AHEAD: usize = 8;

/// Panels that a thread keeps between products: `[panel][pair of k][LANES]`, each lane with two numbers.
struct Buffers {
    rows: Vec<u32>,
    columns: Vec<u32>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = const {
        RefCell::new(Buffers { rows: Vec::new(), columns: Vec::new() })
    };
}

/// Numbers rounded to bf16: the nearest, and of two that are as near the even one.
pub(super) fn rounded(numbers: &[f32]) -> Vec<bf16> {
    let mut to = vec![bf16::ZERO; numbers.len()];
    simd::run(Round {
        numbers,
        to: &mut to,
    });
    to
}

/// Replaces the numbers of a tensor in bf16 by those of one in f32, rounded.
pub(crate) struct RoundInto;

impl InplaceOp2 for RoundInto {
    fn name(&self) -> &'static str {
        "round-into"
    }

    fn cpu_fwd(
        &self,
        to: &mut CpuStorage,
        to_layout: &Layout,
        from: &CpuStorage,
        layout: &Layout,
    ) -> Result<()> {
        let numbers = numbers(from, layout)?;
        match (to, to_layout.contiguous_offsets()) {
            (CpuStorage::BF16(all), Some((first, end))) if end - first == numbers.len() => {
                let to = &mut all[first..end];
                simd::run(Round { numbers, to });
                Ok(())
            }
            _ => bail!("rounding needs as many contiguous bf16 numbers, got {to_layout:?}"),
        }
    }
}

struct Round<'a> {
    numbers: &'a [f32],
    to: &'a mut [bf16],
}

impl Kernel for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, _: L) {
        for (to, number) in self.to.iter_mut().zip(self.numbers) {
            let bits = number.to_bits();
            let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1));
            // Rounding could make an infinity of a NaN.
            let quiet = bits | 0x0040_0000;
            let bits = if number.is_nan() { quiet } else { rounded };
            *to = bf16::from_bits((bits >> 16) as u16);
        }
    }
}

/// Computes `out[m, n]` (rows `out_stride` apart) `= a[m, k] b[k, n]`, or `+=`, with up to `threads` threads of the current
/// pool. In each factor, neighbours along one side are neighbours in memory.
pub(super) fn product_in_bf16(
    (m, n, k): (usize, usize, usize),
    a: Factor<'_, bf16>,
    b: Factor<'_, bf16>,
    out: &mut [f32],
    out_stride: usize,
    accumulate: bool,
    threads: usize,
) {
    assert!(
        a.covers(m, k) && b.covers(k, n),
        "operand too short for {m}x{n}x{k}"
    );
    assert!(m == 0 || (m - 1) * out_stride + n <= out.len() && n <= out_stride);
    if k == 0 && !accumulate {
        let rows = out.chunks_mut(out_stride.max(1)).take(m);
        rows.for_each(|row| row[..n].fill(0.0));
    }
    by_columns(out, n, STRIP, threads, |out, columns| {
        BUFFERS.with_borrow_mut(|buffers| {
            simd::run_in_bf16(Product {
                rows: m,
                depth: k,
                a,
                b,
                out: out.start(),
                out_stride,
                columns,
                accumulate,
                buffers,
            });
        });
    });
}

/// Some columns of a product, whose lengths were checked.
struct Product<'a> {
    rows: usize,
    depth: usize,
    a: Factor<'a, bf16>,
    b: Factor<'a, bf16>,
    out: *mut f32,
    out_stride: usize,
    columns: Range<usize>,
    accumulate: bool,
    buffers: &'a mut Buffers,
}

impl Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let Self { a, b, out, .. } = self;
        let of_tile = if L::WIDE { PANELS * LANES } else { LANES };
        let at_once = if L::WIDE { 8 } else { 4 };
        for from in (0..self.depth).step_by(K_BLOCK) {
            let depth = K_BLOCK.min(self.depth - from);
            let pairs = depth.div_ceil(2);
            let add = self.accumulate || from > 0;
            for top in (0..self.rows).step_by(ROWS) {
                let rows = ROWS.min(self.rows - top);
                let of_rows = Side {
                    data: &a.data[top * a.row_stride + from * a.column_stride..],
                    lanes: rows,
                    lane_stride: a.row_stride,
                    depth_stride: a.column_stride,
                };
                pack(l, of_rows, depth, &mut self.buffers.rows);
                for left in self.columns.clone().step_by(STRIP) {
                    let width = STRIP.min(self.columns.end - left);
                    let of_columns = Side {
                        data: &b.data[from * b.row_stride + left * b.column_stride..],
                        lanes: width,
                        lane_stride: b.column_stride,
                        depth_stride: b.row_stride,
                    };
                    pack(l, of_columns, depth, &mut self.buffers.columns);
                    for column in (0..width).step_by(of_tile) {
                        for row in (0..rows).step_by(at_once) {
                            let panel = &self.buffers.rows[row / LANES * LANES * pairs..];
                            let tile = Tile {
                                pairs,
                                rows: panel[row % LANES..].as_ptr().cast(),
                                columns: self.buffers.columns[column * pairs..].as_ptr().cast(),
                                // SAFETY: the row and the columns are in the result.
                                out: unsafe {
                                    out.add((top + row) * self.out_stride + left + column)
                                },
                                out_stride: self.out_stride,
                                height: at_once.min(rows - row),
                                width: of_tile.min(width - column),
                                add,
                            };
                            // SAFETY: the panels are filled for this tile, and the result has its rows and columns.
                            unsafe { tile.compute(l) };
                        }
                    }
                }
            }
        }
    }
}

/// Part of a factor: its rows if it is the left one, or its columns if it is the right one.
#[derive(Clone, Copy)]
struct Side<'a> {
    data: &'a [bf16],
    lanes: usize,
    lane_stride: usize,
    depth_stride: usize,
}

/// Copies a side to panels, filled up with zeros.
#[inline(always)]
fn pack<L: Lanes>(l: L, side: Side<'_>, depth: usize, panels: &mut Vec<u32>) {
    let pairs = depth.div_ceil(2);
    let needed = side.lanes.next_multiple_of(LANES) * pairs;
    if panels.len() < needed {
        panels.resize(needed, 0);
    }
    if side.lane_stride == 1 {
        side.pack_lanes(l, depth, &mut panels[..needed]);
    } else {
        side.pack_depth(l, depth, &mut panels[..needed]);
    }
}

/// Two numbers in one lane.
#[inline(always)]
fn in_lane(even: bf16, odd: bf16) -> u32 {
    u32::from(even.to_bits()) | u32::from(odd.to_bits()) << 16
}

impl Side<'_> {
    /// Fills panels from lanes that are neighbours in memory, in long reads.
    #[inline(always)]
    fn pack_lanes<L: Lanes>(self, l: L, depth: usize, panels: &mut [u32]) {
        let pairs = depth.div_ceil(2);
        let row = |index: usize| &self.data[index * self.depth_stride..][..self.lanes];
        let whole = self.lanes / LANES;
        assert!(panels.len() >= self.lanes.next_multiple_of(LANES) * pairs);
        for pair in 0..pairs {
            let even = row(2 * pair);
            // A last row without a neighbour gets itself, and zeros below.
            let odd = row((2 * pair + 1).min(depth - 1));
            for ahead in [AHEAD, AHEAD + 1] {
                let next = even.as_ptr().wrapping_add(ahead * self.depth_stride);
                for line in (0..self.lanes).step_by(2 * LANES) {
                    l.prefetch(next.wrapping_add(line).cast());
                }
            }
            for panel in 0..whole {
                // SAFETY: both rows have as many numbers, and there are as many panels.
                unsafe {
                    let (even, odd) = (
                        even.as_ptr().add(panel * LANES),
                        odd.as_ptr().add(panel * LANES),
                    );
                    let to = panels.as_mut_ptr().add((panel * pairs + pair) * LANES);
                    l.store(to.cast(), l.load_halves(even.cast(), odd.cast()));
                }
            }
            if whole * LANES < self.lanes {
                let to = &mut panels[(whole * pairs + pair) * LANES..][..LANES];
                let rest = (even[whole * LANES..].iter()).zip(&odd[whole * LANES..]);
                for (to, (even, odd)) in to.iter_mut().zip(rest) {
                    *to = in_lane(*even, *odd);
                }
                to[self.lanes - whole * LANES..].fill(0);
            }
        }
        if depth % 2 == 1 {
            for panel in panels.chunks_exact_mut(LANES * pairs) {
                for last in &mut panel[LANES * (pairs - 1)..] {
                    *last &= 0xFFFF;
                }
            }
        }
    }

    /// Fills panels from numbers that are neighbours in memory along the depth.
    #[inline(always)]
    fn pack_depth<L: Lanes>(self, l: L, depth: usize, panels: &mut [u32]) {
        debug_assert_eq!(self.depth_stride, 1);
        let pairs = depth.div_ceil(2);
        for (first, panel) in (0..self.lanes)
            .step_by(LANES)
            .zip(panels.chunks_exact_mut(LANES * pairs))
        {
            let data = &self.data[first * self.lane_stride..];
            let lanes = LANES.min(self.lanes - first);
            for (from, to) in (0..depth)
                .step_by(2 * LANES)
                .zip(panel.chunks_mut(LANES * LANES))
            {
                let mut square = [[0; LANES]; LANES];
                for (lane, row) in square[..lanes].iter_mut().enumerate() {
                    let numbers = &data[lane * self.lane_stride + from..];
                    let numbers = &numbers[..(depth - from).min(2 * LANES)];
                    let (whole, rest) = numbers.as_chunks::<2>();
                    for (to, [even, odd]) in row.iter_mut().zip(whole) {
                        *to = in_lane(*even, *odd);
                    }
                    if let [last] = rest {
                        row[whole.len()] = in_lane(*last, bf16::ZERO);
                    }
                }
                l.transpose(&mut square);
                let square = square.as_flattened();
                to.copy_from_slice(&square[..to.len()]);
            }
        }
    }
}

/// A tile of the result, and the panels that it is computed from.
struct Tile {
    pairs: usize,
    /// The first row in its panel.
    rows: *const f32,
    columns: *const f32,
    out: *mut f32,
    out_stride: usize,
    height: usize,
    width: usize,
    add: bool,
}

impl Tile {
    /// Computes the tile: at most 8 rows and three panels if lanes are wide, else 4 rows and one.
    ///
    /// # Safety
    /// The panels have `pairs` for all rows and columns, rows up to the next power of two; and `height` rows of `width`
    /// numbers can be written.
    #[inline(always)]
    unsafe fn compute<L: Lanes>(self, l: L) {
        // SAFETY: as required of the caller.
        unsafe {
            if !L::WIDE {
                return match self.height {
                    1 => self.sums::<L, 1, 1>(l),
                    _ => self.sums::<L, 4, 1>(l),
                };
            }
            match (self.height, self.width.div_ceil(LANES)) {
                (1, 1) => self.sums::<L, 1, 1>(l),
                (1, 2) => self.sums::<L, 1, 2>(l),
                (1, _) => self.sums::<L, 1, 3>(l),
                (2, 1) => self.sums::<L, 2, 1>(l),
                (2, 2) => self.sums::<L, 2, 2>(l),
                (2, _) => self.sums::<L, 2, 3>(l),
                (3 | 4, 1) => self.sums::<L, 4, 1>(l),
                (3 | 4, 2) => self.sums::<L, 4, 2>(l),
                (3 | 4, _) => self.sums::<L, 4, 3>(l),
                (_, 1) => self.sums::<L, 8, 1>(l),
                (_, 2) => self.sums::<L, 8, 2>(l),
                (_, _) => self.sums::<L, 8, 3>(l),
            }
        }
    }

    /// Multiplies `R` rows with `P` panels.
    ///
    /// # Safety
    /// As for [`Self::compute`], and `R` is the height or more.
    #[inline(always)]
    unsafe fn sums<L: Lanes, const R: usize, const P: usize>(self, l: L) {
        let mut sums = [[l.splat(0.0); P]; R];
        for pair in 0..self.pairs {
            let w: [L::V; P] = std::array::from_fn(|panel| {
                // SAFETY: as required of the caller.
                unsafe { l.load(self.columns.add((panel * self.pairs + pair) * LANES)) }
            });
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: the same.
                let x = l.splat(unsafe { *self.rows.add(pair * LANES + row) });
                for (sum, w) in sums.iter_mut().zip(w) {
                    *sum = l.dot_pairs(x, w, *sum);
                }
            }
        }
        for (row, sums) in sums.into_iter().enumerate().take(self.height) {
            for (panel, sum) in sums.into_iter().enumerate() {
                let columns = LANES.min(self.width - panel * LANES);
                // SAFETY: the same.
                unsafe {
                    let out = self.out.add(row * self.out_stride + panel * LANES);
                    let sum = if self.add {
                        l.add(l.load_up_to(out, columns), sum)
                    } else {
                        sum
                    };
                    l.store_up_to(out, columns, sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::twin::random;
    use crate::simd::Level;

    #[test]
    fn numbers_are_rounded_as_everywhere_else() {
        let mut numbers = random(1, 1000);
        numbers.extend([
            0.0,
            -0.0,
            1.0 + 1.0 / 256.0,
            1.0 + 3.0 / 256.0,
            f32::MAX,
            f32::INFINITY,
            f32::NEG_INFINITY,
            1e-40,
        ]);
        for (number, rounded) in numbers.iter().zip(rounded(&numbers)) {
            assert_eq!(
                rounded.to_bits(),
                bf16::from_f32(*number).to_bits(),
                "{number}"
            );
        }
        // Rounding the bits of this one as those of a number gives -0.
        let nans = [f32::NAN, -f32::NAN, f32::from_bits(0x7FFF_FFFF)];
        assert!(rounded(&nans).iter().all(|number| number.is_nan()));
    }

    /// The sides of a product: `a [m, k]` and `b [k, n]`, each in one of two orders.
    struct Sides {
        size: (usize, usize, usize),
        a: Vec<bf16>,
        b: Vec<bf16>,
        is_transposed: [bool; 2],
    }

    impl Sides {
        fn a(&self) -> Factor<'_, bf16> {
            let (m, _, k) = self.size;
            if self.is_transposed[0] {
                Factor::transposed(&self.a, m)
            } else {
                Factor::rows(&self.a, k)
            }
        }

        fn b(&self) -> Factor<'_, bf16> {
            let (_, n, k) = self.size;
            if self.is_transposed[1] {
                Factor::transposed(&self.b, k)
            } else {
                Factor::rows(&self.b, n)
            }
        }

        fn exact(&self, row: usize, column: usize) -> f64 {
            let number = |factor: Factor<'_, bf16>, row, column| {
                f64::from(factor.data[row * factor.row_stride + column * factor.column_stride])
            };
            (0..self.size.2)
                .map(|i| number(self.a(), row, i) * number(self.b(), i, column))
                .sum()
        }
    }

    fn all_sides() -> Vec<Sides> {
        let mut all = Vec::new();
        for size @ (m, n, k) in [
            (1, 1, 1),
            (3, 5, 2),
            (9, 48, 33),
            (20, 100, 1027),
            (530, 40, 70),
        ] {
            for is_transposed in [[false, false], [true, false], [false, true], [true, true]] {
                let (a, b) = (rounded(&random(1, m * k)), rounded(&random(2, k * n)));
                all.push(Sides {
                    size,
                    a,
                    b,
                    is_transposed,
                });
            }
        }
        all
    }

    #[test]
    fn it_is_the_product_of_the_rounded_numbers() {
        for sides in all_sides() {
            let (size @ (m, n, k), stride) = (sides.size, sides.size.1 + 3);
            let start = random(3, m * stride);
            let mut out = start.clone();
            product_in_bf16(size, sides.a(), sides.b(), &mut out, stride, true, 1);
            for row in 0..m {
                for column in 0..stride {
                    let at = row * stride + column;
                    if column < n {
                        let exact = f64::from(start[at]) + sides.exact(row, column);
                        let difference = (f64::from(out[at]) - exact).abs();
                        assert!(
                            difference < 1e-5 * (k as f64 + 10.0),
                            "{size:?} {difference}"
                        );
                    } else {
                        assert_eq!(out[at].to_bits(), start[at].to_bits(), "beside a row");
                    }
                }
            }
        }
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        println!("an instruction for bf16: {}", simd::multiplies_bf16());
        let mut all = all_sides();
        for (place, number) in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e30, 1e-18]
            .into_iter()
            .enumerate()
        {
            for sides in all.iter_mut().rev().step_by(3) {
                let at = place * sides.a.len() / 5;
                sides.a[at] = bf16::from_f32(number);
            }
        }
        for sides in all {
            let size @ (m, n, k) = sides.size;
            let mut best = vec![0.0; m * n];
            product_in_bf16(size, sides.a(), sides.b(), &mut best, n, false, 1);
            for level in Level::available() {
                let mut out = vec![0.0; m * n];
                let product = Product {
                    rows: m,
                    depth: k,
                    a: sides.a(),
                    b: sides.b(),
                    out: out.as_mut_ptr(),
                    out_stride: n,
                    columns: 0..n,
                    accumulate: false,
                    buffers: &mut Buffers {
                        rows: Vec::new(),
                        columns: Vec::new(),
                    },
                };
                // SAFETY: the level is available.
                unsafe { simd::run_on(level, product) };
                // What a NaN's bits are besides is not promised.
                let same =
                    |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                let is_same = out.iter().zip(&best).all(same);
                assert!(is_same, "{size:?} {:?} {level:?}", sides.is_transposed);
            }
        }
    }
}
