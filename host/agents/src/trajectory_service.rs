//! The HTTP service for the agents of a run. Every trajectory has a URL of its own, which contains a secret token.
//!
//! | route | |
//! |---|---|
//! | `/t/TOKEN/v1/..` | turns of the policy: see `routes` |
//! | `GET /t/TOKEN/task` | the task |
//! | `POST /t/TOKEN/tools/NAME` | a call of one of the task's tools |
//! | `POST /t/TOKEN/mcp` | the task's tools over MCP |
//! | `POST /t/TOKEN/finish` | the end of the trajectory, with its report |
//! | `POST /agents/next` | a task for a remote agent |

use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::Ended;
use rlf_rollout::agent::{AgentEnd, AgentReport, Called, Turn, TurnRefused};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::{self, Token};
use crate::form::Asked;
use crate::open_trajectories::{OpenTrajectories, OpenTrajectory};
use crate::parameters::Sampling;
use crate::refusal::Refusal;
use crate::remote::Queue;
use crate::routes::{self, Policy};
use crate::task::described;
use crate::{body, mcp};

const KNOWN: &str = "below the URL of a trajectory there are POST /v1/chat/completions, POST /v1/messages, \
    GET /v1/models, GET /task, POST /tools/NAME, POST /mcp and POST /finish";

/// The state that all routes share.
pub(crate) struct TrajectoryService {
    /// The trajectories that agents may ask.
    pub(crate) trajectories: OpenTrajectories,
    /// The tasks that wait for remote agents.
    pub(crate) tasks: Queue,
    /// The token that remote agents show.
    pub(crate) token: Token,
}

/// The routes. Only if `is_remote`, agents can fetch tasks.
pub(crate) fn router(service: Arc<TrajectoryService>, is_remote: bool) -> Router {
    let mut router = routes::of_turns::<OpenTrajectory, Arc<TrajectoryService>>("/t/{token}")
        .route("/t/{token}/task", get(task))
        .route("/t/{token}/tools/{name}", post(call_tool))
        .route("/t/{token}/mcp", post(mcp::answer))
        .route("/t/{token}/finish", post(finish));
    if is_remote {
        router = router.route("/agents/next", post(next));
    }
    routes::with_refusals(router, KNOWN).with_state(service)
}

impl FromRequestParts<Arc<TrajectoryService>> for OpenTrajectory {
    type Rejection = Refusal;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<TrajectoryService>,
    ) -> Result<Self, Refusal> {
        access::not_of_a_page(&parts.headers)?;
        let path = parts.uri.path().strip_prefix("/t/").unwrap_or_default();
        let token = path.split('/').next().unwrap_or_default();
        service.trajectories.find(token).ok_or_else(|| {
            Refusal::new(
                StatusCode::NOT_FOUND,
                "no_trajectory",
                "no trajectory has this URL; it may have ended",
            )
        })
    }
}

#[async_trait]
impl Policy for OpenTrajectory {
    fn sampling(&self) -> Sampling {
        Sampling::Fixed(self.temperature)
    }

    async fn turn(&self, asked: Asked) -> Result<Turn, TurnRefused> {
        self.trajectory.complete(asked.turn).await
    }
}

async fn task(open: OpenTrajectory) -> Result<Response, Refusal> {
    let task = described(&open.trajectory).await?;
    Ok(body::json(StatusCode::OK, &task))
}

/// The body of a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    /// The id of the call in a turn of the policy. None for a call of the agent's own.
    #[serde(default)]
    id: Option<String>,
    /// The arguments: an object, or its JSON as a text, as OpenAI's API has it.
    #[serde(default)]
    arguments: Value,
}

async fn call_tool(
    open: OpenTrajectory,
    Path((_, name)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Refusal> {
    let Call { id, arguments } = body::parse(&body::read(request.into_body()).await?)?;
    let arguments = match arguments {
        Value::Null => json!({}),
        Value::String(text) => rlf_json::from_str(&text)
            .map_err(|error| Refusal::invalid(format!("`arguments`: {error}")))?,
        arguments => arguments,
    };
    if !arguments.is_object() {
        return Err(Refusal::invalid("`arguments` is not an object"));
    }
    let Called {
        outcome,
        terminated,
    } = open.call(id, name, arguments).await?;
    let Some(observation) = &outcome.observation else {
        return Err(Refusal::without_observation(&outcome));
    };
    let called = json!({
        "ended": outcome.ended.as_str(),
        "failed": observation.failed || outcome.ended != Ended::Ok,
        "content": plain_text(&observation.content),
        "terminated": terminated,
    });
    Ok(body::json(StatusCode::OK, &called))
}

/// The body of the end of a trajectory.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Finish {
    #[serde(default)]
    answer: Option<String>,
    #[serde(default)]
    reward: Option<f64>,
    /// The reason why the agent gave up.
    #[serde(default)]
    error: Option<String>,
}

async fn finish(open: OpenTrajectory, request: Request) -> Result<Response, Refusal> {
    let Finish {
        answer,
        reward,
        error,
    } = body::parse(&body::read(request.into_body()).await?)?;
    let end = match error {
        Some(why) => AgentEnd::Failed(why),
        None => AgentEnd::Finished(AgentReport { answer, reward }),
    };
    if !open.end(end) {
        let why = "this trajectory has ended before";
        return Err(Refusal::new(StatusCode::GONE, "over", why));
    }
    Ok(body::json(StatusCode::OK, &json!({})))
}

async fn next(
    State(service): State<Arc<TrajectoryService>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    access::not_of_a_page(&headers)?;
    service.token.check(&headers)?;
    Ok(match service.tasks.take().await {
        Some(task) => body::json(StatusCode::OK, &task),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}
