//! Steps of one token for each sequence, recorded on the device by their number of rows.

use std::collections::HashMap;

use candle_core::cuda_backend::cudarc::driver::CudaSlice;
use candle_core::{CudaDevice, Result, TensorId};

use super::Rows;
use crate::cuda::{Cuda, DeviceDraws, Number, Recording};
use crate::model::Model;
use crate::qwen3::Backend;
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
    rows: Rows,
    draws: DeviceDraws,
}

impl RecordedStep {
    /// A step with this many rows that was not recorded yet.
    pub(super) fn new<T: Number>(b: &Cuda<'_, T>, rows: usize) -> Result<Self> {
        let last: Vec<u32> = (0..rows as u32).collect();
        Ok(Self {
            recording: None,
            loaded: false,
            rows: Rows {
                ids: b.room(rows)?,
                cells: b.room(rows)?,
                positions: b.room(rows)?,
                last: b.indices(&last)?,
            },
            draws: b.room_for_draws(rows)?,
        })
    }

    /// Sets the ids, places and positions of all rows, and their draws.
    pub(super) fn set(
        &mut self,
        device: &CudaDevice,
        [ids, cells, positions]: [&[u32]; 3],
        draws: &[Option<Draw>],
    ) -> Result<()> {
        let copy = |from: &[u32], to: &mut CudaSlice<u32>| device.memcpy_htod(from, to);
        copy(ids, &mut self.rows.ids)?;
        copy(cells, &mut self.rows.cells)?;
        copy(positions, &mut self.rows.positions)?;
        self.draws.set(device, draws)
    }

    /// Runs the step, which `launch` launches with these rows and draws.
    pub(super) fn run<T: Number>(
        &mut self,
        b: &Cuda<'_, T>,
        launch: impl FnOnce(&Rows, &mut DeviceDraws) -> Result<()>,
    ) -> Result<()> {
        if !self.loaded {
            launch(&self.rows, &mut self.draws)?;
            self.loaded = true;
            return Ok(());
        }
        let recording = match &mut self.recording {
            Some(recording) => recording,
            none => {
                let (rows, draws) = (&self.rows, &mut self.draws);
                none.insert(Recording::make(&b.device, || launch(rows, draws))?)
            }
        };
        recording.launch()
    }

    /// What was drawn in each row.
    pub(super) fn drawn(&self, device: &CudaDevice) -> Result<Vec<Option<Sampled>>> {
        self.draws.drawn(device)
    }
}
