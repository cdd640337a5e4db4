//! AdamW's arithmetic on CUDA, and sums of gradients.

use candle_core::{Result, Tensor, bail};
use half::bf16;

use super::launch::{At, Kernel};
use super::{PACK, ROW, SHARES, address, device_of};

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
            .at(address::<f32>(tensor)?)
            .long(tensor.elem_count())
            .at(At::new(&sums, index * SHARES))
            .launch((SHARES, 1), ROW)?;
    }
    Ok(device.clone_dtoh(&sums)?.into_iter().map(f64::from).sum())
}

/// Adds a gradient to the sum of those before, in place. Both are contiguous and f32.
pub(crate) fn add(sum: &Tensor, gradient: &Tensor) -> Result<()> {
    let count = sum.elem_count();
    Kernel::new(device_of(sum.device())?, "add")
        .at(address::<f32>(sum)?)
        .at(address::<f32>(gradient)?)
        .long(count)
        .launch_each(count.div_ceil(PACK))
}

/// Moves weights and their moments `[2, numbers]` by a gradient. All are contiguous and f32.
pub(crate) fn step(
    weights: &Tensor,
    moments: &Tensor,
    gradient: &Tensor,
    [beta1, beta2, scale]: [f32; 3],
    [keep, rate, correction2, epsilon]: [f32; 4],
) -> Result<()> {
    if ![weights, moments, gradient]
        .iter()
        .all(|x| x.is_contiguous())
    {
        bail!("the optimiser needs contiguous weights, state and gradients");
    }
    let count = weights.elem_count();
    Kernel::new(device_of(weights.device())?, "adamw")
        .at(address::<f32>(weights)?)
        .at(address::<f32>(moments)?)
        .at(address::<f32>(gradient)?)
        .long(count)
        .float(beta1)
        .float(beta2)
        .float(scale)
        .float(keep)
        .float(rate)
        .float(correction2)
        .float(epsilon)
        .launch_each(count.div_ceil(PACK))
}

/// Copies weights in f32 to an operand in bf16. Both are contiguous.
pub(crate) fn to_bf16(weights: &Tensor, operand: &Tensor) -> Result<()> {
    let count = weights.elem_count();
    Kernel::of::<bf16>(device_of(weights.device())?, "to_operand")
        .at(address::<f32>(weights)?)
        .at(address::<bf16>(operand)?)
        .long(count)
        .launch_each(count.div_ceil(PACK))
}
