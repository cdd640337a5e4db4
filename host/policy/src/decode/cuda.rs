//! Decoding on CUDA, with the operators of training and a kernel for attention over the cache.

mod recorded;

use candle_core::CudaDevice;
use candle_core::cuda_backend::cudarc::driver::CudaSlice;

use super::{DeviceCache, PAGE_TOKENS, Placed, pages_of, rows_of};
use crate::cuda::{self, Cuda, Number, Recording};
use crate::cuda_network::network;
use crate::error::Result;
use crate::model::Model;
use crate::qwen3::{Backend, Network, lock};
use crate::sample::{Draw, Sampled, diverged};
use recorded::{RecordedStep, RecordedSteps, recorded_rows};

/// Keys and values of all pages, and the steps that were recorded with them.
pub(super) struct CudaCache<T> {
    device: CudaDevice,
    layers: LayerCaches<T>,
    /// Numbers of a page in a layer.
    page: usize,
    /// A page that no sequence has. Rows without a sequence use it.
    spare: u32,
    /// Number of pages of the longest sequence.
    longest: usize,
    /// True if the device can record steps.
    records: bool,
    recorded: RecordedSteps,
}

/// Keys and values, per layer `[pages * positions of a page, kv heads * dim]`.
struct LayerCaches<T> {
    keys: Vec<CudaSlice<T>>,
    values: Vec<CudaSlice<T>>,
}

/// The places of a step's rows, as index arrays.
#[derive(Default)]
struct Places {
    ids: Vec<u32>,
    /// Cache row of each row: where its key and value go.
    cells: Vec<u32>,
    /// Position of each row in its sequence.
    positions: Vec<u32>,
    /// Where the table of each row's sequence starts in `tables`.
    starts: Vec<u32>,
    /// The tables of all sequences, one after the other: pages in the order of positions.
    tables: Vec<u32>,
    /// The rows whose logits are computed.
    last: Vec<u32>,
}

