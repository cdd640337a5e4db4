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
}

impl InitEngine {
    pub(super) fn new(tick: Duration) -> Result<Self, String> {
        let say = |error: wasmtime::Error| format!("{error:#}");
        let engine = Engine::new(&engine_configuration()).map_err(say)?;
        let linker = linker(&engine).map_err(say)?;
        tick_epochs(engine.weak(), tick).map_err(|error| error.to_string())?;
        Ok(Self { engine, linker })
    }
}
