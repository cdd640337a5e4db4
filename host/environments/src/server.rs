//! Environments that no plugin has: a server outside of the sandbox has them.

use std::fmt;

use rlf_dialogue::message::Message;
use rlf_dialogue::trajectory::Verdict;
use rlf_plugins::offered_tools::LoadedTool;
use rlf_plugins::outcome::CallEnd;
use rlf_sandbox::BoxFuture;
use serde_json::Value;

use crate::error::{OpenError, SessionError};

/// A server of one environment.
///
/// Nothing that it does can be undone, so its sessions have no snapshots. A session whose server breaks ends its
/// trajectory, which is excluded.
pub trait EnvironmentServer: fmt::Debug + Send + Sync {
    /// The operator's name for the environment.
    fn name(&self) -> &str;

    /// Hash of what it said of itself. Recorded with each call, where calls of plugins have the hash of a component.
    fn hash(&self) -> &str;

    /// Maximum size of a call's arguments, in bytes of canonical JSON.
    fn arguments_bytes(&self) -> u64;

    /// Opens a task. `seed` determines all randomness, as far as the server does as it is told.
    fn open<'a>(
        &'a self,
        setup: &'a Value,
        seed: u64,
    ) -> BoxFuture<'a, Result<ServerStart, OpenError>>;
}

/// A session that a server has opened.
#[derive(Debug)]
pub struct ServerStart {
    /// The session. Dropping it closes it.
    pub session: Box<dyn ServerSession>,
    /// The environment's first messages.
    pub messages: Vec<Message>,
    /// The tools on offer, under the operator's names.
    pub tools: Vec<LoadedTool>,
}

/// One session on a server.
pub trait ServerSession: fmt::Debug + Send + Sync {
    /// Calls a tool by the server's own name for it. The arguments fit its schema.
    fn call<'a>(&'a mut self, tool: &'a str, arguments: &'a Value) -> BoxFuture<'a, ServerStep>;

    /// The state.
    fn state(&self) -> BoxFuture<'_, Result<Value, SessionError>>;

    /// The verdict on what has been done so far.
    fn verify(&self) -> Result<Verdict, SessionError>;
}

/// The result of a call.
#[derive(Debug)]
pub struct ServerStep {
    /// The end of the call.
    pub end: CallEnd,
    /// The reward of the step, if there is one.
    pub reward: Option<f64>,
    /// True if the environment has ended the episode.
    pub terminated: bool,
    /// The reason why the session cannot continue.
    pub lost: Option<String>,
}
