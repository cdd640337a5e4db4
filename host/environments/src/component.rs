//! A session in an instance of its own component. One task owns the instance and answers requests in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rlf_plugins::bindings::{environment, types};
use rlf_plugins::plugin::Plugin;
use rlf_sandbox::{CallSpec, State, Stopped};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::error::SessionError;
use crate::loader::EnvironmentIndices;
use crate::request::{
    Answer, LIFETIME, SessionOrigin, SessionStart, StepResult, Time, in_time, instance_ended,
};

/// The channel for the answer to a request.
type Reply<T> = oneshot::Sender<Result<T, types::Error>>;

/// A request to a session.
enum Request {
    Call {
        name: String,
        arguments: String,
        context: types::CallContext,
        answer: Reply<StepResult>,
    },
    Say {
        text: String,
        context: types::CallContext,
        answer: Reply<StepResult>,
    },
    State {
        answer: Reply<String>,
    },
    Snapshot {
        answer: Reply<Vec<u8>>,
    },
    Verify {
        answered: Option<String>,
        reference: String,
        answer: Reply<types::Verdict>,
    },
}

/// A live session. Dropping it frees its instance.
#[derive(Debug)]
pub(crate) struct ComponentSession {
    requests: mpsc::Sender<Request>,
    guest: Option<JoinHandle<Result<(), Stopped>>>,
    memory: Arc<AtomicU64>,
}

impl Drop for ComponentSession {
    fn drop(&mut self) {
        if let Some(guest) = &self.guest {
            guest.abort();
        }
    }
}

impl ComponentSession {
    /// Creates an instance and starts the session in it.
    pub(crate) async fn begin(
        plugin: &Arc<Plugin>,
        origin: SessionOrigin,
        label: &str,
        time: Time,
    ) -> Answer<(Self, SessionStart)> {
        let Some(indices) = plugin.exports::<EnvironmentIndices>() else {
            let what = format!("plugin `{}` is no environment", plugin.name());
            return Err(Stopped::unavailable(what).into());
        };
        let indices = Arc::clone(indices);
        let mut limits = plugin.template().limits().clone();
        limits.wall = LIFETIME;
        let spec = CallSpec {
            label: label.to_owned(),
            seed: origin.seed(),
            limits: Some(limits),
            virtual_time: Some(time.budget),
            ..CallSpec::default()
        };
        let (requests, inbox) = mpsc::channel(1);
        let (begun, has_begun) = oneshot::channel();
        let memory = Arc::new(AtomicU64::new(0));
        let (owner, used) = (Arc::clone(plugin), Arc::clone(&memory));
        let guest = tokio::spawn(async move {
            let printer = Arc::clone(&owner);
            let report = owner
                .template()
                .call(spec, move |store, instance| {
                    Box::pin(async move {
                        let guest = indices.load(&mut *store, &instance)?;
                        let session = match start(store, &guest, origin).await? {
                            Ok((session, started)) => {
                                used.store(store.data().memory_bytes(), Relaxed);
                                let _ = begun.send(Ok(started));
                                session
                            }
                            Err(error) => {
                                let _ = begun.send(Err(error));
                                return Ok(());
                            }
                        };
                        let budget = time.budget;
                        serve(store, &guest, session, inbox, budget, &used, &printer).await
                    })
                })
                .await;
            owner.finish(report)
        });
        let mut session = Self {
            requests,
            guest: Some(guest),
            memory,
        };
        match in_time(time, has_begun).await? {
            Some(Ok(started)) => Ok((session, started)),
            Some(Err(error)) => Err(SessionError::Refused(error)),
            None => Err(session.end().await.into()),
        }
    }

