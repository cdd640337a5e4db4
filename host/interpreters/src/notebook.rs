//! Notebooks: each cell finds the variables and files of the cells before it.
//!
//! A notebook keeps an instance, and a place among programs, from its opening until it is dropped. Each cell has its
//! own limits. A cell that is stopped ends the notebook, because no cell can continue with the memory of a stopped one.

use std::time::Duration;

use rlf_plugins::bindings::{code, interpreter, types};
use rlf_plugins::programs::{ProgramGrants, ProgramLimits};
use rlf_sandbox::{BoxFuture, CallReport, Output, State, Stopped};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::interpreter::{Interpreter, ProgramOptions, call_spec, with_names_of_program_limits};
use crate::language::indices;
use crate::program::{Compiled, File, ProgramError, ProgramOutcome, check_given, fetched_limit};

/// A request to open a notebook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotebookRequest {
    /// Files that exist when it starts.
    pub files: Vec<File>,
    /// Modules that cells can import, in addition to the library.
    pub modules: Vec<Compiled>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Limits of memory, output and files for all cells together. The time limit of the grants applies to each cell.
    pub limits: ProgramLimits,
}

impl NotebookRequest {
    fn check(&self, grants: &ProgramGrants) -> Result<(), ProgramError> {
        let files = self.files.iter().map(|file| file.data.len());
        let modules = self.modules.iter().map(|module| module.data.len());
        check_given(grants, files.chain(modules).sum::<usize>() as u64)
    }
}

/// Rich output with its media type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Display {
    /// The media type, such as `text/html`.
    pub media_type: String,
    /// The data: text as UTF-8, images as they are.
    pub data: Vec<u8>,
}

/// The report of a cell.
#[derive(Debug, Clone)]
pub struct CellReport {
    /// The end of the cell; `None` if it was stopped.
    pub outcome: Option<ProgramOutcome>,
    /// The reason why the cell and its notebook were stopped, if they were.
    pub stopped: Option<Stopped>,
    /// Value of a trailing expression, as text.
    pub value: Option<String>,
    /// Rich output besides that value, in order.
    pub displays: Vec<Display>,
    /// Standard output.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
    /// CPU time; zero if the cell was stopped.
    pub cpu: Duration,
    /// Time that counts against the limit: CPU time or virtual time, whichever is more. Zero if the cell was stopped.
    pub time: Duration,
    /// Maximum memory that the notebook has used so far, in bytes; 0 if the cell was stopped.
    pub memory: u64,
}

impl CellReport {
    fn stopped(stopped: Stopped, [stdout, stderr]: [Output; 2]) -> Self {
        Self {
            outcome: None,
            stopped: Some(stopped),
            value: None,
            displays: Vec::new(),
            stdout,
            stderr,
            cpu: Duration::ZERO,
            time: Duration::ZERO,
            memory: 0,
        }
    }
}

/// An open notebook. Dropping it frees its instance.
#[derive(Debug)]
pub struct Notebook {
    requests: mpsc::Sender<Request>,
    guest: Option<JoinHandle<CallReport<()>>>,
    grants: ProgramGrants,
    limits: code::Limits,
}

enum Request {
    Cell {
        code: String,
        time: Duration,
        limits: code::Limits,
        answer: oneshot::Sender<Result<Executed, types::Error>>,
    },
    Fetch {
        paths: Vec<String>,
        time: Duration,
        answer: oneshot::Sender<Vec<code::File>>,
    },
}

/// A cell that was not stopped.
struct Executed {
    cell: interpreter::Cell,
    printed: [Output; 2],
    cpu: Duration,
    virtual_time: Duration,
    memory: u64,
}

impl Drop for Notebook {
    fn drop(&mut self) {
        if let Some(guest) = &self.guest {
            guest.abort();
        }
    }
}

impl Interpreter {
    /// Opens a notebook. It lasts until `spec.deadline`, or as long as the grants allow for a run.
    pub fn open_notebook(
        &self,
        request: NotebookRequest,
        spec: ProgramOptions,
    ) -> BoxFuture<'_, Result<Notebook, ProgramError>> {
        Box::pin(async move {
            if !self.language().sessions {
                return Err(ProgramError::NotFound(format!(
                    "there are no notebooks in {}",
                    self.language().id
                )));
            }
            let plugin = self.serving();
            let indices = indices(&plugin)?;
            let grants = plugin.grants().programs.clone();
            request.check(&grants)?;
            let limits = request.limits.into_guest(&grants);
            let call = call_spec(&plugin, &request.limits, request.seed, spec);
            let language = self.language().id.clone();
            let (requests, inbox) = mpsc::channel(1);
            let (opened, is_open) = oneshot::channel();
            let guest = tokio::spawn(async move {
                plugin
                    .template()
                    .call(call, move |store, instance| {
                        Box::pin(async move {
                            let guest = indices.load(&mut *store, &instance)?;
                            let files: Vec<code::File> =
                                request.files.into_iter().map(Into::into).collect();
                            let modules: Vec<code::Compiled> =
                                request.modules.into_iter().map(Into::into).collect();
                            let sessions = guest.session();
                            let session = sessions
                                .call_open(&mut *store, &language, &files, &modules, request.seed)
                                .await?;
                            let session = match session {
                                Ok(session) => session,
                                Err(error) => {
                                    let _ = opened.send(Err(error));
                                    return Ok(());
                                }
                            };
                            let _ = opened.send(Ok(()));
                            serve(store, &guest, session, inbox).await
                        })
                    })
                    .await
            });
            let mut notebook = Notebook {
                requests,
                guest: Some(guest),
                grants,
                limits,
            };
            match is_open.await {
                Ok(Ok(())) => Ok(notebook),
                Ok(Err(error)) => Err(ProgramError::from_guest(error)),
                Err(_) => Err(ProgramError::from_stopped(notebook.end().await.0)),
            }
        })
    }
}

