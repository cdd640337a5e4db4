//! The engine that runs `init` while a component is prepared.

use std::time::Duration;

use wasmtime::Engine;
use wasmtime::component::Linker;

use super::settings::{engine_configuration, tick_epochs};
use crate::guest::{State, linker};

/// The engine that `init` runs in and is snapshotted from. Its memory comes from the system, so that the
/// pool's limits on shape do not apply to an instrumented component.
pub(crate) struct InitEngine {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    /// The interval of its epochs.
    pub(crate) tick: Duration,
}

impl InitEngine {
    pub(super) fn new(tick: Duration) -> wasmtime::Result<Self> {
        let engine = Engine::new(&engine_configuration())?;
        let linker = linker(&engine)?;
        tick_epochs(engine.weak(), tick)?;
        Ok(Self {
            engine,
            linker,
            tick,
        })
    }
}
