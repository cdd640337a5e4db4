//! Notebooks: programs whose cells share a namespace.

use std::sync::Arc;

use pyo3::prelude::*;
use rlf_interpreters::notebook::Notebook as OpenNotebook;
use tokio::sync::Mutex;

use crate::error::Failure;
use crate::pending::Pending;
use crate::process::OfProcess;
use crate::program::{Limits, cell, fetched};

type Shared = Arc<Mutex<Option<OpenNotebook>>>;

/// An open notebook. Its cells run one after the other, in the order in which they were asked for.
#[pyclass(frozen)]
pub(crate) struct Notebook(OfProcess<Shared>);

impl Notebook {
    pub(crate) fn new(notebook: OpenNotebook) -> Self {
        Self(OfProcess::new(Arc::new(Mutex::new(Some(notebook)))))
    }
}

fn closed() -> Failure {
    Failure::Session("the notebook is closed".into())
}

#[pymethods]
impl Notebook {
    fn run(&self, code: String, limits: Limits) -> PyResult<Pending> {
        let notebook = Arc::clone(self.0.get()?);
        let limits = limits.try_into()?;
        let run = async move {
            let mut notebook = notebook.lock().await;
            let notebook = notebook.as_mut().ok_or_else(closed)?;
            Ok::<_, Failure>(notebook.execute(&code, limits).await?)
        };
        Ok(Pending::new(run, |py, report| cell(py, &report)))
    }

    fn fetch(&self, paths: Vec<String>) -> PyResult<Pending> {
        let notebook = Arc::clone(self.0.get()?);
        let fetch = async move {
            let mut notebook = notebook.lock().await;
            let notebook = notebook.as_mut().ok_or_else(closed)?;
            Ok::<_, Failure>(notebook.fetch(&paths).await?)
        };
        Ok(Pending::new(fetch, |py, files| {
            Ok(fetched(py, &files)?.into_any().unbind())
        }))
    }

    /// Frees its instance, once the cell under way has ended.
    fn close(&self) -> PyResult<Pending> {
        let notebook = Arc::clone(self.0.get()?);
        let close = async move {
            drop(notebook.lock().await.take());
            Ok::<_, Failure>(())
        };
        Ok(Pending::new(close, |py, ()| Ok(py.None())))
    }
}
