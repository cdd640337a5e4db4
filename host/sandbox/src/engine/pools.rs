//! Sizes of the pools: chosen for the machine, unless the configuration says otherwise.

use std::fs;

use serde::Serialize;
use wasmtime::{Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::admission::{LEVELS, PoolLevel};
use super::config::{SandboxConfig, SandboxError};
use super::reset::Reset;
use super::settings::engine_configuration;
use crate::limits::TABLE_ELEMENTS;

/// Maximum number of memories, each of which takes 4 GiB of address space. It is exceeded only if every place needs
/// one.
const MAX_MEMORIES: u32 = 15_000;

/// Sizes of the pools, as chosen for this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pools {
    /// Instances that live at once, over all levels and pools.
    pub instances: u32,
    /// Places and memory by level: calls of the host, calls that they make, and calls that these make.
    pub levels: [PoolLevel; LEVELS],
    /// Places and memory of programs in interpreters.
    pub programs: PoolLevel,
    /// Places and memory of environment sessions.
    pub sessions: PoolLevel,
    /// Linear memories; one instance may have several.
    pub memories: u32,
    /// Tables.
    pub tables: u32,
    /// Maximum size of one memory, in bytes.
    pub max_memory_bytes: u64,
    /// Threads that run guests.
    pub workers: usize,
    /// Way in which memory is reset between two instances in one place.
    pub reset: Reset,
}

impl Pools {
    /// The levels, a line of text for each.
    pub fn describe_levels(&self) -> [String; LEVELS + 2] {
        let [calls, nested, deepest] = self.levels;
        [
            (calls, "calls at once"),
            (nested, "nested calls (which calls make)"),
            (deepest, "calls that nested calls make"),
            (self.programs, "programs"),
            (self.sessions, "sessions of environments"),
        ]
        .map(|(level, what)| {
            format!(
                "{} {what} in {} MiB",
                level.places,
                level.memory_bytes >> 20
            )
        })
    }
}

/// An engine whose pools fit the machine.
pub(super) fn engine(config: &SandboxConfig) -> Result<(Engine, Pools), SandboxError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut instances = config.instances.unwrap_or_else(instances_for_machine);
    let budget = config
        .memory_budget_bytes
        .unwrap_or_else(|| machine_memory() / 2);
    loop {
        let levels = PoolLevel::shares(instances, budget, config.max_memory_bytes);
        let programs = PoolLevel {
            places: config.programs.unwrap_or(instances),
            memory_bytes: config
                .program_memory_budget_bytes
                .unwrap_or_else(|| machine_memory() / 4)
                .max(config.max_memory_bytes),
        };
        let sessions = PoolLevel {
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
            // Some components have three memories. Beyond the limit there is one for each place.
            memories: (3 * places).min(places.max(MAX_MEMORIES)),
            tables: 4 * places,
            max_memory_bytes: config.max_memory_bytes,
            workers: config.workers.unwrap_or_else(|| cores.clamp(2, 4)),
            reset: Reset::for_machine(),
        };
        let mut settings = engine_configuration();
        settings.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling(&pools)));
        match Engine::new(&settings) {
            Ok(engine) => return Ok((engine, pools)),
            // Address space may be limited. A configured number is not made smaller.
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
        // A Python with numpy and similar packages needs 1.5 MiB, most of it for its functions.
        .max_core_instance_size(2 << 20)
        .total_gc_heaps(pools.instances)
        .max_component_instance_size(4 << 20)
        .async_stack_keep_resident(64 << 10)
        .decommit_batch_size(1)
        .max_unused_warm_slots(pools.instances.min(128));
    // Page faults dominate everything bigger than a trivial call.
    pools.reset.configure(&mut pooling);
    pooling
}

/// The machine's memory in bytes; 4 GiB if it is unknown.
fn machine_memory() -> u64 {
    let kib = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let kib = text
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))?;
        kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.unwrap_or(4 << 20) << 10
}

/// Default number of instances on this machine. See [`SandboxConfig::instances`].
fn instances_for_machine() -> u32 {
    let by_memory = (machine_memory() / (64 << 20)).clamp(32, 512);
    // About 5.5 mappings live with each instance; others need some too.
    let maps = fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    let by_maps = maps.map_or(u64::MAX, |maps| (maps / 16).max(16));
    by_memory.min(by_maps) as u32
}
