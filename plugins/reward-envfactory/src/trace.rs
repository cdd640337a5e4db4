//! Compares the calls that were made with the gold calls.

use rlf_plugin::serde_json::{self, Map, Value};
use rlf_plugin::{MalformedCall, ToolCall, Trajectory};

use crate::reference::GoldCall;
use crate::value::close;

/// A call of the model.
#[derive(Debug)]
pub(crate) struct Call<'t> {
    pub(crate) name: &'t str,
    arguments: Map<String, Value>,
}

/// All parsed calls, in order.
pub(crate) fn calls(trajectory: &Trajectory) -> Vec<Call<'_>> {
    let calls = trajectory.turns().flat_map(|turn| &turn.calls);
    let read = |call: &ToolCall| serde_json::from_str(&call.arguments).unwrap_or_default();
    calls
        .map(|call| Call {
            name: &call.name,
            arguments: read(call),
        })
        .collect()
}

/// Failed calls, which could not be run; unpaired tags of reasoning are not counted.
pub(crate) fn malformed(trajectory: &Trajectory) -> usize {
    let is_call = |malformed: &&MalformedCall| {
        malformed.diagnostic != "unclosed-think" && malformed.text != "</think>"
    };
    let malformed = trajectory.turns().flat_map(|turn| &turn.malformed);
    malformed.filter(is_call).count()
}

/// True if every gold call has a different matching call.
pub(crate) fn holds(calls: &[Call<'_>], gold: &[GoldCall<'_>]) -> bool {
    let mut free: Vec<&Call<'_>> = calls.iter().collect();
    gold.iter().all(|gold| {
        let first = free.iter().position(|call| matches(call, gold));
        first.map(|first| free.remove(first)).is_some()
    })
}

fn matches(call: &Call<'_>, gold: &GoldCall<'_>) -> bool {
    call.name == gold.name
        && gold.arguments.iter().all(|(name, value)| {
            let own = call.arguments.get(*name);
            own.is_some_and(|own| close(own, value))
        })
}