impl Places {
    fn new(entries: &[Placed<'_>]) -> Self {
        let (ids, last) = rows_of(entries.iter().map(|placed| &placed.entry));
        let mut places = Self {
            ids,
            last,
            ..Self::default()
        };
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

/// [`Places`] on the device.
struct DevicePlaces {
    ids: CudaSlice<u32>,
    cells: CudaSlice<u32>,
    positions: CudaSlice<u32>,
    starts: CudaSlice<u32>,
    tables: CudaSlice<u32>,
    last: CudaSlice<u32>,
}

impl DevicePlaces {
    fn new<T: Number>(b: &Cuda<'_, T>, places: &Places) -> candle_core::Result<Self> {
        Ok(Self {
            ids: b.indices(&places.ids)?,
            cells: b.indices(&places.cells)?,
            positions: b.indices(&places.positions)?,
            starts: b.indices(&places.starts)?,
            tables: b.indices(&places.tables)?,
            last: b.indices(&places.last)?,
        })
    }
}

impl<T: Number> LayerCaches<T> {
    /// Fills the cache with the step's rows. Returns the logits of the last ones, `[last, vocabulary]`.
    fn logits(
        &mut self,
        network: &Network<Cuda<'_, T>>,
        places: &DevicePlaces,
    ) -> candle_core::Result<CudaSlice<f32>> {
        let b = &network.backend;
        let ids = (&places.ids, places.ids.len());
        let last = (&places.last, places.last.len());
        let positions = &places.positions;
        network.decode(ids, last, |number, layer, packed, mixed| {
            let (keys, values) = (&mut self.keys[number], &mut self.values[number]);
            let norms = [layer.q_norm, layer.k_norm];
            let q = b.cache_heads(packed, [&places.cells, positions], norms, keys, values)?;
            let tables = [&places.starts, &places.tables];
            b.attend(&q, positions, tables, keys, values, mixed)
        })
    }
}

impl<T: Number> CudaCache<T> {
    /// A cache of so many pages for a model's shape, and sequences of up to `context` tokens.
    pub(super) fn new(model: &Model, pages: usize, context: usize) -> Result<Self> {
        let device = cuda::device_of(model.device())?;
        let page = PAGE_TOKENS * model.heads().key_value * model.heads().dim;
        let layers = || {
            (0..model.config().num_hidden_layers)
                .map(|_| device.alloc_zeros::<T>((pages + 1) * page))
                .collect::<candle_core::Result<Vec<_>>>()
        };
        let layers = LayerCaches {
            keys: layers()?,
            values: layers()?,
        };
        // Another thread, with another stream, may use them first.
        model.device().synchronize()?;
        Ok(Self {
            device: device.clone(),
            layers,
            page,
            spare: pages as u32,
            longest: pages_of(context),
            records: Recording::is_possible(device),
            recorded: RecordedSteps::default(),
        })
    }

    /// The logits after each entry's last token, `[entries, vocabulary]`.
    fn logits(
        &mut self,
        network: &Network<Cuda<'_, T>>,
        entries: &[Placed<'_>],
    ) -> candle_core::Result<CudaSlice<f32>> {
        let places = DevicePlaces::new(&network.backend, &Places::new(entries))?;
        self.layers.logits(network, &places)
    }

    /// The places of `rows` rows: one for each entry, and spare ones. Every table takes as much room as the longest.
    fn recorded_places(&self, entries: &[Placed<'_>], rows: usize) -> Places {
        let mut places = Places::new(entries);
        places.ids.resize(rows, 0);
        places.cells.resize(rows, self.spare * PAGE_TOKENS as u32);
        places.positions.resize(rows, 0);
        places.starts = (0..rows).map(|row| (row * self.longest) as u32).collect();
        places.tables = vec![self.spare; rows * self.longest];
        for (room, placed) in places.tables.chunks_mut(self.longest).zip(entries) {
            room[..placed.table.len()].copy_from_slice(placed.table);
        }
        places.last = (0..rows as u32).collect();
        places
    }

    /// The draws of a step in which every entry has one token.
    fn recorded_step(
        &mut self,
        model: &Model,
        network: &Network<Cuda<'_, T>>,
        entries: &[Placed<'_>],
        draws: &[Option<Draw>],
    ) -> candle_core::Result<Vec<Option<Sampled>>> {
        let b = &network.backend;
        let rows = recorded_rows(entries.len());
        let places = self.recorded_places(entries, rows);
        let mut draws = draws.to_vec();
        draws.resize(rows, None);
        let mut step = match self.recorded.take(model, rows) {
            Some(mut step) => {
                step.set_places(&b.device, &places)?;
                step
            }
            None => RecordedStep::new(b, &places)?,
        };
        step.set_draws(&b.device, &draws)?;
        step.run(b, |places, draws| {
            let logits = self.layers.logits(network, places)?;
            b.draw(&logits, draws)
        })?;
        let mut drawn = step.drawn(&b.device)?;
        self.recorded.put(rows, step);
        drawn.truncate(entries.len());
        Ok(drawn)
    }
}

impl<T> Drop for CudaCache<T> {
    fn drop(&mut self) {
        self.recorded = RecordedSteps::default();
        Recording::free_unused_memory(&self.device);
    }
}

impl<T: Number> DeviceCache for CudaCache<T> {
    fn copy_page(&mut self, from: usize, to: usize) -> Result<()> {
        for cache in self.layers.keys.iter().chain(&self.layers.values) {
            cuda::copy_within(cache, from * self.page, to * self.page, self.page)?;
        }
        Ok(())
    }

    fn step(&mut self, model: &Model, entries: &[Placed<'_>]) -> Result<Vec<f32>> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let locked = lock(model.operands());
        let network = network::<T, _>(model, &locked)?;
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
        let network = network::<T, _>(model, &locked)?;
        let has_one_token = |placed: &Placed<'_>| placed.entry.tokens.len() == 1;
        let drawn = if self.records && entries.iter().all(has_one_token) {
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
