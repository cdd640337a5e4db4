//! `GET /v1/tools`, `POST /v1/tools/{name}`: calls tools as rollouts do.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use rlf_dialogue::tool::{CallOutcome, Ended, ToolCall};
use rlf_plugins::turn::TurnContext;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::answer::{Refusal, json};
use crate::body::Body;
use crate::request::{RequestLog, logged};
use crate::service::Service;

/// `POST /v1/tools/{name}`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolRequest {
    /// The arguments. They are checked against the tool's schema; wrong ones give the outcome `invalid-arguments`.
    pub(crate) arguments: Map<String, Value>,
    /// Seed of all randomness in the call. Default: serve.seed.
    #[serde(default)]
    pub(crate) seed: Option<u64>,
    /// Name of the trajectory that the call belongs to. Default: the request's own name.
    #[serde(default)]
    pub(crate) trajectory_id: Option<String>,
}

/// Answer to `POST /v1/tools/{name}`: how the call ended, in the format of trajectories.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ToolOutcome {
    pub(crate) call_id: String,
    pub(crate) name: String,
    /// `ok`, `failed`, `invalid-arguments`, `timeout`, `memory-limit`, `output-limit`, `trap`, `exited`,
    /// `denied`, `unavailable` or `cancelled`.
    pub(crate) ended: String,
    /// The party that caused the end: `model`, `plugin`, `infrastructure` (never to be scored 0) or `nobody` (given up); `none` if
    /// it ended well.
    pub(crate) fault: Value,
    /// The observation for the model: `content`, `failed`. Null after an infrastructure failure.
    pub(crate) observation: Option<Value>,
    /// Microseconds, waiting for an instance included.
    pub(crate) wall_us: u64,
    /// Hash of the component that served the call.
    pub(crate) component: String,
    /// The calls that a program made: their `arguments`, and the `outcome` of each. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) nested: Vec<NestedOutcome>,
}

/// A call that a program made.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NestedOutcome {
    pub(crate) arguments: Value,
    pub(crate) outcome: ToolOutcome,
}

/// Answer to `GET /v1/tools`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ToolList {
    /// The tools, each with `name`, `description`, `input-schema` and `hints`, in the order in which models see them.
    pub(crate) tools: Vec<Value>,
    /// Names of the rewards.
    pub(crate) rewards: Vec<String>,
    /// Tools and rewards that are loaded but not served, with the reason.
    pub(crate) withheld: BTreeMap<String, String>,
    /// Plugins of every kind that are installed but were not loaded, and tools that several plugins offer, with the kind
    /// of problem.
    pub(crate) failed: BTreeMap<String, String>,
}

pub(crate) async fn list(State(service): State<Arc<Service>>) -> Result<Response, Refusal> {
    let definitions = service.tools.definitions(None).unwrap_or_default();
    let served = definitions
        .iter()
        .filter(|tool| service.exposure.tools.contains(&tool.name));
    Ok(json(&ToolList {
        tools: served
            .filter_map(|tool| serde_json::to_value(tool).ok())
            .collect(),
        rewards: service.exposure.rewards.keys().cloned().collect(),
        withheld: service.exposure.withheld.clone(),
        failed: service.exposure.failed.clone(),
    }))
}

pub(crate) async fn call(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    if !service.exposure.tools.contains(&name) {
        return Err(not_served(
            &service,
            "tool",
            &name,
            service.exposure.tools.iter().map(String::as_str),
        ));
    }
    let id = crate::request::id(&request);
    let mut wait = service.wait();
    let body = Body::read(request, &service, &mut wait).await?;
    let (request, _room) = body.parse::<ToolRequest>()?;
    // The call's randomness depends on its id, and the same request gives the same answer.
    let call_id = format!("{}/0/0", request.trajectory_id.as_deref().unwrap_or("call"));
    let trajectory_id = request.trajectory_id.unwrap_or(id);
    let context = TurnContext {
        turn: 0,
        seed: request.seed.unwrap_or(service.config.seed),
        trajectory_id,
    };
    let call = ToolCall {
        call_id,
        name: name.clone(),
        arguments: Value::Object(request.arguments),
    };
    let place = service.call_place(&mut wait).await?;
    let outcome = service.tools.invoke(vec![call], &context).await.pop();
    drop(place);
    let Some(outcome) = outcome else {
        return Err(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the call gave no outcome",
        ));
    };
    let log = RequestLog {
        what: name,
        ended: outcome.ended.as_str().into(),
        queued: wait.waited(),
        took: std::time::Duration::from_micros(outcome.wall_us),
    };
    Ok(logged(json(&ToolOutcome::from(outcome)), log))
}

/// Refuses a name of a tool or reward that is not served, with the reason.
pub(crate) fn not_served<'a>(
    service: &Service,
    kind: &str,
    name: &str,
    served: impl Iterator<Item = &'a str>,
) -> Refusal {
    if let Some(why) = service.exposure.withheld.get(name) {
        return Refusal::new(
            StatusCode::FORBIDDEN,
            format!("`{name}` is not served: {why}"),
        );
    }
    if let Some(why) = service.exposure.failed.get(name) {
        return Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("`{name}` is installed and cannot be served: {why}"),
        );
    }
    let served: Vec<&str> = served.collect();
    let hint = match rlf_config::nearest(name, served.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if served.is_empty() => format!("no {kind} is served"),
        None => format!("there are: {}", served.join(", ")),
    };
    let name: String = name.chars().take(64).collect();
    let failed: Vec<&str> = service.exposure.failed.keys().map(String::as_str).collect();
    let also = if failed.is_empty() {
        String::new()
    } else {
        // It is not known what they would have offered.
        format!(
            "; not loaded (GET /v1/tools says why): {}",
            failed.join(", ")
        )
    };
    Refusal::new(
        StatusCode::NOT_FOUND,
        format!("there is no {kind} `{name}`; {hint}{also}"),
    )
}

impl From<CallOutcome> for ToolOutcome {
    /// Leaves out the detail, which contains places in the plugin's source. The host's log has it.
    fn from(outcome: CallOutcome) -> Self {
        if let Some(detail) = outcome.detail.filter(|_| outcome.ended != Ended::Ok) {
            tracing::debug!(call = outcome.call_id, detail, "a call did not end well");
        }
        Self {
            call_id: outcome.call_id,
            name: outcome.name,
            ended: outcome.ended.as_str().into(),
            fault: serde_json::to_value(outcome.fault).unwrap_or_default(),
            observation: outcome
                .observation
                .and_then(|seen| serde_json::to_value(seen).ok()),
            wall_us: outcome.wall_us,
            component: outcome.component,
            nested: (outcome.nested.into_iter())
                .map(|call| NestedOutcome {
                    arguments: call.arguments,
                    outcome: call.outcome.into(),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::tool::{Fault, Observation};

    use super::*;

    #[test]
    fn an_outcome_is_what_trajectories_keep_but_for_its_detail() {
        let outcome = CallOutcome {
            call_id: "t/0/0".into(),
            name: "search".into(),
            ended: Ended::Trap,
            fault: Fault::Plugin,
            observation: Some(Observation::text("error", true)),
            step_reward: None,
            state: None,
            detail: Some("at /home/someone/plugin.rs".into()),
            wall_us: 7,
            component: "ab".into(),
            nested: Vec::new(),
        };
        let mut kept = serde_json::to_value(&outcome).unwrap();
        kept.as_object_mut().unwrap().remove("detail");
        assert_eq!(
            serde_json::to_value(ToolOutcome::from(outcome)).unwrap(),
            kept
        );
    }
}
