//! `POST /run_code`: one program, from start to end.
//!
//! Every program gets a short first turn, in which most programs end. A program that needs longer, such as one that
//! loops, runs again from its start with all of its time, in a separate queue. So it delays other long programs, but
//! never the short ones. The second run does the same as the first, because the same request gets the same answer.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use rlf_interpreters::interpreter::{Interpreter, ProgramOptions};
use rlf_interpreters::program::{File, Program, ProgramError, ProgramReport};
use rlf_plugins::programs::ProgramLimits;
use rlf_sandbox::{Clock, Ending, Output, Stopped};

use crate::answer::{Refusal, json};
use crate::body::Body;
use crate::protocol::{CommandRunResult, CommandRunStatus, RunCodeRequest, RunCodeResponse};
use crate::queue::WaitBudget;
use crate::request::{RequestLog, logged};
use crate::scratch::{self, Fetch};
use crate::service::{LanguageLookup, Service};

/// CPU time of a program's first turn. A program that ends within it never waits for one that loops.
const FIRST_TURN: Duration = Duration::from_millis(100);

pub(crate) async fn run(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response, Refusal> {
    let id = crate::request::id(&request);
    let mut wait = service.wait();
    let body = Body::read(request, &service, &mut wait).await?;
    let (request, _room) = body.parse::<RunCodeRequest>()?;
    let interpreter = match service.interpreter_for(&request.language) {
        LanguageLookup::Interpreter(interpreter) => interpreter,
        LanguageLookup::NotInstalled(message) => {
            let log = RequestLog {
                what: request.language,
                ended: "not-installed".into(),
                ..RequestLog::default()
            };
            return Ok(logged(json(&RunCodeResponse::not_run(message)), log));
        }
        LanguageLookup::Unknown(message) => {
            return Err(Refusal::invalid("literal_error", &["language"], message));
        }
    };
    let language = interpreter.language().id.clone();
    let files = scratch::files(request.files, service.config.max_files)?;
    let fetch = Fetch::new(request.fetch_files, service.config.max_files)?;
    let Some(time) = request.run_timeout.limit() else {
        let run = CommandRunResult {
            status: CommandRunStatus::TimeLimitExceeded,
            execution_time: Some(0.0),
            return_code: None,
            stdout: Some(String::new()),
            stderr: Some(String::new()),
        };
        return Ok(json(&RunCodeResponse::from_run(run, fetch.answer(&[]))));
    };
    let program = Program {
        code: request.code,
        stdin: request.stdin.unwrap_or_default().into_bytes(),
        files: files
            .into_iter()
            .map(|(path, data)| File { path, data })
            .collect(),
        fetch: fetch.paths(),
        seed: service.config.seed,
        limits: ProgramLimits {
            time: Some(time),
            memory_bytes: request.memory_limit.limit(),
            output_bytes: Some(u64::MAX),
            ..ProgramLimits::default()
        },
        ..Program::default()
    };
    let time = time.min(interpreter.plugin().grants().programs.time);
    let run = in_turns(&service, interpreter, program, time, id, &mut wait).await;
    let mut log = RequestLog {
        what: language,
        queued: wait.waited(),
        ..RequestLog::default()
    };
    let (report, cpu) = match run {
        Ok(run) => run,
        Err(NotRun::Refused(refusal)) => return Err(refusal),
        Err(NotRun::Failed(error)) => {
            let message = not_run(error)?;
            log.ended = "not-run".into();
            return Ok(logged(json(&RunCodeResponse::broken(message)), log));
        }
    };
    log.took = report.wall.saturating_sub(report.queued);
    report.ended().as_str().clone_into(&mut log.ended);
    service.metrics.ran(&log.what, &log.ended, log.took, cpu);
    let run = result(&report, time)?;
    let found: Vec<(String, Vec<u8>)> = report
        .files
        .into_iter()
        .map(|file| (file.path, file.data))
        .collect();
    Ok(logged(
        json(&RunCodeResponse::from_run(run, fetch.answer(&found))),
        log,
    ))
}

/// The reason why there is no report of a run.
pub(crate) enum NotRun {
    /// The request is refused.
    Refused(Refusal),
    /// The interpreter could not run the program.
    Failed(ProgramError),
}

impl From<Refusal> for NotRun {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<ProgramError> for NotRun {
    fn from(error: ProgramError) -> Self {
        Self::Failed(error)
    }
}

/// Runs a program in one turn or two. Returns the report of the last turn, and the CPU time of both.
async fn in_turns(
    service: &Service,
    interpreter: &Interpreter,
    mut program: Program,
    time: Duration,
    label: String,
    wait: &mut WaitBudget,
) -> Result<(ProgramReport, Duration), NotRun> {
    let spec = ProgramOptions {
        label,
        ..ProgramOptions::default()
    };
    let place = service.first_turn_place(wait).await?;
    program.limits.time = Some(time.min(FIRST_TURN));
    // The copy lives only as long as the first turn, so there are never more copies than places.
    let first = interpreter.run(program.clone(), spec.clone()).await?;
    drop(place);
    let first_cpu = first.cpu;
    if time <= FIRST_TURN || !ran_out_of_time(&first) {
        return Ok((first, first_cpu));
    }
    let _place = service.long_run_place(time, wait).await?;
    program.limits.time = Some(time);
    let report = interpreter.run(program, spec).await?;
    let cpu = first_cpu + report.cpu;
    Ok((report, cpu))
}

/// True if the program's own time limit stopped it.
fn ran_out_of_time(report: &ProgramReport) -> bool {
    let stopped = report.stopped.as_ref();
    stopped.is_some_and(|stopped| matches!(stopped_end(stopped), Ok((End::OutOfTime, _))))
}

/// The answer for a program that was not run. A request that is wrong or worth repeating is refused. Otherwise the
/// returned message is reported as a sandbox error.
pub(crate) fn not_run(error: ProgramError) -> Result<String, Refusal> {
    match error {
        ProgramError::InvalidArguments(what) => Err(Refusal::invalid("value_error", &[], what)),
        ProgramError::Unavailable(what) => Err(Refusal::later(format!(
            "the machine has no room for a program: {what}"
        ))),
        ProgramError::Exhausted(what)
        | ProgramError::NotFound(what)
        | ProgramError::Broken(what) => Ok(what),
    }
}

/// Converts a run into the protocol's form, as one command. A run that was stopped by a limit other than time ends like
/// a process that a signal ended. `time` is its time limit.
fn result(report: &ProgramReport, time: Duration) -> Result<CommandRunResult, Refusal> {
    let took = report.wall.saturating_sub(report.queued);
    let (end, said) = match &report.stopped {
        None => (End::Finished(report.exit_code()), String::new()),
        Some(stopped) => stopped_end(stopped)?,
    };
    let (status, return_code, took) = match end {
        End::Finished(code) => (CommandRunStatus::Finished, code, took),
        // A program that only sleeps takes no real time.
        End::OutOfTime => (CommandRunStatus::TimeLimitExceeded, None, took.max(time)),
    };
    Ok(CommandRunResult {
        status,
        execution_time: Some(took.as_secs_f64()),
        return_code,
        stdout: Some(text(&report.stdout)),
        stderr: Some(text(&report.stderr) + &said),
    })
}

/// The end of a program or notebook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The program ended with the exit code that a process would have.
    Finished(Option<i32>),
    /// The program's own time limit stopped it.
    OutOfTime,
}

/// Exit code, as in Python's `subprocess`, of a process that a signal ended because of too much output.
pub(crate) const SIGXFSZ: i32 = -25;

/// The end of a program that was stopped, and a note for its standard error. An infrastructure failure says nothing
/// about the program, so the request is refused and may be repeated.
pub(crate) fn stopped_end(stopped: &Stopped) -> Result<(End, String), Refusal> {
    // Exit code like `SIGXFSZ`, for a broken program and for too much memory.
    const SIGABRT: i32 = -6;
    const SIGKILL: i32 = -9;
    let code = match stopped.ended {
        ended if ended.is_infrastructure() => {
            return Err(Refusal::later(format!(
                "the program could not be run to an end that says anything of it: {}",
                stopped.reason
            )));
        }
        Ending::Timeout {
            clock: Clock::Cpu | Clock::Virtual,
        } => return Ok((End::OutOfTime, String::new())),
        Ending::Exited { code } => return Ok((End::Finished(Some(code)), String::new())),
        Ending::MemoryLimit => SIGKILL,
        Ending::OutputLimit => SIGXFSZ,
        // Traps, and other ends.
        _ => SIGABRT,
    };
    let limit = stopped
        .limit
        .as_ref()
        .map(|limit| format!(" ({limit})"))
        .unwrap_or_default();
    let said = format!(
        "\n[the program was stopped: {}{limit}]\n",
        stopped.ended.as_str()
    );
    Ok((End::Finished(Some(code)), said))
}

/// The printed text. If its middle was left out, a line says how many bytes are missing.
pub(crate) fn text(output: &Output) -> String {
    let head = String::from_utf8_lossy(output.head());
    let tail = output.tail();
    if output.omitted_bytes() == 0 {
        if tail.is_empty() {
            return head.into_owned();
        }
        return String::from_utf8_lossy(&[output.head(), &tail].concat()).into_owned();
    }
    format!(
        "{head}\n[... {} bytes left out ...]\n{}",
        output.omitted_bytes(),
        String::from_utf8_lossy(&tail)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlf_sandbox::LimitReached;

    fn stopped(ended: Ending) -> Stopped {
        Stopped {
            ended,
            reason: "why".into(),
            limit: Some(LimitReached {
                name: "memory_bytes".into(),
                value: 1,
                used: 2,
            }),
            backtrace: Some("a path of the host".into()),
        }
    }

    #[test]
    fn a_limit_of_time_is_told_from_the_others_and_the_machines_from_the_programs() {
        let timeout = |clock| stopped_end(&stopped(Ending::Timeout { clock }));
        assert_eq!(
            timeout(Clock::Cpu).unwrap(),
            (End::OutOfTime, String::new())
        );
        assert_eq!(timeout(Clock::Virtual).unwrap().0, End::OutOfTime);
        for clock in [Clock::Wall, Clock::Host] {
            assert_eq!(timeout(clock).unwrap_err().status(), 504);
        }
        assert_eq!(
            stopped_end(&stopped(Ending::Unavailable))
                .unwrap_err()
                .status(),
            504
        );
        for (ended, code) in [
            (Ending::Trap, -6),
            (Ending::MemoryLimit, -9),
            (Ending::OutputLimit, -25),
        ] {
            let (end, said) = stopped_end(&stopped(ended)).unwrap();
            assert_eq!(end, End::Finished(Some(code)));
            assert!(
                said.contains(ended.as_str()) && !said.contains("host"),
                "{said}"
            );
        }
    }

    #[test]
    fn requests_that_cannot_be_are_told_from_machines_that_are_full() {
        let status = |error| not_run(error).unwrap_err().status().as_u16();
        assert_eq!(status(ProgramError::InvalidArguments("a path".into())), 422);
        assert_eq!(status(ProgramError::Unavailable("full".into())), 504);
        assert_eq!(not_run(ProgramError::Broken("x".into())).unwrap(), "x");
    }
}
