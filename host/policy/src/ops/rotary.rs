//! Rotary positions, half-split as in Qwen and Llama (RoFormer, Su et al. 2021, with transformers' `rotate_half`).

#[cfg(feature = "cuda")]
use candle_core::{CudaDevice, cuda_backend::cudarc::driver::CudaSlice};
use candle_core::{Device, Result, Tensor};

/// Cosines and sines for every position, `[positions, head_dim / 2]`.
#[derive(Debug, Clone)]
pub struct RotaryTable {
    cos: Vec<f32>,
    sin: Vec<f32>,
    half: usize,
}

impl RotaryTable {
    /// The table of positions `0..positions`. Angles are rounded to f32 where transformers rounds them, so that long contexts
    /// agree with checkpoints trained there.
    pub fn new(head_dim: usize, theta: f64, positions: usize) -> Self {
        let half = head_dim / 2;
        let frequencies: Vec<f32> = (0..half)
            .map(|i| 1.0 / (theta.powf(2.0 * i as f64 / head_dim as f64) as f32))
            .collect();
        let angles = || {
            (0..positions).flat_map(|position| {
                frequencies
                    .iter()
                    .map(move |f| f64::from(position as f32 * f))
            })
        };
        Self {
            cos: angles().map(|angle| angle.cos() as f32).collect(),
            sin: angles().map(|angle| angle.sin() as f32).collect(),
            half,
        }
    }

    /// Positions in the table.
    pub fn positions(&self) -> usize {
        self.cos.len() / self.half
    }

    /// Cosines and sines at one position.
    #[inline]
    pub(crate) fn at(&self, position: usize) -> (&[f32], &[f32]) {
        let range = position * self.half..(position + 1) * self.half;
        (&self.cos[range.clone()], &self.sin[range])
    }

    /// The first `positions` rows as tensors, for the plain operators.
    pub(crate) fn tensors(&self, positions: usize, device: &Device) -> Result<(Tensor, Tensor)> {
        let n = positions * self.half;
        Ok((
            Tensor::from_slice(&self.cos[..n], (positions, self.half), device)?,
            Tensor::from_slice(&self.sin[..n], (positions, self.half), device)?,
        ))
    }
}

/// A table on a CUDA device, `[positions, head_dim / 2]`.
#[cfg(feature = "cuda")]
#[derive(Debug)]
pub(crate) struct DeviceTable {
    pub(crate) cos: CudaSlice<f32>,
    pub(crate) sin: CudaSlice<f32>,
}

#[cfg(feature = "cuda")]
impl DeviceTable {
    pub(crate) fn new(table: &RotaryTable, device: &CudaDevice) -> Result<Self> {
        Ok(Self {
            cos: device.clone_htod(&table.cos)?,
            sin: device.clone_htod(&table.sin)?,
        })
    }
}

/// Rotates one head in place.
#[inline(always)]
pub(super) fn rotate(x: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (a, b) = x.split_at_mut(cos.len());
    for (((a, b), c), s) in a.iter_mut().zip(b).zip(cos).zip(sin) {
        let (p, q) = (*a, *b);
        *a = p * c - q * s;
        *b = q * c + p * s;
    }
}

/// Applies the transpose of [`rotate`], which is also its inverse: the backward pass.
#[inline(always)]
pub(super) fn rotate_back(x: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (a, b) = x.split_at_mut(cos.len());
    for (((a, b), c), s) in a.iter_mut().zip(b).zip(cos).zip(sin) {
        let (p, q) = (*a, *b);
        *a = p * c + q * s;
        *b = q * c - p * s;
    }
}

/// Rotates x `[.., positions, head_dim]` with tables `[positions, head_dim / 2]` (or of a shape that broadcasts), in
/// candle's operators.
pub(crate) fn plain_rotate(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let last = x.rank() - 1;
    let half = x.dim(last)? / 2;
    let (a, b) = (x.narrow(last, 0, half)?, x.narrow(last, half, half)?);
    let left = (a.broadcast_mul(cos)? - b.broadcast_mul(sin)?)?;
    let right = (b.broadcast_mul(cos)? + a.broadcast_mul(sin)?)?;
    Tensor::cat(&[left, right], last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotating_back_undoes_rotating() {
        let table = RotaryTable::new(8, 1e4, 50);
        let x: Vec<f32> = (0..8).map(|i| i as f32 - 3.0).collect();
        let mut y = x.clone();
        let (cos, sin) = table.at(37);
        rotate(&mut y, cos, sin);
        assert!(x.iter().zip(&y).any(|(x, y)| (x - y).abs() > 0.1));
        rotate_back(&mut y, cos, sin);
        assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-5));
    }
}
