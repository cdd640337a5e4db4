//! One session, with or without an instance. It keeps the session's origin, its last snapshot and the calls since then.
//! They restore the session after an eviction, or after a call that broke its instance. Whoever asks takes the instance
//! out of the slot, and puts it back after the answer. So a request that is given up midway ends the instance, and the
//! session is what it was before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rlf_plugins::bindings::{environment, types};
use rlf_plugins::convert::error_text;
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::plugin::Plugin;
use rlf_sandbox::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::SessionError;
use crate::live::LiveSession;
use crate::pool::{Evictable, Reservation, SessionPool};
use crate::request::{Answer, SessionOrigin, SessionStart, StepResult, Time};

/// An action that can change a session.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Call {
        name: String,
        arguments: String,
        context: types::CallContext,
    },
    Say {
        text: String,
        context: types::CallContext,
    },
}

/// One session, with or without an instance.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) plugin: Arc<Plugin>,
    pool: Arc<SessionPool>,
    label: String,
    task: String,
    seed: u64,
    inner: tokio::sync::Mutex<Inner>,
    /// The time since which the session has waited with an instance.
    waiting: Mutex<Option<Instant>>,
    /// Memory reserved for the session while it waits, in the pool's units.
    held: AtomicUsize,
}

/// A session's instance.
#[derive(Debug)]
struct Instance {
    live: LiveSession,
    held: Reservation,
}

/// An instance that is asked something.
struct Running {
    instance: Instance,
    /// The memory that it may need meanwhile.
    _room: OwnedSemaphorePermit,
}

#[derive(Debug, Default)]
struct Inner {
    /// The instance, while nobody asks it anything.
    instance: Option<Instance>,
    snapshot: Option<Vec<u8>>,
    /// The actions since the snapshot, or since the opening.
    log: Vec<Action>,
    /// Hash of the state after the log.
    state: String,
    watched: bool,
    broke: bool,
}

/// A session that was opened.
pub(crate) struct Opened {
    pub(crate) slot: Arc<Slot>,
    /// The environment's first messages.
    pub(crate) start: environment::Start,
    /// Hash of the session's state.
    pub(crate) state: String,
}

impl Slot {
    /// Opens a session.
    pub(crate) async fn open(
        plugin: Arc<Plugin>,
        pool: Arc<SessionPool>,
        label: String,
        task: String,
        seed: u64,
    ) -> Result<Opened, SessionError> {
        let slot = Arc::new(Self {
            plugin,
            pool,
            label,
            task,
            seed,
            inner: tokio::sync::Mutex::default(),
            waiting: Mutex::new(None),
            held: AtomicUsize::new(0),
        });
        let pool = Arc::clone(&slot.pool);
        let _idle = pool.note_idle_at_the_end();
        let mut inner = slot.inner.lock().await;
        let (running, started) = slot.begin(None).await?;
        readable(&started.state).map_err(SessionError::Refused)?;
        let state = state_hash(&started.state);
        inner.state.clone_from(&state);
        let start = started.start.unwrap_or(environment::Start {
            messages: Vec::new(),
            tools: Vec::new(),
        });
        slot.rest(&mut inner, running.instance);
        drop(inner);
        Ok(Opened { slot, start, state })
    }

    /// Creates an instance for the session.
    async fn begin(
        &self,
        snapshot: Option<Vec<u8>>,
    ) -> Result<(Running, SessionStart), SessionError> {
        let time = Time::for_plugin(&self.plugin);
        let mut held = self.pool.hold(time.wall).await?;
        let more = self.limit().saturating_sub(held.bytes());
        let room = self.pool.room(more, time.wall).await?;
        let seed = self.seed;
        let origin = match snapshot {
            Some(snapshot) => SessionOrigin::Restore { snapshot, seed },
            None => SessionOrigin::Open {
                task: self.task.clone(),
                seed,
            },
        };
        let (live, started) = LiveSession::begin(&self.plugin, origin, &self.label).await?;
        held.baseline = live.memory();
        let running = Running {
            instance: Instance { live, held },
            _room: room,
        };
        Ok((running, started))
    }

    /// Maximum memory that the session may use, in bytes.
    fn limit(&self) -> u64 {
        let grants = self.plugin.grants();
        if self.plugin.kind() == PluginKind::Interpreter {
            grants.programs.memory_bytes
        } else {
            grants.limits.memory_bytes
        }
    }

