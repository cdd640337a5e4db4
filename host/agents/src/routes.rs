//! The routes of the HTTP service.
//!
//! | route | |
//! |---|---|
//! | `POST /t/TOKEN/v1/chat/completions` | a turn of the policy, in OpenAI's form |
//! | `POST /t/TOKEN/v1/messages` | a turn of the policy, in Anthropic's form |
//! | `GET /t/TOKEN/v1/models` | the only model, `policy` |
//! | `GET /t/TOKEN/task` | the task |
//! | `POST /t/TOKEN/tools/NAME` | a call of one of the task's tools |
//! | `POST /t/TOKEN/finish` | the end of the trajectory, with its report |
//! | `POST /agents/next` | a task for a remote agent |
//!
//! Requests with an `Origin` come from a page in a browser, and are refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use http::header::{AUTHORIZATION, ORIGIN};
use http::{HeaderMap, HeaderName, StatusCode};
use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::Ended;
use rlf_rollout::agent::{AgentEnd, AgentReport, AgentTrajectory, Called};
use serde::Deserialize;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;

use crate::remote::Queue;
use crate::seats::{Seat, Seats};
use crate::wire::{Refusal, Sampling, answer};
use crate::{anthropic, openai};

/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 4 << 20;
/// Time in which a body has to arrive.
const BODY: Duration = Duration::from_secs(30);

/// The state that all routes share.
pub(crate) struct Desk {
    pub(crate) seats: Seats,
    pub(crate) queue: Queue,
    /// True if agents may fetch tasks.
    pub(crate) is_remote: bool,
    /// The token that remote agents show.
    pub(crate) token: Option<String>,
    /// The temperature at which training samples.
    pub(crate) temperature: f32,
    /// Number of answers so far, for their ids.
    pub(crate) answers: AtomicU64,
}

pub(crate) fn router(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/t/{token}/v1/chat/completions", post(chat_completions))
        .route("/t/{token}/v1/messages", post(messages))
        .route("/t/{token}/v1/models", get(models))
        .route("/t/{token}/task", get(task))
        .route("/t/{token}/tools/{name}", post(call_tool))
        .route("/t/{token}/finish", post(finish))
        .route("/agents/next", post(next))
        .fallback(unknown)
        .with_state(desk)
}

type Answer = Result<Response, Response>;

impl Desk {
    fn seat(&self, token: &str) -> Result<Seat, Refusal> {
        self.seats.find(token).ok_or_else(|| Refusal {
            status: StatusCode::NOT_FOUND,
            code: "no_trajectory",
            message: "no trajectory has this URL; it may have ended".to_owned(),
        })
    }

    fn next_id(&self) -> String {
        format!("{:08x}", self.answers.fetch_add(1, Ordering::Relaxed))
    }
}

async fn chat_completions(
    State(desk): State<Arc<Desk>>,
    Path(token): Path<String>,
    request: Request,
) -> Answer {
    let turn = async {
        let seat = desk.seat(&token)?;
        let body = body(request).await?;
        let request = openai::Request::read(&body, Sampling::Fixed(desk.temperature))?;
        let turn = seat.trajectory.complete(request.turn.clone()).await?;
        Ok(request.answer(&turn, &desk.next_id()))
    };
    turn.await.map_err(|refusal: Refusal| refusal.openai())
}

async fn messages(
    State(desk): State<Arc<Desk>>,
    Path(token): Path<String>,
    request: Request,
) -> Answer {
    let turn = async {
        let seat = desk.seat(&token)?;
        let body = body(request).await?;
        let request = anthropic::Request::read(&body, Sampling::Fixed(desk.temperature))?;
        let turn = seat.trajectory.complete(request.turn.clone()).await?;
        Ok(request.answer(&turn, &desk.next_id()))
    };
    turn.await.map_err(|refusal: Refusal| refusal.anthropic())
}

async fn models(State(desk): State<Arc<Desk>>, Path(token): Path<String>) -> Answer {
    desk.seat(&token).map_err(|refusal| refusal.openai())?;
    Ok(known_models())
}

/// The list of models, of which there is one.
pub(crate) fn known_models() -> Response {
    let model = json!({ "id": "policy", "object": "model", "created": 0, "owned_by": "rlf-host" });
    answer(
        StatusCode::OK,
        &json!({ "object": "list", "data": [model] }),
    )
}

async fn task(State(desk): State<Arc<Desk>>, Path(token): Path<String>) -> Answer {
    let task = async {
        let seat = desk.seat(&token)?;
        described(&seat.trajectory).await
    };
    let task = task.await.map_err(|refusal| refusal.openai())?;
    Ok(answer(StatusCode::OK, &task))
}

