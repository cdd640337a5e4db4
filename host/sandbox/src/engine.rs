//! The sandbox as a whole: one engine, pools sized from the machine, and a runtime for guests.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::runtime::{Handle, Runtime};
use wasmtime::component::Linker;
use wasmtime::{
    Config, Engine, EngineWeak, InstanceAllocationStrategy, ModuleVersionStrategy, OptLevel,
    PoolingAllocationConfig,
};

use crate::admission::{Admission, LEVELS, Level};
use crate::cache::Cache;
use crate::limits::LONGEST;
use crate::reset::Reset;
use crate::state::{State, linker};

/// The most elements of one table; see [`Limits::table_elements`](crate::Limits).
pub(crate) const TABLE_ELEMENTS: u64 = 20_000;

/// More live instances than any machine has mappings for.
const MOST_INSTANCES: u32 = 20_000;
/// More memories than fit the address space beside others, at 4 GiB each, unless each place needs one.
const MOST_MEMORIES: u32 = 15_000;
/// More threads for guests than help on any machine.
const MOST_WORKERS: usize = 1_024;

/// How the sandbox is set up. Every field may be left out of a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// The most calls that run at once; more wait inside their deadline. Calls that calls make have a
    /// quarter as many places on top, for each of two levels. Default: one per 64 MiB of the machine's
    /// memory, between 32 and 512, and at most what `vm.max_map_count` allows. Costs address space (4 GiB a memory), not memory.
    pub instances: Option<u32>,
    /// The most that the memory limits of all live calls may sum to; calls beyond it wait inside their
    /// deadline. Default: half of the machine's memory.
    pub memory_budget_bytes: Option<u64>,
    /// The most programs that run in interpreters at once; more wait. Default: as `instances`.
    pub programs: Option<u32>,
    /// The most that the memory limits of all running programs may sum to; programs beyond it wait. Much of
    /// what a program has is shared with all others until it writes there, so a machine that is known to run small
    /// programs can be given more than it has. Default: a quarter of the machine's memory.
    pub program_memory_budget_bytes: Option<u64>,
    /// The most environment sessions that keep an instance at once; those that wait longest make room for others, and come
    /// back from a snapshot. Default: as `instances`.
    pub sessions: Option<u32>,
    /// The most memory that sessions may have of their own: what waiting ones have grown by, and the memory limits of
    /// those that run. Default: a quarter of the machine's memory.
    pub session_memory_budget_bytes: Option<u64>,
    /// The most that one linear memory may grow to, whatever a policy says. Default 256 MiB.
    pub max_memory_bytes: u64,
    /// Threads that run guests, apart from everything else the host does, so that a busy guest
    /// delays neither deadlines nor rollouts. Default: one per core, at most 4, at least 2.
    pub workers: Option<usize>,
    /// How often running guests are interrupted to check their budget and to let others run.
    /// Key `tick_ms`, default 5 ms. Shorter: finer budgets and quicker cancellation, more switches.
    #[serde(rename = "tick_ms", with = "crate::limits::milliseconds")]
    pub tick: Duration,
    /// Larger components are refused unread. Default 256 MiB.
    pub max_component_bytes: u64,
    /// Folder for compiled components; made with mode 0700, not used if others can enter it.
    /// Default: none, every load compiles.
    pub cache: Option<PathBuf>,
    /// What checking, snapshotting and compiling one component may take, of wall-clock and of CPU time,
    /// beside its `init`. Key `prepare_ms`, default 120,000 ms. Kept where `prepare_elsewhere` is set.
    #[serde(rename = "prepare_ms", with = "crate::limits::milliseconds")]
    pub prepare: Duration,
    /// The most memory that preparing one component may take. Default 4 GiB. Kept where
    /// `prepare_elsewhere` is set.
    pub prepare_memory_bytes: u64,
    /// Prepare components in a process of its own, which is this program started with
    /// [`prepare_process::ARGUMENT`](crate::prepare_process::ARGUMENT). Not a setting: the program
    /// says that it can.
    #[serde(skip)]
    pub prepare_elsewhere: bool,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            instances: None,
            memory_budget_bytes: None,
            programs: None,
            program_memory_budget_bytes: None,
            sessions: None,
            session_memory_budget_bytes: None,
            max_memory_bytes: 256 << 20,
            workers: None,
            tick: Duration::from_millis(5),
            max_component_bytes: 256 << 20,
            cache: None,
            prepare: Duration::from_mins(2),
            prepare_memory_bytes: 4 << 30,
            prepare_elsewhere: false,
        }
    }
}

