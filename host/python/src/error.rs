//! Errors as Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyLookupError, PyValueError};
use pyo3::prelude::*;
use rlf_environments::error::OpenError;
use rlf_environments::error::SessionError as SessionFailure;
use rlf_environments::snapshot::SnapshotError;
use rlf_interpreters::program::ProgramError;

create_exception!(
    rlf_host,
    Error,
    PyException,
    "The base class of the errors of rlf_host."
);
create_exception!(
    rlf_host,
    LoadError,
    Error,
    "A plugin, or the sandbox itself, could not be loaded."
);
create_exception!(
    rlf_host,
    SessionError,
    Error,
    "An operation on an environment session or a notebook failed."
);
create_exception!(
    rlf_host,
    Unavailable,
    Error,
    "An infrastructure failure: the machine had no room or no time. Whatever was graded here must be left out, never \
     scored 0."
);
create_exception!(
    rlf_host,
    GradeError,
    Error,
    "A reward could not grade an attempt. The attempt must be left out, never scored 0."
);

/// An error on its way to Python. It is turned into an exception where the interpreter's lock is held.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The caller gave a wrong value: `ValueError`.
    Value(String),
    /// There is nothing of this name: `LookupError`.
    Lookup(String),
    /// [`LoadError`].
    Load(String),
    /// [`SessionError`].
    Session(String),
    /// [`Unavailable`].
    Unavailable(String),
    /// Everything else: [`Error`].
    Other(String),
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Value(text) => PyValueError::new_err(text),
            Failure::Lookup(text) => PyLookupError::new_err(text),
            Failure::Load(text) => LoadError::new_err(text),
            Failure::Session(text) => SessionError::new_err(text),
            Failure::Unavailable(text) => Unavailable::new_err(text),
            Failure::Other(text) => Error::new_err(text),
        }
    }
}

impl From<ProgramError> for Failure {
    fn from(error: ProgramError) -> Self {
        match error {
            ProgramError::InvalidArguments(text) | ProgramError::Exhausted(text) => {
                Self::Value(text)
            }
            ProgramError::NotFound(text) => Self::Lookup(text),
            ProgramError::Broken(text) => Self::Other(text),
            ProgramError::Unavailable(text) => Self::Unavailable(text),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::NoSuchEnvironment { .. } => Self::Lookup(error.to_string()),
            OpenError::Refused { .. } => Self::Value(error.to_string()),
            OpenError::Unavailable { .. } => Self::Unavailable(error.to_string()),
            OpenError::Broke { .. } => Self::Session(error.to_string()),
        }
    }
}

impl From<SessionFailure> for Failure {
    fn from(error: SessionFailure) -> Self {
        match &error {
            SessionFailure::Stopped(stopped) if stopped.ended.is_infrastructure() => {
                Self::Unavailable(error.to_string())
            }
            SessionFailure::Refused(_) => Self::Value(error.to_string()),
            _ => Self::Session(error.to_string()),
        }
    }
}

impl From<SnapshotError> for Failure {
    fn from(error: SnapshotError) -> Self {
        Self::Value(error.to_string())
    }
}

/// Reads JSON that the Python part wrote. `what` names the value in an error.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(
    text: &str,
    what: &str,
) -> Result<T, Failure> {
    let value: serde_json::Value =
        rlf_json::from_str(text).map_err(|error| Failure::Value(format!("{what}: {error}")))?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let at = if path == "." { "" } else { path.as_str() };
        let space = if at.is_empty() { "" } else { ": " };
        Failure::Value(format!("{what}{space}{at}: {}", error.inner()))
    })
}

/// True if the host can read a text as JSON.
#[pyfunction]
pub(crate) fn is_json(text: &str) -> bool {
    rlf_json::from_str::<serde_json::Value>(text).is_ok()
}

/// Writes a value as JSON for the Python part.
pub(crate) fn to_json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::Other(error.to_string()))
}
