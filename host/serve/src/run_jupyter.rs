//! `POST /run_jupyter`: cells that share a namespace for the duration of the request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rlf_interpreters::interpreter::{Interpreter, ProgramOptions};
use rlf_interpreters::notebook::{CellReport, Display, Notebook, NotebookRequest};
use rlf_interpreters::program::{File, ProgramOutcome};
use rlf_plugins::programs::{ProgramGrants, ProgramLimits};
use serde_json::{Map, Value};

use crate::answer::{Refusal, json};
use crate::body::Body;
use crate::protocol::{
    CellError, CellRunResult, CommandRunResult, CommandRunStatus, RunJupyterRequest,
    RunJupyterResponse, RunStatus,
};
use crate::request::{RequestLog, logged};
use crate::run_code::{End, NotRun, SIGXFSZ, not_run, stopped_end, text};
use crate::scratch::{self, Fetch};
use crate::service::{LanguageLookup, Service};

/// The language of the kernel `python3`.
const LANGUAGE: &str = "python";

pub(crate) async fn run(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response, Refusal> {
    let id = crate::request::id(&request);
    let mut wait = service.wait();
    let body = Body::read(request, &service, &mut wait).await?;
    let (request, _room) = body.parse::<RunJupyterRequest>()?;
    if request.cells.len() > service.config.max_cells {
        let what = format!(
            "{} cells; at most {} are allowed",
            request.cells.len(),
            service.config.max_cells
        );
        return Err(Refusal::invalid("too_long", &["cells"], what));
    }
    let files = scratch::files(request.files, service.config.max_files)?;
    let fetch = Fetch::new(request.fetch_files, service.config.max_files)?;
    let mut log = RequestLog {
        what: format!("{LANGUAGE} notebook"),
        ended: "not-run".into(),
        ..RequestLog::default()
    };
    let interpreter = match service.interpreter_for(LANGUAGE) {
        LanguageLookup::Interpreter(interpreter) => interpreter,
        LanguageLookup::NotInstalled(message) | LanguageLookup::Unknown(message) => {
            return Ok(logged(json(&RunJupyterResponse::not_run(message)), log));
        }
    };
    let time = request.total_timeout.limit().unwrap_or(Duration::ZERO);
    let cells = Cells {
        code: &request.cells,
        time,
        cell_time: request.cell_timeout.limit(),
        limits: ProgramLimits {
            memory_bytes: request.memory_limit.limit(),
            output_bytes: Some(u64::MAX),
            ..ProgramLimits::default()
        },
    };
    let opening = NotebookRequest {
        files: files
            .into_iter()
            .map(|(path, data)| File { path, data })
            .collect(),
        seed: service.config.seed,
        limits: cells.limits,
        ..NotebookRequest::default()
    };
    let place = service.long_run_place(time, &mut wait).await?;
    log.queued = wait.waited();
    let began = Instant::now();
    let run = run_notebook(interpreter, opening, id, &cells, &fetch).await;
    drop(place);
    let run = match run {
        Ok(run) => run,
        Err(NotRun::Refused(refusal)) => return Err(refusal),
        Err(NotRun::Failed(error)) => {
            let message = not_run(error)?;
            return Ok(logged(json(&RunJupyterResponse::not_run(message)), log));
        }
    };
    log.took = began.elapsed();
    log.ended = match run.end {
        End::OutOfTime => "timeout",
        End::Finished(Some(0)) => "ok",
        End::Finished(_) => "failed",
    }
    .into();
    (service.metrics).ran(LANGUAGE, &log.ended, log.took, run.cpu);
    Ok(logged(json(&response(run, log.took, &fetch)), log))
}

/// The cells of a request, and what they may use.
struct Cells<'a> {
    code: &'a [String],
    /// The time for all cells together.
    time: Duration,
    /// The time for each cell, if the request limits it.
    cell_time: Option<Duration>,
    limits: ProgramLimits,
}

/// The result of a notebook.
struct NotebookRun {
    cells: Vec<CellRunResult>,
    end: End,
    /// The reason why it was stopped, for its standard error.
    note: String,
    cpu: Duration,
    /// The files to return, by path.
    files: Vec<(String, Vec<u8>)>,
}

impl NotebookRun {
    /// True if all cells ran.
    fn is_whole(&self) -> bool {
        self.end == End::Finished(Some(0))
    }
}