/// The sandbox cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A setting that cannot work.
    #[error("sandbox: {0}")]
    Config(String),
    /// wasmtime refuses the machine.
    #[error(
        "sandbox: no WebAssembly engine with {instances} instances on this machine: {reason}; set `instances` lower"
    )]
    Engine {
        /// How many were asked for in the last attempt.
        instances: u32,
        /// What wasmtime said.
        reason: String,
    },
    /// The guests' threads cannot be started.
    #[error("sandbox: cannot start threads for guests: {0}")]
    Threads(#[from] std::io::Error),
}

/// Sizes of the pools, as chosen for this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pools {
    /// Instances that live at once, over all levels and pools.
    pub instances: u32,
    /// How places and memory are shared: calls of the host's, those that they make, and those that
    /// these make.
    pub levels: [Level; LEVELS],
    /// What programs in interpreters have.
    pub programs: Level,
    /// What environment sessions have.
    pub sessions: Level,
    /// Linear memories; one instance may have several.
    pub memories: u32,
    /// Tables.
    pub tables: u32,
    /// The most of one memory, in bytes.
    pub max_memory_bytes: u64,
    /// Threads that run guests.
    pub workers: usize,
    /// What is done between two instances in one place.
    pub reset: Reset,
}

impl Pools {
    /// The levels in a line, for people.
    pub fn describe_levels(&self) -> String {
        let [calls, nested, deepest] = self.levels;
        let mebibytes = |level: Level| level.memory_bytes >> 20;
        format!(
            "{} calls at once in {} MiB; of calls that calls make {} in {} MiB, and {} in {} MiB one level deeper; \
             {} programs in {} MiB; {} sessions in {} MiB",
            calls.places,
            mebibytes(calls),
            nested.places,
            mebibytes(nested),
            deepest.places,
            mebibytes(deepest),
            self.programs.places,
            mebibytes(self.programs),
            self.sessions.places,
            mebibytes(self.sessions),
        )
    }
}

/// What is taken from the pools right now. All zero where nothing runs: the leak test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct InUse {
    /// Calls that hold a place.
    pub permits: usize,
    /// The sum of their memory limits, in bytes.
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

/// One engine and everything that guests share. Cheap to clone; knows no tool.
#[derive(Clone)]
pub struct Sandbox {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    pub(crate) admission: Admission,
    pub(crate) cache: Result<Cache, String>,
    pub(crate) config: SandboxConfig,
    pub(crate) pools: Pools,
    /// Runs `init` and is snapshotted: memory from the system, so that the pool's limits on shape
    /// do not apply to an instrumented component.
    workshop: OnceLock<Result<Workshop, String>>,
    runtime: Option<Runtime>,
}

/// What preparing a component needs of the sandbox.
pub(crate) struct Workshop {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
}

impl Workshop {
    fn new(tick: Duration) -> Result<Self, String> {
        let say = |error: wasmtime::Error| format!("{error:#}");
        let engine = Engine::new(&engine_configuration()).map_err(say)?;
        let linker = linker(&engine).map_err(say)?;
        tick_epochs(engine.weak(), tick).map_err(|error| error.to_string())?;
        Ok(Self { engine, linker })
    }
}

