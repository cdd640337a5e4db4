//! The tools of a trajectory over MCP. Nothing is kept between two requests: there are no sessions.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::StatusCode;
use rlf_dialogue::message::{Content, plain_text};
use rlf_dialogue::tool::{Ended, ToolDefinition};
use rlf_rollout::agent::Called;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, MetaObject, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value, json};

use crate::body;
use crate::open_trajectories::OpenTrajectory;
use crate::refusal::Refusal;

/// Key of a call's `_meta` for the id of the policy's call.
const CALL_ID: &str = "rlf-host/call-id";

/// Answers a request of MCP.
pub(crate) async fn answer(open: OpenTrajectory, request: Request) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    let bytes = body::read(body).await?;
    rlf_json::check(&bytes).map_err(|error| Refusal::invalid(format!("the body: {error}")))?;
    let config = StreamableHttpServerConfig::default()
        // Who may ask is decided as for the other routes.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(body::MAX_BYTES)
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let handler = Handler(open);
    let sessions = Arc::new(NeverSessionManager::default());
    let protocol = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    let request = Request::from_parts(head, Body::from(bytes));
    Ok(protocol.handle(request).await.map(Body::new))
}

/// The handler of one request.
#[derive(Clone)]
struct Handler(OpenTrajectory);

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("rlf-host", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.0.tools().await.map_err(refused)?;
        let tools = tools.into_iter().map(definition).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let id = match context.meta.get(CALL_ID) {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => {
                let why = format!("`_meta` has `{CALL_ID}`, which is not a text");
                return Err(ErrorData::invalid_params(why, None));
            }
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let called = self.0.call(id, request.name.into_owned(), arguments).await;
        let result = called.map_err(refused).and_then(result);
        result.map(CallToolResponse::Complete)
    }
}

/// A tool in the form of MCP.
fn definition(tool: ToolDefinition) -> Tool {
    let schema = match tool.input_schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    Tool::new(tool.name, tool.description, schema)
}

/// The result of a call. It has what the policy may read; without that, an infrastructure failure ended the call.
fn result(called: Called) -> Result<CallToolResult, ErrorData> {
    let Called {
        outcome,
        terminated,
    } = called;
    let ended = outcome.ended.as_str();
    let meta = Map::from_iter([
        ("rlf-host/ended".to_owned(), json!(ended)),
        ("rlf-host/terminated".to_owned(), json!(terminated)),
    ]);
    let Some(observation) = outcome.observation else {
        let why = Refusal::without_observation(&outcome).message;
        return Err(ErrorData::internal_error(why, Some(Value::Object(meta))));
    };
    let text = ContentBlock::text(plain_text(&observation.content));
    let mut result = CallToolResult::success(vec![text]);
    result.is_error = Some(observation.failed || outcome.ended != Ended::Ok);
    result.structured_content = observation.content.into_iter().find_map(|part| match part {
        Content::Structured(value @ Value::Object(_)) => Some(value),
        _ => None,
    });
    result.meta = Some(MetaObject(meta));
    Ok(result)
}

/// A refusal in the form of MCP.
fn refused(refusal: Refusal) -> ErrorData {
    let code = Some(json!({ "code": refusal.code }));
    match refusal.status {
        StatusCode::GONE => ErrorData::invalid_request(refusal.message, code),
        status if status.is_server_error() => ErrorData::internal_error(refusal.message, code),
        _ => ErrorData::invalid_params(refusal.message, code),
    }
}
