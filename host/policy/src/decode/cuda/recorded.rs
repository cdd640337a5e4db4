//! Steps of one token for each sequence, recorded on the device by their number of rows.

use std::collections::HashMap;

use candle_core::cuda_backend::cudarc::driver::CudaSlice;
use candle_core::{CudaDevice, Result, TensorId};

use super::{DevicePlaces, Places};
use crate::cuda::{Cuda, DeviceDraws, Number, Recording};
use crate::model::Model;
use crate::sample::{Draw, Sampled};

/// Steps of one model's operands.
#[derive(Default)]
pub(super) struct RecordedSteps {
    operands: Vec<TensorId>,
    by_rows: HashMap<usize, RecordedStep>,
}

impl RecordedSteps {
    /// Takes out the step with this many rows, if there is one. Steps of another model's operands are forgotten.
    pub(super) fn take(&mut self, model: &Model, rows: usize) -> Option<RecordedStep> {
        let operands = || model.operands().iter().map(candle_core::Tensor::id);
        if !operands().eq(self.operands.iter().copied()) {
            self.operands = operands().collect();
            self.by_rows.clear();
        }
        self.by_rows.remove(&rows)
    }

    /// Keeps a step for the next time.
    pub(super) fn put(&mut self, rows: usize, step: RecordedStep) {
        self.by_rows.insert(rows, step);
    }
}

/// The number of rows that a step of `entries` rows is recorded with. The others are filled up, so that there are not too
/// many recordings.
pub(super) fn recorded_rows(entries: usize) -> usize {
    match entries {
        ..=8 => entries,
        9..=64 => entries.next_multiple_of(8),
        _ => entries.next_multiple_of(32),
    }
}

/// A step in buffers of its own.
pub(super) struct RecordedStep {
    // Dropped before the buffers that it uses.
    recording: Option<Recording>,
    /// True if it ran once.
    loaded: bool,
    places: DevicePlaces,
    draws: DeviceDraws,
}

impl RecordedStep {
    /// A step with these places that was not recorded yet.
    pub(super) fn new<T: Number>(b: &Cuda<'_, T>, places: &Places) -> Result<Self> {
        Ok(Self {
            recording: None,
            loaded: false,
            places: DevicePlaces::new(b, places)?,
            draws: b.room_for_draws(places.ids.len())?,
        })
    }

    /// Replaces the places by those of another step with as many rows.
    pub(super) fn set_places(&mut self, device: &CudaDevice, places: &Places) -> Result<()> {
        let copy = |from: &[u32], to: &mut CudaSlice<u32>| device.memcpy_htod(from, to);
        copy(&places.ids, &mut self.places.ids)?;
        copy(&places.cells, &mut self.places.cells)?;
        copy(&places.positions, &mut self.places.positions)?;
        // Starts and last rows are always the same.
        copy(&places.tables, &mut self.places.tables)
    }

    /// Sets the draws of all rows.
    pub(super) fn set_draws(&mut self, device: &CudaDevice, draws: &[Option<Draw>]) -> Result<()> {
        self.draws.set(device, draws)
    }

    /// Runs the step. The first time, `launch` launches its kernels one by one, which loads them; the second time, they are
    /// recorded; and from then on, the recording is launched.
    pub(super) fn run<T: Number>(
        &mut self,
        b: &Cuda<'_, T>,
        launch: impl FnOnce(&DevicePlaces, &mut DeviceDraws) -> Result<()>,
    ) -> Result<()> {
        if !self.loaded {
            launch(&self.places, &mut self.draws)?;
            self.loaded = true;
            return Ok(());
        }
        let recording = match &mut self.recording {
            Some(recording) => recording,
            none => {
                let (places, draws) = (&self.places, &mut self.draws);
                none.insert(Recording::make(&b.device, || launch(places, draws))?)
            }
        };
        recording.launch()
    }

    /// The token drawn in each row: `None` where a logit is not a number.
    pub(super) fn drawn(&self, device: &CudaDevice) -> Result<Vec<Option<Sampled>>> {
        self.draws.drawn(device)
    }
}
