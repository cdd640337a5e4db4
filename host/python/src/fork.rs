//! Guards against use in a forked child of what its parent started.
//!
//! The child inherits neither the threads of its parent nor locks that can be trusted. So every use checks the process first, and
//! values of the parent are forgotten, not dropped.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Id of the process that starts, or started, the sandbox. 0: none yet.
static STARTED_BY: AtomicU32 = AtomicU32::new(0);

/// Notes that this process starts the sandbox.
pub(crate) fn starts_here() {
    STARTED_BY.store(std::process::id(), SeqCst);
}

/// Fails in a child that was forked after its parent started the sandbox.
#[pyfunction]
pub(crate) fn check_not_forked() -> PyResult<()> {
    let by = STARTED_BY.load(SeqCst);
    if by == 0 || by == std::process::id() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "this process was forked from one that had used rlf_host, and has none of its threads; use rlf_host first in the \
         child, or start the child afresh: multiprocessing.get_context(\"spawn\")",
    ))
}

/// A value that only the process that made it may use and drop.
pub(crate) struct OfProcess<T> {
    value: Option<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value) }
    }

    pub(crate) fn get(&self) -> PyResult<&T> {
        check_not_forked()?;
        (self.value.as_ref()).ok_or_else(|| PyRuntimeError::new_err("it is gone"))
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if check_not_forked().is_err() {
            std::mem::forget(self.value.take());
        }
    }
}
