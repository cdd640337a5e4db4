//! The interpreter that runs what the forge makes in Python.

use std::path::PathBuf;

use anyhow::anyhow;
use rlf_interpreters::interpreter::{Interpreter, Interpreters};
use rlf_plugins::manifest::PluginKind;

use crate::operator::Operator;
use crate::plugins::sources;
use crate::progress::Progress;

/// Name of the interpreter's plugin, which is that of its language.
const PYTHON: &str = "python";

/// Loads the interpreter of Python, with the grants of the configuration. `added` is a folder of plugins.
pub(super) fn python(added: &[PathBuf], operator: &Operator) -> anyhow::Result<Interpreter> {
    let sources = sources(added)?;
    let sandbox = sources.sandbox(&operator.sandbox)?;
    let is_python = |name: &str| name == PYTHON;
    let grants = &operator.grants_by_name;
    let registry = sources.load_where(grants, &sandbox, &Progress::new(), is_python);
    if let Some(interpreter) = Interpreters::new(&registry).get(PYTHON) {
        return Ok(interpreter.clone());
    }
    Err(match registry.problem_of(PYTHON) {
        Some(problem) => anyhow!("{problem}"),
        None => anyhow!(
            "no plugin of {} runs {PYTHON}{}",
            sources.display(),
            registry.explain_missing(PYTHON, PluginKind::Interpreter)
        ),
    })
}
