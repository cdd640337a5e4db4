//! Requests to the instance of a session: the origin of the session, time limits, answers.

use std::future::Future;
use std::time::{Duration, Instant};

use rlf_plugins::bindings::{environment, types};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::plugin::Plugin;
use rlf_sandbox::{Clock, Ending, LimitReached, Stopped};
use tokio::sync::oneshot;

use crate::error::SessionError;

/// An environment's answer. The error is [`SessionError::Refused`], or [`SessionError::Stopped`] if its instance was
/// stopped.
pub(crate) type Answer<T> = Result<T, SessionError>;

/// Maximum time that an instance serves one session. After it, the session continues from a snapshot.
pub(crate) const LIFETIME: Duration = rlf_sandbox::MAX_DURATION;

/// The time limits of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    /// CPU time, and again time as the guest sees it.
    pub(crate) budget: Duration,
    /// Real time.
    pub(crate) wall: Duration,
}

impl Time {
    pub(crate) fn for_plugin(plugin: &Plugin) -> Self {
        let grants = plugin.grants();
        match plugin.kind() {
            PluginKind::Interpreter => Self {
                budget: grants.programs.time,
                wall: grants.programs.deadline,
            },
            _ => Self {
                budget: grants.limits.cpu,
                wall: grants.limits.wall,
            },
        }
    }
}

/// The origin of a session.
#[derive(Debug, Clone)]
pub(crate) enum SessionOrigin {
    /// A task that is opened.
    Open {
        /// The task as JSON.
        task: String,
        /// Seed of all randomness.
        seed: u64,
    },
    /// A snapshot of an earlier session.
    Restore {
        /// The earlier session's snapshot.
        snapshot: Vec<u8>,
        /// The seed with which the earlier session was opened.
        seed: u64,
    },
}

impl SessionOrigin {
    pub(crate) fn seed(&self) -> u64 {
        match self {
            Self::Open { seed, .. } | Self::Restore { seed, .. } => *seed,
        }
    }
}

/// A session that has started.
pub(crate) struct SessionStart {
    /// The environment's first messages and tools. `None` for a restored session.
    pub(crate) start: Option<environment::Start>,
    /// The state as canonical JSON.
    pub(crate) state: String,
}

/// The result of a call or of a message.
pub(crate) struct StepResult {
    pub(crate) step: Result<environment::Step, types::Error>,
    /// The state after the step, as canonical JSON.
    pub(crate) state: String,
}

/// Waits for the answer, within the time limit. Returns `None` if the session was dropped.
pub(crate) async fn in_time<T>(
    time: Time,
    answered: oneshot::Receiver<T>,
) -> Result<Option<T>, Stopped> {
    wait_within(time.wall, answered).await.map(Result::ok)
}

/// Waits at most this long. A longer wait means that the machine was too busy, because a guest that computes reaches
/// its CPU budget first.
pub(crate) async fn wait_within<T>(
    wall: Duration,
    waiting: impl Future<Output = T>,
) -> Result<T, Stopped> {
    let deadline = Instant::now() + wall;
    tokio::time::timeout_at(deadline.into(), waiting)
        .await
        .map_err(|_| {
            let allowed = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
            let limit = LimitReached {
                name: "wall_ms".into(),
                value: allowed,
                used: allowed,
            };
            Stopped {
                ended: Ending::Timeout { clock: Clock::Wall },
                reason: format!("out of time while running ({limit})"),
                limit: Some(limit),
                backtrace: None,
            }
        })
}

/// The error if it is unknown why the instance ended.
pub(crate) fn instance_ended() -> Stopped {
    Stopped::unavailable("the session's instance is gone")
}
