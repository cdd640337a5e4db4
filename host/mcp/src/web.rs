//! A server behind a URL: MCP over streamable HTTP, with the requests of [`rlf_http`]. That client sends nothing to another
//! host, limits answers, and keeps secrets out of them.
//!
//! An answer is read as a whole. So a server that sends an answer as a stream of events must end the stream with the answer,
//! as the specification asks. There is no stream for messages that the server sends by itself.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http::{HeaderName, HeaderValue};
use rlf_http::{FetchError, HttpClient, Request, Response, Value};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcRequest, ServerJsonRpcMessage,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use url::Url;

use crate::config::{Header, MAX_MESSAGE_BYTES, McpConfig, header, target};

/// A client of one server.
#[derive(Debug, Clone)]
pub(crate) struct Web {
    url: Url,
    client: HttpClient,
    /// Headers of the configuration.
    headers: Vec<(String, Value)>,
    timeout: Duration,
    max_concurrency: usize,
}

type Failure = StreamableHttpError<WebError>;

/// The reason why a request has no answer of the protocol.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The server answered otherwise.
    #[error("HTTP status {status}: {said}")]
    Unanswered { status: u16, said: String },
}

impl WebError {
    /// True if only this request failed: the server is busy, or its answer is wrong. Otherwise the server may have
    /// forgotten the session.
    fn is_of_one_request(&self) -> bool {
        matches!(
            self,
            Self::Unanswered {
                status: 200..=299 | 408 | 429 | 502..=504,
                ..
            }
        )
    }
}

impl Web {
    /// Reads the secrets of a configuration. Nothing is sent. The error has the key that is wrong.
    pub(crate) fn open(url: &str, config: &McpConfig) -> Result<Self, (String, String)> {
        let url = target(url).map_err(|reason| ("url".to_owned(), reason))?;
        let client = HttpClient::open(&config.rules(&url)).map_err(|error| {
            let key = match &error {
                rlf_http::HttpError::Secret { name, .. } => format!("headers.{name}"),
                rlf_http::HttpError::Certificates { .. } => "certificate_authorities".to_owned(),
                _ => "url".to_owned(),
            };
            (key, error.to_string())
        })?;
        let mut headers = Vec::new();
        for (name, text) in &config.headers {
            let value = match header(text) {
                Ok(Header::Text(text)) => Value::Text(text.to_owned()),
                Ok(Header::Secret { .. }) => Value::Secret(name.clone()),
                Err(reason) => return Err((format!("headers.{name}"), reason)),
            };
            headers.push((name.clone(), value));
        }
        Ok(Self {
            url,
            client,
            headers,
            timeout: config.deadline.max(config.connect),
            max_concurrency: config.max_concurrency,
        })
    }

    /// The URL.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    pub(crate) fn transport(&self) -> StreamableHttpClientTransport<Self> {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .max_concurrent_requests(self.max_concurrency)
            .max_json_response_size(MAX_MESSAGE_BYTES as usize);
        StreamableHttpClientTransport::with_client(self.clone(), config)
    }

    async fn send(
        &self,
        method: &str,
        body: Vec<u8>,
        session: Option<&str>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Response, Failure> {
        let text = |name: &str, value: &str| (name.to_owned(), Value::Text(value.to_owned()));
        let mut headers = self.headers.clone();
        headers.push(text("accept", "application/json, text/event-stream"));
        if !body.is_empty() {
            headers.push(text("content-type", "application/json"));
        }
        if let Some(session) = session {
            headers.push(text("mcp-session-id", session));
        }
        for (name, value) in &custom {
            headers.push(text(name.as_str(), value.to_str().unwrap_or_default()));
        }
        let request = Request {
            method: method.to_owned(),
            url: self.url.to_string(),
            headers,
            body,
        };
        // `timeout` must end first, so the deadline is later.
        let call = self
            .client
            .call(Instant::now() + self.timeout + Duration::from_secs(1));
        call.fetch(request)
            .await
            .map_err(|error| StreamableHttpError::Client(error.into()))
    }
}

