//! Notebooks: programs whose cells share a namespace.

use std::sync::Arc;

use pyo3::prelude::*;
use rlf_interpreters::notebook::Notebook as OpenNotebook;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::error::Failure;
use crate::fork::OfProcess;
use crate::pending::Pending;
use crate::program::{Limits, cell, fetched};
use crate::queue::Queue;
use crate::room::NotebookPlace;

/// An open notebook. Its cells run one after the other, in the order in which they were asked for.
#[pyclass(frozen)]
pub(crate) struct Notebook(OfProcess<Shared>);

struct Shared {
    state: Arc<Mutex<State>>,
    queue: Queue,
}

enum State {
    Open {
        notebook: OpenNotebook,
        _place: NotebookPlace,
    },
    /// It takes no more cells, for this reason.
    Over(String),
}

impl State {
    fn notebook(&mut self) -> Result<&mut OpenNotebook, Failure> {
        match self {
            Self::Open { notebook, .. } => Ok(notebook),
            Self::Over(reason) => Err(Failure::Session(reason.clone())),
        }
    }
}

impl Notebook {
    pub(crate) fn new(notebook: OpenNotebook, place: NotebookPlace) -> Self {
        let state = State::Open {
            notebook,
            _place: place,
        };
        Self(OfProcess::new(Shared {
            state: Arc::new(Mutex::new(state)),
            queue: Queue::default(),
        }))
    }
}

/// Ends the notebook if the cell under way is cancelled, because that cell would go on in it.
struct EndIfCancelled(Option<OwnedMutexGuard<State>>);

impl EndIfCancelled {
    fn notebook(&mut self) -> Result<&mut OpenNotebook, Failure> {
        let state = self.0.as_mut();
        state
            .ok_or_else(|| Failure::Other("the cell is over".into()))?
            .notebook()
    }

    fn completed(mut self) -> Option<OwnedMutexGuard<State>> {
        self.0.take()
    }
}

impl Drop for EndIfCancelled {
    fn drop(&mut self) {
        if let Some(state) = &mut self.0 {
            **state = State::Over("the notebook is over, because a cell was cancelled".to_owned());
        }
    }
}

#[pymethods]
impl Notebook {
    fn run(&self, code: String, limits: Limits) -> PyResult<Pending> {
        let shared = self.0.get()?;
        let (state, mut place) = (Arc::clone(&shared.state), shared.queue.place());
        let limits = limits.try_into()?;
        let run = async move {
            place.reached().await;
            let mut state = EndIfCancelled(Some(state.lock_owned().await));
            let report = state.notebook()?.execute(&code, limits).await;
            let state = state.completed();
            let report = report?;
            if let (Some(stopped), Some(mut state)) = (&report.stopped, state) {
                *state = State::Over(format!(
                    "the notebook is over, because a cell was stopped: {stopped}"
                ));
            }
            Ok::<_, Failure>(report)
        };
        Ok(Pending::new(run, |py, report| cell(py, &report)))
    }

    fn fetch(&self, paths: Vec<String>) -> PyResult<Pending> {
        let shared = self.0.get()?;
        let (state, mut place) = (Arc::clone(&shared.state), shared.queue.place());
        let fetch = async move {
            place.reached().await;
            Ok::<_, Failure>(state.lock().await.notebook()?.fetch(&paths).await?)
        };
        Ok(Pending::new(fetch, |py, files| {
            Ok(fetched(py, &files)?.into_any().unbind())
        }))
    }

    /// Frees its instance and its place, once the cells before have ended.
    fn close(&self) -> PyResult<Pending> {
        let shared = self.0.get()?;
        let (state, mut place) = (Arc::clone(&shared.state), shared.queue.place());
        let close = async move {
            place.reached().await;
            *state.lock().await = State::Over("the notebook is closed".to_owned());
            Ok::<_, Failure>(())
        };
        Ok(Pending::new(close, |py, ()| Ok(py.None())))
    }
}