    /// Maximum memory that the instance has used so far, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.load(Relaxed)
    }

    pub(crate) async fn call(
        &mut self,
        name: String,
        arguments: String,
        context: types::CallContext,
        time: Time,
    ) -> Answer<StepResult> {
        let make = |answer| Request::Call {
            name,
            arguments,
            context,
            answer,
        };
        self.ask(make, time).await
    }

    pub(crate) async fn say(
        &mut self,
        text: String,
        context: types::CallContext,
        time: Time,
    ) -> Answer<StepResult> {
        let make = |answer| Request::Say {
            text,
            context,
            answer,
        };
        self.ask(make, time).await
    }

    pub(crate) async fn state(&mut self, time: Time) -> Answer<String> {
        self.ask(|answer| Request::State { answer }, time).await
    }

    pub(crate) async fn snapshot(&mut self, time: Time) -> Answer<Vec<u8>> {
        self.ask(|answer| Request::Snapshot { answer }, time).await
    }

    pub(crate) async fn verify(
        &mut self,
        answered: Option<String>,
        reference: String,
        time: Time,
    ) -> Answer<types::Verdict> {
        let make = |answer| Request::Verify {
            answered,
            reference,
            answer,
        };
        self.ask(make, time).await
    }

    async fn ask<T>(&mut self, make: impl FnOnce(Reply<T>) -> Request, time: Time) -> Answer<T> {
        let (answer, answered) = oneshot::channel();
        if self.requests.send(make(answer)).await.is_ok() {
            match in_time(time, answered).await {
                Ok(Some(answer)) => return answer.map_err(SessionError::Refused),
                Ok(None) => {}
                Err(stopped) => {
                    if let Some(guest) = self.guest.take() {
                        guest.abort();
                    }
                    return Err(stopped.into());
                }
            }
        }
        Err(self.end().await.into())
    }

    /// The reason why no answer came.
    async fn end(&mut self) -> Stopped {
        let Some(guest) = self.guest.take() else {
            return instance_ended();
        };
        match guest.await {
            Ok(ended) => ended.err().unwrap_or_else(instance_ended),
            Err(_) => instance_ended(),
        }
    }
}

async fn start(
    store: &mut Store<State>,
    guest: &environment::Guest,
    origin: SessionOrigin,
) -> wasmtime::Result<Result<(ResourceAny, SessionStart), types::Error>> {
    let sessions = guest.session();
    let (session, start) = match origin {
        SessionOrigin::Open { task, seed } => {
            match sessions.call_open(&mut *store, &task, seed).await? {
                Ok((session, start)) => (session, Some(start)),
                Err(error) => return Ok(Err(error)),
            }
        }
        SessionOrigin::Restore { snapshot, .. } => {
            match sessions.call_restore(&mut *store, &snapshot).await? {
                Ok(session) => (session, None),
                Err(error) => return Ok(Err(error)),
            }
        }
    };
    let state = sessions.call_state(&mut *store, session).await?;
    Ok(Ok((session, SessionStart { start, state })))
}

/// Answers requests until all senders are dropped.
async fn serve(
    store: &mut Store<State>,
    guest: &environment::Guest,
    session: ResourceAny,
    mut inbox: mpsc::Receiver<Request>,
    budget: Duration,
    memory: &AtomicU64,
    plugin: &Plugin,
) -> wasmtime::Result<()> {
    let sessions = guest.session();
    loop {
        let next = async move {
            let request = inbox.recv().await;
            (request, inbox)
        };
        let (Some(request), rest) = store.data().outside(next).await else {
            return session.resource_drop_async(store).await;
        };
        inbox = rest;
        store.data().renew(budget, budget);
        let note = |store: &Store<State>| {
            memory.store(store.data().memory_bytes(), Relaxed);
            let [stdout, stderr] = store.data().take_output();
            plugin.keep_printed(stdout.captured(), stderr.captured());
        };
        match request {
            Request::Call {
                name,
                arguments,
                context,
                answer,
            } => {
                let step = sessions
                    .call_call(&mut *store, session, &name, &arguments, &context)
                    .await?;
                let stepped = stepped(store, guest, session, step).await?;
                note(store);
                let _ = answer.send(Ok(stepped));
            }
            Request::Say {
                text,
                context,
                answer,
            } => {
                let step = sessions
                    .call_say(&mut *store, session, &text, &context)
                    .await?;
                let stepped = stepped(store, guest, session, step).await?;
                note(store);
                let _ = answer.send(Ok(stepped));
            }
            Request::State { answer } => {
                let state = sessions.call_state(&mut *store, session).await?;
                note(store);
                let _ = answer.send(Ok(state));
            }
            Request::Snapshot { answer } => {
                let snapshot = sessions.call_snapshot(&mut *store, session).await?;
                note(store);
                let _ = answer.send(snapshot);
            }
            Request::Verify {
                answered,
                reference,
                answer,
            } => {
                let verdict = sessions
                    .call_verify(&mut *store, session, answered.as_deref(), &reference)
                    .await?;
                note(store);
                let _ = answer.send(verdict);
            }
        }
    }
}

/// Adds the state after a step to the step's result. The state is needed after an error as well: it shows whether the
/// step had an effect.
async fn stepped(
    store: &mut Store<State>,
    guest: &environment::Guest,
    session: ResourceAny,
    step: Result<environment::Step, types::Error>,
) -> wasmtime::Result<StepResult> {
    let state = guest.session().call_state(&mut *store, session).await?;
    Ok(StepResult { step, state })
}
