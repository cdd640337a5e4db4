//! Decoding on CUDA, with the operators of training and a kernel for attention over the cache.

use candle_core::cuda_backend::cudarc::driver::CudaSlice;

use super::{DeviceCache, Entry};
use crate::cuda::{self, Cuda, Number};
use crate::error::Result;
use crate::model::Model;
use crate::qwen3::{Backend, Layer, Network, lock};
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

    /// Attention of one layer: packed rows to the rows after it.
    fn attend<'a>(
        &mut self,
        cuda: &Cuda<'a, T>,
        layer: &Layer<Cuda<'a, T>>,
        number: usize,
        packed: &CudaSlice<T>,
        [cells, positions]: [&CudaSlice<u32>; 2],
        out: &mut CudaSlice<T>,
    ) -> candle_core::Result<()> {
        let (keys, values) = (&mut self.keys[number], &mut self.values[number]);
        let norms = [layer.q_norm, layer.k_norm];
        let q = cuda.cache_heads(packed, [cells, positions], norms, keys, values)?;
        cuda.attend(&q, [cells, positions], keys, values, out)
    }

    /// The logits after each entry's last token, `[entries, vocabulary]`.
    fn logits(
        &mut self,
        network: &Network<Cuda<'_, T>>,
        entries: &[Entry<'_>],
    ) -> candle_core::Result<CudaSlice<f32>> {
        let (b, widths) = (&network.backend, network.widths);
        let (mut ids, mut cells, mut positions, mut last) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            for (offset, id) in entry.tokens.iter().enumerate() {
                let position = entry.start + offset;
                ids.push(*id);
                cells.push((entry.slot * self.context + position) as u32);
                positions.push(position as u32);
            }
            last.push(ids.len() as u32 - 1);
        }
        let rows = ids.len();
        let upload = |numbers: &[u32]| b.device.clone_htod(numbers);
        let (cells, positions) = (upload(&cells)?, upload(&positions)?);
        let mut x = b.room(rows * widths.hidden)?;
        b.embed_ids(network.embedding, &upload(&ids)?, rows, &mut x)?;
        let mut normed = b.rows(rows, widths.hidden)?;
        let mut packed = b.rows(rows, widths.packed)?;
        let mut mixed = b.rows(rows, widths.mixed)?;
        let mut wide = b.rows(rows, 2 * widths.inner)?;
        let mut gated = b.rows(rows, widths.inner)?;
        for (number, layer) in network.layers.iter().enumerate() {
            b.rms_norm(&x, layer.input_norm, &mut normed)?;
            b.linear(&normed, layer.qkv, &mut packed)?;
            let places = [&cells, &positions];
            self.attend(b, layer, number, &packed, places, &mut mixed)?;
            b.linear_add(&mixed, layer.out, &mut x)?;
            b.rms_norm(&x, layer.post_norm, &mut normed)?;
            b.linear(&normed, layer.gate_up, &mut wide)?;
            b.swiglu(&wide, widths.inner, &mut gated)?;
            b.linear_add(&gated, layer.down, &mut x)?;
        }
        let x = b.gather(&x, &upload(&last)?, entries.len(), widths.hidden)?;
        let mut normed = b.rows(entries.len(), widths.hidden)?;
        b.rms_norm(&x, network.norm, &mut normed)?;
        let logits = b.logits(&normed, entries.len(), network.head)?;
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
