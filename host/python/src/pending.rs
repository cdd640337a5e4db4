//! Operations that Python waits for, or starts and is called back by.

use std::sync::Mutex;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rlf_sandbox::BoxFuture;
use tokio::task::AbortHandle;

use crate::error::Failure;
use crate::fork::OfProcess;
use crate::process::process;
use crate::shutdown::{Attaching, is_closing};

/// Interval between checks for Ctrl-C while a thread waits.
const SIGNALS: Duration = Duration::from_millis(100);

/// Makes the result of an operation into a Python value. Called with the interpreter's lock held.
pub(crate) type Answer = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;
type Operation = BoxFuture<'static, Result<Answer, Failure>>;

/// An operation that has not begun. It runs once: by `wait` or by `start`.
#[pyclass(frozen)]
pub(crate) struct Pending(OfProcess<Mutex<Option<Operation>>>);

impl Pending {
    /// An operation whose result `answer` makes into a Python value.
    pub(crate) fn new<T: Send + 'static, E: Into<Failure>>(
        operation: impl Future<Output = Result<T, E>> + Send + 'static,
        answer: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let operation: Operation = Box::pin(async move {
            match operation.await {
                Ok(value) => Ok(Box::new(move |py: Python<'_>| answer(py, value)) as Answer),
                Err(error) => Err(error.into()),
            }
        });
        Self(OfProcess::new(Mutex::new(Some(operation))))
    }

    /// An operation whose result is a text.
    pub(crate) fn text<E: Into<Failure>>(
        operation: impl Future<Output = Result<String, E>> + Send + 'static,
    ) -> Self {
        Self::new(operation, |py, text| {
            Ok(text.into_pyobject(py)?.into_any().unbind())
        })
    }

    fn take(&self) -> PyResult<Operation> {
        let mut operation = (self.0.get()?.lock())
            .map_err(|_| PyRuntimeError::new_err("another thread broke this operation"))?;
        (operation.take()).ok_or_else(|| PyRuntimeError::new_err("this operation has run already"))
    }
}

#[pymethods]
impl Pending {
    /// Runs the operation and returns its result. Other Python threads go on meanwhile. Ctrl-C cancels it.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut operation = self.take()?;
        let process = process()?;
        process.signals.keep();
        let handle = process.runtime.handle();
        let answer = loop {
            let (outcome, attaching) = py.detach(|| {
                let wait = async { tokio::time::timeout(SIGNALS, &mut operation).await };
                (handle.block_on(wait), Attaching::begin_or_stop())
            });
            drop(attaching);
            match outcome {
                Ok(answer) => break answer?,
                Err(_) => py.check_signals()?,
            }
        };
        answer(py)
    }

    /// Starts the operation. It ends with the call `done(result, None)` or `done(None, error)`, on the one thread that
    /// makes all such calls.
    fn start(&self, done: Py<PyAny>) -> PyResult<Started> {
        if is_closing() {
            return Err(PyRuntimeError::new_err(
                "the interpreter is shutting down, so no operation can be started",
            ));
        }
        let operation = self.take()?;
        let process = process()?;
        process.signals.keep();
        let task = process.runtime.spawn(async move {
            let outcome = operation.await;
            process.answers.deliver(Box::new(move |py| {
                let outcome = outcome.map_err(PyErr::from).and_then(|answer| answer(py));
                let called = match outcome {
                    Ok(value) => done.call1(py, (value, py.None())),
                    Err(error) => done.call1(py, (py.None(), error.into_value(py))),
                };
                if let Err(error) = called {
                    error.write_unraisable(py, Some(done.bind(py)));
                }
            }));
        });
        Ok(Started(OfProcess::new(task.abort_handle())))
    }
}

/// An operation under way.
#[pyclass(frozen)]
pub(crate) struct Started(OfProcess<AbortHandle>);

#[pymethods]
impl Started {
    /// Cancels the operation. Its callback is not called, unless it has ended already.
    fn cancel(&self) {
        // In a forked child the operation does not exist.
        if let Ok(task) = self.0.get() {
            task.abort();
        }
    }
}
