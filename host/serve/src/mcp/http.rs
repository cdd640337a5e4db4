//! MCP over streamable HTTP. Who may ask, and how large and slow a body may be, is decided as for all routes.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};
use http_body_util::Full;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

use crate::answer::Refusal;
use crate::body::Body;
use crate::mcp::Handler;
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
        let most = self.service.config.max_sessions;
        let is_new = !request.headers().contains_key("mcp-session-id");
        if is_new && self.clients.sessions.read().await.len() >= most {
            return Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!(
                    "{most} clients have sessions, and no more are allowed (serve.max_sessions)"
                ),
            ));
        }
        let (head, body) = request.into_parts();
        let mut wait = self.service.wait();
        let (bytes, _room) = if head.method == Method::POST {
            let request = Request::from_parts(head.clone(), body);
            let (bytes, room) = Body::read(request, &self.service, &mut wait)
                .await?
                .into_parts();
            (bytes, Some(room))
        } else {
            (Vec::new(), None)
        };
        let request = http::Request::from_parts(head, Full::new(bytes::Bytes::from(bytes)));
        Ok(self
            .protocol
            .handle(request)
            .await
            .map(axum::body::Body::new))
    }
}
