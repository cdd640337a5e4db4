//! MCP over streamable HTTP. Who may ask, and how large and slow a body may be, is decided as for all routes.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};
use http_body_util::Full;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde::Deserialize;
use serde_json::json;

use crate::answer::{Refusal, json};
use crate::body::Body;
use crate::mcp::{Handler, integers};
use crate::service::Service;

/// The path of MCP.
pub(crate) const PATH: &str = "/mcp";

/// Answers MCP's requests.
#[derive(Clone)]
pub(crate) struct Mcp {
    service: Arc<Service>,
    protocol: StreamableHttpService<Handler, LocalSessionManager>,
    clients: Arc<LocalSessionManager>,
}

impl Mcp {
    /// The answers end when `service` stops.
    pub(crate) fn new(service: Arc<Service>) -> Self {
        let mut clients = LocalSessionManager::default();
        clients.session_config.keep_alive = Some(service.config.session);
        let clients = Arc::new(clients);
        let config = StreamableHttpServerConfig::default()
            // `guard` has checked both.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(
                usize::try_from(service.config.max_body_bytes).unwrap_or(usize::MAX),
            )
            .with_cancellation_token(service.stopped.clone());
        let handled = Arc::clone(&service);
        let protocol = StreamableHttpService::new(
            move || Ok(Handler::new(Arc::clone(&handled))),
            Arc::clone(&clients),
            config,
        );
        Self {
            service,
            protocol,
            clients,
        }
    }

    pub(crate) async fn answer(&self, request: Request) -> Response {
        match self.checked(request).await {
            Ok(response) => response,
            Err(refusal) => refusal.into_response(),
        }
    }

    async fn checked(&self, request: Request) -> Result<Response, Refusal> {
        let (mut head, body) = request.into_parts();
        let mut wait = self.service.wait();
        let method = head.method.clone();
        let mut bytes = Vec::new();
        if method == Method::POST {
            let request = Request::from_parts(head.clone(), body);
            let body = Body::read(request, &self.service, &mut wait).await?;
            let (read, room) = body.into_parts();
            bytes = read;
            // The protocol keeps it with the message, and so as long as a call has the arguments.
            head.extensions.insert(Arc::new(room));
            self.check_places(&bytes).await?;
            if let Some(answer) = refused_integer(&bytes) {
                return Ok(answer);
            }
        }
        let request = http::Request::from_parts(head, Full::new(bytes::Bytes::from(bytes)));
        let mut response = self.protocol.handle(request).await;
        // Some clients take a session for not ended with any other status.
        if method == Method::DELETE && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::OK;
        }
        Ok(response.map(axum::body::Body::new))
    }

    /// Refuses a client that asks for a session when there are no more.
    async fn check_places(&self, body: &[u8]) -> Result<(), Refusal> {
        #[derive(Deserialize)]
        struct Message {
            method: String,
        }
        let most = self.service.config.max_sessions;
        let message: Option<Message> = serde_json::from_slice(body).ok();
        let begins = message.is_some_and(|message| message.method == "initialize");
        if begins && self.clients.sessions.read().await.len() >= most {
            return Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!(
                    "{most} clients have sessions, and no more are allowed (serve.max_sessions)"
                ),
            ));
        }
        Ok(())
    }
}

/// The answer to a message with an integer of more than 64 bits, which the protocol's library would round.
fn refused_integer(body: &[u8]) -> Option<Response> {
    let (id, reason) = integers::refusal(body)?;
    let error = integers::invalid(reason);
    Some(json(&json!({"jsonrpc": "2.0", "id": id, "error": error})))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use serde_json::Value;

    use super::*;

    #[tokio::test]
    async fn an_integer_that_would_be_rounded_is_refused_in_the_protocols_form() {
        let call = |n: &str| {
            let params = format!(r#"{{"name": "add", "arguments": {{"n": {n}}}}}"#);
            let call = format!(r#"{{"id": 7, "method": "tools/call", "params": {params}}}"#);
            refused_integer(call.as_bytes())
        };
        assert!(call("18446744073709551615").is_none());
        assert!(call("18446744073709551616 not JSON").is_none());
        let body = call("18446744073709551616").unwrap().into_body();
        let body = body.collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(7), &json!(-32_602))
        );
        let says = "the integer 18446744073709551616 has more than 64 bits";
        let message = answer["error"]["message"].as_str();
        assert!(
            message.is_some_and(|message| message.contains(says)),
            "{answer}"
        );
    }
}
