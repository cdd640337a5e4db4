//! Gradients by hand on candle's tape, for operators whose own gradients there are slow or keep much.

use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, CudaStorage, CustomOp3, Layout, Result, Shape, Tensor};

/// Passes its third operand on, and the gradients to the first two.
struct ByHand<F> {
    gradients: F,
}

impl<F: Fn(&Tensor, &Tensor) -> Result<(Tensor, Option<Tensor>)>> CustomOp3 for ByHand<F> {
    fn name(&self) -> &'static str {
        "by-hand"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        y: &CpuStorage,
        layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        Ok((y.try_clone(layout)?, layout.shape().clone()))
    }

    fn cuda_fwd(
        &self,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
        y: &CudaStorage,
        layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        Ok((y.try_clone(layout)?, layout.shape().clone()))
    }

    fn bwd(
        &self,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
        y: &Tensor,
        d: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (dx, dw) = (self.gradients)(&y.detach(), &d.contiguous()?)?;
        Ok((Some(dx), dw, None))
    }
}

/// Puts `y`, a new tensor that was computed from `x.detach()`, on the tape of `x`, if `x` is on one. `gradient` computes
/// the gradient of `x` from `y` and the gradient of `y`.
pub(super) fn by_hand(
    x: &Tensor,
    y: Tensor,
    gradient: impl Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<Tensor> {
    with_weight(x, x, y, move |y, d| Ok((gradient(y, d)?, None)))
}

/// Like [`by_hand`], with the gradient of a weight `w` too.
pub(super) fn with_weight(
    x: &Tensor,
    w: &Tensor,
    y: Tensor,
    gradients: impl Fn(&Tensor, &Tensor) -> Result<(Tensor, Option<Tensor>)> + Send + Sync + 'static,
) -> Result<Tensor> {
    if x.track_op() || w.track_op() {
        x.apply_op3(w, &y, ByHand { gradients })
    } else {
        Ok(y)
    }
}
