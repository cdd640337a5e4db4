//! A model's network on its CUDA device.

use std::marker::PhantomData;
use std::ops::Deref;

use candle_core::{Layout, Result, Storage};

use crate::cuda::{Cuda, Matrix, Number, device_of, numbers};
use crate::lora::Adapters;
use crate::model::Model;
use crate::qwen3::Network;

/// A model's network on its CUDA device, from read locks on what its products read.
pub(crate) fn network<'a, T: Number, G: Deref<Target = Storage>>(
    model: &'a Model,
    locked: &'a [(G, &Layout)],
) -> Result<Network<Cuda<'a, T>>> {
    let device = device_of(model.device())?;
    let backend = Cuda {
        device: device.clone(),
        heads: model.heads(),
        table: model.device_table(device)?,
        eps: model.eps(),
        number: PhantomData,
    };
    let gain = |index: usize| numbers::<f32>(&locked[index].0, locked[index].1);
    let matrix = |index: usize, [k, stride]: [usize; 2], n| -> Result<Matrix<'a, T>> {
        Ok(Matrix {
            data: numbers::<T>(&locked[index].0, locked[index].1)?,
            k,
            n,
            stride,
        })
    };
    let adapters = model.adapters().map(Adapters::layout);
    let config = model.config();
    Network::new(config, model.vocabulary(), adapters, backend, gain, matrix)
}
