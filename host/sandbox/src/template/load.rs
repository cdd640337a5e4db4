//! Loading: from a component's bytes to a template.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::component::Component;

use super::loaded::{Loaded, Template};
use super::pace::Pace;
use crate::bindings::GuestIndices;
use crate::cache;
use crate::contract::{CONTRACT, LIFECYCLE};
use crate::engine::{Inner, Pool, Sandbox, SandboxConfig};
use crate::grants::Grants;
use crate::guest::{Gates, OpenGate, with_grants};
use crate::limits::Limits;
use crate::prepare::process::prepare_elsewhere;
use crate::prepare::{
    ComponentInfo, ComponentSource, Entry, InitMode, Job, LoadError, Preparation, key, make,
};
use crate::record::Record;
use crate::wasi::data::DataSet;

/// A component to load, with its configuration, grants and limits.
#[derive(Clone)]
pub struct LoadRequest<'a> {
    /// Its name in logs.
    pub name: &'a str,
    /// The component, as its author built it.
    pub component: ComponentSource<'a>,
    /// The operator's configuration of it: one JSON value, `{}` for none. Passed to `init`.
    pub config_json: &'a str,
    /// Its grants.
    pub grants: &'a Grants,
    /// The gates that are opened to it.
    pub gates: &'a [Arc<dyn OpenGate>],
    /// Limits of its calls, unless a call has its own.
    pub limits: Limits,
    /// The pool that its calls take places from.
    pub pool: Pool,
}

impl Sandbox {
    /// Checks a component, runs its `init` once, keeps the memory it leaves, compiles it, and
    /// makes it ready to be called. Compiled code is cached by everything it depends on.
    ///
    /// Blocks until it is done. May be called inside an async runtime or outside.
    pub fn load(&self, request: &LoadRequest<'_>) -> Result<Template, LoadError> {
        let inner = &self.inner;
        let gates = Gates::new(request.gates);
        let info = check(request, &gates, &inner.config)?;
        let data = Arc::new(DataSet::open(&request.grants.data)?);
        let files = request.grants.file_grant()?;
        let limits = Arc::new(request.limits.clone());
        let name: Arc<str> = Arc::from(request.name);
        let config_json = request.config_json.to_owned();
        let key = key(
            &inner.engine,
            &info.hash,
            &config_json,
            &files.identity(),
            data.hash(),
        );
        let (component, entry, preparation) = if let Some(cached) = cached(inner, &key) {
            cached
        } else {
            let bytes = request.component.bytes()?;
            let job = Job {
                plugin: Arc::clone(&name),
                bytes: &bytes,
                config_json: &config_json,
                data: Arc::clone(&data),
                files: files.clone(),
                record: Record::new(Arc::clone(&limits), None),
                gates: gates.clone(),
            };
            let has_init = info.exported_version(LIFECYCLE).is_some();
            prepare(inner, &key, &job, request.grants, has_init)?
        };

        let compile = |error: wasmtime::Error| LoadError::compile(&error);
        let linker = with_grants(&inner.linker, &files, &gates).map_err(compile)?;
        let instances = linker.instantiate_pre(&component).map_err(compile)?;
        let init_per_call = match &entry.init {
            InitMode::PerCall { .. } => {
                Some((GuestIndices::new(&instances).map_err(compile)?, config_json))
            }
            InitMode::None | InitMode::Snapshot => None,
        };
        let loaded = Loaded {
            sandbox: Arc::clone(inner),
            name,
            limits,
            data,
            files,
            gates,
            real: request.grants.real,
            instances,
            init_per_call,
            pace: Pace::default(),
            pool: request.pool,
            info,
            init: entry.init,
            preparation,
        };
        Ok(Template {
            inner: Arc::new(loaded),
        })
    }
}

/// Reads the imports and exports of the component. Refuses it if it is too large, imports what it may not, or was built
/// for another contract.
fn check(
    request: &LoadRequest<'_>,
    gates: &Gates,
    config: &SandboxConfig,
) -> Result<ComponentInfo, LoadError> {
    let (size, limit) = (request.component.size(), config.max_component_bytes);
    if size > limit {
        return Err(LoadError::TooLarge { size, limit });
    }
    request.limits.check(config.max_memory_bytes)?;
    let info = request.component.info()?;
    info.check_imports(&gates.interfaces())?;
    match info.exported_version(LIFECYCLE) {
        Some(found) if found != CONTRACT => Err(LoadError::Contract {
            found: found.to_owned(),
        }),
        _ => Ok(info),
    }
}

/// The prepared component from the cache, if it is there.
fn cached(inner: &Inner, key: &str) -> Option<(Component, Entry, Preparation)> {
    let started = Instant::now();
    let cache = inner.cache.as_ref().ok()?;
    let (entry, component) = cache.load::<Entry>(&inner.engine, key)?;
    let preparation = Preparation {
        from_cache: true,
        prepare: Duration::ZERO,
        compile: started.elapsed(),
        prepared_bytes: entry.prepared_bytes,
    };
    Some((component, entry, preparation))
}

/// Prepares the component, and stores it in the cache.
fn prepare(
    inner: &Inner,
    key: &str,
    job: &Job<'_>,
    grants: &Grants,
    has_init: bool,
) -> Result<(Component, Entry, Preparation), LoadError> {
    let compile = |error: wasmtime::Error| LoadError::compile(&error);
    let (component, entry, preparation, code) = if inner.config.prepare_elsewhere {
        let made = prepare_elsewhere(&inner.config, job, grants, has_init)?;
        let component = cache::trusted(&inner.engine, &made.code).map_err(compile)?;
        let preparation = Preparation {
            from_cache: false,
            prepare: made.prepare,
            compile: made.compile,
            prepared_bytes: made.entry.prepared_bytes,
        };
        (component, made.entry, preparation, made.code)
    } else {
        let (component, entry, preparation) = make(inner, job, has_init)?;
        let code = component.serialize().map_err(compile)?;
        (component, entry, preparation, code)
    };
    if let Ok(cache) = &inner.cache {
        cache.store(key, &entry, &code);
    }
    Ok((component, entry, preparation))
}
