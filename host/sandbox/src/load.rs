//! From a component's bytes to a template that calls are made from.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::component::{Component, InstancePre};

use crate::admission::Pool;
use crate::bindings::GuestIndices;
use crate::cache::{self, Entry};
use crate::component::{CONTRACT, ComponentInfo};
use crate::data::{DataError, DataSet, Grants, RealSources};
use crate::engine::{Inner, Sandbox};
use crate::files::FileGrant;
use crate::gate::{Gate, Gates};
use crate::limits::Limits;
use crate::pace::Pace;
use crate::prepare::{InitMode, Job, prepare};
use crate::prepare_process::prepare_elsewhere;
use crate::record::Record;
use crate::state::State;

/// What is loaded, and what it is given.
#[derive(Clone)]
pub struct LoadRequest<'a> {
    /// The name it goes by in logs.
    pub name: &'a str,
    /// The component, as its author built it.
    pub bytes: &'a [u8],
    /// The operator's configuration of it: one JSON value, `{}` for none. Passed to `init`.
    pub config_json: &'a str,
    /// What it may reach.
    pub grants: &'a Grants,
    /// The gates that are opened to it.
    pub gates: &'a [Arc<dyn Gate>],
    /// What its calls may use, unless a call says otherwise.
    pub limits: Limits,
    /// Where its calls take their places.
    pub pool: Pool,
}

/// A component that is not loaded, and why. One line each; the plugin's name is the caller's to add.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Some other file.
    #[error(
        "not WebAssembly (it begins with {start:?}); a plugin is a component, built for wasm32-wasip2"
    )]
    NotWasm {
        /// Its first characters.
        start: String,
    },
    /// WebAssembly, but not a component.
    #[error("a core module, not a component; build it with `cargo build --target wasm32-wasip2`")]
    CoreModule,
    /// Native code, which is never loaded from others.
    #[error(
        "compiled code (.cwasm), which is never loaded; give the .wasm component it was made from"
    )]
    Precompiled,
    /// Truncated or broken.
    #[error("damaged: {reason}; build or download it again")]
    Damaged {
        /// What the parser met, and where.
        reason: String,
    },
    /// Too big to look at.
    #[error(
        "{size} bytes; components of more than {limit} are refused (the sandbox's max_component_bytes)"
    )]
    TooLarge {
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// Imports that are not there; all of them.
    #[error("it imports what this host does not give it: {}", .missing.join("; "))]
    Imports {
        /// One sentence for each.
        missing: Vec<String>,
    },
    /// Its `lifecycle` is of another version of the contract.
    #[error(
        "built for version {found} of rlf:plugin, this host speaks {CONTRACT}; build it against {CONTRACT}"
    )]
    Contract {
        /// The component's version.
        found: String,
    },
    /// Data that cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Files that cannot be given as the grant says.
    #[error("files: {0}")]
    Files(String),
    /// Limits that cannot hold.
    #[error("limits: {0}")]
    Limits(String),
    /// Invalid, or of a shape that does not fit the contract or the pools.
    #[error("it does not compile or link: {reason}")]
    Compile {
        /// What wasmtime said.
        reason: String,
    },
    /// It could not be prepared within the limits on that.
    #[error("{reason}")]
    Preparation {
        /// Which limit, or what broke.
        reason: String,
    },
    /// Its `init` said no, broke, or ran into a limit.
    #[error("its init failed: {reason}{}", if .printed.is_empty() { String::new() } else { format!("; it printed: {printed}") })]
    Init {
        /// What it said, or what stopped it.
        reason: String,
        /// The end of what it printed before.
        printed: String,
    },
}

impl LoadError {
    pub(crate) fn compile(error: &wasmtime::Error) -> Self {
        Self::Compile {
            reason: format!("{error:#}"),
        }
    }

    pub(crate) fn init(reason: String, record: &Record) -> Self {
        let printed = record.take_output()[1].captured().text;
        let printed = printed.trim().lines().collect::<Vec<_>>().join(" | ");
        Self::Init {
            reason,
            printed: crate::output::shortened(printed, 1000),
        }
    }
}

/// What making a template took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preparation {
    /// True where compiled code came from the cache: nothing ran, nothing was compiled.
    pub from_cache: bool,
    /// Running `init` and keeping its memory.
    pub prepare: Duration,
    /// Compiling, or loading compiled code.
    pub compile: Duration,
    /// Size of the component that calls start from, with the kept memory.
    pub prepared_bytes: u64,
}

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
    /// What `init` needs where it runs in every call.
    pub(crate) init_per_call: Option<(GuestIndices, String)>,
    pub(crate) pace: Pace,
    pub(crate) pool: Pool,
    info: ComponentInfo,
    init: InitMode,
    preparation: Preparation,
}

const LIFECYCLE: &str = "rlf:plugin/lifecycle";

