//! A session that has an instance, be it of an environment's own component or of an interpreter that runs one.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rlf_sandbox::{Clock, Ending, LimitReached, Stopped};
use tokio::sync::oneshot;

use super::component::ComponentSession;
use super::python::PythonSession;
use crate::bindings::{environment, types};
use crate::plugin::{Exports, Plugin};

/// The longest that an instance serves one session. One that is older comes back from a snapshot.
pub(crate) const LIFETIME: Duration = rlf_sandbox::MAX_DURATION;

/// What one request may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    /// CPU time, and again time as the guest sees it.
    pub(crate) budget: Duration,
    /// Real time.
    pub(crate) wall: Duration,
}

impl Time {
    pub(crate) fn of(plugin: &Plugin) -> Self {
        let policy = plugin.policy();
        match plugin.exports {
            Exports::Interpreter(_) => Self {
                budget: policy.programs.time,
                wall: policy.programs.deadline,
            },
            _ => Self {
                budget: policy.limits.cpu,
                wall: policy.limits.wall,
            },
        }
    }
}

/// How a session comes to be.
#[derive(Debug, Clone)]
pub(crate) enum Beginning {
    /// As the task has it.
    Open {
        /// JSON.
        task: String,
        /// Of everything random.
        seed: u64,
    },
    /// As an earlier one was.
    Restore {
        /// What that one gave.
        snapshot: Vec<u8>,
        /// As it was opened with.
        seed: u64,
    },
}

impl Beginning {
    pub(crate) fn seed(&self) -> u64 {
        match self {
            Self::Open { seed, .. } | Self::Restore { seed, .. } => *seed,
        }
    }
}

/// What a session begins with.
pub(crate) struct Started {
    /// What the environment says first; nothing of a session that goes on.
    pub(crate) start: Option<environment::Start>,
    /// Canonical JSON.
    pub(crate) state: String,
}

/// What a call, or something that was said, came to.
pub(crate) struct Stepped {
    pub(crate) step: Result<environment::Step, types::Error>,
    /// Canonical JSON, after it.
    pub(crate) state: String,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) enum Live {
    Component(ComponentSession),
    Python(Box<PythonSession>),
}

type Answer<T> = Result<Result<T, types::Error>, Stopped>;

impl Live {
    pub(crate) async fn begin(
        plugin: &Arc<Plugin>,
        beginning: Beginning,
        label: &str,
    ) -> Answer<(Self, Started)> {
        let time = Time::of(plugin);
        if let Exports::Interpreter(_) = plugin.exports {
            let begun = PythonSession::begin(plugin, beginning, label, time).await?;
            return Ok(begun.map(|(live, started)| (Self::Python(Box::new(live)), started)));
        }
        let begun = ComponentSession::begin(plugin, beginning, label, time).await?;
        Ok(begun.map(|(live, started)| (Self::Component(live), started)))
    }

    /// Most memory that the instance has had so far, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        match self {
            Self::Component(live) => live.memory(),
            Self::Python(live) => live.memory(),
        }
    }

    pub(crate) async fn call(
        &mut self,
        name: &str,
        arguments: String,
        context: types::CallContext,
        time: Time,
    ) -> Answer<Stepped> {
        match self {
            Self::Component(live) => live.call(name.to_owned(), arguments, context, time).await,
            Self::Python(live) => live.call(name, &arguments, time).await,
        }
    }

    pub(crate) async fn say(
        &mut self,
        text: &str,
        context: types::CallContext,
        time: Time,
    ) -> Answer<Stepped> {
        match self {
            Self::Component(live) => live.say(text.to_owned(), context, time).await,
            Self::Python(live) => live.say(text, time).await,
        }
    }

    pub(crate) async fn state(&mut self, time: Time) -> Answer<String> {
        match self {
            Self::Component(live) => live.state(time).await,
            Self::Python(live) => live.state(time).await,
        }
    }

    pub(crate) async fn snapshot(&mut self, time: Time) -> Answer<Vec<u8>> {
        match self {
            Self::Component(live) => live.snapshot(time).await,
            Self::Python(live) => live.snapshot(time).await,
        }
    }

    pub(crate) async fn verify(
        &mut self,
        answer: Option<&str>,
        reference: String,
        time: Time,
    ) -> Answer<types::Verdict> {
        match self {
            Self::Component(live) => {
                live.verify(answer.map(str::to_owned), reference, time)
                    .await
            }
            Self::Python(live) => live.verify(answer, &reference, time).await,
        }
    }
}

/// The answer, if it comes inside its time; nothing where nobody is there to give one.
pub(crate) async fn in_time<T>(
    time: Time,
    answered: oneshot::Receiver<T>,
) -> Result<Option<T>, Stopped> {
    within(time.wall, answered).await.map(Result::ok)
}

/// Waits for so long at the most. Past it the machine was too busy: a guest that computes reaches its budget first.
pub(crate) async fn within<T>(
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

/// Nobody knows why it ended.
pub(crate) fn gone() -> Stopped {
    Stopped::unavailable("the session's instance is gone")
}
