//! OpenEnv: the served environments for any client of OpenEnv, each below a path of its own, `/openenv/{environment}`.
//!
//! A WebSocket is one session. As in OpenEnv's own server, a request over HTTP that names no session gets a fresh one,
//! which ends with the answer.
//!
//! | looking for | module |
//! |---|---|
//! | the routes | this one |
//! | messages, actions and errors in the protocol's form | `protocol` |
//! | a client's episode: reset, step, state | `episode` |
//! | the tools of a session over JSON-RPC | `rpc` |
//! | WebSockets | `socket` |

mod episode;
mod protocol;
mod rpc;
mod socket;

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use http::StatusCode;
use rlf_plugins::manifest::PluginKind;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{Refusal, json};
use crate::body::Body;
use crate::service::{ConnectionPlace, Service};
use crate::tools::not_served;
use episode::Episode;
use protocol::{Code, Fault, action_schema, observation_schema, state_schema};
use socket::{MAX_MESSAGE_BYTES, Protocol};

/// The routes of all environments.
pub(crate) fn routes() -> Router<Arc<Service>> {
    let below = |path: &str| format!("/openenv/{{environment}}/{path}");
    Router::new()
        .route(&below("ws"), sockets(Protocol::OpenEnv))
        .route(&below("mcp"), sockets(Protocol::JsonRpc).post(call))
        .route(&below("reset"), post(reset))
        .route(&below("step"), post(step))
        .route(&below("state"), get(state))
        .route(&below("schema"), get(schema))
        .route(&below("metadata"), get(metadata))
        .route(&below("health"), get(health))
}

/// Body of `POST /step`.
#[derive(Deserialize)]
struct StepRequest {
    action: Value,
}

/// The handler of requests for a WebSocket.
fn sockets(protocol: Protocol) -> MethodRouter<Arc<Service>> {
    let handler = move |State(service): State<Arc<Service>>,
                        Path(environment): Path<String>,
                        Extension(place): Extension<ConnectionPlace>,
                        upgrade: WebSocketUpgrade| async move {
        check(&service, &environment)?;
        let upgrade = upgrade
            .max_message_size(MAX_MESSAGE_BYTES)
            .max_frame_size(MAX_MESSAGE_BYTES);
        // Keeps the service from ending before the session.
        let open = service.sockets.token();
        Ok::<Response, Refusal>(upgrade.on_upgrade(move |socket| async move {
            socket::serve(socket, Episode::new(service, environment), protocol).await;
            drop((open, place));
        }))
    };
    get(handler)
}

async fn call(
    State(service): State<Arc<Service>>,
    Path(environment): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    check(&service, &environment)?;
    let mut wait = service.wait();
    let (bytes, _room) = Body::read(request, &service, &mut wait).await?.into_parts();
    let mut episode = Episode::new(service, environment);
    let answer = rpc::answer_text(&mut episode, &bytes, rpc::Client::Http, &mut wait).await;
    Ok(rpc_response(answer.as_ref()))
}

/// The response with an answer of JSON-RPC. A notification has none.
fn rpc_response(answer: Option<&Value>) -> Response {
    answer.map_or_else(|| StatusCode::ACCEPTED.into_response(), json)
}

async fn reset(
    State(service): State<Arc<Service>>,
    Path(environment): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    check(&service, &environment)?;
    let mut wait = service.wait();
    let body = Body::read(request, &service, &mut wait).await?;
    let (options, _room) = body.parse::<Map<String, Value>>()?;
    let mut episode = Episode::new(service, environment);
    let observed = episode.reset(options, &mut wait).await;
    Ok(json(&observed.map_err(refused)?))
}

async fn step(
    State(service): State<Arc<Service>>,
    Path(environment): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    check(&service, &environment)?;
    let mut wait = service.wait();
    let body = Body::read(request, &service, &mut wait).await?;
    let (StepRequest { action }, _room) = body.parse()?;
    let mut episode = Episode::new(service, environment);
    let observed = episode.step(action, &mut wait).await;
    Ok(json(&observed.map_err(refused)?))
}

async fn state(
    State(service): State<Arc<Service>>,
    Path(environment): Path<String>,
) -> Result<Response, Refusal> {
    check(&service, &environment)?;
    let mut wait = service.wait();
    let state = Episode::new(service, environment).state(&mut wait).await;
    Ok(json(&state.map_err(refused)?))
}

async fn schema(
    State(service): State<Arc<Service>>,
    Path(environment): Path<String>,
) -> Result<Response, Refusal> {
    check(&service, &environment)?;
    Ok(json(&json!({
        "action": action_schema(),
        "observation": observation_schema(),
        "state": state_schema(),
    })))
}

async fn metadata(
    State(service): State<Arc<Service>>,
    Path(environment): Path<String>,
) -> Result<Response, Refusal> {
    check(&service, &environment)?;
    let plugin = service.exposure.environments.get(&environment);
    // An interpreter's description says nothing about the environment that it runs.
    let plugin = plugin.filter(|plugin| plugin.kind() == PluginKind::Environment);
    let described = plugin.map(|plugin| plugin.description().to_owned());
    Ok(json(&json!({
        "name": environment,
        "description": described.unwrap_or_else(|| format!("The environment {environment}.")),
        "version": env!("CARGO_PKG_VERSION"),
    })))
}

async fn health(
    State(service): State<Arc<Service>>,
    Path(environment): Path<String>,
) -> Result<Response, Refusal> {
    check(&service, &environment)?;
    Ok(json(&json!({"status": "healthy"})))
}

fn check(service: &Service, environment: &str) -> Result<(), Refusal> {
    let served = &service.exposure.environments;
    if served.contains_key(environment) {
        return Ok(());
    }
    let names = served.keys().map(String::as_str);
    Err(not_served(service, "environment", environment, names))
}

fn refused(fault: Fault) -> Refusal {
    let status = match fault.code {
        Code::ValidationError | Code::InvalidJson | Code::UnknownType => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        Code::CapacityReached => return Refusal::later(fault.message),
        Code::ExecutionError | Code::SessionError => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Refusal::new(status, fault.message)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn a_notification_has_an_empty_response() {
        for (answer, status, body) in [
            (None, StatusCode::ACCEPTED, ""),
            (Some(&json!({"id": 1})), StatusCode::OK, r#"{"id":1}"#),
        ] {
            let (head, read) = rpc_response(answer).into_parts();
            assert_eq!(head.status, status);
            assert_eq!(read.collect().await.unwrap().to_bytes(), body);
        }
    }
}