    /// Performs an action and logs it if it took effect. Returns its result and the hash of the state after it.
    pub(crate) async fn act(
        self: &Arc<Self>,
        act: Action,
        is_kept: impl Fn(&environment::Step) -> bool,
    ) -> Result<(Result<environment::Step, types::Error>, String), SessionError> {
        let _idle = self.pool.note_idle_at_the_end();
        let mut inner = self.inner.lock().await;
        let mut running = self.running(&mut inner).await?;
        let time = Time::for_plugin(&self.plugin);
        let StepResult { step, state } = match perform(&mut running.instance.live, &act, time).await
        {
            Ok(stepped) => stepped,
            // The memory of an instance that was stopped cannot be used any more.
            Err(SessionError::Refused(error)) => return Ok((Err(error), inner.state.clone())),
            Err(stopped) => return Err(stopped),
        };
        let step = readable(&state).and(step);
        let state = state_hash(&state);
        let took_effect = step.as_ref().is_ok_and(is_kept);
        if took_effect {
            inner.log.push(act);
            inner.state.clone_from(&state);
        }
        // A failed call must have no effect, whatever it did before it failed.
        if state == inner.state {
            self.rest(&mut inner, running.instance);
        }
        Ok((step, inner.state.clone()))
    }

    /// The state as canonical JSON.
    pub(crate) async fn state(self: &Arc<Self>) -> Result<String, SessionError> {
        let _idle = self.pool.note_idle_at_the_end();
        let mut inner = self.inner.lock().await;
        let mut running = self.running(&mut inner).await?;
        let time = Time::for_plugin(&self.plugin);
        let state = running.instance.live.state(time).await;
        self.after(&mut inner, running, state)
    }

    /// The environment's verdict.
    pub(crate) async fn verify(
        self: &Arc<Self>,
        answer: Option<&str>,
        reference: String,
    ) -> Result<types::Verdict, SessionError> {
        let _idle = self.pool.note_idle_at_the_end();
        let mut inner = self.inner.lock().await;
        let mut running = self.running(&mut inner).await?;
        let time = Time::for_plugin(&self.plugin);
        let verdict = (running.instance.live).verify(answer, reference, time);
        let verdict = verdict.await;
        self.after(&mut inner, running, verdict)
    }

    /// A complete and self-contained snapshot.
    pub(crate) async fn snapshot(self: &Arc<Self>) -> Result<Vec<u8>, SessionError> {
        let _idle = self.pool.note_idle_at_the_end();
        let mut inner = self.inner.lock().await;
        let mut running = self.running(&mut inner).await?;
        let time = Time::for_plugin(&self.plugin);
        let snapshot = running.instance.live.snapshot(time).await;
        self.after(&mut inner, running, snapshot)
    }

    /// Resets the session to an earlier snapshot. Returns the hash of that snapshot's state.
    pub(crate) async fn restore(
        self: &Arc<Self>,
        snapshot: Vec<u8>,
    ) -> Result<String, SessionError> {
        let _idle = self.pool.note_idle_at_the_end();
        let mut inner = self.inner.lock().await;
        // Its place is freed first, because it may be the only one. If the snapshot cannot be restored, the session is
        // revived as it was.
        inner.instance = None;
        self.set_waiting(None);
        let (running, started) = self.begin(Some(snapshot.clone())).await?;
        inner.snapshot = Some(snapshot);
        inner.log.clear();
        let state = state_hash(&started.state);
        inner.state.clone_from(&state);
        self.rest(&mut inner, running.instance);
        Ok(state)
    }

