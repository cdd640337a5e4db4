//! Decoding on CUDA, with the operators of training and a kernel for attention over the cache.

mod recorded;

use candle_core::cuda_backend::cudarc::driver::CudaSlice;

use super::{DeviceCache, Entry, rows_of};
use crate::cuda::{self, Cuda, Number};
use crate::error::Result;
use crate::model::Model;
use crate::qwen3::{Backend, Network, lock};
use crate::sample::{Draw, Sampled, diverged};
use recorded::{RecordedStep, RecordedSteps, recorded_rows};

/// Keys and values of all slots, and the steps that were recorded with them.
pub(super) struct CudaCache<T> {
    layers: LayerCaches<T>,
    lens: Vec<usize>,
    context: usize,
    /// Numbers of a position.
    width: usize,
    recorded: RecordedSteps,
}

/// Keys and values, per layer `[slots * context + 1, kv heads * dim]`. The last position is nobody's.
struct LayerCaches<T> {
    keys: Vec<CudaSlice<T>>,
    values: Vec<CudaSlice<T>>,
}

/// The rows of a step.
struct Rows {
    ids: CudaSlice<u32>,
    /// The place in the cache of each.
    cells: CudaSlice<u32>,
    /// The position in its sequence of each.
    positions: CudaSlice<u32>,
    /// Those whose logits are computed.
    last: CudaSlice<u32>,
}

impl<T: Number> LayerCaches<T> {
    /// The logits of the step's last rows, `[last, vocabulary]`.
    fn logits(
        &mut self,
        network: &Network<Cuda<'_, T>>,
        rows: &Rows,
    ) -> candle_core::Result<CudaSlice<f32>> {
        let b = &network.backend;
        let (ids, last) = ((&rows.ids, rows.ids.len()), (&rows.last, rows.last.len()));
        let places = [&rows.cells, &rows.positions];
        network.decode(ids, last, |number, layer, packed, mixed| {
            let (keys, values) = (&mut self.keys[number], &mut self.values[number]);
            let norms = [layer.q_norm, layer.k_norm];
            let q = b.cache_heads(packed, places, norms, keys, values)?;
            b.attend(&q, places, keys, values, mixed)
        })
    }
}

impl<T: Number> CudaCache<T> {
    pub(super) fn new(model: &Model, slots: usize, context: usize) -> Result<Self> {
        let device = cuda::device_of(model.device())?;
        let width = model.heads().key_value * model.heads().dim;
        let layers = || {
            (0..model.config().num_hidden_layers)
                .map(|_| device.alloc_zeros::<T>((slots * context + 1) * width))
                .collect::<candle_core::Result<Vec<_>>>()
        };
        let layers = LayerCaches {
            keys: layers()?,
            values: layers()?,
        };
        // Another thread, with another stream, may use them first.
        model.device().synchronize()?;
        Ok(Self {
            layers,
            lens: vec![0; slots],
            context,
            width,
            recorded: RecordedSteps::default(),
        })
    }

    /// The place in the cache and the position of each of the entries' rows.
    fn places(&self, entries: &[Entry<'_>]) -> (Vec<u32>, Vec<u32>) {
        let rows = entries.iter().flat_map(|entry| {
            let first = entry.slot * self.context;
            (entry.start..entry.start + entry.tokens.len())
                .map(move |position| ((first + position) as u32, position as u32))
        });
        rows.unzip()
    }

    /// The place in the cache that is nobody's.
    fn nobody(&self) -> u32 {
        (self.lens.len() * self.context) as u32
    }

    /// The logits after each entry's last token, `[entries, vocabulary]`.
    fn logits(
        &mut self,
        network: &Network<Cuda<'_, T>>,
        entries: &[Entry<'_>],
    ) -> candle_core::Result<CudaSlice<f32>> {
        let b = &network.backend;
        let (ids, last) = rows_of(entries);
        let (cells, positions) = self.places(entries);
        let rows = Rows {
            ids: b.indices(&ids)?,
            cells: b.indices(&cells)?,
            positions: b.indices(&positions)?,
            last: b.indices(&last)?,
        };
        let logits = self.layers.logits(network, &rows)?;
        self.read(entries);
        Ok(logits)
    }

    /// Notes that the entries' tokens were read.
    fn read(&mut self, entries: &[Entry<'_>]) {
        for entry in entries {
            self.lens[entry.slot] = entry.start + entry.tokens.len();
        }
    }

    /// The draws of a step in which every entry has one token. The first step of a size loads its kernels, the second is
    /// recorded, and from then on the recording is launched.
    fn recorded_step(
        &mut self,
        model: &Model,
        network: &Network<Cuda<'_, T>>,
        entries: &[Entry<'_>],
        draws: &[Option<Draw>],
    ) -> candle_core::Result<Vec<Option<Sampled>>> {
        let b = &network.backend;
        let (mut ids, _) = rows_of(entries);
        let (mut cells, mut positions) = self.places(entries);
        let mut draws = draws.to_vec();
        let rows = recorded_rows(entries.len());
        ids.resize(rows, 0);
        cells.resize(rows, self.nobody());
        positions.resize(rows, 0);
        draws.resize(rows, None);

        let known = self.recorded.take(model, rows);
        let mut step = match known {
            Some(step) => step,
            None => RecordedStep::new(b, rows)?,
        };
        step.set(&b.device, [&ids, &cells, &positions], &draws)?;
        step.run(b, |rows, draws| {
            let logits = self.layers.logits(network, rows)?;
            b.draw(&logits, draws)
        })?;
        let mut drawn = step.drawn(&b.device)?;
        self.recorded.put(rows, step);
        self.read(entries);
        drawn.truncate(entries.len());
        Ok(drawn)
    }
}

impl<T: Number> DeviceCache for CudaCache<T> {
    fn len(&self, slot: usize) -> usize {
        self.lens.get(slot).copied().unwrap_or(0)
    }

    fn copy_prefix(&mut self, from: usize, to: usize, len: usize) -> Result<()> {
        let place = |slot: usize| slot * self.context * self.width;
        for cache in self.layers.keys.iter().chain(&self.layers.values) {
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
        let drawn = if entries.iter().all(|entry| entry.tokens.len() == 1) {
            self.recorded_step(model, &network, entries, draws)?
        } else {
            let logits = self.logits(&network, entries)?;
            network.backend.sample(&logits, draws)?
        };
        let drawn = draws.iter().zip(drawn).map(|(draw, drawn)| {
            let Some(draw) = draw else { return Ok(None) };
            drawn.map(Some).ok_or_else(|| diverged(draw.key))
        });
        drawn.collect::<Result<_>>().map(Some)
    }
}