/// Answers requests until all senders are dropped.
async fn serve(
    store: &mut Store<State>,
    guest: &interpreter::Guest,
    session: ResourceAny,
    mut inbox: mpsc::Receiver<Request>,
) -> wasmtime::Result<()> {
    let sessions = guest.session();
    loop {
        let next = store.data().outside(next(inbox)).await;
        let (Some(request), rest) = next else {
            return session.resource_drop_async(store).await;
        };
        inbox = rest;
        match request {
            Request::Cell {
                code,
                time,
                limits,
                answer,
            } => {
                store.data().renew(time, time);
                let cell = sessions
                    .call_execute(&mut *store, session, &code, limits)
                    .await?;
                let printed = store.data().take_output();
                let (cpu, virtual_time) = store.data().used();
                let memory = store.data().memory_bytes();
                let _ = answer.send(cell.map(|cell| Executed {
                    cell,
                    printed,
                    cpu,
                    virtual_time,
                    memory,
                }));
            }
            Request::Fetch {
                paths,
                time,
                answer,
            } => {
                store.data().renew(time, time);
                let files = sessions.call_fetch(&mut *store, session, &paths).await?;
                let _ = answer.send(files);
            }
        }
    }
}

/// Receives the next request. Returns the receiver as well, for later requests.
async fn next(mut inbox: mpsc::Receiver<Request>) -> (Option<Request>, mpsc::Receiver<Request>) {
    (inbox.recv().await, inbox)
}

impl Notebook {
    /// Runs a cell. After a cell was stopped, all later ones are reported as stopped. An error describes a mistake in
    /// the request.
    pub fn execute<'a>(
        &'a mut self,
        code: &'a str,
        limits: ProgramLimits,
    ) -> BoxFuture<'a, Result<CellReport, ProgramError>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let time = self.grants.time(&limits);
            let request = Request::Cell {
                code: code.to_owned(),
                time,
                limits: code::Limits {
                    wall_ms: u32::try_from(time.as_millis()).unwrap_or(u32::MAX),
                    ..self.limits
                },
                answer,
            };
            if self.requests.send(request).await.is_ok() {
                match answered.await {
                    Ok(Ok(executed)) => {
                        let cell = executed.cell;
                        let [stdout, stderr] = executed.printed;
                        let displays = cell.displays.into_iter().map(|blob| Display {
                            media_type: blob.media_type,
                            data: blob.data,
                        });
                        return Ok(CellReport {
                            outcome: Some(cell.outcome.into()),
                            stopped: None,
                            value: cell.value,
                            displays: displays.collect(),
                            stdout,
                            stderr,
                            cpu: executed.cpu,
                            time: executed.cpu.max(executed.virtual_time),
                            memory: executed.memory,
                        });
                    }
                    Ok(Err(error)) => return Err(ProgramError::from_guest(error)),
                    Err(_) => {}
                }
            }
            let (stopped, printed) = self.end().await;
            Ok(CellReport::stopped(stopped, printed))
        })
    }

    /// Fetches files. Missing files are left out. Fails if the notebook was stopped, or if the files exceed the limit.
    pub fn fetch<'a>(
        &'a mut self,
        paths: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<File>, ProgramError>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let (paths, time) = (paths.to_vec(), self.grants.time);
            let request = Request::Fetch {
                paths,
                time,
                answer,
            };
            let _ = self.requests.send(request).await;
            let Ok(files) = answered.await else {
                return Err(ProgramError::from_stopped(self.end().await.0));
            };
            let bytes: u64 = files.iter().map(|file| file.data.len() as u64).sum();
            match fetched_limit(&self.grants, bytes, &ProgramLimits::default()) {
                None => Ok(files.into_iter().map(Into::into).collect()),
                Some(limit) => Err(ProgramError::Exhausted(format!(
                    "the files that were asked for are too large together ({limit})"
                ))),
            }
        })
    }

    /// The reason why no answer came, and the output until then.
    async fn end(&mut self) -> (Stopped, [Output; 2]) {
        let gone = || Stopped::unavailable("the notebook is over");
        let Some(guest) = self.guest.take() else {
            return (gone(), Default::default());
        };
        match guest.await {
            Ok(report) => (
                report
                    .outcome
                    .err()
                    .map_or_else(gone, with_names_of_program_limits),
                [report.stdout, report.stderr],
            ),
            Err(_) => (gone(), Default::default()),
        }
    }
}