    /// The time since which the session has waited with an instance.
    fn waiting_since(&self) -> Option<Instant> {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Snapshots the session and frees its instance, if it has waited for `least` or longer. Returns whether it did.
    pub(crate) async fn evict(&self, least: Option<Duration>) -> bool {
        let Ok(mut inner) = self.inner.try_lock() else {
            return false;
        };
        let waited = self.waiting_since().map(|since| since.elapsed());
        if waited < least || waited.is_none() {
            return false;
        }
        let Some(mut instance) = inner.instance.take() else {
            return false;
        };
        self.set_waiting(None);
        if !inner.log.is_empty() {
            // Without a new snapshot, the session is replayed from its last one or from its origin.
            let time = Time::for_plugin(&self.plugin);
            if let Ok(snapshot) = instance.live.snapshot(time).await {
                inner.snapshot = Some(snapshot);
                inner.log.clear();
            }
        }
        drop(instance);
        self.pool.evicted.fetch_add(1, Relaxed);
        self.pool.note_idle();
        true
    }

    /// Takes the session's instance, or gives it one, and reserves the memory that it may need while it runs. The session
    /// counts as broken until the instance [rests](Self::rest) again.
    async fn running(self: &Arc<Self>, inner: &mut Inner) -> Result<Running, SessionError> {
        self.set_waiting(None);
        let Some(instance) = inner.instance.take() else {
            let running = self.revive(inner).await?;
            inner.broke = true;
            return Ok(running);
        };
        let more = self.limit().saturating_sub(instance.held.bytes());
        let wall = Time::for_plugin(&self.plugin).wall;
        match self.pool.room(more, wall).await {
            Ok(room) => {
                inner.broke = true;
                Ok(Running {
                    instance,
                    _room: room,
                })
            }
            Err(stopped) => {
                self.rest(inner, instance);
                Err(SessionError::Stopped(stopped))
            }
        }
    }

    /// Makes an instance in the session's last state.
    async fn revive(&self, inner: &Inner) -> Result<Running, SessionError> {
        let (mut running, began) = match self.begin(inner.snapshot.clone()).await {
            Ok(begun) => begun,
            Err(SessionError::Refused(error)) => {
                let what = format!("it cannot come back: {}", error_text(&error));
                return Err(SessionError::Lost(what));
            }
            Err(error) => return Err(error),
        };
        let time = Time::for_plugin(&self.plugin);
        let mut state = began.state;
        for act in &inner.log {
            let played = perform(&mut running.instance.live, act, time).await;
            state = match played {
                Ok(played) => played.state,
                // It says nothing about the session, which can be played again later.
                Err(SessionError::Stopped(stopped)) if stopped.ended.is_infrastructure() => {
                    return Err(SessionError::Stopped(stopped));
                }
                Err(why) => {
                    let what =
                        format!("a call that had worked failed when it was played again: {why}");
                    return Err(SessionError::Lost(what));
                }
            };
        }
        if state_hash(&state) != inner.state {
            return Err(SessionError::Lost(
                "it came back in another state than it had; the environment's snapshots, or its calls, are not \
                 deterministic (`rlf-host env check` says which)"
                    .into(),
            ));
        }
        let counter = if inner.broke {
            &self.pool.recovered
        } else {
            &self.pool.revived
        };
        counter.fetch_add(1, Relaxed);
        Ok(running)
    }

    fn after<T>(
        self: &Arc<Self>,
        inner: &mut Inner,
        running: Running,
        asked: Answer<T>,
    ) -> Result<T, SessionError> {
        if let Ok(_) | Err(SessionError::Refused(_)) = &asked {
            self.rest(inner, running.instance);
        }
        asked
    }

    /// Puts the instance back. Marks the session as waiting, and starts the task that evicts it after a long wait.
    fn rest(self: &Arc<Self>, inner: &mut Inner, mut instance: Instance) {
        let Instance { live, held } = &mut instance;
        self.pool.settle(held, live.memory());
        self.held.store(SessionPool::units(held.bytes()), Relaxed);
        inner.instance = Some(instance);
        inner.broke = false;
        self.set_waiting(Some(Instant::now()));
        if !std::mem::replace(&mut inner.watched, true) {
            let (slot, idle) = (Arc::downgrade(self), self.pool.idle());
            tokio::spawn(async move {
                let mut pause = idle;
                loop {
                    tokio::time::sleep(pause).await;
                    let Some(slot) = slot.upgrade() else {
                        return;
                    };
                    slot.evict(Some(idle)).await;
                    let waited = slot.waiting_since().map(|since| since.elapsed());
                    pause = idle
                        .saturating_sub(waited.unwrap_or_default())
                        .max(idle / 8);
                }
            });
        }
    }

    fn set_waiting(&self, since: Option<Instant>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}

impl Evictable for Slot {
    fn waiting_since(&self) -> Option<Instant> {
        self.waiting_since()
    }

    fn held_units(&self) -> usize {
        self.held.load(Relaxed)
    }

    fn evict(&self) -> BoxFuture<'_, bool> {
        Box::pin(self.evict(None))
    }
}

/// Identifies a state by the first 128 bits of its BLAKE3, in hexadecimal.
pub(crate) fn state_hash(state: &str) -> String {
    blake3::hash(state.as_bytes()).to_hex()[..32].to_owned()
}

/// Refuses a state that cannot be parsed: it would be lost at the end of the episode.
fn readable(state: &str) -> Result<(), types::Error> {
    match rlf_json::from_str::<serde_json::Value>(state) {
        Ok(_) => Ok(()),
        Err(error) => Err(types::Error::Internal(format!(
            "its state is no JSON that can be read: {error}"
        ))),
    }
}

async fn perform(live: &mut LiveSession, act: &Action, time: Time) -> Answer<StepResult> {
    match act.clone() {
        Action::Call {
            name,
            arguments,
            context,
        } => live.call(&name, arguments, context, time).await,
        Action::Say { text, context } => live.say(&text, context, time).await,
    }
}
