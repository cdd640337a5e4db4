//! The weight of a matrix product on the CPU.

/// Length of the pieces that `k` is cut into; `gemm` does not cut a piece of this length again.
pub(super) const K_BLOCK: usize = 512;

/// A weight `[k, n]`, whose rows may be longer than the `n` columns wanted.
#[derive(Clone, Copy)]
pub(crate) struct Weight<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) stride: usize,
}

impl<'a> Weight<'a> {
    pub(crate) fn new(data: &'a [f32], k: usize, n: usize) -> Self {
        Self {
            data,
            k,
            n,
            stride: n,
        }
    }

    /// The same weight with only the first `n` columns.
    pub(crate) fn first_columns(self, n: usize) -> Self {
        Self {
            n: n.min(self.n),
            ..self
        }
    }
}