/// Opens a notebook, runs the cells in it, and fetches its files if all cells ran.
async fn run_notebook(
    interpreter: &Interpreter,
    opening: NotebookRequest,
    label: String,
    cells: &Cells<'_>,
    fetch: &Fetch,
) -> Result<NotebookRun, NotRun> {
    let options = ProgramOptions {
        label,
        ..ProgramOptions::default()
    };
    let mut notebook = interpreter.open_notebook(opening, options).await?;
    let grants = &interpreter.plugin().grants().programs;
    let mut run = run_cells(&mut notebook, cells, grants).await?;
    if run.is_whole() {
        let files = notebook.fetch(&fetch.paths()).await?.into_iter();
        run.files = files.map(|file| (file.path, file.data)).collect();
    }
    Ok(run)
}

/// Runs cells until one is stopped, until the time is over, or until they show too much.
async fn run_cells(
    notebook: &mut Notebook,
    cells: &Cells<'_>,
    grants: &ProgramGrants,
) -> Result<NotebookRun, NotRun> {
    let mut run = NotebookRun {
        cells: Vec::with_capacity(cells.code.len()),
        end: End::Finished(Some(0)),
        note: String::new(),
        cpu: Duration::ZERO,
        files: Vec::new(),
    };
    let (mut left, mut held) = (cells.time, 0);
    for code in cells.code {
        if left.is_zero() {
            run.end = End::OutOfTime;
            break;
        }
        let time = (cells.cell_time.unwrap_or(grants.time)).min(grants.time);
        let limits = ProgramLimits {
            time: Some(time.min(left).max(Duration::from_millis(1))),
            ..cells.limits
        };
        let report = notebook.execute(code, limits).await?;
        left = left.saturating_sub(report.time);
        run.cpu += report.cpu;
        let is_stopped = report.stopped.is_some();
        if let Some(stopped) = &report.stopped {
            (run.end, run.note) = stopped_end(stopped)?;
        }
        // All reports wait in memory for the answer.
        held += bytes_of(&report);
        if held > grants.file_bytes {
            run.end = End::Finished(Some(SIGXFSZ));
            run.note = format!(
                "the cells show more than {} bytes together (programs.file_bytes)",
                grants.file_bytes
            );
            break;
        }
        run.cells.push(cell(report));
        if is_stopped {
            break;
        }
    }
    Ok(run)
}

/// Converts a notebook's result into the protocol's form. `took` is the real time that it took.
fn response(run: NotebookRun, took: Duration, fetch: &Fetch) -> RunJupyterResponse {
    let is_whole = run.is_whole();
    let (status, return_code) = match run.end {
        End::OutOfTime => (CommandRunStatus::TimeLimitExceeded, None),
        End::Finished(code) => (CommandRunStatus::Finished, code),
    };
    RunJupyterResponse {
        status: if is_whole {
            RunStatus::Success
        } else {
            RunStatus::Failed
        },
        message: String::new(),
        driver: Some(CommandRunResult {
            status,
            execution_time: Some(took.as_secs_f64()),
            return_code,
            stdout: Some(String::new()),
            stderr: Some(run.note.trim_start().to_owned()),
        }),
        cells: run.cells,
        executor_pod_name: None,
        files: if is_whole {
            fetch.answer(&run.files)
        } else {
            BTreeMap::new()
        },
    }
}

/// Number of bytes in a cell's report.
fn bytes_of(report: &CellReport) -> u64 {
    let printed = [&report.stdout, &report.stderr]
        .map(|output| output.total_bytes() - output.omitted_bytes())
        .into_iter()
        .sum::<u64>();
    let displays = report.displays.iter().map(|display| display.data.len());
    let value = report.value.as_ref().map_or(0, String::len);
    printed + (displays.sum::<usize>() + value) as u64
}

fn cell(report: CellReport) -> CellRunResult {
    let error = match report.outcome {
        Some(ProgramOutcome::Raised(exception) | ProgramOutcome::Rejected(exception)) => {
            Some(CellError {
                ename: exception.kind,
                evalue: exception.message,
                traceback: exception.traceback.lines().map(str::to_owned).collect(),
            })
        }
        Some(ProgramOutcome::Exited(code)) => Some(CellError {
            ename: "SystemExit".into(),
            evalue: code.to_string(),
            traceback: Vec::new(),
        }),
        Some(ProgramOutcome::Completed) | None => None,
    };
    CellRunResult {
        stdout: text(&report.stdout),
        stderr: text(&report.stderr),
        display: bundles(report.displays, report.value),
        error: error.into_iter().collect(),
    }
}

