//! One trajectory's session in an environment: its calls, its messages, and the verdict on the final state.

use rlf_dialogue::episode::Reply;
use rlf_dialogue::message::Message;
use rlf_dialogue::tool::{CallOutcome, ToolCall, ToolDefinition};
use rlf_dialogue::trajectory::{EnvironmentFeedback, Verdict};
use rlf_plugins::turn::TurnContext;
use rlf_sandbox::BoxFuture;
use serde_json::Value;

use crate::error::SessionError;
use crate::plugin_session::PluginSession;
use crate::served_session::ServedSession;
use crate::snapshot::{SessionSnapshot, SnapshotError};

/// The end of an episode.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EpisodeEnd {
    /// The state as canonical JSON.
    pub state: Option<Value>,
    /// The environment's verdict.
    pub verdict: Option<Verdict>,
    /// The reason why the state or the verdict is missing.
    pub problem: Option<String>,
}

/// One trajectory's copy of an environment. Dropping it frees its instance, or closes it on its server.
#[derive(Debug)]
pub struct EnvironmentSession(Place);

/// The place where a session is.
#[derive(Debug)]
enum Place {
    Plugin(Box<PluginSession>),
    Server(Box<ServedSession>),
}

impl From<PluginSession> for EnvironmentSession {
    fn from(session: PluginSession) -> Self {
        Self(Place::Plugin(Box::new(session)))
    }
}

impl From<ServedSession> for EnvironmentSession {
    fn from(session: ServedSession) -> Self {
        Self(Place::Server(Box::new(session)))
    }
}

impl EnvironmentSession {
    /// The environment's first messages.
    pub fn messages(&self) -> &[Message] {
        match &self.0 {
            Place::Plugin(session) => session.messages(),
            Place::Server(session) => session.messages(),
        }
    }

    /// The tools on offer now.
    pub fn tools(&self) -> impl Iterator<Item = &ToolDefinition> {
        let (of_plugin, of_server) = match &self.0 {
            Place::Plugin(session) => (Some(session.tools()), None),
            Place::Server(session) => (None, Some(session.tools())),
        };
        (of_plugin.into_iter().flatten()).chain(of_server.into_iter().flatten())
    }

    /// True if the session is on a server.
    pub fn is_on_server(&self) -> bool {
        matches!(self.0, Place::Server(_))
    }

    /// True if the tools have changed since this was last asked.
    pub fn take_tools_changed(&mut self) -> bool {
        match &mut self.0 {
            Place::Plugin(session) => session.take_tools_changed(),
            Place::Server(_) => false,
        }
    }

    /// True if the environment has ended the episode.
    pub fn is_terminated(&self) -> bool {
        match &self.0 {
            Place::Plugin(session) => session.is_terminated(),
            Place::Server(session) => session.is_terminated(),
        }
    }

    /// The reason why the trajectory cannot continue, if there is one.
    pub fn lost(&self) -> Option<&str> {
        match &self.0 {
            Place::Plugin(session) => session.lost(),
            Place::Server(session) => session.lost(),
        }
    }

    /// Calls one of its tools. It never returns an error: failures are part of the outcome.
    pub fn call<'a>(
        &'a mut self,
        call: ToolCall,
        context: &'a TurnContext,
    ) -> BoxFuture<'a, CallOutcome> {
        match &mut self.0 {
            Place::Plugin(session) => Box::pin(session.call(call, context)),
            Place::Server(session) => Box::pin(session.call(call)),
        }
    }

    /// Sends a message of the model that contains no tool call. The error says why the trajectory cannot continue.
    pub fn say<'a>(
        &'a mut self,
        text: &'a str,
        context: &'a TurnContext,
    ) -> BoxFuture<'a, Result<(Reply, EnvironmentFeedback), SessionError>> {
        match &mut self.0 {
            Place::Plugin(session) => Box::pin(session.say(text, context)),
            // Nobody listens there.
            Place::Server(_) => Box::pin(async {
                let nothing = EnvironmentFeedback {
                    step_reward: None,
                    state: None,
                };
                Ok((Reply::Silence, nothing))
            }),
        }
    }

    /// The state as canonical JSON, written by the environment.
    pub fn state(&self) -> BoxFuture<'_, Result<String, SessionError>> {
        match &self.0 {
            Place::Plugin(session) => Box::pin(session.state()),
            Place::Server(session) => Box::pin(session.state()),
        }
    }

    /// A snapshot of the whole session. It can be restored in this or another instance of the same component.
    pub fn snapshot(&self) -> BoxFuture<'_, Result<SessionSnapshot, SessionError>> {
        match &self.0 {
            Place::Plugin(session) => Box::pin(session.snapshot()),
            Place::Server(_) => Box::pin(async { Err(SessionError::NoSnapshots) }),
        }
    }

    /// Resets the session to a snapshot, tools included. A snapshot that cannot be restored changes nothing.
    pub fn restore<'a>(
        &'a mut self,
        snapshot: &'a SessionSnapshot,
    ) -> BoxFuture<'a, Result<(), SnapshotError>> {
        match &mut self.0 {
            Place::Plugin(session) => Box::pin(session.restore(snapshot)),
            Place::Server(_) => Box::pin(async {
                let why = SessionError::NoSnapshots.to_string();
                Err(SnapshotError::Refused(why))
            }),
        }
    }

    /// The environment's verdict on its state.
    pub fn verify<'a>(
        &'a self,
        answer: Option<&'a str>,
        reference: &'a Value,
    ) -> BoxFuture<'a, Result<Verdict, SessionError>> {
        match &self.0 {
            Place::Plugin(session) => Box::pin(session.verify(answer, reference)),
            Place::Server(session) => Box::pin(async { session.verify() }),
        }
    }

    /// The end of the episode: the state, and the environment's verdict.
    pub fn end<'a>(
        &'a self,
        answer: Option<&'a str>,
        reference: &'a Value,
    ) -> BoxFuture<'a, EpisodeEnd> {
        Box::pin(async move {
            let state = self
                .state()
                .await
                .map_err(|error| error.to_string())
                .and_then(|text| {
                    rlf_json::from_str(&text)
                        .map_err(|error| format!("its state is no JSON: {error}"))
                });
            let verdict = self
                .verify(answer, reference)
                .await
                .map_err(|error| error.to_string());
            let problem = [state.as_ref().err(), verdict.as_ref().err()]
                .into_iter()
                .flatten()
                .next()
                .cloned();
            EpisodeEnd {
                state: state.ok(),
                verdict: verdict.ok(),
                problem,
            }
        })
    }

    /// Frees the session's instance, as after a long wait. Returns whether it had one.
    pub fn evict(&self) -> BoxFuture<'_, bool> {
        match &self.0 {
            Place::Plugin(session) => Box::pin(session.evict()),
            Place::Server(_) => Box::pin(async { false }),
        }
    }
}
