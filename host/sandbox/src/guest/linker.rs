//! The linkers that components are instantiated with.

use std::borrow::Cow;

use wasmtime::component::Linker;
use wasmtime::{Engine, Result};
use wasmtime_wasi::p2::bindings as wasi;
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};

use super::gate::Gates;
use super::state::State;
use crate::bindings::rlf::plugin::{data, log, process};
use crate::wasi::clock::HasTime;
use crate::wasi::data::HasDataSet;
use crate::wasi::files::{FileGrant, HasHost, HasScratch};
use crate::wasi::log::HasLog;
use crate::wasi::process::HasProcess;
use crate::wasi::random::HasRandomness;

/// Links everything of [`LINKED`](crate::contract::LINKED): WASI virtual and empty, and the contract's host interfaces.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    // What wasmtime-wasi takes from the machine is replaced by the virtual twin.
    linker.allow_shadowing(true);
    wasi::clocks::wall_clock::add_to_linker::<State, HasTime>(&mut linker, State::time)?;
    wasi::clocks::monotonic_clock::add_to_linker::<State, HasTime>(&mut linker, State::time)?;
    wasi::io::poll::add_to_linker::<State, HasTime>(&mut linker, State::time)?;
    wasi::random::random::add_to_linker::<State, HasRandomness>(&mut linker, |state| {
        state.randomness()
    })?;
    wasi::random::insecure::add_to_linker::<State, HasRandomness>(&mut linker, |state| {
        state.randomness()
    })?;
    wasi::random::insecure_seed::add_to_linker::<State, HasRandomness>(&mut linker, |state| {
        state.randomness()
    })?;
    linker.allow_shadowing(false);
    log::add_to_linker::<State, HasLog>(&mut linker, State::log)?;
    data::add_to_linker::<State, HasDataSet>(&mut linker, State::data)?;
    process::add_to_linker::<State, HasProcess>(&mut linker, State::process)?;
    Ok(linker)
}

/// The linker for one plugin's grants: the shared one, or a copy with our `wasi:filesystem` and the plugin's gates.
pub(crate) fn with_grants<'a>(
    shared: &'a Linker<State>,
    files: &FileGrant,
    gates: &Gates,
) -> Result<Cow<'a, Linker<State>>> {
    let mut linker = Cow::Borrowed(shared);
    match files {
        FileGrant::None => {}
        FileGrant::Scratch(_) => replace(linker.to_mut(), |linker| {
            types::add_to_linker::<State, HasScratch>(linker, State::scratch)?;
            preopens::add_to_linker::<State, HasScratch>(linker, State::scratch)
        })?,
        FileGrant::Host(_) => replace(linker.to_mut(), |linker| {
            types::add_to_linker::<State, HasHost>(linker, State::host_directory)?;
            preopens::add_to_linker::<State, HasHost>(linker, State::host_directory)
        })?,
    }
    if !gates.is_empty() {
        gates.link(linker.to_mut())?;
    }
    Ok(linker)
}

/// Links interfaces that may be linked already.
fn replace(
    linker: &mut Linker<State>,
    link: impl FnOnce(&mut Linker<State>) -> Result<()>,
) -> Result<()> {
    linker.allow_shadowing(true);
    link(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}
