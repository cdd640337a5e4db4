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
//! | the runtime and the sandbox of the process, and what a forked child may do | `process` |
//! | waiting for an operation, or being called back | `pending` |
//! | errors as Python exceptions | `error` |
//! | loaded plugins: tools, rewards, programs | `plugins` |
//! | notebooks | `notebook` |
//! | sessions of environments | `session` |

// PyO3 passes owned values where Python's cannot be borrowed.
#![allow(clippy::needless_pass_by_value)]

mod error;
mod notebook;
mod pending;
mod plugins;
mod process;
mod program;
mod session;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<error::Error>())?;
    module.add("LoadError", py.get_type::<error::LoadError>())?;
    module.add("SessionError", py.get_type::<error::SessionError>())?;
    module.add("Unavailable", py.get_type::<error::Unavailable>())?;
    module.add_function(wrap_pyfunction!(process::start, module)?)?;
    module.add_function(wrap_pyfunction!(process::describe, module)?)?;
    module.add_class::<pending::Pending>()?;
    module.add_class::<pending::Started>()?;
    module.add_class::<plugins::Plugins>()?;
    module.add_class::<notebook::Notebook>()?;
    module.add_class::<session::Session>()?;
    Ok(())
}
