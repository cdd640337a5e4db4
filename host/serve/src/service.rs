//! The state that all requests of one service share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use rlf_environments::environments::Environments;
use rlf_interpreters::interpreter::{Interpreter, Interpreters};
use rlf_plugins::registry::Registry;
use rlf_tools::tool_manager::ToolManager;
use tokio::sync::{MutexGuard, OwnedSemaphorePermit};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Access;
use crate::answer::Refusal;
use crate::config::{BODY_UNIT, ServeConfig};
use crate::error::ServeError;
use crate::exposure::Exposure;
use crate::metrics::{GaugeGuard, Metrics};
use crate::protocol::LANGUAGES;
use crate::queue::{Backlog, BacklogShare, Queue, WaitBudget};
use crate::sessions::{Session, SessionUse, Sessions};

/// The plugins that a service serves, with their tools and environments.
#[derive(Debug)]
pub struct Offer<'a> {
    /// The plugins.
    pub registry: &'a Registry,
    /// Their tools, and those of MCP servers.
    pub tools: ToolManager,
    /// Their environments.
    pub environments: Environments,
    /// Number of threads that run guests.
    pub workers: usize,
}

/// Everything that handlers need.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) config: ServeConfig,
    pub(crate) access: Access,
    pub(crate) interpreters: Interpreters,
    pub(crate) tools: ToolManager,
    pub(crate) exposure: Exposure,
    pub(crate) sessions: Sessions,
    pub(crate) metrics: Metrics,
    /// Room for bodies, in [`BODY_UNIT`]s.
    pub(crate) bodies: Queue,
    /// Places for the first turns of programs.
    first_turns: Queue,
    /// Places for programs that did not end in their first turn, and for notebooks.
    long_runs: Queue,
    /// CPU time that the programs in `long_runs` may still use.
    long_backlog: Backlog,
    calls: Queue,
    /// Cancelled when the service stops.
    pub(crate) stopped: CancellationToken,
    /// The open WebSockets, which end after `stopped`.
    pub(crate) sockets: TaskTracker,
    /// Prefix of generated request names, different for every process.
    epoch: u32,
    requests: AtomicU64,
}

/// A place among the connections, given back when nobody holds it any more.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionPlace(
    #[expect(dead_code, reason = "held for its drop")]
    pub(crate)  Arc<(OwnedSemaphorePermit, GaugeGuard)>,
);

/// A place for a long run, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct LongRunPlace {
    _permit: OwnedSemaphorePermit,
    _share: BacklogShare,
}

/// The result of looking up the interpreter for a language.
pub(crate) enum LanguageLookup<'a> {
    /// The interpreter that runs it.
    Interpreter(&'a Interpreter),
    /// The protocol has the language, but no interpreter for it is usable here. The text says why.
    NotInstalled(String),
    /// The language is unknown. The text lists the known ones.
    Unknown(String),
}

impl Service {
    pub(crate) fn new(config: ServeConfig, offer: Offer<'_>) -> Result<Self, ServeError> {
        let Offer {
            registry,
            tools,
            environments,
            workers,
        } = offer;
        config.validate()?;
        let interpreters = Interpreters::new(registry);
        for (name, id) in &config.languages {
            if interpreters.get(id).is_none() {
                let known = ids(&interpreters).join(", ");
                return Err(ServeError::NoInterpreter {
                    name: name.clone(),
                    language: id.clone(),
                    known,
                });
            }
        }
        let max_runs = config.max_runs.unwrap_or(workers).max(1);
        let mut epoch = [0; 4];
        getrandom::fill(&mut epoch).map_err(|error| ServeError::NoRandomness(error.to_string()))?;
        Ok(Self {
            access: Access::new(&config)?,
            exposure: Exposure::new(registry, tools.servers(), &config)?,
            metrics: Metrics::new(),
            bodies: Queue::new((config.body_budget_bytes / BODY_UNIT) as usize),
            first_turns: Queue::new(max_runs),
            long_runs: Queue::new(max_runs),
            long_backlog: Backlog::new(max_runs),
            calls: Queue::new(config.max_calls),
            stopped: CancellationToken::new(),
            sockets: TaskTracker::new(),
            sessions: Sessions::new(environments, config.max_sessions, config.session),
            epoch: u32::from_le_bytes(epoch),
            requests: AtomicU64::new(0),
            interpreters,
            tools,
            config,
        })
    }

    /// The wait budget of a new request.
    pub(crate) fn wait(&self) -> WaitBudget {
        WaitBudget::new(self.config.queue)
    }

    /// Waits for a place for the first turn of a program.
    pub(crate) async fn first_turn_place(
        &self,
        wait: &mut WaitBudget,
    ) -> Result<OwnedSemaphorePermit, Refusal> {
        self.place(&self.first_turns, "programs", wait).await
    }

