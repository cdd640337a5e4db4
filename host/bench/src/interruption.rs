//! The cost of being able to interrupt a guest. These figures need an engine of their own.

use std::time::{Duration, Instant};

use rlf_sandbox::engine_configuration;
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Result, Store};

/// The cost of being able to stop a guest that only computes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InterruptionCost {
    /// The best time of the call with the sandbox's settings.
    pub(crate) with: Duration,
    /// The best time of the same code compiled without checks in its loops.
    pub(crate) without: Duration,
}

/// A loop of various cheap instructions, run 20 million times.
const COMPUTE: &str = r#"(component
    (core module $m (memory 1)
        (func (export "run") (param $n i32) (result i32) (local $i i32) (local $x i32)
            (local.set $x (i32.const 12345))
            (loop $next
                (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 1103515245)) (i32.const 12345)))
                (i32.store (i32.and (local.get $x) (i32.const 0xfffc)) (local.get $x))
                (local.set $x (i32.xor (local.get $x) (i32.load (i32.and (local.get $i) (i32.const 0xfffc)))))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $next (i32.lt_u (local.get $i) (local.get $n))))
            (local.get $x)))
    (core instance $i (instantiate $m))
    (func (export "run") (param "n" u32) (result u32) (canon lift (core func $i "run"))))"#;

/// Measures the call with and without checks in its loops, in turn, for about `time`.
pub(crate) fn interruption(time: Duration) -> Result<InterruptionCost> {
    let mut without = engine_configuration();
    without.epoch_interruption(false);
    let engines = [
        Engine::new(&engine_configuration())?,
        Engine::new(&without)?,
    ];
    let compute = wat::parse_str(COMPUTE).map_err(wasmtime::Error::new)?;
    let components = [
        Component::new(&engines[0], &compute)?,
        Component::new(&engines[1], &compute)?,
    ];
    let mut best = [Duration::MAX; 2];
    let began = Instant::now();
    while began.elapsed() < time {
        for (index, best) in best.iter_mut().enumerate() {
            let mut store = Store::new(&engines[index], ());
            if index == 0 {
                store.set_epoch_deadline(u64::MAX / 2);
            }
            let linker = Linker::new(&engines[index]);
            let instance = linker.instantiate(&mut store, &components[index])?;
            let run = instance.get_typed_func::<(u32,), (u32,)>(&mut store, "run")?;
            let started = Instant::now();
            run.call(&mut store, (20_000_000,))?;
            *best = started.elapsed().min(*best);
        }
    }
    Ok(InterruptionCost {
        with: best[0],
        without: best[1],
    })
}
