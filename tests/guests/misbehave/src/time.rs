//! Time and randomness.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime};

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::tool;
use schemars::JsonSchema;
use serde::Deserialize;

/// Never ends.
#[tool]
pub(crate) fn r#loop() -> String {
    let mut rounds = 0_u64;
    loop {
        rounds = black_box(rounds.wrapping_add(1));
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Sleep {
    /// For so long
    milliseconds: u64,
}

/// Sleeps and returns how many milliseconds passed by its own clock.
#[tool]
pub(crate) fn sleep(Sleep { milliseconds }: Sleep) -> u64 {
    let start = Instant::now();
    std::thread::sleep(Duration::from_millis(milliseconds));
    start.elapsed().as_millis() as u64
}

/// Reads both clocks twice, in nanoseconds.
#[tool]
pub(crate) fn read_clock() -> Value {
    let wall = || {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos() as u64
    };
    let start = Instant::now();
    let walls = [wall(), wall()];
    json!({ "wall": walls, "elapsed": start.elapsed().as_nanos() as u64 })
}

/// Returns two numbers made from the host's randomness.
#[tool]
pub(crate) fn read_random() -> Value {
    // The keys of std's hash maps are the randomness that std asks the host for.
    let number = || RandomState::new().hash_one(0_u8);
    json!([number().to_string(), number().to_string()])
}
