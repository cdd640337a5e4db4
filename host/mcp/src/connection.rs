//! The connection to one server: made at the beginning, and again when it broke.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use rlf_dialogue::tool::Ended;
use rlf_plugins::arguments::validate;
use rlf_plugins::bindings::types;
use rlf_plugins::outcome::CallEnd;
use rlf_plugins::schema::ToolSchema;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ErrorCode,
    Implementation, JsonObject, ProtocolVersion, Tool,
};
use rmcp::service::{ClientInitializeError, NotificationContext, RunningService, ServiceError};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::config::{McpConfig, Protocol};
use crate::ending::Ending;
use crate::error::reason;
use crate::known_tools::KnownTools;
use crate::listing::Listing;
use crate::process::{LastLines, Process};
use crate::web::{self, Web};

/// Wait before a connection is made again; it doubles with each connection that did not answer a call.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Time to list the tools again after a call was refused.
const LIST_AGAIN: Duration = Duration::from_secs(2);
/// Number of calls in a row without an answer in time, after which the connection counts as broken.
const SILENT_CALLS: u32 = 3;

/// The connection to one server.
#[derive(Debug)]
pub(crate) struct Connection {
    name: String,
    config: McpConfig,
    way: Way,
    state: Arc<Mutex<State>>,
    permits: Semaphore,
    /// The last lines that a process wrote to its standard error.
    said: LastLines,
    /// Connections since the last answer to a call.
    attempts: AtomicU32,
    known: KnownTools,
}

/// The way to a server.
#[derive(Debug)]
enum Way {
    Process,
    Web(Web),
}

#[derive(Debug, Default)]
struct State {
    live: Option<Arc<Live>>,
    /// The revision that the server turned out to have.
    protocol: Protocol,
    /// Earliest time of the next attempt to connect.
    not_before: Option<Instant>,
}

/// A connection that was made.
#[derive(Debug)]
struct Live {
    service: RunningService<RoleClient, Handler>,
    /// Taken when the connection is ended.
    process: StdMutex<Option<Process>>,
    is_broken: AtomicBool,
    /// True if the server has said since the last listing that its tools changed.
    is_changed: Arc<AtomicBool>,
    /// Set if what the server sends ended the connection.
    ending: Ending,
    /// Number of calls since the last answer that got none in time.
    silent: AtomicU32,
    /// Tools of the beginning that the server no longer has, or has with another schema.
    gone: StdMutex<BTreeSet<String>>,
}

impl Live {
    fn is_open(&self) -> bool {
        !self.is_broken.load(Ordering::Relaxed) && !self.service.peer().is_transport_closed()
    }