/// A task as agents see it: without its reference and the setup of its environment.
pub(crate) async fn described(trajectory: &AgentTrajectory) -> Result<Value, Refusal> {
    let tools = trajectory.tools().await.map_err(|error| Refusal {
        status: StatusCode::SERVICE_UNAVAILABLE,
        code: "unavailable",
        message: error.to_string(),
    })?;
    Ok(json!({
        "id": trajectory.task().id,
        "source": trajectory.task().source,
        "messages": openai::messages(&trajectory.prompt().await),
        "tools": openai::tools(&tools),
    }))
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
    State(desk): State<Arc<Desk>>,
    Path((token, name)): Path<(String, String)>,
    request: Request,
) -> Answer {
    let outcome = async {
        let seat = desk.seat(&token)?;
        let Call { id, arguments } = parsed(&body(request).await?)?;
        let arguments = match arguments {
            Value::Null => json!({}),
            Value::String(text) => rlf_json::from_str(&text)
                .map_err(|error| Refusal::invalid(format!("`arguments`: {error}")))?,
            arguments => arguments,
        };
        if !arguments.is_object() {
            return Err(Refusal::invalid("`arguments` is not an object"));
        }
        let tools = seat.trajectory.tools().await;
        let is_there = tools.is_ok_and(|tools| tools.iter().any(|tool| tool.name == name));
        if !is_there {
            return Err(Refusal {
                status: StatusCode::NOT_FOUND,
                code: "no_tool",
                message: format!("the task has no tool `{name}`"),
            });
        }
        Ok(seat.trajectory.call(id, name, arguments).await?)
    };
    let Called {
        outcome,
        terminated,
    } = outcome.await.map_err(|refusal| refusal.openai())?;
    let observation = outcome.observation.unwrap_or_default();
    let body = json!({
        "ended": outcome.ended.as_str(),
        "failed": observation.failed || outcome.ended != Ended::Ok,
        "content": plain_text(&observation.content),
        "terminated": terminated,
    });
    Ok(answer(StatusCode::OK, &body))
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

async fn finish(
    State(desk): State<Arc<Desk>>,
    Path(token): Path<String>,
    request: Request,
) -> Answer {
    let ended = async {
        let seat = desk.seat(&token)?;
        let Finish {
            answer,
            reward,
            error,
        } = parsed(&body(request).await?)?;
        let end = match error {
            Some(why) => AgentEnd::Failed(why),
            None => AgentEnd::Finished(AgentReport { answer, reward }),
        };
        if seat.end(end) {
            Ok(())
        } else {
            Err(Refusal {
                status: StatusCode::GONE,
                code: "over",
                message: "this trajectory has ended before".to_owned(),
            })
        }
    };
    ended.await.map_err(|refusal: Refusal| refusal.openai())?;
    Ok(answer(StatusCode::OK, &json!({})))
}

async fn next(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Answer {
    not_of_a_page(&headers).map_err(|refusal| refusal.openai())?;
    if !desk.is_remote {
        return Err(unknown().await);
    }
    if !is_shown(desk.token.as_deref(), &headers) {
        let why = "show the token of agent.token_env: `Authorization: Bearer TOKEN`";
        return Err(Refusal::unauthorized(why).openai());
    }
    if let Some(task) = desk.queue.take().await {
        return Ok(answer(StatusCode::OK, &task));
    }
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// True if the headers show the token, as OpenAI's or Anthropic's packages send it, or none is needed.
pub(crate) fn is_shown(token: Option<&str>, headers: &HeaderMap) -> bool {
    let Some(token) = token else { return true };
    let bearer = format!("Bearer {token}");
    let is = |name, wanted: &str| {
        let shown = headers.get(name);
        shown.is_some_and(|shown| shown.as_bytes().ct_eq(wanted.as_bytes()).into())
    };
    is(AUTHORIZATION, &bearer) || is(HeaderName::from_static("x-api-key"), token)
}

pub(crate) async fn unknown() -> Response {
    let refusal = Refusal {
        status: StatusCode::NOT_FOUND,
        code: "no_route",
        message: "there is no such route; docs/agents.md lists them".to_owned(),
    };
    refusal.openai()
}

fn parsed<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, Refusal> {
    let body = if body.is_empty() { b"{}" } else { body };
    rlf_json::from_slice(body).map_err(|error| Refusal::invalid(format!("the body: {error}")))
}

/// Refuses requests of a page in a browser, which somebody else may have written.
fn not_of_a_page(headers: &HeaderMap) -> Result<(), Refusal> {
    if !headers.contains_key(ORIGIN) {
        return Ok(());
    }
    Err(Refusal {
        status: StatusCode::FORBIDDEN,
        code: "origin",
        message: "pages in a browser are not served".to_owned(),
    })
}

/// Reads the body of a request.
pub(crate) async fn body(request: Request) -> Result<Bytes, Refusal> {
    not_of_a_page(request.headers())?;
    let reading = axum::body::to_bytes(request.into_body(), MAX_BODY);
    match tokio::time::timeout(BODY, reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(Refusal::invalid(format!(
            "the body cannot be read, or has more than {MAX_BODY} bytes: {error}"
        ))),
        Err(_) => Err(Refusal::invalid(format!(
            "the body did not arrive within {} s",
            BODY.as_secs()
        ))),
    }
}
