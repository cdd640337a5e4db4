//! A component that is ready to be called.

use std::sync::Arc;

use wasmtime::component::{Component, InstancePre};

use super::pace::Pace;
use crate::bindings::GuestIndices;
use crate::engine::{Inner, Pool};
use crate::grants::RealSources;
use crate::guest::{Gates, State};
use crate::limits::Limits;
use crate::prepare::{ComponentInfo, InitMode, Preparation};
use crate::wasi::data::DataSet;
use crate::wasi::files::FileGrant;

/// A component that is ready to be called, any number of times at once. Cheap to clone.
#[derive(Clone)]
pub struct Template {
    pub(crate) inner: Arc<Loaded>,
}

pub(crate) struct Loaded {
    pub(crate) sandbox: Arc<Inner>,
    pub(crate) name: Arc<str>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) data: Arc<DataSet>,
    pub(crate) files: FileGrant,
    pub(crate) gates: Gates,
    pub(crate) real: RealSources,
    pub(crate) instances: InstancePre<State>,
    /// Its code, which other templates find through this handle.
    pub(super) _code: Arc<Component>,
    /// Size of its largest memory, with which every call starts.
    pub(super) initial_memory_bytes: u64,
    /// Bindings and configuration for `init`, if it runs in every call.
    pub(crate) init_per_call: Option<(GuestIndices, String)>,
    pub(crate) pace: Pace,
    pub(crate) pool: Pool,
    pub(super) info: ComponentInfo,
    pub(super) init: InitMode,
    pub(super) preparation: Preparation,
}

impl Template {
    /// The name it was loaded under.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Hash, imports and exports of the component as its author built it.
    pub fn info(&self) -> &ComponentInfo {
        &self.inner.info
    }

    /// Limits of its calls, unless a call has its own.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Size of its largest memory, with which every call starts.
    pub fn initial_memory_bytes(&self) -> u64 {
        self.inner.initial_memory_bytes
    }

    /// Maximum size of one of its memories, even if its limits allow more.
    pub fn max_memory_bytes(&self) -> u64 {
        self.inner.sandbox.pools.max_memory_bytes
    }

    /// The way in which the state after `init` reaches its calls.
    pub fn init(&self) -> &InitMode {
        &self.inner.init
    }

    /// Time and size of its preparation.
    pub fn preparation(&self) -> &Preparation {
        &self.inner.preparation
    }

    /// Hash of all data bound to it, hexadecimal; `None` if nothing is bound.
    pub fn data_hash(&self) -> Option<String> {
        self.inner.data.hash().map(|hash| hash.to_hex().to_string())
    }

    /// The pre-instantiated component, for typed bindings: call `FooIndices::new` with it once, and `load` the indices in
    /// every call.
    pub fn instance_pre(&self) -> &InstancePre<State> {
        &self.inner.instances
    }
}
