//! The native part of the Python package `rlf_host`: the sandbox, plugins, programs and environment sessions inside a
//! Python process.
//!
//! Every operation is a [`Pending`](pending::Pending). Python waits for it without holding the interpreter's lock, or
//! starts it and is called back. Structured values cross as JSON, programs and their files as strings and bytes. The
//! Python files of the package give them types, names and documentation.
//!
//! This crate must not know training, and decides nothing that another crate could decide for every caller.
//!
//! | looking for | module |
//! |---|---|
//! | the runtime and the sandbox of the process | `process` |
//! | guards against use in a forked child | `fork` |
//! | waiting for an operation, or being called back | `pending` |
//! | the order of the operations of one notebook or session | `serial` |
//! | waiting for room without spending a deadline | `room` |
//! | handlers of signals that other libraries replace | `signals` |
//! | the end of the Python interpreter | `shutdown` |
//! | errors as Python exceptions | `error` |
//! | loaded plugins: tools, rewards, programs | `plugins` |
//! | one call of a tool | `call` |
//! | one program, its limits and its report | `program` |
//! | notebooks | `notebook` |
//! | sessions of environments | `session` |

// PyO3 passes owned values where Python's cannot be borrowed.
#![allow(clippy::needless_pass_by_value)]

mod call;
mod error;
mod fork;
mod notebook;
mod pending;
mod plugins;
mod process;
mod program;
mod room;
mod serial;
mod session;
mod shutdown;
mod signals;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<error::Error>())?;
    module.add("LoadError", py.get_type::<error::LoadError>())?;
    module.add("GradeError", py.get_type::<error::GradeError>())?;
    module.add("SessionError", py.get_type::<error::SessionError>())?;
    module.add("Unavailable", py.get_type::<error::Unavailable>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(process::start, module)?)?;
    module.add_function(wrap_pyfunction!(fork::check_not_forked, module)?)?;
    module.add_function(wrap_pyfunction!(shutdown::close, module)?)?;
    module.add_function(wrap_pyfunction!(plugins::load, module)?)?;
    module.add_function(wrap_pyfunction!(plugins::load_environment, module)?)?;
    module.add_function(wrap_pyfunction!(error::is_json, module)?)?;
    module.add_function(wrap_pyfunction!(process::describe, module)?)?;
    module.add_class::<pending::Pending>()?;
    module.add_class::<pending::Started>()?;
    module.add_class::<plugins::Plugins>()?;
    module.add_class::<notebook::Notebook>()?;
    module.add_class::<session::Session>()?;
    Ok(())
}