    fn gone(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists the tools.
    async fn list(&self) -> Result<Listing, String> {
        // What is announced from here on is in no listing yet.
        self.is_changed.store(false, Ordering::Relaxed);
        Listing::of(self.service.peer()).await
    }

    /// Ends the connection, then the process.
    async fn end(&self) {
        self.service.cancellation_token().cancel();
        let closed = async {
            while !self.service.peer().is_transport_closed() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        // Errors of a server that nobody needs any more.
        _ = timeout(Duration::from_secs(1), closed).await;
        let process = self
            .process
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(process) = process {
            process.end().await;
        }
    }
}

/// Name and tools of a server, as it gave them at the beginning.
pub(crate) struct Introduction {
    /// Name and version of the server.
    pub(crate) server: String,
    pub(crate) listing: Listing,
}

impl Connection {
    /// Reads the secrets of a configuration. Nothing is sent or started. The error has the key that is wrong.
    pub(crate) fn new(name: &str, config: &McpConfig) -> Result<Self, (String, String)> {
        let way = match &config.url {
            Some(url) => Way::Web(Web::open(url, config)?),
            None => Way::Process,
        };
        Ok(Self {
            name: name.to_owned(),
            way,
            state: Arc::new(Mutex::new(State {
                protocol: config.protocol,
                ..State::default()
            })),
            permits: Semaphore::new(config.max_concurrency),
            said: LastLines::default(),
            attempts: AtomicU32::new(0),
            known: KnownTools::default(),
            config: config.clone(),
        })
    }

    /// Connects for the first time.
    pub(crate) async fn open(self: Arc<Self>) -> Result<Introduction, String> {
        let state = Arc::clone(&self.state).lock_owned().await;
        let (live, listing) = Arc::clone(&self).renew(state).await?;
        let info = live.service.peer().peer_info();
        let server = info.and_then(|info| info.server_info.clone());
        let server = server.map_or_else(String::new, |server| {
            format!("{} {}", server.name, server.version)
        });
        Ok(Introduction { server, listing })
    }

    /// Ends the connection, and the process if it has one.
    pub(crate) async fn close(&self) {
        let live = self.state.lock().await.live.take();
        if let Some(live) = live {
            live.end().await;
        }
    }

    /// Makes a call. It ends at the deadline.
    pub(crate) async fn call(
        self: Arc<Self>,
        tool: String,
        arguments: JsonObject,
        deadline: std::time::Instant,
    ) -> CallEnd {
        let deadline = Instant::from_std(deadline);
        let late = |what: &str| {
            let what = format!("{what} (deadline_ms of [mcp.{}])", self.name);
            CallEnd::by_infrastructure(Ended::Timeout, what)
        };
        let Ok(Ok(_permit)) = timeout_at(deadline, self.permits.acquire()).await else {
            return late(&format!(
                "waited too long for one of the {} places that its calls have (max_concurrency)",
                self.config.max_concurrency
            ));
        };
        let live = match timeout_at(deadline, self.live()).await {
            Ok(Ok(live)) => live,
            Ok(Err(reason)) => return unavailable(reason),
            Err(_) => return late("the server was not connected again in time"),
        };
        if live.gone().contains(&tool) {
            return gone(&tool);
        }
        let sent = Instant::now();
        if sent >= deadline {
            return late("no time was left when the call's turn came");
        }
        let output_schema = self.known.output_schema(&tool);
        let params = CallToolRequestParams::new(tool.clone()).with_arguments(arguments);
        let Ok(answer) = timeout_at(deadline, live.service.call_tool_once(params)).await else {
            // A call that waited long for its turn left the server little time.
            if sent.elapsed() * 2 >= self.config.deadline
                && live.silent.fetch_add(1, Ordering::Relaxed) + 1 >= SILENT_CALLS
            {
                live.is_broken.store(true, Ordering::Relaxed);
            }
            return late("the server did not answer in time");
        };
        match answer {
            Err(ServiceError::TransportSend(error)) if web::is_of_one_request(&*error.error) => {
                unavailable(format!(
                    "the server gave no answer: {}",
                    reason(&*error.error)
                ))
            }
            Err(ServiceError::TransportSend(error)) => {
                live.is_broken.store(true, Ordering::Relaxed);
                unavailable(format!("the connection broke: {}", reason(&*error.error)))
            }
            Err(ServiceError::TransportClosed) => {
                live.is_broken.store(true, Ordering::Relaxed);
                let said = self.said.quoted().await;
                let reason = live.ending.reason();
                let reason = reason.unwrap_or("the server closed the connection");
                unavailable(format!("{reason}{said}"))
            }
            answer => {
                live.silent.store(0, Ordering::Relaxed);
                self.attempts.store(0, Ordering::Relaxed);
                if is_refused(&answer) {
                    // Either the arguments are wrong, or the tool is not there any more. A list that does not come soon
                    // says neither.
                    let soon = deadline.min(Instant::now() + LIST_AGAIN);
                    if let Ok(Ok(listing)) =
                        timeout_at(soon, Listing::of(live.service.peer())).await
                    {
                        self.compare(&live, &listing.tools);
                    }
                    if live.gone().contains(&tool) {
                        return gone(&tool);
                    }
                }
                end(answer, output_schema, self.config.result_bytes)
            }
        }
    }

    /// The open connection. If there is none, it is made, which may take longer than the caller waits.
    async fn live(self: &Arc<Self>) -> Result<Arc<Live>, String> {
        let state = Arc::clone(&self.state).lock_owned().await;
        if let Some(live) = &state.live
            && live.is_open()
            && !live.is_changed.load(Ordering::Relaxed)
        {
            return Ok(Arc::clone(live));
        }
        // A task of its own, so that the connection is made even if this call gives up.
        let renewed = tokio::spawn(Arc::clone(self).renew(state)).await;
        let (live, _) = renewed.map_err(|error| error.to_string())??;
        Ok(live)
    }

    /// Lists the tools again on an open connection. If there is none, makes one.
    async fn renew(
        self: Arc<Self>,
        mut state: OwnedMutexGuard<State>,
    ) -> Result<(Arc<Live>, Listing), String> {
        if let Some(live) = state.live.take() {
            if live.is_open()
                && let Ok(Ok(listing)) = timeout(self.config.connect, live.list()).await
            {
                self.compare(&live, &listing.tools);
                state.live = Some(Arc::clone(&live));
                return Ok((live, listing));
            }
            // Calls that are under way may still be answered. Each of them ends at its deadline.
            tokio::spawn(async move {
                let peer = live.service.peer();
                while Arc::strong_count(&live) > 1 && !peer.is_transport_closed() {
                    tokio::time::sleep(FIRST_WAIT).await;
                }
                live.end().await;
            });
        }
        if let Some(not_before) = state.not_before {
            tokio::time::sleep_until(not_before).await;
        }
        let doublings = self.attempts.fetch_add(1, Ordering::Relaxed).min(20);
        let wait = FIRST_WAIT.saturating_mul(1 << doublings).min(MAX_WAIT);
        let made = timeout(self.config.connect, self.make(&mut state.protocol)).await;
        state.not_before = Some(Instant::now() + wait);
        let made = made.unwrap_or_else(|_| {
            Err(format!(
                "it was not connected within {} ms (connect_ms)",
                self.config.connect.as_millis()
            ))
        });
        let (live, listing) = match made {
            Ok(made) => made,
            Err(reason) => return Err(format!("{reason}{}", self.said.quoted().await)),
        };
        self.compare(&live, &listing.tools);
        let live = Arc::new(live);
        state.live = Some(Arc::clone(&live));
        Ok((live, listing))
    }

    /// Compares the tools with those of the beginning.
    fn compare(&self, live: &Live, tools: &[Tool]) {
        let gone = self.known.missing(tools);
        if !gone.is_empty() {
            let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
            tracing::warn!(
                server = self.name,
                tools = gone.join(", "),
                "an MCP server changed its tools; calls of these end as unavailable"
            );
        }
        *live.gone() = gone;
    }

    async fn make(&self, protocol: &mut Protocol) -> Result<(Live, Listing), String> {
        let live = match self.make_with(*protocol).await {
            // Some servers end at the first question of the newer revision.
            Err(_) if *protocol == Protocol::Auto => {
                let live = self.make_with(Protocol::V2025).await?;
                *protocol = Protocol::V2025;
                live
            }
            made => made?,
        };
        match live.list().await {
            Ok(listing) => Ok((live, listing)),
            Err(reason) => {
                let reason = live.ending.reason().unwrap_or(&reason);
                Err(format!("its tools cannot be listed: {reason}"))
            }
        }
    }

    async fn make_with(&self, protocol: Protocol) -> Result<Live, String> {
        let newer = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match protocol {
            Protocol::Auto => ClientLifecycleMode::Auto {
                preferred_versions: newer,
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            Protocol::V2025 => ClientLifecycleMode::Initialize,
            Protocol::V2026 => ClientLifecycleMode::Discover {
                preferred_versions: newer,
            },
        };
        let is_changed = Arc::default();
        let handler = Handler {
            is_changed: Arc::clone(&is_changed),
        };
        let ending = Ending::default();
        let (service, process) = match &self.way {
            Way::Process => {
                let (process, pipes) =
                    Process::start(&self.name, &self.config, &self.said, &ending)?;
                let served = handler.serve_with_lifecycle(pipes, lifecycle).await;
                let service = served.map_err(|error| match ending.reason() {
                    Some(reason) => reason.to_owned(),
                    None => not_connected(&error),
                })?;
                (service, Some(process))
            }
            Way::Web(web) => {
                let served = handler
                    .serve_with_lifecycle(web.transport(), lifecycle)
                    .await;
                let named = |error| format!("{}: {}", web.url(), not_connected(&error));
                (served.map_err(named)?, None)
            }
        };
        Ok(Live {
            service,
            process: StdMutex::new(process),
            is_broken: AtomicBool::new(false),
            is_changed,
            ending,
            silent: AtomicU32::new(0),
            gone: StdMutex::default(),
        })
    }
}

/// Answers what a server asks of a client: nothing but who it is.
#[derive(Debug)]
struct Handler {
    is_changed: Arc<AtomicBool>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("rlf-host", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), me)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.is_changed.store(true, Ordering::Relaxed);
    }
}

/// True if the server refused a call's parameters: the tool's name or its arguments.
fn is_refused(answer: &Result<CallToolResponse, ServiceError>) -> bool {
    matches!(answer, Err(ServiceError::McpError(error)) if error.code == ErrorCode::INVALID_PARAMS)
}

fn gone(tool: &str) -> CallEnd {
    unavailable(format!(
        "the server no longer has the tool `{tool}` as it was at the beginning"
    ))
}

fn unavailable(reason: String) -> CallEnd {
    CallEnd::by_infrastructure(Ended::Unavailable, reason)
}

/// The end of a call that was answered.
fn end(
    answer: Result<CallToolResponse, ServiceError>,
    output_schema: Option<&ToolSchema>,
    result_bytes: u64,
) -> CallEnd {
    let result = match answer {
        Ok(CallToolResponse::Complete(result)) => result,
        Ok(_) => {
            return CallEnd::by_plugin(
                "the server asked for more than the arguments, or for time, which it cannot have"
                    .to_owned(),
            );
        }
        Err(ServiceError::McpError(error)) if error.code == ErrorCode::INVALID_PARAMS => {
            let error = types::Error::InvalidArguments(error.message.into_owned());
            return CallEnd::from_result(Err(error), result_bytes);
        }
        Err(error) => return CallEnd::by_plugin(reason(&error)),
    };
    if let Some(schema) = output_schema
        && result.is_error != Some(true)
    {
        let broken = match &result.structured_content {
            Some(value) => validate(schema, value).err().map(|error| error.to_string()),
            None => Some("there is no structured answer".to_owned()),
        };
        if let Some(what) = broken {
            return CallEnd::by_plugin(format!(
                "the answer is not what the tool's output schema promises: {what}"
            ));
        }
    }
    match crate::convert::observation(result) {
        Ok(observation) => CallEnd::from_result(Ok(observation), result_bytes),
        Err(what) => CallEnd::by_plugin(what),
    }
}

/// The reason why a connection could not be made, without the names of types.
fn not_connected(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => reason(&*error.error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => not_connected(fallback),
        ClientInitializeError::ConnectionClosed(_) => "the server closed the connection".to_owned(),
        error => reason(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_whose_time_passes_while_it_waits_is_not_sent() {
        let text = "command = \"/nothing/is/here\"\nmax_concurrency = 1";
        let config: McpConfig = rlf_config::parse(text, "c.toml").unwrap();
        let connection = Arc::new(Connection::new("x", &config).unwrap());
        let made = |time| {
            let deadline = std::time::Instant::now() + time;
            Arc::clone(&connection).call("echo".to_owned(), JsonObject::new(), deadline)
        };
        let place = connection.permits.acquire().await.unwrap();
        let late = made(Duration::from_millis(20)).await;
        assert_eq!(late.ended, Ended::Timeout);
        assert!(late.detail.unwrap().contains("one of the 1 places"));
        drop(place);
        // One that is sent finds no server.
        assert_eq!(made(config.deadline).await.ended, Ended::Unavailable);
    }
}