    /// Waits for a place for a program or a notebook that may use `time`. A refusal tells the client to come back when
    /// the programs before it are done, at the latest.
    pub(crate) async fn long_run_place(
        &self,
        time: Duration,
        wait: &mut WaitBudget,
    ) -> Result<LongRunPlace, Refusal> {
        let share = self.long_backlog.add(time);
        let permit = self.place(&self.long_runs, "long programs", wait).await;
        match permit {
            Ok(permit) => Ok(LongRunPlace {
                _permit: permit,
                _share: share,
            }),
            Err(refusal) => {
                drop(share);
                Err(refusal.retry_after(self.long_backlog.duration()))
            }
        }
    }

    /// Waits for a place for a call of a tool or a reward.
    pub(crate) async fn call_place(
        &self,
        wait: &mut WaitBudget,
    ) -> Result<OwnedSemaphorePermit, Refusal> {
        self.place(&self.calls, "calls", wait).await
    }

    /// Waits until the calls of a session before this one have ended. They keep no place from other calls meanwhile.
    pub(crate) async fn lock_session<'a>(
        &self,
        session: &'a SessionUse,
        wait: &mut WaitBudget,
    ) -> Result<MutexGuard<'a, Session>, Refusal> {
        let locked = wait.wait_for(session.lock()).await;
        let locked =
            locked.map_err(|_| Refusal::later("too many calls of this session are under way"))?;
        locked.ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, "the session was closed"))
    }

    async fn place(
        &self,
        queue: &Queue,
        what: &str,
        wait: &mut WaitBudget,
    ) -> Result<OwnedSemaphorePermit, Refusal> {
        let waits = self.metrics.waits();
        let place = queue.take(1, wait).await;
        drop(waits);
        self.metrics.waited(wait.waited());
        place.map_err(|_| {
            Refusal::later(format!(
                "no turn came within serve.queue_ms = {}: too many {what} are under way",
                self.config.queue.as_millis()
            ))
        })
    }

    /// Finds the interpreter for a language, by the client's name for it.
    pub(crate) fn interpreter_for(&self, name: &str) -> LanguageLookup<'_> {
        let id = self.config.languages.get(name).map_or(name, String::as_str);
        if let Some(interpreter) = self.interpreters.get(id) {
            return LanguageLookup::Interpreter(interpreter);
        }
        if let Some(why) = self.exposure.failed.get(id) {
            return LanguageLookup::NotInstalled(format!(
                "the interpreter `{id}` is installed and cannot be used: {why}"
            ));
        }
        let mut installed = ids(&self.interpreters);
        installed.extend(self.config.languages.keys().map(String::as_str));
        if LANGUAGES.contains(&name) {
            return LanguageLookup::NotInstalled(format!(
                "no interpreter of `{name}` is installed here; installed: {}",
                installed.join(", ")
            ));
        }
        let known: BTreeSet<&str> = LANGUAGES.into_iter().chain(installed).collect();
        let known: Vec<String> = known.iter().map(|name| format!("'{name}'")).collect();
        LanguageLookup::Unknown(format!("Input should be one of {}", known.join(", ")))
    }

    /// Names a request: by the client's name for it, if that is a plain name.
    pub(crate) fn request_id(&self, given: Option<&http::HeaderValue>) -> String {
        let plain = |text: &&str| {
            (1..=64).contains(&text.len())
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        match given.and_then(|given| given.to_str().ok()).filter(plain) {
            Some(given) => given.to_owned(),
            None => format!(
                "{:08x}-{}",
                self.epoch,
                self.requests.fetch_add(1, Ordering::Relaxed)
            ),
        }
    }

    /// Stops accepting requests.
    pub(crate) fn stop(&self) {
        self.stopped.cancel();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopped.is_cancelled()
    }
}

#[cfg(test)]
impl Service {
    /// A service that offers nothing.
    pub(crate) fn offering_nothing(config: ServeConfig) -> Arc<Self> {
        use rlf_environments::environments::EnvironmentConfig;
        use rlf_sandbox::{Sandbox, SandboxConfig};
        use rlf_tools::tool_manager::ToolManagerConfig;

        let small = SandboxConfig {
            instances: Some(16),
            workers: Some(2),
            ..SandboxConfig::default()
        };
        let sandbox = Sandbox::new(&small).unwrap();
        let registry = Registry::default();
        let offer = Offer {
            registry: &registry,
            tools: ToolManager::new(&registry, &ToolManagerConfig::default()).unwrap(),
            environments: Environments::new(&registry, &sandbox, &EnvironmentConfig::default()),
            workers: 2,
        };
        Arc::new(Self::new(config, offer).unwrap())
    }
}

/// The interpreters' own names of their languages.
pub(crate) fn ids(interpreters: &Interpreters) -> Vec<&str> {
    interpreters
        .all()
        .map(|interpreter| interpreter.language().id.as_str())
        .collect()
}
