//! The factors of a matrix product on the CPU.

use candle_core::{CpuStorage, Layout, Result, bail};
use half::bf16;

/// Length of the pieces that `k` is cut into; `gemm` does not cut a piece of this length again.
pub(super) const K_BLOCK: usize = 512;

/// The numbers of a weight.
#[derive(Clone, Copy)]
pub(crate) enum Numbers<'a> {
    F32(&'a [f32]),
    /// Products round the other factor to bf16, too.
    Bf16(&'a [bf16]),
}

impl<'a> Numbers<'a> {
    /// The numbers of a contiguous operand.
    pub(crate) fn of(storage: &'a CpuStorage, layout: &Layout) -> Result<Self> {
        match (storage, layout.contiguous_offsets()) {
            (CpuStorage::BF16(all), Some((from, to))) => Ok(Self::Bf16(&all[from..to])),
            (CpuStorage::BF16(_), None) => bail!("a weight in bf16 is not contiguous: {layout:?}"),
            _ => Ok(Self::F32(super::numbers(storage, layout)?)),
        }
    }

    fn len(self) -> usize {
        match self {
            Self::F32(data) => data.len(),
            Self::Bf16(data) => data.len(),
        }
    }
}

/// A weight `[k, n]`, whose rows may be longer than the `n` columns wanted.
#[derive(Clone, Copy)]
pub(crate) struct Weight<'a> {
    pub(crate) numbers: Numbers<'a>,
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) stride: usize,
}

impl<'a> Weight<'a> {
    /// A whole weight.
    pub(crate) fn new(numbers: Numbers<'a>, k: usize, n: usize) -> Self {
        assert_eq!(numbers.len(), k * n, "a weight {k}x{n}");
        Self {
            numbers,
            k,
            n,
            stride: n,
        }
    }

    /// A whole weight in f32.
    #[cfg(test)]
    pub(crate) fn f32(data: &'a [f32], k: usize, n: usize) -> Self {
        Self::new(Numbers::F32(data), k, n)
    }

    /// The same weight with only the first `n` columns.
    pub(crate) fn first_columns(self, n: usize) -> Self {
        Self {
            n: n.min(self.n),
            ..self
        }
    }
}

/// One factor of a product: where it starts, and the distance between its rows and between its columns.
#[derive(Clone, Copy)]
pub(super) struct Factor<'a, T = f32> {
    pub(super) data: &'a [T],
    pub(super) row_stride: usize,
    pub(super) column_stride: usize,
}

impl<'a, T> Factor<'a, T> {
    pub(super) fn rows(data: &'a [T], row_stride: usize) -> Self {
        Self {
            data,
            row_stride,
            column_stride: 1,
        }
    }

    pub(super) fn transposed(data: &'a [T], row_stride: usize) -> Self {
        Self {
            data,
            row_stride: 1,
            column_stride: row_stride,
        }
    }

    pub(super) fn covers(&self, rows: usize, columns: usize) -> bool {
        rows == 0
            || columns == 0
            || (rows - 1) * self.row_stride + (columns - 1) * self.column_stride < self.data.len()
    }
}
