//! Decoding on CUDA, with the operators of training and a kernel for attention over the cache.

use candle_core::cuda_backend::cudarc::driver::CudaSlice;

use super::{DeviceCache, Entry, rows_of};
use crate::cuda::{self, Cuda, Number};
use crate::error::Result;
use crate::model::Model;
use crate::qwen3::{Backend, Network, lock};
use crate::sample::{Draw, Sampled, diverged};

/// Keys and values of all slots, per layer `[slots * context, kv heads * dim]`.
pub(super) struct CudaCache<T> {
    keys: Vec<CudaSlice<T>>,
    values: Vec<CudaSlice<T>>,
    lens: Vec<usize>,
    context: usize,
    /// Numbers of a position.
    width: usize,
}

impl<T: Number> CudaCache<T> {
    pub(super) fn new(model: &Model, slots: usize, context: usize) -> Result<Self> {
        let device = cuda::device_of(model.device())?;
        let width = model.heads().key_value * model.heads().dim;
        let layers = || {
            (0..model.config().num_hidden_layers)
                .map(|_| device.alloc_zeros::<T>(slots * context * width))
                .collect::<candle_core::Result<Vec<_>>>()
        };
        let (keys, values) = (layers()?, layers()?);
        // Another thread, with another stream, may use them first.
        model.device().synchronize()?;
        Ok(Self {
            keys,
            values,
            lens: vec![0; slots],
            context,
            width,
        })
    }

    /// The logits after each entry's last token, `[entries, vocabulary]`.
    fn logits(
        &mut self,
        network: &Network<Cuda<'_, T>>,
        entries: &[Entry<'_>],
    ) -> candle_core::Result<CudaSlice<f32>> {
        let b = &network.backend;
        let (ids, last) = rows_of(entries);
        let (mut cells, mut positions) = (Vec::new(), Vec::new());
        for entry in entries {
            for position in entry.start..entry.start + entry.tokens.len() {
                cells.push((entry.slot * self.context + position) as u32);
                positions.push(position as u32);
            }
        }
        let places = [&b.indices(&cells)?, &b.indices(&positions)?];
        let logits = network.decode(&ids, &last, |number, layer, packed, mixed| {
            let (keys, values) = (&mut self.keys[number], &mut self.values[number]);
            let norms = [layer.q_norm, layer.k_norm];
            let q = b.cache_heads(packed, places, norms, keys, values)?;
            b.attend(&q, places, keys, values, mixed)
        })?;
        for entry in entries {
            self.lens[entry.slot] = entry.start + entry.tokens.len();
        }
        Ok(logits)
    }
}

impl<T: Number> DeviceCache for CudaCache<T> {
    fn len(&self, slot: usize) -> usize {
        self.lens.get(slot).copied().unwrap_or(0)
    }

    fn copy_prefix(&mut self, from: usize, to: usize, len: usize) -> Result<()> {
        let place = |slot: usize| slot * self.context * self.width;
        for cache in self.keys.iter().chain(&self.values) {
            cuda::copy_within(cache, place(from), place(to), len * self.width)?;
        }
        self.lens[to] = len;
        Ok(())
    }

    fn step(&mut self, model: &Model, entries: &[Entry<'_>]) -> Result<Vec<f32>> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let locked = lock(model.operands());
        let network = cuda::network::<T, _>(model, &locked)?;
        let logits = self.logits(&network, entries)?;
        Ok(network.backend.device.clone_dtoh(&logits)?)
    }

    fn sample(
        &mut self,
        model: &Model,
        entries: &[Entry<'_>],
        draws: &[Option<Draw>],
    ) -> Result<Option<Vec<Option<Sampled>>>> {
        let made = draws.iter().flatten();
        if entries.is_empty() || !cuda::can_sample(model.vocabulary(), made) {
            return Ok(None);
        }
        let locked = lock(model.operands());
        let network = cuda::network::<T, _>(model, &locked)?;
        let logits = self.logits(&network, entries)?;
        let drawn = network.backend.sample(&logits, draws)?;
        let drawn = draws.iter().zip(drawn).map(|(draw, drawn)| {
            let Some(draw) = draw else { return Ok(None) };
            drawn.map(Some).ok_or_else(|| diverged(draw.key))
        });
        drawn.collect::<Result<_>>().map(Some)
    }
}
