//! Requests to source files that an interpreter has loaded: environments, tools and rewards. plugins/python/README.md
//! describes them. A request is a JSON text with a function and its arguments; the answer is JSON, or an error.

use std::sync::Arc;

use rlf_plugins::bindings::{code, interpreter, types};
use rlf_plugins::plugin::Plugin;
use rlf_plugins::script::ScriptLanguage;
use rlf_sandbox::{CallReport, CallSpec, State, Stopped};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wasmtime::component::InstancePre;

/// The interpreter of a plugin that is a source file.
#[derive(Clone)]
pub struct LoadedFile {
    indices: Arc<interpreter::GuestIndices>,
}

/// The answer to a request: JSON of a `T`, or the error of the file.
pub type Answer<T> = Result<T, types::Error>;

impl LoadedFile {
    /// Finds the interpreter's exports.
    pub fn find(component: &InstancePre<State>) -> wasmtime::Result<Self> {
        let indices = Arc::new(interpreter::GuestIndices::new(component)?);
        Ok(Self { indices })
    }

    /// Sends one request to a fresh instance of `plugin`. The report has everything but the answer.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        plugin: &Plugin,
        spec: CallSpec,
        what: &'static str,
        arguments: Value,
    ) -> CallReport<Answer<T>> {
        let indices = Arc::clone(&self.indices);
        let request = json!([what, arguments]).to_string();
        let language = plugin.script_language().unwrap_or(ScriptLanguage::Python);
        let seed = spec.seed;
        let report = plugin.template().call(spec, move |store, instance| {
            Box::pin(async move {
                let guest = indices.load(&mut *store, &instance)?;
                let sessions = guest.session();
                let opened = sessions.call_open(&mut *store, language.id(), &[], &[], seed);
                let session = match opened.await? {
                    Ok(session) => session,
                    Err(error) => return Ok(Err(error)),
                };
                // The limits of the call hold.
                let limits = code::Limits {
                    wall_ms: 0,
                    memory_bytes: 0,
                    output_bytes: 0,
                    file_bytes: 0,
                };
                let executed = sessions.call_execute(store, session, &request, limits);
                Ok(executed.await?.and_then(|cell| answer_of(what, cell)))
            })
        });
        let report = report.await;
        let outcome = report.outcome.map(|answer| {
            answer.and_then(|answer| {
                serde_json::from_str(&answer).map_err(|error| {
                    types::Error::Internal(format!(
                        "`{what}` gave no answer of the expected form: {error}"
                    ))
                })
            })
        });
        CallReport {
            outcome,
            stdout: report.stdout,
            stderr: report.stderr,
            logs: report.logs,
            files: report.files,
            cpu: report.cpu,
            wall: report.wall,
            queued: report.queued,
            memory_peak: report.memory_peak,
        }
    }

    /// Sends one request about the plugin itself.
    pub async fn ask_about<T: DeserializeOwned>(
        &self,
        plugin: &Plugin,
        what: &'static str,
    ) -> Result<Answer<T>, Stopped> {
        let spec = CallSpec {
            label: format!("{}: {what}", plugin.name()),
            ..CallSpec::default()
        };
        plugin.finish(self.ask(plugin, spec, what, json!([])).await)
    }
}

/// The answer in a cell.
fn answer_of(what: &str, cell: interpreter::Cell) -> Answer<String> {
    match (cell.outcome, cell.value) {
        (code::Outcome::Completed, Some(value)) => unwrapped(what, &value),
        (code::Outcome::Raised(error) | code::Outcome::Rejected(error), _) => Err(
            types::Error::Internal(format!("{}: {}", error.kind, error.message)),
        ),
        _ => Err(types::Error::Internal(format!(
            "`{what}` ended without an answer"
        ))),
    }
}

/// Unwraps `{"answer":..}` or `{"error":..}`. The answer is JSON text, and is returned unchanged.
pub fn unwrapped(what: &str, value: &str) -> Answer<String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Failing {
        error: Failed,
    }
    let answer = value.strip_prefix("{\"answer\":");
    if let Some(answer) = answer.and_then(|rest| rest.strip_suffix('}')) {
        return Ok(answer.to_owned());
    }
    Err(match serde_json::from_str::<Failing>(value) {
        Ok(failing) => failing.error.into(),
        Err(error) => types::Error::Internal(format!(
            "`{what}` gave neither an answer nor an error: {error}"
        )),
    })
}

/// An error, as the file's loader words it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failed {
    kind: String,
    #[serde(default)]
    message: String,
}

impl From<Failed> for types::Error {
    fn from(Failed { kind, message }: Failed) -> Self {
        match kind.as_str() {
            "invalid-arguments" => Self::InvalidArguments(message),
            "not-found" => Self::NotFound(message),
            "denied" => Self::Denied(message),
            "exhausted" => Self::Exhausted(message),
            "unavailable" => Self::Unavailable(message),
            _ => Self::Internal(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_looks_like_an_error_is_a_state() {
        let state = r#"{"error":{"kind":"internal","message":"no"}}"#;
        let answer = unwrapped("state", &format!("{{\"answer\":{state}}}"));
        assert_eq!(answer.unwrap(), state);
        let refused = unwrapped("state", state);
        assert!(matches!(refused, Err(types::Error::Internal(why)) if why == "no"));
        let neither = unwrapped("state", "{}");
        assert!(
            matches!(neither, Err(types::Error::Internal(why)) if why.contains("neither an answer"))
        );
    }
}