impl StreamableHttpClient for Web {
    type Error = WebError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let body = serde_json::to_vec(&message)?;
        let response = self
            .send("POST", body, session_id.as_deref(), custom_headers)
            .await?;
        let session = field(&response, "mcp-session-id");
        let is = |kind: &str| {
            let given = field(&response, "content-type").unwrap_or_default();
            given
                .split(';')
                .next()
                .is_some_and(|given| given.trim().eq_ignore_ascii_case(kind))
        };
        let ClientJsonRpcMessage::Request(request) = &message else {
            return match response.status {
                200..=299 => Ok(StreamableHttpPostResponse::Accepted),
                404 if session_id.is_some() => Err(StreamableHttpError::SessionExpired),
                status => Err(unanswered(status, &response)),
            };
        };
        let id = serde_json::to_value(&request.id)?;
        match response.status {
            202 | 204 => Err(unanswered(response.status, &response)),
            200..=299 if is("text/event-stream") => {
                let bytes =
                    stream::iter([Ok::<_, std::io::Error>(bytes::Bytes::from(response.body))]);
                let events: Vec<_> = SseStream::from_bytes_stream(bytes).collect().await;
                // The protocol's library skips a message that is not JSON, and waits for an answer that does not come until
                // the call's deadline.
                let mut is_answered = false;
                for event in events.iter().flatten().filter(|event| is_message(event)) {
                    let data = event.data.as_deref().unwrap_or_default();
                    is_answered |= answers(&serde_json::from_str(data)?, &id);
                }
                if !is_answered {
                    return Err(StreamableHttpError::UnexpectedEndOfStream);
                }
                let events = stream::iter(events).boxed();
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            200..=299 if is("application/json") => {
                let answer: serde_json::Value = serde_json::from_slice(&response.body)?;
                if !answers(&answer, &id) {
                    return Err(unanswered(response.status, &response));
                }
                let answer = serde_json::from_value(answer)?;
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            200..=299 => Err(StreamableHttpError::UnexpectedContentType(field(
                &response,
                "content-type",
            ))),
            404 if session_id.is_some() => Err(StreamableHttpError::SessionExpired),
            _ => refused(request, &id, &response, session),
        }
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.send("DELETE", Vec::new(), Some(&session_id), custom_headers)
            .await
            .map(drop)
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        _session_id: Option<Arc<str>>,
        _last_event_id: Option<String>,
        _auth_header: Option<String>,
        _custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

/// True if a message answers the request with this id.
fn answers(message: &serde_json::Value, id: &serde_json::Value) -> bool {
    message.get("id") == Some(id) && message.get("method").is_none()
}

/// True if a request failed by itself, and others of its connection may be answered.
pub(crate) fn is_of_one_request(error: &(dyn Error + 'static)) -> bool {
    match error.downcast_ref::<Failure>() {
        Some(StreamableHttpError::Client(error)) => error.is_of_one_request(),
        Some(
            StreamableHttpError::UnexpectedContentType(_)
            | StreamableHttpError::Deserialize(_)
            | StreamableHttpError::UnexpectedEndOfStream,
        ) => true,
        _ => false,
    }
}

/// True if an event carries a message. Others only keep the stream open, or tell its place.
fn is_message(event: &Sse) -> bool {
    let kind = event.event.as_deref().unwrap_or("message");
    let data = event.data.as_deref().unwrap_or_default();
    kind == "message" && !data.trim().is_empty()
}

/// The answer to a request that the server refused with an HTTP status. A server that does not know the newer revision
/// refuses its first request in one of many ways; each becomes an error that makes the client ask in the older revision.
fn refused(
    request: &JsonRpcRequest<ClientRequest>,
    id: &serde_json::Value,
    response: &Response,
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, Failure> {
    let status = response.status;
    let said: Option<serde_json::Value> = serde_json::from_slice(&response.body).ok();
    let asks_what_there_is = matches!(request.request, ClientRequest::DiscoverRequest(_));
    if asks_what_there_is && matches!(status, 400 | 404..=499) {
        let error = said.and_then(|said| serde_json::from_value(said.get("error")?.clone()).ok());
        let error = error
            .unwrap_or_else(|| ErrorData::invalid_request(format!("HTTP status {status}"), None));
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    // An error without the request's id, such as that of a proxy, says nothing about the call.
    let is_of_the_call = matches!(status, 400..=499) && !matches!(status, 401 | 403 | 408 | 429);
    if let Some(said) = said.filter(|said| is_of_the_call && answers(said, id))
        && let Ok(answer @ ServerJsonRpcMessage::Error(_)) = serde_json::from_value(said)
    {
        return Ok(StreamableHttpPostResponse::Json(answer, session));
    }
    Err(unanswered(status, response))
}

/// The error of a request that got no answer of the protocol.
fn unanswered(status: u16, response: &Response) -> Failure {
    let begins: String = rlf_sandbox::safe_text(&response.body)
        .chars()
        .take(200)
        .collect();
    let said = match (status, field(response, "location")) {
        (200..=299, _) => format!("it is no answer to the request: {begins}"),
        (300..=399, Some(target)) => {
            let target = rlf_sandbox::safe_text(target.as_bytes());
            format!("it redirects to {target}; write that URL")
        }
        (404, _) => format!("{begins}; is the path of the URL right?"),
        _ => begins,
    };
    StreamableHttpError::Client(WebError::Unanswered { status, said })
}

fn field(response: &Response, name: &str) -> Option<String> {
    let found = response.headers.iter().find(|(given, _)| given == name);
    found.map(|(_, value)| value.clone())
}
