//! Memory, stack, and ways to end.

use std::hint::black_box;

use rlf_plugin::tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Megabytes {
    /// How many to allocate and touch
    megabytes: u32,
}

/// Allocates memory, touches every page of it, and returns how much it got.
#[tool]
pub(crate) fn grow_memory(Megabytes { megabytes }: Megabytes) -> String {
    let mut kept = Vec::new();
    for got in 0..megabytes {
        let mut block: Vec<u8> = Vec::new();
        if block.try_reserve_exact(1 << 20).is_err() {
            return format!("refused after {got} MB");
        }
        block.resize(1 << 20, 1);
        kept.push(black_box(block));
    }
    format!("got {} MB", kept.len())
}

/// Allocates without end, and without asking whether there is any left.
#[tool]
pub(crate) fn exhaust_memory() -> usize {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(vec![1_u8; 1 << 16]));
    }
}

/// Reaches code that cannot be reached.
#[tool]
pub(crate) fn trap() -> String {
    #[cfg(target_family = "wasm")]
    std::arch::wasm32::unreachable();
    #[cfg(not(target_family = "wasm"))]
    std::process::abort();
}

/// Panics.
#[tool]
pub(crate) fn panic() -> String {
    panic!("a panic in a guest");
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Exit {
    /// The code to leave with
    code: u8,
}

/// Leaves by `exit`.
#[tool]
pub(crate) fn exit(Exit { code }: Exit) -> String {
    println!("leaving");
    std::process::exit(code.into());
}

/// Calls itself without end.
#[tool]
pub(crate) fn recurse() -> u64 {
    deeper(0)
}

fn deeper(depth: u64) -> u64 {
    // Something on the stack, work after the call, and an end that is never reached: otherwise the compiler would
    // make a loop of it.
    let held = black_box([depth; 16]);
    if black_box(depth) == u64::MAX {
        return 0;
    }
    deeper(depth + 1) + black_box(held)[0]
}
