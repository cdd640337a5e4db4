//! Sessions of environments that clients hold between requests, by names that nobody can guess.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rlf_environments::environments::Environments;
use rlf_environments::error::OpenError;
use rlf_environments::session::EnvironmentSession;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard as AsyncMutexGuard};

/// The sessions that clients hold. A session that nobody uses for a while is closed.
#[derive(Debug)]
pub(crate) struct Sessions {
    environments: Environments,
    open: StdMutex<HashMap<String, Held>>,
    /// The setups of the scenarios that come with each environment, as far as somebody has asked.
    scenarios: StdMutex<HashMap<String, Arc<[Value]>>>,
    most: usize,
    idle: Duration,
}

#[derive(Debug)]
struct Held {
    /// The environment's name.
    environment: String,
    /// `None` while it is being opened.
    session: Option<Arc<Mutex<Session>>>,
    life: Arc<Life>,
}

impl Held {
    fn is_of(&self, environment: Option<&str>) -> bool {
        environment.is_none_or(|environment| environment == self.environment)
    }
}

/// The part of a session's life that its users and the table of sessions share.
#[derive(Debug)]
struct Life {
    /// The time at which somebody last used it.
    used: StdMutex<Instant>,
    is_closed: AtomicBool,
}

impl Life {
    fn used(&self) -> MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that a client holds.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) environment: EnvironmentSession,
    pub(crate) progress: Progress,
}

/// The use of a session. Until it is dropped, the session is not closed for being idle.
#[derive(Debug)]
pub(crate) struct SessionUse {
    session: Arc<Mutex<Session>>,
    life: Arc<Life>,
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        *self.life.used() = Instant::now();
    }
}

impl SessionUse {
    /// Waits until the calls before this one have ended. `None` if the session was closed meanwhile.
    pub(crate) async fn lock(&self) -> Option<AsyncMutexGuard<'_, Session>> {
        let session = self.session.lock().await;
        (!self.life.is_closed.load(Ordering::Relaxed)).then_some(session)
    }
}

/// An episode's progress in a session.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The client's name for the episode.
    pub(crate) episode: Option<String>,
    /// The reference of the task, with which the environment judges the episode.
    pub(crate) reference: Value,
    pub(crate) steps: u32,
    /// The end of the episode, once it was judged.
    pub(crate) end: Option<EpisodeEnd>,
}

/// The end of an episode.
#[derive(Debug, Clone)]
pub(crate) struct EpisodeEnd {
    /// The score of the verdict; `None` if there was no reference.
    pub(crate) reward: Option<f64>,
    /// `success` and `reason`.
    pub(crate) verdict: Value,
}

/// The reason why a client gets no session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionRefusal {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{0} sessions are open, and no more are allowed (serve.max_sessions); close one")]
    Full(usize),
    #[error("there is no such session: it was closed, or nobody used it for {} s (serve.session_ms)", .0.as_secs())]
    None(Duration),
    #[error("the machine gives no randomness: {0}")]
    NoRandomness(String),
}

impl Sessions {
    pub(crate) fn new(environments: Environments, max_sessions: usize, idle: Duration) -> Self {
        Self {
            environments,
            open: StdMutex::default(),
            scenarios: StdMutex::default(),
            most: max_sessions,
            idle,
        }
    }

