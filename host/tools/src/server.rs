//! Tools that no plugin offers: a server outside of the sandbox has them.

use std::fmt;
use std::time::{Duration, Instant};

use rlf_plugins::offered_tools::LoadedTool;
use rlf_plugins::outcome::CallEnd;
use rlf_sandbox::BoxFuture;
use serde_json::{Map, Value};

/// A server of tools.
///
/// The [`ToolManager`](crate::tool_manager::ToolManager) checks arguments by the schemas of its tools, and asks again where
/// that is harmless. The server's own side limits how many calls run at once and how much an answer may have.
pub trait ToolServer: fmt::Debug + Send + Sync {
    /// The operator's name for it.
    fn name(&self) -> &str;

    /// Its tools, under the operator's names. They stay the same as long as it is used.
    fn tools(&self) -> &[LoadedTool];

    /// Hash of what it said of itself and of its tools. Recorded with each call, where calls of plugins have the hash of a
    /// component.
    fn hash(&self) -> &str;

    /// The limits of its calls.
    fn limits(&self) -> ServerLimits;

    /// Makes one attempt at a call. It ends at the deadline at the latest. Dropping the future cancels the call.
    fn call<'a>(&'a self, call: ServerCall<'a>) -> BoxFuture<'a, CallEnd>;
}

/// Limits of the calls of a server's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum size of the arguments, in bytes of canonical JSON.
    pub arguments_bytes: u64,
    /// Time that one attempt may take, waiting included.
    pub deadline: Duration,
    /// Number of further attempts at a call that the server could not take or answer, if its tool may be repeated.
    pub retries: u32,
}

/// One attempt at a call of a server's tool.
#[derive(Debug)]
pub struct ServerCall<'a> {
    /// The server's own name for the tool.
    pub name: &'a str,
    /// The arguments. They fit the tool's schema.
    pub arguments: &'a Map<String, Value>,
    /// The time by which it must end.
    pub deadline: Instant,
}
