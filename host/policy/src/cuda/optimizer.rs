//! AdamW's arithmetic on CUDA, and the norm of gradients.

use candle_core::cuda_backend::cudarc::driver::CudaSlice;
use candle_core::{CudaDevice, CudaStorage, Layout, Result, Tensor, bail};

use super::launch::{At, Kernel};
use super::{ROW, SHARES, address, device_of};

/// The sum of squares over all `tensors`, contiguous and f32.
pub(crate) fn sum_of_squares<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> Result<f64> {
    let tensors: Vec<Tensor> = tensors.map(Tensor::contiguous).collect::<Result<_>>()?;
    let Some(first) = tensors.first() else {
        return Ok(0.0);
    };
    let device = device_of(first.device())?;
    let sums = device.alloc_zeros::<f32>(tensors.len() * SHARES)?;
    for (index, tensor) in tensors.iter().enumerate() {
        Kernel::new(device, "sum_of_squares")
            .at(address(tensor)?)
            .long(tensor.elem_count())
            .at(At::new(&sums, index * SHARES))
            .launch((SHARES, 1), ROW)?;
    }
    Ok(device.clone_dtoh(&sums)?.into_iter().map(f64::from).sum())
}

/// The numbers of an operand that an in-place operator got.
fn whole(storage: &CudaStorage, layout: &Layout) -> Result<At<f32>> {
    if !layout.is_contiguous() {
        bail!("the optimiser needs contiguous state");
    }
    let slice: &CudaSlice<f32> = storage.as_cuda_slice()?;
    Ok(At::new(slice, layout.start_offset()))
}

/// Moves the moments `[2, numbers]` towards the gradient times `scale` and its square.
pub(crate) fn moments(
    device: &CudaDevice,
    moments: (&CudaStorage, &Layout),
    gradient: (&CudaStorage, &Layout),
    [beta1, beta2, scale]: [f32; 3],
) -> Result<()> {
    let count = gradient.1.shape().elem_count();
    Kernel::new(device, "adamw_moments")
        .at(whole(moments.0, moments.1)?)
        .at(whole(gradient.0, gradient.1)?)
        .long(count)
        .float(beta1)
        .float(beta2)
        .float(scale)
        .launch_each(count)
}

/// Moves the weights by their moments.
pub(crate) fn apply(
    device: &CudaDevice,
    weights: (&CudaStorage, &Layout),
    moments: (&CudaStorage, &Layout),
    [keep, rate, correction2, epsilon]: [f32; 4],
) -> Result<()> {
    let count = weights.1.shape().elem_count();
    Kernel::new(device, "adamw_apply")
        .at(whole(weights.0, weights.1)?)
        .at(whole(moments.0, moments.1)?)
        .long(count)
        .float(keep)
        .float(rate)
        .float(correction2)
        .float(epsilon)
        .launch_each(count)
}