    /// A setup for a client that brings none: that of one of the environment's scenarios, chosen by the seed. Without
    /// scenarios, all servers of an environment in Python begin empty.
    pub(crate) async fn default_setup(
        &self,
        environment: &str,
        seed: u64,
    ) -> Result<Value, SessionRefusal> {
        let kept = || {
            self.scenarios
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let known = kept().get(environment).cloned();
        let setups: Arc<[Value]> = if let Some(setups) = known {
            setups
        } else {
            let scenarios = self.environments.scenarios(environment).await?;
            let setups = scenarios.into_iter().map(|scenario| scenario.task);
            let setups: Arc<[Value]> = setups.collect();
            kept().insert(environment.to_owned(), Arc::clone(&setups));
            setups
        };
        let count = u64::try_from(setups.len()).unwrap_or(u64::MAX).max(1);
        let chosen = usize::try_from(seed % count).unwrap_or_default();
        if let Some(setup) = setups.get(chosen) {
            return Ok(setup.clone());
        }
        let servers = self.environments.plugin(environment)?.servers();
        Ok(match servers {
            Some(servers) => {
                let empty = servers.iter().map(|server| (server.clone(), json!({})));
                json!({ "servers": Value::Object(empty.collect()) })
            }
            None => json!({}),
        })
    }

    /// Opens a session. Returns its name, and the session itself.
    pub(crate) async fn open(
        &self,
        environment: &str,
        setup: &Value,
        seed: u64,
        progress: Progress,
    ) -> Result<(String, SessionUse), SessionRefusal> {
        let mut name = [0; 16];
        getrandom::fill(&mut name)
            .map_err(|error| SessionRefusal::NoRandomness(error.to_string()))?;
        let name = format!("{:032x}", u128::from_le_bytes(name));
        let life = self.reserve(&name, environment)?;
        // Gives the place back if the client leaves while the session is being opened.
        let mut reserved = Reserved {
            sessions: self,
            name: &name,
            is_kept: false,
        };
        let session = Session {
            environment: (self.environments)
                .open(environment, &name, setup, seed)
                .await?,
            progress,
        };
        let session = Arc::new(Mutex::new(session));
        if let Some(held) = self.lock().get_mut(&name) {
            held.session = Some(Arc::clone(&session));
        }
        reserved.is_kept = true;
        drop(reserved);
        Ok((name, SessionUse { session, life }))
    }

    fn reserve(&self, name: &str, environment: &str) -> Result<Arc<Life>, SessionRefusal> {
        let mut open = self.current();
        if open.len() >= self.most {
            return Err(SessionRefusal::Full(self.most));
        }
        let life = Arc::new(Life {
            used: StdMutex::new(Instant::now()),
            is_closed: AtomicBool::new(false),
        });
        let held = Held {
            environment: environment.to_owned(),
            session: None,
            life: Arc::clone(&life),
        };
        open.insert(name.to_owned(), held);
        Ok(life)
    }

    /// The session of a name. If an environment is given, it must be one of its sessions.
    pub(crate) fn get(
        &self,
        name: &str,
        environment: Option<&str>,
    ) -> Result<SessionUse, SessionRefusal> {
        let open = self.current();
        let held = (open.get(name)).filter(|held| held.is_of(environment));
        let none = SessionRefusal::None(self.idle);
        let Held { session, life, .. } = held.ok_or(none)?;
        let session = session.clone().ok_or(SessionRefusal::None(self.idle))?;
        Ok(SessionUse {
            session,
            life: Arc::clone(life),
        })
    }

    /// The sessions, without those that nobody has used for too long.
    fn current(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        let mut open = self.lock();
        let (now, idle) = (Instant::now(), self.idle);
        open.retain(|_, held| {
            // A session that is in use is held elsewhere, too.
            let in_use =
                (held.session.as_ref()).is_none_or(|session| Arc::strong_count(session) > 1);
            in_use || now.saturating_duration_since(*held.life.used()) < idle
        });
        open
    }

    /// Closes a session; calls of it that wait are not carried out. Returns false if there is none of this name, or it is
    /// of another environment than the given one.
    pub(crate) fn close(&self, name: &str, environment: Option<&str>) -> bool {
        let mut open = self.current();
        if !(open.get(name)).is_some_and(|held| held.is_of(environment)) {
            return false;
        }
        let held = open.remove(name);
        if let Some(held) = &held {
            held.life.is_closed.store(true, Ordering::Relaxed);
        }
        held.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place for a session that is being opened.
struct Reserved<'a> {
    sessions: &'a Sessions,
    name: &'a str,
    is_kept: bool,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.sessions.close(self.name, None);
        }
    }
}
