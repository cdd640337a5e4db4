//! Programs and cells: from Python's arguments, and back as dictionaries for the classes of the package.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use rlf_dialogue::tool::Fault;
use rlf_interpreters::notebook::CellReport;
use rlf_interpreters::program::{File, Program, ProgramOutcome, ProgramReport};
use rlf_plugins::outcome::CallEnd;
use rlf_plugins::programs::ProgramLimits;
use rlf_sandbox::{Output, Stopped};

use crate::error::Failure;

/// The limits that Python asks for; `None` asks for everything allowed.
#[derive(Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Limits {
    seconds: Option<f64>,
    memory_bytes: Option<u64>,
    output_bytes: Option<u64>,
    file_bytes: Option<u64>,
}

impl TryFrom<Limits> for ProgramLimits {
    type Error = Failure;

    fn try_from(limits: Limits) -> Result<Self, Failure> {
        let time = limits.seconds.map(|seconds| {
            let time = Duration::try_from_secs_f64(seconds).ok();
            time.filter(|time| !time.is_zero()).ok_or_else(|| {
                Failure::Value(format!("seconds = {seconds}: write a number above 0"))
            })
        });
        for (name, size) in [
            ("memory_bytes", limits.memory_bytes),
            ("output_bytes", limits.output_bytes),
            ("file_bytes", limits.file_bytes),
        ] {
            if size == Some(0) {
                return Err(Failure::Value(format!("{name} = 0: write 1 or more")));
            }
        }
        Ok(Self {
            time: time.transpose()?,
            memory_bytes: limits.memory_bytes,
            output_bytes: limits.output_bytes,
            file_bytes: limits.file_bytes,
        })
    }
}

/// A program as Python describes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Request {
    code: String,
    arguments: Vec<String>,
    stdin: Vec<u8>,
    files: Vec<(String, Vec<u8>)>,
    fetch: Vec<String>,
    seed: u64,
    limits: Limits,
}

/// Files by their paths, as Python gives them.
pub(crate) fn files(given: Vec<(String, Vec<u8>)>) -> Vec<File> {
    let given = given.into_iter();
    given.map(|(path, data)| File { path, data }).collect()
}

impl TryFrom<Request> for Program {
    type Error = Failure;

    fn try_from(request: Request) -> Result<Self, Failure> {
        Ok(Self {
            code: request.code,
            arguments: request.arguments,
            stdin: request.stdin,
            files: files(request.files),
            fetch: request.fetch,
            modules: Vec::new(),
            seed: request.seed,
            limits: request.limits.try_into()?,
        })
    }
}

/// The fields of `ProgramResult`.
pub(crate) fn report(py: Python<'_>, report: &ProgramReport) -> PyResult<Py<PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("ended", report.ended().as_str())?;
    fields.set_item("fault", to_name(report.fault()))?;
    set_outcome(&fields, report.outcome.as_ref(), report.stopped.as_ref())?;
    set_output(&fields, &report.stdout, &report.stderr)?;
    fields.set_item("files", fetched(py, &report.files)?)?;
    let refused = report.files_refused.as_ref().map(ToString::to_string);
    fields.set_item("files_refused", refused)?;
    fields.set_item("cpu_seconds", report.cpu.as_secs_f64())?;
    fields.set_item("wall_seconds", report.wall.as_secs_f64())?;
    fields.set_item("queued_seconds", report.queued.as_secs_f64())?;
    fields.set_item("memory_bytes", report.memory_peak)?;
    Ok(fields.into_any().unbind())
}

/// The fields of `CellResult`.
pub(crate) fn cell(py: Python<'_>, report: &CellReport) -> PyResult<Py<PyAny>> {
    let fields = PyDict::new(py);
    let ended = match (&report.stopped, &report.outcome) {
        (Some(stopped), _) => CallEnd::from_stopped(stopped).ended.as_str(),
        (None, Some(outcome)) if outcome.exit_code() == 0 => "ok",
        (None, _) => "failed",
    };
    fields.set_item("ended", ended)?;
    let is_infrastructure = (report.stopped.as_ref())
        .is_some_and(|stopped| CallEnd::from_stopped(stopped).fault == Fault::Infrastructure);
    let fault = if is_infrastructure {
        Fault::Infrastructure
    } else {
        Fault::of_answer(ended != "ok")
    };
    fields.set_item("fault", to_name(fault))?;
    set_outcome(&fields, report.outcome.as_ref(), report.stopped.as_ref())?;
    set_output(&fields, &report.stdout, &report.stderr)?;
    fields.set_item("value", report.value.as_deref())?;
    let displays = PyList::empty(py);
    for display in &report.displays {
        displays.append((&display.media_type, PyBytes::new(py, &display.data)))?;
    }
    fields.set_item("displays", displays)?;
    fields.set_item("cpu_seconds", report.cpu.as_secs_f64())?;
    fields.set_item("memory_bytes", report.memory)?;
    Ok(fields.into_any().unbind())
}

/// Fetched files, by their paths.
pub(crate) fn fetched<'py>(py: Python<'py>, files: &[File]) -> PyResult<Bound<'py, PyDict>> {
    let fetched = PyDict::new(py);
    for file in files {
        fetched.set_item(&file.path, PyBytes::new(py, &file.data))?;
    }
    Ok(fetched)
}

fn set_outcome(
    fields: &Bound<'_, PyDict>,
    outcome: Option<&ProgramOutcome>,
    stopped: Option<&Stopped>,
) -> PyResult<()> {
    fields.set_item("exit_code", outcome.map(ProgramOutcome::exit_code))?;
    let exception = outcome.and_then(ProgramOutcome::exception);
    let exception = exception.map(|raised| (&*raised.kind, &*raised.message, &*raised.traceback));
    fields.set_item("exception", exception)?;
    fields.set_item("stopped", stopped.map(ToString::to_string))
}

fn set_output(fields: &Bound<'_, PyDict>, stdout: &Output, stderr: &Output) -> PyResult<()> {
    for (name, output) in [("stdout", stdout), ("stderr", stderr)] {
        fields.set_item(name, text(output))?;
        fields.set_item(format!("{name}_omitted_bytes"), output.omitted_bytes())?;
    }
    Ok(())
}

/// Output as text, exactly as it was printed. Bytes that are not UTF-8 become U+FFFD.
fn text(output: &Output) -> String {
    let (head, tail) = (output.head(), output.tail());
    match output.omitted_bytes() {
        0 => String::from_utf8_lossy(&[head, &tail].concat()).into_owned(),
        omitted => format!(
            "{}\n[... {omitted} bytes left out ...]\n{}",
            String::from_utf8_lossy(head),
            String::from_utf8_lossy(&tail)
        ),
    }
}

/// The name of a unit variant in JSON.
fn to_name(value: impl serde::Serialize) -> Option<String> {
    let value = serde_json::to_value(value).ok()?;
    value.as_str().map(str::to_owned)
}
