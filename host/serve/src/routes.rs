//! All routes in one list, from which the router and the description are made; and those of MCP and OpenEnv, which have
//! descriptions of their own. Around every route are the checks of who may send requests, a name for the request, a line
//! in the log, and counters.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use http::header::HeaderName;
use http::{HeaderValue, Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::json;

use crate::answer::{Refusal, json, typed};
use crate::mcp::http::Mcp;
use crate::metrics::MEDIA_TYPE;
use crate::protocol::{RunCodeRequest, RunCodeResponse, RunJupyterRequest, RunJupyterResponse};
use crate::request::{RequestId, RequestLog, milliseconds};
use crate::rewards::{RewardRequest, RewardResponse};
use crate::route::{Answers, Describe, Route};
use crate::service::{Service, ids};
use crate::tools::{ToolList, ToolOutcome, ToolRequest};
use crate::{mcp, openapi, openenv, rewards, run_code, run_jupyter, tools};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Routes that need no token. Probes send none, and the answers of these routes need no protection.
const OPEN: [&str; 2] = ["/v1/ping", "/health"];

/// Answer to `GET /health`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// `ok`, or `stopping` (with 503) while the last requests are finished.
    status: &'static str,
    /// Languages of programs, with the interpreter's version.
    languages: std::collections::BTreeMap<String, String>,
    /// Number of requests that are not answered yet, this one included.
    under_way: u64,
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// All routes.
pub(crate) fn all() -> Vec<Route> {
    let asked = |path, summary, answers, handler| Route {
        method: Method::GET,
        path,
        summary,
        takes: None,
        answers,
        handler,
    };
    let sent = |path, summary, takes: Describe, answers: Describe, handler| Route {
        method: Method::POST,
        path,
        summary,
        takes: Some(takes),
        answers: Answers::Json(answers),
        handler,
    };
    vec![
        sent(
            "/run_code",
            "Run a program",
            schema::<RunCodeRequest>,
            schema::<RunCodeResponse>,
            || post(run_code::run),
        ),
        sent(
            "/run_jupyter",
            "Run the cells of a notebook",
            schema::<RunJupyterRequest>,
            schema::<RunJupyterResponse>,
            || post(run_jupyter::run),
        ),
        asked(
            "/v1/tools",
            "The tools and rewards that are served",
            Answers::Json(schema::<ToolList>),
            || get(tools::list),
        ),
        sent(
            "/v1/tools/{name}",
            "Call a tool",
            schema::<ToolRequest>,
            schema::<ToolOutcome>,
            || post(tools::call),
        ),
        sent(
            "/v1/rewards/{name}",
            "Grade trajectories of one task",
            schema::<RewardRequest>,
            schema::<RewardResponse>,
            || post(rewards::grade),
        ),
        asked(
            "/v1/ping",
            "Answers \"pong\"",
            Answers::Json(schema::<String>),
            || get(ping),
        ),
        asked(
            "/health",
            "Whether requests are taken, and which languages run",
            Answers::Json(schema::<Health>),
            || get(health),
        ),
        asked(
            "/metrics",
            "Counters in Prometheus' text format",
            Answers::Text(MEDIA_TYPE),
            || get(metrics),
        ),
        asked(
            "/openapi.json",
            "This description",
            Answers::Text("application/json"),
            || get(description),
        ),
    ]
}

/// The router over all routes.
pub(crate) fn router(service: Arc<Service>) -> Router {
    let mut router = Router::new();
    for route in all() {
        router = router.route(route.path, (route.handler)());
    }
    let mcp = Mcp::new(Arc::clone(&service));
    router = router.route(
        mcp::http::PATH,
        any(move |request: Request| async move { mcp.answer(request).await }),
    );
    router
        .merge(openenv::routes())
        .fallback(|| async {
            Refusal::new(
                StatusCode::NOT_FOUND,
                "there is no such path; GET /openapi.json lists all",
            )
        })
        .method_not_allowed_fallback(|| async {
            Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this path has another method; GET /openapi.json lists all",
            )
        })
        .layer(from_fn_with_state(Arc::clone(&service), guard))
        .with_state(service)
}

async fn ping() -> Response {
    json(&"pong")
}

async fn health(State(service): State<Arc<Service>>) -> Response {
    let stopping = service.is_stopping();
    let languages = service.interpreters.all().map(|interpreter| {
        let language = interpreter.language();
        (language.id.clone(), language.version.clone())
    });
    let mut response = json(&Health {
        status: if stopping { "stopping" } else { "ok" },
        languages: languages.collect(),
        under_way: service.metrics.under_way(),
    });
    if stopping {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

async fn metrics(State(service): State<Arc<Service>>) -> Response {
    typed(MEDIA_TYPE, service.metrics.text())
}

async fn description(State(service): State<Arc<Service>>) -> Response {
    let languages: Vec<&str> = ids(&service.interpreters);
    let mut document = openapi::document(&all());
    document["info"]["x-languages"] = json!(languages);
    json(&document)
}

/// The local address of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalAddress {
    pub(crate) local: SocketAddr,
}

/// A request's line in the log. It is written when the request is answered, or when the client leaves before that.
struct Line {
    service: Arc<Service>,
    id: String,
    method: Method,
    route: String,
    began: Instant,
    answered: bool,
}

impl Line {
    /// Writes the line. It never contains code, output or a client's header.
    fn write(&mut self, status: u16, log: &RequestLog) {
        self.answered = true;
        let took = self.began.elapsed();
        self.service.metrics.answered(&self.route, status, took);
        tracing::info!(
            target: "rlf_serve::request",
            id = self.id,
            method = %self.method,
            route = self.route,
            status,
            what = log.what,
            ended = log.ended,
            queued_ms = milliseconds(log.queued),
            ran_ms = milliseconds(log.took),
            took_ms = milliseconds(took),
        );
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.answered {
            /// Status for a client that left before the answer, as other servers log it.
            const LEFT: u16 = 499;
            self.write(LEFT, &RequestLog::default());
        }
    }
}

/// True if a route needs no token.
fn is_open(path: &str) -> bool {
    OPEN.contains(&path)
}

async fn guard(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let _under_way = service.metrics.begins();
    let (mut head, body) = request.into_parts();
    let matched = head
        .extensions
        .get::<MatchedPath>()
        .map(MatchedPath::as_str);
    let route = matched.unwrap_or("unmatched").to_owned();
    let mut line = Line {
        id: service.request_id(head.headers.get(&REQUEST_ID)),
        method: head.method.clone(),
        route,
        began: Instant::now(),
        answered: false,
        service: Arc::clone(&service),
    };
    let local = head
        .extensions
        .get::<LocalAddress>()
        .map(|arrival| arrival.local);
    let checked = match local {
        Some(local) => service.access.check(&head, local, is_open(&line.route)),
        None => Err(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the connection has no address",
        )),
    };
    let mut response = match checked {
        Ok(()) => {
            head.extensions.insert(RequestId(line.id.clone()));
            next.run(Request::from_parts(head, body)).await
        }
        Err(refusal) => refusal.into_response(),
    };
    let log = response
        .extensions_mut()
        .remove::<RequestLog>()
        .unwrap_or_default();
    if let Ok(id) = HeaderValue::from_str(&line.id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    line.write(response.status().as_u16(), &log);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_probes_goes_without_a_token() {
        let routes = all();
        let open: Vec<&str> = routes
            .iter()
            .map(|route| route.path)
            .filter(|path| is_open(path))
            .collect();
        assert_eq!(open, OPEN);
        assert!(!is_open("unmatched"));
    }
}
