//! The routes of turns: those of a run's trajectories and those of a finished run's policy are the same.
//!
//! | route | |
//! |---|---|
//! | `POST /v1/chat/completions` | a turn of the policy, in OpenAI's form |
//! | `POST /v1/messages` | a turn of the policy, in Anthropic's form |
//! | `GET /v1/models` | the only model, `policy` |

use async_trait::async_trait;
use axum::Router;
use axum::extract::{FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{Method, StatusCode, Uri};
use rlf_rollout::agent::{Turn, TurnRefused};
use serde_json::json;

use crate::anthropic::Anthropic;
use crate::body;
use crate::form::{self, Asked, Form};
use crate::openai::OpenAi;
use crate::parameters::Sampling;
use crate::refusal::Refusal;

/// A policy that a request may ask. It is extracted from the head of the request, which decides who may ask.
#[async_trait]
pub(crate) trait Policy: Send + Sync + 'static {
    /// The sampling parameters that requests may have.
    fn sampling(&self) -> Sampling;

    /// The policy's turn.
    async fn turn(&self, asked: Asked) -> Result<Turn, TurnRefused>;
}

/// The routes of turns, below the path `base`.
pub(crate) fn of_turns<P, S>(base: &str) -> Router<S>
where
    P: Policy + FromRequestParts<S, Rejection = Refusal>,
    S: Clone + Send + Sync + 'static,
{
    let path = |end: &str| format!("{base}{end}");
    Router::new()
        .route(&path(OpenAi::PATH), post(turn::<OpenAi, P>))
        .route(&path(Anthropic::PATH), post(turn::<Anthropic, P>))
        .route(&path("/v1/models"), get(models::<P>))
}

/// Adds answers to requests that no route takes. `known` says which routes there are.
pub(crate) fn with_refusals<S>(router: Router<S>, known: &'static str) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    let no_route = move |uri: Uri| async move {
        let why = format!("there is no such route; {known}");
        refused(&uri, &Refusal::new(StatusCode::NOT_FOUND, "no_route", why))
    };
    let wrong_method = move |method: Method, uri: Uri| async move {
        let why = format!("the route does not take {method}; {known}");
        let status = StatusCode::METHOD_NOT_ALLOWED;
        refused(&uri, &Refusal::new(status, "wrong_method", why))
    };
    router
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
}

/// A refusal in the form that clients of the path read.
fn refused(uri: &Uri, refusal: &Refusal) -> Response {
    if uri.path().ends_with(Anthropic::PATH) {
        form::refused::<Anthropic>(refusal)
    } else {
        form::refused::<OpenAi>(refusal)
    }
}

/// Routes that have no form of their own refuse requests in OpenAI's.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        form::refused::<OpenAi>(&self)
    }
}

async fn turn<F: Form, P: Policy>(policy: Result<P, Refusal>, request: Request) -> Response {
    let answered = async {
        let policy = policy?;
        let (asked, reply) =
            form::read::<F>(&body::read(request.into_body()).await?, policy.sampling())?;
        let turn = policy.turn(asked).await?;
        Ok(reply.render::<F>(&turn))
    };
    let answered: Result<Response, Refusal> = answered.await;
    answered.unwrap_or_else(|refusal| form::refused::<F>(&refusal))
}

async fn models<P: Policy>(_policy: P) -> Response {
    let model = json!({ "id": "policy", "object": "model", "created": 0, "owned_by": "rlf-host" });
    let list = json!({ "object": "list", "data": [model] });
    body::json(StatusCode::OK, &list)
}