impl Sandbox {
    /// Checks a component, runs its `init` once, keeps the memory it leaves, compiles it, and
    /// makes it ready to be called. Compiled code is cached by everything it depends on.
    ///
    /// Blocks for as long as that takes; may be called inside an async runtime or outside.
    pub fn load(&self, request: &LoadRequest<'_>) -> Result<Template, LoadError> {
        let inner = &self.inner;
        let (size, limit) = (request.bytes.len() as u64, inner.config.max_component_bytes);
        if size > limit {
            return Err(LoadError::TooLarge { size, limit });
        }
        request
            .limits
            .check(inner.config.max_memory_bytes)
            .map_err(LoadError::Limits)?;
        let info = ComponentInfo::read(request.bytes)?;
        let gates = Gates::new(request.gates);
        info.check_imports(&gates.interfaces())?;
        let lifecycle = info.exported_version(LIFECYCLE);
        if let Some(found) = lifecycle.filter(|found| *found != CONTRACT) {
            return Err(LoadError::Contract {
                found: found.to_owned(),
            });
        }
        let has_init = lifecycle.is_some();
        let data = Arc::new(DataSet::open(request.grants)?);
        let files = FileGrant::new(request.grants).map_err(LoadError::Files)?;
        let limits = Arc::new(request.limits.clone());
        let name: Arc<str> = Arc::from(request.name);
        let config_json = request.config_json.to_owned();

        let key = cache::key(
            &inner.engine,
            &info.hash,
            &config_json,
            &files.identity(),
            data.hash(),
        );
        let started = Instant::now();
        let cached = inner
            .cache
            .as_ref()
            .ok()
            .and_then(|cache| cache.load(&inner.engine, &key));
        let (component, entry, preparation) = if let Some((entry, component)) = cached {
            let preparation = Preparation {
                from_cache: true,
                prepare: Duration::ZERO,
                compile: started.elapsed(),
                prepared_bytes: entry.prepared_bytes,
            };
            (component, entry, preparation)
        } else {
            let job = Job {
                plugin: Arc::clone(&name),
                bytes: request.bytes,
                config_json: &config_json,
                data: Arc::clone(&data),
                record: Record::new(Arc::clone(&limits), files.open(), None),
                gates: gates.clone(),
            };
            let (component, entry, preparation, code) = if inner.config.prepare_elsewhere {
                let made = prepare_elsewhere(&inner.config, &job, request.grants, has_init)?;
                let component = cache::trusted(&inner.engine, &made.code)
                    .map_err(|error| LoadError::compile(&error))?;
                let preparation = Preparation {
                    from_cache: false,
                    prepare: made.prepare,
                    compile: made.compile,
                    prepared_bytes: made.entry.prepared_bytes,
                };
                (component, made.entry, preparation, made.code)
            } else {
                let (component, entry, preparation) = make(inner, &job, has_init)?;
                let code = component
                    .serialize()
                    .map_err(|error| LoadError::compile(&error))?;
                (component, entry, preparation, code)
            };
            if let Ok(cache) = &inner.cache {
                cache.store(&key, &entry, &code);
            }
            (component, entry, preparation)
        };

        let compile = |error: wasmtime::Error| LoadError::compile(&error);
        let mut linker = files.link(&inner.linker).map_err(compile)?;
        if !gates.is_empty() {
            gates.link(linker.to_mut()).map_err(compile)?;
        }
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

pub(crate) fn make(
    inner: &Inner,
    job: &Job<'_>,
    has_init: bool,
) -> Result<(Component, Entry, Preparation), LoadError> {
    let started = Instant::now();
    let prepared;
    let (bytes, init) = if !has_init {
        (job.bytes, InitMode::None)
    } else if let Some(reason) = job.record.files().grant().forbids_snapshot() {
        (job.bytes, InitMode::PerCall { reason })
    } else {
        let workshop = inner.workshop().map_err(|reason| LoadError::Compile {
            reason: reason.to_owned(),
        })?;
        prepared = prepare(workshop, inner.guests(), job)?;
        (&*prepared.bytes, prepared.init)
    };
    let prepare = started.elapsed();
    let component =
        Component::new(&inner.engine, bytes).map_err(|error| LoadError::compile(&error))?;
    let preparation = Preparation {
        from_cache: false,
        prepare,
        compile: started.elapsed().saturating_sub(prepare),
        prepared_bytes: bytes.len() as u64,
    };
    Ok((
        component,
        Entry {
            init,
            prepared_bytes: bytes.len() as u64,
        },
        preparation,
    ))
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

    /// What its calls may use, unless a call says otherwise.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// The most that one of its memories may grow to, whatever its limits say.
    pub fn most_memory_bytes(&self) -> u64 {
        self.inner.sandbox.pools.max_memory_bytes
    }

    /// How the state after `init` reaches its calls.
    pub fn init(&self) -> &InitMode {
        &self.inner.init
    }

    /// What making it took.
    pub fn preparation(&self) -> &Preparation {
        &self.inner.preparation
    }

    /// Hash of all data bound to it, hexadecimal; `None` where nothing is bound.
    pub fn data_hash(&self) -> Option<String> {
        self.inner.data.hash().map(|hash| hash.to_hex().to_string())
    }

    /// The pre-instantiated component, for typed bindings: make `FooIndices::new` of it once, and
    /// `load` them in every call.
    pub fn instance_pre(&self) -> &InstancePre<State> {
        &self.inner.instances
    }
}
