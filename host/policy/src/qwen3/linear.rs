//! A linear layer, its adapter if it has one, and the gradients of what is trained of both.

use candle_core::Result;

use super::Backend;

/// A linear layer: `y = x W`, or `y = x W + (x A) B` with an adapter ([`crate::lora`]).
///
/// Methods take the number of rows, because the rows between `A` and `B` are made here.
pub(crate) struct Linear<B: Backend> {
    /// `[in, out]`.
    w: B::Matrix,
    trained: Trained<B>,
}

/// The trained part of a linear layer.
pub(super) enum Trained<B: Backend> {
    /// The weight.
    Weight,
    /// An adapter beside the frozen weight.
    Adapter(Adapter<B>),
    /// Nothing: the weight is frozen.
    Nothing,
}

/// An adapter, as products read it.
pub(super) struct Adapter<B: Backend> {
    pub(super) rank: usize,
    /// `A`, `[in, rank]`.
    pub(super) down: B::Matrix,
    /// `B`, `[rank, out]`.
    pub(super) up: B::Matrix,
}

impl<B: Backend> Linear<B> {
    pub(super) fn new(w: B::Matrix, trained: Trained<B>) -> Self {
        Self { w, trained }
    }

    fn adapter(&self) -> Option<&Adapter<B>> {
        match &self.trained {
            Trained::Adapter(adapter) => Some(adapter),
            Trained::Weight | Trained::Nothing => None,
        }
    }

    /// `out = y`.
    pub(super) fn write(&self, b: &B, x: &B::Rows, rows: usize, out: &mut B::Rows) -> Result<()> {
        b.linear(x, self.w, out)?;
        let Some(adapter) = self.adapter() else {
            return Ok(());
        };
        b.linear_add_rows(&adapter.reduce(b, x, rows)?, adapter.up, out)
    }

    /// `out += y`.
    pub(super) fn add(&self, b: &B, x: &B::Rows, rows: usize, out: &mut B::Stream) -> Result<()> {
        b.linear_add(x, self.w, out)?;
        let Some(adapter) = self.adapter() else {
            return Ok(());
        };
        b.linear_add(&adapter.reduce(b, x, rows)?, adapter.up, out)
    }

    /// The gradient of `x`, given that of `y`.
    pub(super) fn input_gradient(
        &self,
        b: &B,
        g: &B::Rows,
        rows: usize,
        dx: &mut B::Rows,
    ) -> Result<()> {
        b.input_gradient(g, self.w, dx)?;
        let Some(adapter) = self.adapter() else {
            return Ok(());
        };
        b.input_gradient_add(&adapter.d_reduced(b, g, rows)?, adapter.down, dx)
    }

    /// The gradients of what is trained, given that of `y`: of the weight, or of `A` and `B` as products read them.
    pub(super) fn weight_gradients(
        &self,
        b: &B,
        x: &B::Rows,
        g: &B::Rows,
        rows: usize,
    ) -> Result<Vec<B::Gradient>> {
        match &self.trained {
            Trained::Weight => Ok(vec![b.weight_gradient(x, g, self.w)?]),
            Trained::Adapter(adapter) => {
                let d_reduced = adapter.d_reduced(b, g, rows)?;
                let d_down = b.weight_gradient(x, &d_reduced, adapter.down)?;
                let reduced = adapter.reduce(b, x, rows)?;
                Ok(vec![d_down, b.weight_gradient(&reduced, g, adapter.up)?])
            }
            Trained::Nothing => Ok(Vec::new()),
        }
    }
}

impl<B: Backend> Adapter<B> {
    /// `x A`.
    fn reduce(&self, b: &B, x: &B::Rows, rows: usize) -> Result<B::Rows> {
        let mut reduced = b.rows(rows, self.rank)?;
        b.linear(x, self.down, &mut reduced)?;
        Ok(reduced)
    }

    /// The gradient of `x A`, given that of `y`.
    fn d_reduced(&self, b: &B, g: &B::Rows, rows: usize) -> Result<B::Rows> {
        let mut d_reduced = b.rows(rows, self.rank)?;
        b.input_gradient(g, self.up, &mut d_reduced)?;
        Ok(d_reduced)
    }
}
