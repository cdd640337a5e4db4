//! Tools that behave. They show that calls are kept apart and in order.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{CallContext, tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// Calls that this instance has served: always 1 where every call has a fresh one.
static CALLS: AtomicU32 = AtomicU32::new(0);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Echo {
    /// Comes back
    text: String,
}

/// Returns its text, the number of calls this instance has served, and the facts of the call.
#[tool]
pub(crate) fn echo(Echo { text }: Echo, context: &CallContext) -> Value {
    let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    json!({
        "text": text,
        "calls": calls,
        "call_id": context.call_id,
        "attempt": context.attempt,
        "trajectory_id": context.trajectory_id,
        "turn": context.turn,
        "seed": context.seed,
        "budget_ms": context.budget_ms,
    })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Delay {
    /// Rounds of work, about a million in a millisecond
    rounds: u64,
    /// Comes back
    text: String,
}

/// Works for a while and returns its text; the work shows in nothing but time.
#[tool(pure)]
pub(crate) fn delay(Delay { rounds, text }: Delay) -> String {
    let mut state = 1_u64;
    for round in 0..rounds {
        state = black_box(
            state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(round),
        );
    }
    text
}
