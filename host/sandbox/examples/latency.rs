//! Measures the latency of a call in a fresh sandbox: `cargo run --release -p rlf-sandbox --example latency`.
//!
//! Prints results of one run side by side: wasmtime alone (fresh store, instance and call on the caller's thread, no
//! limits), the same under this crate's limits, and eight callers at once.

use std::error::Error;
use std::time::{Duration, Instant};

use rlf_sandbox::{
    CallSpec, ComponentSource, Grants, Limits, LoadRequest, Pool, Sandbox, SandboxConfig, Template,
};
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

const CALLS: u32 = 20_000;
const ADDER: &str = r#"(component
    (core module $m (memory 1)
        (func (export "add") (param i32 i32) (result i32)
            (i32.store (i32.const 64) (local.get 0))
            (i32.add (i32.load (i32.const 64)) (local.get 1))))
    (core instance $i (instantiate $m))
    (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add"))))"#;

fn main() -> Result<(), Box<dyn Error>> {
    let bytes = wat::parse_str(ADDER)?;
    let sandbox = Sandbox::new(&SandboxConfig::default())?;
    println!("{}\n", sandbox.describe());
    let template = sandbox.load(&LoadRequest {
        name: "adder",
        component: ComponentSource::Bytes(&bytes),
        config_json: "{}",
        grants: &Grants::default(),
        gates: &[],
        limits: Limits::default(),
        pool: Pool::Calls,
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()?;

    println!(
        "{:<44}{:>9}{:>9}{:>9}{:>12}",
        "", "min us", "p50 us", "p99 us", "calls/s"
    );
    row(
        "wasmtime alone, same engine, on this thread",
        alone(sandbox.engine(), &bytes)?,
    );
    row(
        "sandbox, one caller",
        runtime.block_on(sequence(template.clone(), CALLS)),
    );
    for callers in [8, 64] {
        let began = Instant::now();
        let samples = runtime.block_on(async {
            let each = CALLS / callers;
            let tasks: Vec<_> = (0..callers)
                .map(|_| tokio::spawn(sequence(template.clone(), each)))
                .collect();
            let mut samples = Vec::new();
            for task in tasks {
                samples.extend(task.await.expect("no call panics").0);
            }
            samples
        });
        row(
            &format!("sandbox, {callers} callers at once"),
            (samples, began.elapsed()),
        );
    }
    Ok(())
}

type Samples = (Vec<Duration>, Duration);

fn alone(engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Samples> {
    let template = Linker::<()>::new(engine).instantiate_pre(&Component::new(engine, bytes)?)?;
    let mut samples = Vec::new();
    let began = Instant::now();
    for number in 0..CALLS {
        let began = Instant::now();
        let mut store = Store::new(engine, ());
        store.set_epoch_deadline(u64::MAX / 2);
        let instance = template.instantiate(&mut store)?;
        let add = instance.get_typed_func::<(u32, u32), (u32,)>(&mut store, "add")?;
        assert_eq!(add.call(&mut store, (number, 1))?.0, number + 1);
        drop(store);
        samples.push(began.elapsed());
    }
    Ok((samples, began.elapsed()))
}

async fn sequence(template: Template, calls: u32) -> Samples {
    let mut samples = Vec::new();
    let began = Instant::now();
    for number in 0..calls {
        let began = Instant::now();
        let report = template
            .call(CallSpec::default(), move |store, instance| {
                Box::pin(async move {
                    let add = instance.get_typed_func::<(u32, u32), (u32,)>(&mut *store, "add")?;
                    Ok(add.call_async(&mut *store, (number, 1)).await?.0)
                })
            })
            .await;
        assert_eq!(report.outcome, Ok(number + 1));
        samples.push(began.elapsed());
    }
    (samples, began.elapsed())
}

fn row(name: &str, (mut samples, elapsed): Samples) {
    samples.sort_unstable();
    let at = |part: f64| samples[((samples.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
    let rate = samples.len() as f64 / elapsed.as_secs_f64();
    println!(
        "{name:<44}{:>9.1}{:>9.1}{:>9.1}{rate:>12.0}",
        at(0.0),
        at(0.5),
        at(0.99)
    );
}
