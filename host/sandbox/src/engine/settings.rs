//! Settings that all WebAssembly engines here share, and the ticks that interrupt guests.

use std::time::Duration;

use wasmtime::{Collector, Config, EngineWeak, ModuleVersionStrategy, OptLevel};

/// Release of wasmtime that this crate is pinned to. Compiled code of any other is refused.
pub(crate) const WASMTIME: &str = "48.0.8";

/// The settings of every engine here, each with its default, cost and reason.
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
        // Defaults. They make a fresh instance from a snapshot cheap.
        .memory_init_cow(true)
        .table_lazy_init(true)
        // Default 16 MiB. Snapshots up to this size become copy-on-write images even if full of holes.
        .memory_guaranteed_dense_image_size(64 << 20)
        // Defaults 512 KiB and 2 MiB. Deep recursion in an interpreter must end as its own error,
        // not as a trap. Address space only, until touched.
        .max_wasm_stack(16 << 20)
        .async_stack_size(18 << 20)
        // Defaults. C++ inside an interpreter throws and catches. An exception is an object of the garbage collector, which
        // is there for no other purpose. This one also frees the exceptions of a long loop.
        .wasm_exceptions(true)
        .wasm_gc(false)
        .wasm_function_references(false)
        .collector(Collector::DeferredReferenceCounting)
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

/// Advances the epoch until the engine is gone.
pub(super) fn tick_epochs(engine: EngineWeak, tick: Duration) -> std::io::Result<()> {
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
