//! A task as agents see it.

use rlf_rollout::RolloutError;
use rlf_rollout::agent::AgentTrajectory;
use serde_json::{Value, json};

use crate::openai;

/// The task of a trajectory, without its reference and the setup of its environment.
pub(crate) async fn described(trajectory: &AgentTrajectory) -> Result<Value, RolloutError> {
    let task = trajectory.task();
    Ok(json!({
        "id": task.id,
        "source": task.source,
        "messages": openai::messages(&trajectory.prompt().await),
        "tools": openai::tools(&trajectory.tools().await?),
    }))
}