/// Groups the displays as notebooks do: one bundle for each object, with all its forms. The value's bundle is last.
///
/// The other forms of a displayed object follow its text. The forms of the value follow its text if something was
/// displayed before it, and stand alone otherwise.
fn bundles(displays: Vec<Display>, value: Option<String>) -> Vec<Map<String, Value>> {
    const TEXT: &str = "text/plain";
    let is_shown = displays.iter().any(|display| display.media_type == TEXT);
    let value = value.map(Value::String);
    let mut bundles: Vec<Map<String, Value>> = Vec::new();
    if !is_shown {
        bundles.extend(
            value
                .clone()
                .map(|text| Map::from_iter([(TEXT.into(), text)])),
        );
    }
    for display in displays {
        let (media_type, data) = form(display);
        match bundles.last_mut() {
            Some(bundle) if media_type != TEXT && !bundle.contains_key(&media_type) => {
                bundle.insert(media_type, data);
            }
            _ => bundles.push(Map::from_iter([(media_type, data)])),
        }
    }
    let last = bundles.last().and_then(|bundle| bundle.get(TEXT));
    if is_shown && value.is_some() && last != value.as_ref() {
        bundles.extend(value.map(|text| Map::from_iter([(TEXT.into(), text)])));
    }
    bundles
}

/// One form of an object: JSON is unchanged, other text becomes text, everything else becomes base64.
fn form(display: Display) -> (String, Value) {
    let Display { media_type, data } = display;
    let is_json = media_type == "application/json" || media_type.ends_with("+json");
    let data = match String::from_utf8(data) {
        Ok(text) if is_json => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        Ok(text) if is_text(&media_type) => Value::String(text),
        Ok(text) => Value::String(STANDARD.encode(text)),
        Err(error) => Value::String(STANDARD.encode(error.into_bytes())),
    };
    (media_type, data)
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || media_type == "image/svg+xml"
        || ["application/javascript", "application/xml"].contains(&media_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bundle(media_type: &str, data: &[u8]) -> Value {
        Value::Object(Map::from_iter([form(display(media_type, data))]))
    }

    fn display(media_type: &str, data: &[u8]) -> Display {
        Display {
            media_type: media_type.into(),
            data: data.to_vec(),
        }
    }

    #[test]
    fn everything_shown_is_one_bundle_of_all_its_forms() {
        let bundled = |displays: &[(&str, &str)], value: Option<&str>| {
            let displays = displays
                .iter()
                .map(|(media_type, data)| display(media_type, data.as_bytes()));
            json!(bundles(displays.collect(), value.map(str::to_owned)))
        };
        let (text, html) = ("text/plain", "text/html");
        assert_eq!(bundled(&[], None), json!([]));
        assert_eq!(bundled(&[], Some("1")), json!([{"text/plain": "1"}]));
        assert_eq!(
            bundled(&[(html, "<b>"), ("image/png", "x")], Some("a table")),
            json!([{"text/plain": "a table", "text/html": "<b>", "image/png": "eA=="}])
        );
        assert_eq!(
            bundled(
                &[(text, "1"), (text, "a table"), (html, "<b>"), (text, "'x'")],
                None
            ),
            json!([{"text/plain": "1"}, {"text/plain": "a table", "text/html": "<b>"}, {"text/plain": "'x'"}])
        );
        // The displayed object has no other form; the value has one.
        assert_eq!(
            bundled(
                &[(text, "1"), (text, "a table"), (html, "<b>")],
                Some("a table")
            ),
            json!([{"text/plain": "1"}, {"text/plain": "a table", "text/html": "<b>"}])
        );
        // The interpreter does not repeat the value's text.
        assert_eq!(
            bundled(&[(text, "a table"), (html, "<b>")], Some("2")),
            json!([{"text/plain": "a table", "text/html": "<b>"}, {"text/plain": "2"}])
        );
        assert_eq!(
            bundled(&[(html, "<a>"), (html, "<b>")], None),
            json!([{"text/html": "<a>"}, {"text/html": "<b>"}])
        );
    }

    #[test]
    fn displays_are_text_json_or_base64_by_their_type() {
        assert_eq!(bundle("text/plain", b"'a'"), json!({"text/plain": "'a'"}));
        assert_eq!(
            bundle("image/svg+xml", b"<svg/>"),
            json!({"image/svg+xml": "<svg/>"})
        );
        assert_eq!(
            bundle("application/json", b"{\"a\": 1}"),
            json!({"application/json": {"a": 1}})
        );
        assert_eq!(
            bundle("image/png", b"\x89PNG"),
            json!({"image/png": "iVBORw=="})
        );
        assert_eq!(
            bundle("image/png", b"text"),
            json!({"image/png": "dGV4dA=="})
        );
    }
}
