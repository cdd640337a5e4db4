//! Loading: from a component's bytes to a template.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use wasmtime::Module;
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
    ComponentInfo, ComponentSource, Earlier, Entry, IMAGE, InitEntry, InitMode, Job, LoadError,
    Made, Preparation, init_key, key, make,
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
        let (runnable, entry, preparation) = if let Some(cached) = cached(inner, &key) {
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
            let init_key = has_init.then(|| init_key(&inner.engine, &info.hash));
            prepare(inner, &key, init_key.as_deref(), &job, request.grants)?
        };

        let compile = |error: wasmtime::Error| LoadError::compile(&error);
        let mut linker = with_grants(&inner.linker, &files, &gates).map_err(compile)?;
        if let Some(image) = &runnable.image {
            let mut root = linker.to_mut().root();
            root.module(IMAGE, image).map_err(compile)?;
        }
        let instances = linker.instantiate_pre(&runnable.code).map_err(compile)?;
        let init_per_call = match &entry.init {
            InitMode::PerCall { .. } => {
                Some((GuestIndices::new(&instances).map_err(compile)?, config_json))
            }
            InitMode::None | InitMode::Snapshot => None,
        };
        let initial_memory_bytes = runnable.initial_memory_bytes();
        let loaded = Loaded {
            sandbox: Arc::clone(inner),
            name,
            limits,
            data,
            files,
            gates,
            real: request.grants.real,
            instances,
            initial_memory_bytes,
            _code: runnable.code,
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

/// Bytes of a page of memory.
const PAGE_BYTES: u64 = 1 << 16;

/// A compiled component, and the image of its memory if that is not part of it.
struct Runnable {
    code: Arc<Component>,
    image: Option<Module>,
}

impl Runnable {
    /// Size of the largest memory that it starts with.
    fn initial_memory_bytes(&self) -> u64 {
        let resources = match &self.image {
            Some(image) => Some(image.resources_required()),
            None => self.code.resources_required(),
        };
        let pages = resources.and_then(|resources| resources.max_initial_memory_size);
        pages.unwrap_or(0).saturating_mul(PAGE_BYTES)
    }
}

/// The prepared component from the cache, if it is there.
fn cached(inner: &Inner, key: &str) -> Option<(Runnable, Entry, Preparation)> {
    let started = Instant::now();
    let cache = inner.cache.as_ref().ok()?;
    let (entry, runnable) = cache.load::<Entry, _>(key, |entry, compiled| {
        let Some(name) = &entry.code else {
            let code = Arc::new(compiled.component(&inner.engine)?);
            return Ok(Runnable { code, image: None });
        };
        let image = Some(compiled.module(&inner.engine)?);
        let code = shared_code(inner, name)
            .ok_or_else(|| wasmtime::format_err!("its code is not in the cache any more"))?;
        Ok(Runnable { code, image })
    })?;
    let preparation = Preparation {
        from_cache: true,
        code_from_cache: true,
        prepare: Duration::ZERO,
        compile: started.elapsed(),
        prepared_bytes: entry.prepared_bytes,
    };
    Some((runnable, entry, preparation))
}

/// Code that several snapshots share. It is loaded once, as long as a template uses it.
fn shared_code(inner: &Inner, name: &str) -> Option<Arc<Component>> {
    let cache = inner.cache.as_ref().ok()?;
    // Held while the code is loaded, so that no one else loads it too.
    let mut codes = inner.codes.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(code) = codes.get(name).and_then(Weak::upgrade) {
        cache.note_use(name);
        return Some(code);
    }
    let ((), code) = cache.load::<(), _>(name, |(), compiled| compiled.component(&inner.engine))?;
    let code = Arc::new(code);
    codes.retain(|_, code| code.strong_count() > 0);
    codes.insert(name.to_owned(), Arc::downgrade(&code));
    Some(code)
}

/// Prepares the component, and stores it in the cache. `init_key` is the key of the component that its `init` runs in,
/// if it has one.
fn prepare(
    inner: &Inner,
    key: &str,
    init_key: Option<&str>,
    job: &Job<'_>,
    grants: &Grants,
) -> Result<(Runnable, Entry, Preparation), LoadError> {
    let compile = |error: wasmtime::Error| LoadError::compile(&error);
    let has_init = init_key.is_some();
    let (earlier, earlier_code) =
        init_key.map_or_else(|| (Earlier::default(), None), |key| earlier(inner, key));
    let made = match &inner.config.preparer {
        Some(program) => {
            prepare_elsewhere(program, &inner.config, job, grants, has_init, &earlier)?
        }
        None => make(inner, job, has_init, &earlier)?,
    };
    let code_from_cache = made.entry.code.is_some() && made.code.is_none();
    let runnable = match (&made.entry.code, &made.code, earlier_code) {
        (None, _, _) => Runnable {
            code: Arc::new(cache::trusted(&inner.engine, &made.compiled).map_err(compile)?),
            image: None,
        },
        (Some(_), new, earlier) => {
            let code = match (new, earlier) {
                (Some(new), _) => Arc::new(cache::trusted(&inner.engine, new).map_err(compile)?),
                (None, Some(earlier)) => earlier,
                (None, None) => {
                    return Err(LoadError::Preparation {
                        reason: "it was prepared without its code".to_owned(),
                    });
                }
            };
            let image = cache::trusted_module(&inner.engine, &made.compiled).map_err(compile)?;
            Runnable {
                code,
                image: Some(image),
            }
        }
    };
    store(inner, key, init_key, &made, &earlier);
    let preparation = Preparation {
        from_cache: false,
        code_from_cache,
        prepare: made.prepare,
        compile: made.compile,
        prepared_bytes: made.entry.prepared_bytes,
    };
    Ok((runnable, made.entry, preparation))
}

/// The cache entries of earlier preparations of the same component, and its code if that loads.
fn earlier(inner: &Inner, init_key: &str) -> (Earlier, Option<Arc<Component>>) {
    let Ok(cache) = &inner.cache else {
        return (Earlier::default(), None);
    };
    let init = cache.load::<InitEntry, _>(init_key, |_, compiled| Ok(compiled));
    let Some((entry, init_code)) = init else {
        return (Earlier::default(), None);
    };
    let code = shared_code(inner, &entry.code);
    let earlier = Earlier {
        init_code: Some(init_code),
        code: code.is_some().then_some(entry.code),
    };
    (earlier, code)
}

/// Stores what was made in the cache. The entry that names its code comes last.
fn store(inner: &Inner, key: &str, init_key: Option<&str>, made: &Made, earlier: &Earlier) {
    let Ok(cache) = &inner.cache else {
        return;
    };
    if let Some(name) = &made.entry.code {
        if let Some(code) = &made.code {
            cache.store(name, &(), code);
        }
        let is_new = made.code.is_some() || made.init_code.is_some();
        let earlier = || earlier.init_code.as_ref()?.bytes().ok();
        let init_code = (made.init_code.as_deref().map(Cow::Borrowed)).or_else(earlier);
        if let (Some(init_key), Some(init_code), true) = (init_key, init_code, is_new) {
            let code = name.clone();
            cache.store(init_key, &InitEntry { code }, &init_code);
        }
    }
    cache.store(key, &made.entry, &made.compiled);
}
