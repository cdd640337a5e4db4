//! The Model Context Protocol: the served tools and environments for any MCP client, over HTTP (`/mcp`) or over standard
//! input and output.
//!
//! | looking for | module |
//! |---|---|
//! | the handler of requests | this one |
//! | definitions and answers in the protocol's form | `convert` |
//! | sessions of environments, as tools | `environments` |
//! | integers that would be rounded | `integers` |
//! | HTTP | `http` |

mod convert;
mod environments;
pub(crate) mod http;
mod integers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rlf_dialogue::tool::{CallOutcome, ToolCall};
use rlf_plugins::turn::TurnContext;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
    ErrorData, Implementation, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServerHandler, serve_server};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::config::ServeConfig;
use crate::error::ServeError;
use crate::request::milliseconds;
use crate::service::{Offer, Service};
use convert::{answer, definition};

/// Time between two messages that a call is still running, for clients that ask for them.
const PROGRESS: Duration = Duration::from_secs(1);
/// Maximum size of a message over streams, in bytes.
const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// Key of a request's `_meta` for the seed of the call.
const SEED: &str = "rlf-host/seed";

const INSTRUCTIONS: &str = "Every call runs in a sandbox of its own and keeps nothing, and the same call with the same seed \
    gives the same answer, except for tools that lead out of the sandbox (openWorldHint). Environments have sessions: \
    open_environment returns the session's name and its tools, and call_environment calls them.";

/// The handler of one client.
#[derive(Debug, Clone)]
pub(crate) struct Handler {
    service: Arc<Service>,
}

impl Handler {
    pub(crate) fn new(service: Arc<Service>) -> Self {
        Self { service }
    }

    fn tools(&self) -> Vec<Tool> {
        let exposure = &self.service.exposure;
        let names: Vec<String> = exposure.tools.iter().cloned().collect();
        let definitions = self
            .service
            .tools
            .definitions(Some(&names))
            .unwrap_or_default();
        let mut tools: Vec<Tool> = definitions.into_iter().map(definition).collect();
        tools.extend(environments::definitions(exposure));
        tools
    }

    /// Makes a call. An outcome that says nothing of the tool is an error.
    async fn call(
        &self,
        request: CallToolRequestParams,
        seed: u64,
    ) -> Result<CallToolResult, ErrorData> {
        let service = &*self.service;
        let arguments = request.arguments.unwrap_or_default();
        let mut wait = service.wait();
        let began = Instant::now();
        let id = service.request_id(None);
        let name = request.name.into_owned();
        let result = if environments::is_tool(&name, &service.exposure) {
            environments::call(service, &name, arguments, &id, seed, &mut wait).await
        } else if service.exposure.tools.contains(&name) {
            let context = TurnContext {
                trajectory_id: id.clone(),
                turn: 0,
                seed,
            };
            let call = ToolCall {
                // The call's randomness depends on it, and the same call gives the same answer.
                call_id: "mcp/0/0".to_owned(),
                name: name.clone(),
                arguments: Value::Object(arguments),
            };
            let place = service.call_place(&mut wait).await;
            let _place =
                place.map_err(|refusal| ErrorData::internal_error(refusal.reason(), None))?;
            let outcome: Option<CallOutcome> =
                service.tools.invoke(vec![call], &context).await.pop();
            outcome.map_or_else(
                || Err(ErrorData::internal_error("the call gave no outcome", None)),
                answer,
            )
        } else {
            let why = service
                .exposure
                .withheld
                .get(&name)
                .or_else(|| service.exposure.failed.get(&name));
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let shown: String = name.chars().take(64).collect();
            Err(ErrorData::invalid_params(
                format!("there is no tool `{shown}`{why}"),
                None,
            ))
        };
        tracing::info!(
            target: "rlf_serve::request",
            id,
            route = "mcp",
            what = if result.is_ok() { name.as_str() } else { "" },
            ended = match &result {
                Ok(result) if result.is_error == Some(true) => "failed",
                Ok(_) => "ok",
                Err(_) => "error",
            },
            queued_ms = milliseconds(wait.waited()),
            ran_ms = milliseconds(began.elapsed()),
        );
        result
    }
}

/// Serves one MCP client over two streams, such as standard input and output, until it leaves or `stop` is ready. What no
/// client may use is told to `withheld`, each with the reason.
pub async fn serve_streams<R, W>(
    config: ServeConfig,
    offer: Offer<'_>,
    (read, write): (R, W),
    stop: impl Future<Output = ()>,
    withheld: impl Fn(&str, &str),
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let service = Arc::new(Service::new(config, offer)?);
    for (name, why) in &service.exposure.withheld {
        withheld(name, why);
    }
    let read = integers::exact(read, MAX_MESSAGE_BYTES);
    let streams = AsyncRwTransport::new_server(read, write).with_max_line_length(MAX_MESSAGE_BYTES);
    let served = async {
        match serve_server(Handler::new(Arc::clone(&service)), streams).await {
            Ok(client) => client
                .waiting()
                .await
                .map(drop)
                .map_err(|error| error.to_string()),
            // The client left before it said anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    };
    tokio::select! {
        ended = served => ended.map_err(ServeError::Client),
        () = stop => Ok(()),
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("rlf-host", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(integers::answer_custom(request))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let seed = context.meta.get(SEED).and_then(Value::as_u64);
        let seed = seed.unwrap_or(self.service.config.seed);
        let mut call = std::pin::pin!(self.call(request, seed));
        let token = context.meta.get_progress_token();
        let began = Instant::now();
        loop {
            tokio::select! {
                result = &mut call => return result.map(CallToolResponse::Complete),
                // Leaving drops the call, which frees its guest.
                () = context.ct.cancelled() => {
                    return Err(ErrorData::internal_error("the call was cancelled", None));
                }
                () = tokio::time::sleep(PROGRESS), if token.is_some() => {
                    let Some(token) = token.clone() else { continue };
                    let seconds = began.elapsed().as_secs_f64();
                    let progress = ProgressNotificationParam::new(token, seconds).with_message("running");
                    let peer = context.peer.clone();
                    // A client that does not listen misses nothing, and nothing waits for it.
                    tokio::spawn(async move { _ = peer.notify_progress(progress).await });
                }
            }
        }
    }
}
