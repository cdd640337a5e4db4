//! Speed of the policy on this machine.
//!
//!     cargo run --release -p rlf-policy --example bench [quickstart|0.6b] [threads]

use rlf_policy::bench::{Workload, run};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), rlf_policy::PolicyError> {
    let mut arguments = std::env::args().skip(1);
    let workload = match arguments.next().as_deref() {
        Some("0.6b") => Workload::qwen3_06b(),
        _ => Workload::quickstart(),
    };
    let threads = arguments
        .next()
        .and_then(|threads| threads.parse().ok())
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    print!("{}", run(&workload, &candle_core::Device::Cpu, threads)?);
    Ok(())
}
