//! Notebooks: programs whose cells share a namespace.

use pyo3::prelude::*;
use rlf_interpreters::notebook::Notebook as OpenNotebook;

use crate::error::Failure;
use crate::fork::OfProcess;
use crate::pending::Pending;
use crate::program::{Limits, cell, fetched};
use crate::room::NotebookPlace;
use crate::serial::Serial;

/// An open notebook. Its cells run one after the other, in the order in which they were asked for.
#[pyclass(frozen)]
pub(crate) struct Notebook(OfProcess<Serial<Open>>);

struct Open {
    notebook: OpenNotebook,
    _place: NotebookPlace,
}

impl Notebook {
    pub(crate) fn new(notebook: OpenNotebook, place: NotebookPlace) -> Self {
        let open = Open {
            notebook,
            _place: place,
        };
        Self(OfProcess::new(Serial::new("notebook", open)))
    }
}

#[pymethods]
impl Notebook {
    fn run(&self, code: String, limits: Limits) -> PyResult<Pending> {
        let limits = limits.try_into()?;
        let turn = self.0.get()?.turn();
        let run = async move {
            let mut active = turn.begin().await?;
            let report = active.value()?.notebook.execute(&code, limits).await;
            match report
                .as_ref()
                .ok()
                .and_then(|report| report.stopped.as_ref())
            {
                Some(stopped) => active.end(&format!("a cell was stopped: {stopped}")),
                None => active.done(),
            }
            Ok::<_, Failure>(report?)
        };
        Ok(Pending::new(run, |py, report| cell(py, &report)))
    }

    fn fetch(&self, paths: Vec<String>) -> PyResult<Pending> {
        let turn = self.0.get()?.turn();
        let fetch = async move {
            let mut active = turn.begin().await?;
            let files = active.value()?.notebook.fetch(&paths).await;
            active.done();
            Ok::<_, Failure>(files?)
        };
        Ok(Pending::new(fetch, |py, files| {
            Ok(fetched(py, &files)?.into_any().unbind())
        }))
    }

    /// Frees the notebook's instance and its place, once the cells before have ended.
    fn close(&self) -> PyResult<Pending> {
        let turn = self.0.get()?.turn();
        let close = async move {
            turn.close().await;
            Ok::<_, Failure>(())
        };
        Ok(Pending::new(close, |py, ()| Ok(py.None())))
    }
}