impl Sandbox {
    /// Sets up engine, pools and threads.
    pub fn new(config: &SandboxConfig) -> Result<Self, SandboxError> {
        if config.tick.is_zero() {
            return Err(SandboxError::Config(
                "tick_ms = 0 would interrupt guests without end; give it at least 1".into(),
            ));
        }
        if [config.instances, config.programs, config.sessions].contains(&Some(0))
            || config.workers == Some(0)
        {
            return Err(SandboxError::Config(
                "instances, programs, sessions and workers must be at least 1".into(),
            ));
        }
        let at_most = |name: &str, value: u128, most: u128| {
            if value <= most {
                return Ok(());
            }
            let text = format!("{name} = {value} is too much; write {most} at the most");
            Err(SandboxError::Config(text))
        };
        at_most(
            "instances",
            config.instances.unwrap_or_default().into(),
            MOST_INSTANCES.into(),
        )?;
        at_most(
            "programs",
            config.programs.unwrap_or_default().into(),
            MOST_INSTANCES.into(),
        )?;
        at_most(
            "sessions",
            config.sessions.unwrap_or_default().into(),
            MOST_INSTANCES.into(),
        )?;
        at_most(
            "workers",
            config.workers.unwrap_or_default() as u128,
            MOST_WORKERS as u128,
        )?;
        // Guests are looked at once a tick, and so are their limits.
        at_most("tick_ms", config.tick.as_millis(), 1_000)?;
        at_most(
            "prepare_ms",
            config.prepare.as_millis(),
            LONGEST.as_millis(),
        )?;
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
            Some(folder) => Cache::open(folder).inspect_err(|reason| {
                tracing::warn!("compiled components are not cached: {reason}");
            }),
            None => Err("no folder is configured".to_owned()),
        };
        let inner = Inner {
            engine,
            linker,
            admission: Admission::new(pools.levels, pools.programs, pools.sessions),
            cache,
            config: config.clone(),
            pools,
            workshop: OnceLock::new(),
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

    /// What is taken from the pools right now.
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

    /// The sandbox in a few lines, for `doctor`.
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
            pools.describe_levels(),
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
    /// Where guests run.
    pub(crate) fn guests(&self) -> &Handle {
        self.runtime
            .as_ref()
            .expect("taken by `drop` alone")
            .handle()
    }

    pub(crate) fn workshop(&self) -> Result<&Workshop, &str> {
        self.workshop
            .get_or_init(|| Workshop::new(self.config.tick))
            .as_ref()
            .map_err(String::as_str)
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

/// The release this crate is pinned to; compiled code of any other is refused.
pub(crate) const WASMTIME: &str = "48.0.8";

/// The settings that all engines have in common, each with its default, cost and reason. Public so that a
/// benchmark can compare them with others.
///
/// # Panics
///
/// Never: the version that it names is shorter than the limit of 255 bytes.
pub fn engine_configuration() -> Config {
    let mut config = Config::new();
    config
        // Default `Speed`; kept explicit because it is part of the cache key.
        .cranelift_opt_level(OptLevel::Speed)
        // Default off. Up to 17 % of a compute-bound call; fuel would cost 70 to 100 %.
        .epoch_interruption(true)
        // Default on, which makes a trivial call 8 us instead of 2.8: component-model async is unused.
        .concurrency_support(false)
        // Defaults; what makes a fresh instance from a snapshot cheap.
        .memory_init_cow(true)
        .table_lazy_init(true)
        // Default 16 MiB. Snapshots up to this size become copy-on-write images even if full of holes.
        .memory_guaranteed_dense_image_size(64 << 20)
        // Defaults 512 KiB and 2 MiB. Deep recursion in an interpreter must end as its own error,
        // not as a trap. Address space only, until touched.
        .max_wasm_stack(8 << 20)
        .async_stack_size(10 << 20)
        // Default off. The same floats on every machine, for a few per cent of float-heavy code.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        // The default compares the major version alone; compiled code of another patch release may
        // differ in what the runtime expects of it.
        .module_version(ModuleVersionStrategy::Custom(format!(
            "rlf-{}-wasmtime-{WASMTIME}",
            env!("CARGO_PKG_VERSION")
        )))
        .expect("shorter than 255 bytes");
    config
}

fn engine(config: &SandboxConfig) -> Result<(Engine, Pools), SandboxError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut instances = config.instances.unwrap_or_else(instances_for_machine);
    let budget = config
        .memory_budget_bytes
        .unwrap_or_else(|| machine_memory() / 2);
    loop {
        let levels = Level::shares(instances, budget, config.max_memory_bytes);
        let programs = Level {
            places: config.programs.unwrap_or(instances),
            memory_bytes: config
                .program_memory_budget_bytes
                .unwrap_or_else(|| machine_memory() / 4)
                .max(config.max_memory_bytes),
        };
        let sessions = Level {
            places: config.sessions.unwrap_or(instances),
            memory_bytes: config
                .session_memory_budget_bytes
                .unwrap_or_else(|| machine_memory() / 4)
                .max(config.max_memory_bytes),
        };
        let places = (levels.iter().chain([&programs, &sessions]))
            .map(|level| level.places)
            .sum();
        let pools = Pools {
            instances: places,
            levels,
            programs,
            sessions,
            // Some components have three; so many places are for those that have one.
            memories: (3 * places).min(places.max(MOST_MEMORIES)),
            tables: 4 * places,
            max_memory_bytes: config.max_memory_bytes,
            workers: config.workers.unwrap_or_else(|| cores.clamp(2, 4)),
            reset: Reset::of_machine(),
        };
        let mut settings = engine_configuration();
        settings.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling(&pools)));
        match Engine::new(&settings) {
            Ok(engine) => return Ok((engine, pools)),
            // Address space may be limited; what was asked for by name is not made smaller.
            Err(_) if config.instances.is_none() && instances > 16 => instances /= 2,
            Err(error) => {
                return Err(SandboxError::Engine {
                    instances,
                    reason: format!("{error:#}"),
                });
            }
        }
    }
}

