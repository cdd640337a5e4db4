//! A call of a tool: from the arguments that a model wrote, and back as JSON.

use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::{CallOutcome, Ended, Fault, Observation};
use rlf_plugins::outcome::invalid_arguments;
use serde_json::{Value, json};

use crate::error::Failure;

/// Reads a call's arguments. The model wrote them, so a mistake in them is an answer to the model.
pub(crate) fn read_arguments(text: &str) -> serde_json::Result<Value> {
    rlf_json::from_str(text)
}

/// The outcome of a call whose arguments are not JSON.
pub(crate) fn unreadable(call_id: String, name: String, why: &serde_json::Error) -> CallOutcome {
    let text = invalid_arguments(&format!("they are not JSON: {why}"));
    CallOutcome {
        ended: Ended::InvalidArguments,
        fault: Fault::Model,
        ..CallOutcome::from_observation(call_id, name, Observation::text(text, true))
    }
}

/// An outcome as JSON, as trajectories keep it, with the `text` that the model reads.
pub(crate) fn with_text(outcome: &CallOutcome) -> Result<Value, Failure> {
    let mut value =
        serde_json::to_value(outcome).map_err(|error| Failure::Other(error.to_string()))?;
    let seen = outcome.observation.as_ref();
    value["text"] = json!(seen.map(|seen| plain_text(&seen.content)));
    Ok(value)
}
