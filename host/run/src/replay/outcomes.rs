//! The recorded outcomes that calls take in a replay instead of being made again.

use std::collections::HashMap;
use std::path::Path;

use rlf_dialogue::tool::{CallOutcome, ToolCall, ToolDefinition};
use rlf_rollout::RecordedOutcomes;

use super::compare::is_stopped;
use super::record;
use crate::error::RunFailure;
use crate::parts::RunParts;

/// The recorded outcomes of calls, from `first` to `last`, that could end in another way if they were made again.
pub(super) fn recorded_outcomes(
    parts: &RunParts,
    run: &Path,
    first: u64,
    last: u64,
) -> Result<RecordedOutcomes, RunFailure> {
    let mut outcomes = RecordedOutcomes::default();
    for step in first..=last {
        for record in record::trajectories(run, step)?.into_iter().flatten() {
            let trajectory = record.trajectory;
            let calls = trajectory.turns().flat_map(|turn| &turn.calls);
            let calls: HashMap<&str, &ToolCall> =
                calls.map(|call| (call.call_id.as_str(), call)).collect();
            let own_name = |outcome: &CallOutcome| {
                let mut tools = trajectory.tools.iter();
                let tool = tools.find(|tool| tool.name == outcome.name);
                tool.map(ToolDefinition::own_name).map(str::to_owned)
            };
            for outcome in trajectory.outcomes() {
                let tool = own_name(outcome).filter(|name| parts.tools.has(name));
                let repeats = |name: String| parts.tools.repeats(&name) && !is_stopped(outcome);
                let is_kept = tool.is_some_and(|name| !repeats(name));
                if let Some(call) = calls.get(outcome.call_id.as_str()).filter(|_| is_kept) {
                    outcomes.insert((*call).clone(), outcome.clone());
                }
            }
        }
    }
    Ok(outcomes)
}
