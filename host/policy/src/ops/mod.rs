//! The operators of a Qwen3 block.
//!
//! Each file holds one: its arithmetic forwards and backwards on slices of f32, fused for the CPU, which training and
//! decoding share; and a plain twin in candle's differentiable operators, for other devices and for checking. On the
//! CPU every row that an operator gives has bits that depend on that row's inputs alone.
//!
//! Fused operators use one thread: micro-batches and decoded rows are what threads share. Only where a step of decoding
//! has few rows do threads share a product. Fused operators are not on candle's tape, which adds every gradient to a fresh
//! tensor of zeros and takes a lock to do so; [`crate::qwen3`] makes the backward pass itself.

#![allow(clippy::inline_always)] // See `simd`: kernels are inlined into the function that knows the processor.

pub mod attention;
pub(crate) mod attention_backward;
pub(crate) mod attention_plain;
mod attention_rows;
pub(crate) mod bf16;
mod by_hand;
mod columns;
pub mod embedding;
mod few_rows;
pub mod head;
pub mod linear;
pub mod norm;
pub mod rotary;
pub mod swiglu;
#[cfg(test)]
mod twin;
pub(crate) mod weight;

use candle_core::{CpuStorage, Layout, Result, Storage, Tensor, bail};

/// The numbers of a contiguous f32 operand.
pub(crate) fn numbers<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(all), Some((from, to))) => Ok(&all[from..to]),
        (CpuStorage::F32(_), None) => {
            bail!("a fused operator needs a contiguous operand, got {layout:?}")
        }
        _ => bail!(
            "a fused operator needs f32, got {:?}",
            storage_kind(storage)
        ),
    }
}

/// The numbers of a contiguous f32 operand that an operator changes in place.
pub(crate) fn numbers_mut<'a>(
    storage: &'a mut CpuStorage,
    layout: &Layout,
) -> Result<&'a mut [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(all), Some((from, to))) => Ok(&mut all[from..to]),
        _ => bail!("an operator in place needs contiguous f32 numbers, got {layout:?}"),
    }
}

fn storage_kind(storage: &CpuStorage) -> candle_core::DType {
    candle_core::backend::BackendStorage::dtype(storage)
}

/// Calls `f` with the numbers of a contiguous f32 tensor on the CPU.
pub(crate) fn with_numbers<R>(tensor: &Tensor, f: impl FnOnce(&[f32]) -> R) -> Result<R> {
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => Ok(f(numbers(storage, layout)?)),
        _ => bail!("a fused operator needs a tensor on the CPU"),
    }
}