fn pooling(pools: &Pools) -> PoolingAllocationConfig {
    let mut pooling = PoolingAllocationConfig::new();
    pooling
        .total_component_instances(pools.instances)
        // Components made by componentize-py have two dozen core modules each.
        .total_core_instances(24 * pools.instances)
        .total_memories(pools.memories)
        .total_tables(pools.tables)
        .total_stacks(pools.instances)
        .max_memories_per_module(2)
        .max_tables_per_module(4)
        .table_elements(TABLE_ELEMENTS as usize)
        .max_memory_size(usize::try_from(pools.max_memory_bytes).unwrap_or(usize::MAX))
        .max_core_instance_size(1 << 20)
        .max_component_instance_size(4 << 20)
        .async_stack_keep_resident(64 << 10)
        .decommit_batch_size(1)
        .max_unused_warm_slots(pools.instances.min(128));
    // Page faults dominate everything bigger than a trivial call.
    pools.reset.configure(&mut pooling);
    pooling
}

/// The machine's memory in bytes; 4 GiB where it cannot be told.
fn machine_memory() -> u64 {
    let kib = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let kib = text
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))?;
        kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.unwrap_or(4 << 20) << 10
}

/// See [`SandboxConfig::instances`].
fn instances_for_machine() -> u32 {
    let by_memory = (machine_memory() / (64 << 20)).clamp(32, 512);
    // About 5.5 mappings live with each instance; others need some too.
    let maps = fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    let by_maps = maps.map_or(u64::MAX, |maps| (maps / 16).max(16));
    by_memory.min(by_maps) as u32
}

/// Advances the epoch until the engine is gone.
fn tick_epochs(engine: EngineWeak, tick: Duration) -> std::io::Result<()> {
    std::thread::Builder::new()
        .name("rlf-epoch".to_owned())
        .spawn(move || {
            loop {
                std::thread::sleep(tick);
                let Some(engine) = engine.upgrade() else {
                    break;
                };
                engine.increment_epoch();
            }
        })?;
    Ok(())
}
