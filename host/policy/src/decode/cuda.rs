//! Decoding on CUDA, with the operators of training and a kernel for attention over the cache.

use candle_core::cuda_backend::cudarc::driver::CudaSlice;

use super::{DeviceCache, PAGE_TOKENS, Placed, rows_of};
use crate::cuda::{self, Cuda, Number};
use crate::error::Result;
use crate::model::Model;
use crate::qwen3::{Backend, Network, lock};
use crate::sample::{Draw, Sampled, diverged};

/// Keys and values of all pages, per layer `[pages * positions of a page, kv heads * dim]`.
pub(super) struct CudaCache<T> {
    keys: Vec<CudaSlice<T>>,
    values: Vec<CudaSlice<T>>,
    /// Numbers of a page in a layer.
    page: usize,
}

/// The places of a step's rows, as index arrays.
#[derive(Default)]
struct Places {
    /// Cache row of each row: where its key and value go.
    cells: Vec<u32>,
    /// Position of each row in its sequence.
    positions: Vec<u32>,
    /// Where the table of each row's sequence starts in `tables`.
    starts: Vec<u32>,
    /// The tables of all sequences, one after the other: pages in the order of positions.
    tables: Vec<u32>,
}

impl Places {
    fn new(entries: &[Placed<'_>]) -> Self {
        let mut places = Self::default();
        for placed in entries {
            for position in placed.entry.start..placed.entry.end() {
                places.cells.push(placed.cell(position) as u32);
                places.positions.push(position as u32);
                places.starts.push(places.tables.len() as u32);
            }
            places.tables.extend_from_slice(placed.table);
        }
        places
    }
}

impl<T: Number> CudaCache<T> {
    /// A cache of so many pages for a model's shape.
    pub(super) fn new(model: &Model, pages: usize) -> Result<Self> {
        let device = cuda::device_of(model.device())?;
        let page = PAGE_TOKENS * model.heads().key_value * model.heads().dim;
        let layers = || {
            (0..model.config().num_hidden_layers)
                .map(|_| device.alloc_zeros::<T>(pages * page))
                .collect::<candle_core::Result<Vec<_>>>()
        };
        let (keys, values) = (layers()?, layers()?);
        // Another thread, with another stream, may use them first.
        model.device().synchronize()?;
        Ok(Self { keys, values, page })
    }

    /// The logits after each entry's last token, `[entries, vocabulary]`.
    fn logits(
        &mut self,
        network: &Network<Cuda<'_, T>>,
        entries: &[Placed<'_>],
    ) -> candle_core::Result<CudaSlice<f32>> {
        let b = &network.backend;
        let (ids, last) = rows_of(entries.iter().map(|placed| &placed.entry));
        let places = Places::new(entries);
        let (cells, positions) = (b.indices(&places.cells)?, b.indices(&places.positions)?);
        let (starts, tables) = (b.indices(&places.starts)?, b.indices(&places.tables)?);
        network.decode(&ids, &last, |number, layer, packed, mixed| {
            let (keys, values) = (&mut self.keys[number], &mut self.values[number]);
            let norms = [layer.q_norm, layer.k_norm];
            let q = b.cache_heads(packed, [&cells, &positions], norms, keys, values)?;
            b.attend(&q, &positions, [&starts, &tables], keys, values, mixed)
        })
    }
}

impl<T: Number> DeviceCache for CudaCache<T> {
    fn copy_page(&mut self, from: usize, to: usize) -> Result<()> {
        for cache in self.keys.iter().chain(&self.values) {
            cuda::copy_within(cache, from * self.page, to * self.page, self.page)?;
        }
        Ok(())
    }

    fn step(&mut self, model: &Model, entries: &[Placed<'_>]) -> Result<Vec<f32>> {
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
        entries: &[Placed<'_>],
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
