//! The sandbox as a whole: one engine, pools sized from the machine, and a runtime for guests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use serde::Serialize;
use tokio::runtime::{Handle, Runtime};
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use super::admission::Admission;
use super::config::{SandboxConfig, SandboxError};
use super::init_engine::InitEngine;
use super::pools::{Pools, engine};
use super::settings::{WASMTIME, tick_epochs};
use crate::cache::{Cache, CacheError};
use crate::guest::{State, linker};

/// Current use of the pools. All numbers are zero while nothing runs; tests find leaks by that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct InUse {
    /// Calls that hold a place.
    pub permits: usize,
    /// Sum of the memory limits of these calls, in bytes.
    pub memory_bytes: u64,
    /// Component instances.
    pub component_instances: u64,
    /// Core instances inside them.
    pub core_instances: u64,
    /// Linear memories.
    pub memories: usize,
    /// Tables.
    pub tables: usize,
    /// Stacks of guests.
    pub stacks: usize,
}

/// One engine and everything that guests share. Cheap to clone.
#[derive(Clone)]
pub struct Sandbox {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    pub(crate) admission: Admission,
    pub(crate) cache: Result<Cache, CacheError>,
    pub(crate) config: SandboxConfig,
    pub(crate) pools: Pools,
    /// Code in use by several snapshots, by its name in the cache.
    pub(crate) codes: Mutex<HashMap<String, Weak<Component>>>,
    /// Made when a component with an `init` is first prepared.
    init_engine: OnceLock<wasmtime::Result<InitEngine>>,
    runtime: Option<Runtime>,
}

impl Sandbox {
    /// Sets up engine, pools and threads.
    pub fn new(config: &SandboxConfig) -> Result<Self, SandboxError> {
        config.validate()?;
        let (engine, pools) = engine(config)?;
        let linker = linker(&engine).map_err(|error| SandboxError::Engine {
            instances: pools.instances,
            reason: format!("{error:#}"),
        })?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(pools.workers)
            .thread_name("rlf-guest")
            .enable_all()
            .build()?;
        tick_epochs(engine.weak(), config.tick)?;
        let cache = match &config.cache {
            Some(folder) => Cache::open(folder, config.cache_bytes, config.is_short_lived)
                .inspect_err(|reason| {
                    tracing::warn!("compiled components are not cached: {reason}");
                }),
            None => Err(CacheError::NotConfigured),
        };
        let inner = Inner {
            engine,
            linker,
            admission: Admission::new(pools.levels, pools.programs, pools.sessions),
            cache,
            config: config.clone(),
            pools,
            codes: Mutex::default(),
            init_engine: OnceLock::new(),
            runtime: Some(runtime),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The sizes chosen for this machine.
    pub fn pools(&self) -> Pools {
        self.inner.pools
    }

    /// The current use of the pools.
    pub fn in_use(&self) -> InUse {
        let metrics = self.inner.engine.pooling_allocator_metrics();
        metrics.map_or_else(InUse::default, |metrics| InUse {
            permits: self.inner.admission.places_in_use(),
            memory_bytes: self.inner.admission.memory_in_use(),
            component_instances: metrics.component_instances(),
            core_instances: metrics.core_instances(),
            memories: metrics.memories(),
            tables: metrics.tables(),
            stacks: metrics.stacks(),
        })
    }

    /// Describes the sandbox in a few lines, for `doctor`.
    pub fn describe(&self) -> String {
        let pools = self.pools();
        let cache = match &self.inner.cache {
            Ok(cache) => cache.folder().display().to_string(),
            Err(reason) => format!("none: {reason}"),
        };
        format!(
            "wasmtime {WASMTIME}, pooling, copy-on-write memories, interrupt every {} ms\n\
             {}\n\
             at most {} MiB for one memory, {} threads\n\
             {}\n\
             compiled components: {cache}",
            self.inner.config.tick.as_millis(),
            pools.describe_levels().join("\n"),
            pools.max_memory_bytes >> 20,
            pools.workers,
            pools.reset,
        )
    }

    /// The engine, for typed bindings that want to look at it.
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }
}

impl Inner {
    /// The runtime that guests run on.
    pub(crate) fn guests(&self) -> &Handle {
        self.runtime
            .as_ref()
            .expect("taken by `drop` alone")
            .handle()
    }

    pub(crate) fn init_engine(&self) -> Result<&InitEngine, &wasmtime::Error> {
        self.init_engine
            .get_or_init(|| InitEngine::new(self.config.tick))
            .as_ref()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Dropping a runtime where blocking is not allowed would panic; the last owner of a
        // sandbox may well be an async task.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
