//! `POST /run_code`: one program, from start to end.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use rlf_interpreters::interpreter::ProgramOptions;
use rlf_interpreters::program::{File, Program, ProgramError, ProgramReport};
use rlf_plugins::programs::ProgramLimits;
use rlf_sandbox::{Clock, Ended, Output, Stopped};

use crate::answer::{Refusal, json};
use crate::body::Body;
use crate::protocol::{CommandRunResult, CommandRunStatus, RunCodeRequest, RunCodeResponse};
use crate::scratch::{self, Fetch};
use crate::service::{Note, Service, Spoken};

pub(crate) async fn run(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response, Refusal> {
    let id = crate::routes::id_of(&request);
    let mut patience = service.patience();
    let body = Body::read(request, &service, &mut patience).await?;
    let (request, _room) = body.parse::<RunCodeRequest>()?;
    let interpreter = match service.speak(&request.language) {
        Spoken::By(interpreter) => interpreter,
        Spoken::NotInstalled(message) => {
            let note = Note {
                what: request.language,
                ended: "not-installed".into(),
                ..Note::default()
            };
            return Ok(noted(json(&RunCodeResponse::not_run(message)), note));
        }
        Spoken::Unknown(message) => {
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
        return Ok(json(&RunCodeResponse::of_run(run, fetch.answer(&[]))));
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
    let place = service.run_place(&mut patience).await?;
    let spec = ProgramOptions {
        label: id,
        ..ProgramOptions::default()
    };
    let report = interpreter.run(program, spec).await;
    drop(place);
    let mut note = Note {
        what: language,
        queued: patience.waited(),
        ..Note::default()
    };
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            let message = not_run(error)?;
            note.ended = "not-run".into();
            return Ok(noted(json(&RunCodeResponse::broken(message)), note));
        }
    };
    note.took = report.wall.saturating_sub(report.queued);
    report.ended().as_str().clone_into(&mut note.ended);
    service
        .metrics
        .ran(&note.what, &note.ended, note.took, report.cpu);
    let policy = interpreter.plugin().grants();
    let run = result(&report, time.min(policy.programs.time))?;
    let found: Vec<(String, Vec<u8>)> = report
        .files
        .into_iter()
        .map(|file| (file.path, file.data))
        .collect();
    Ok(noted(
        json(&RunCodeResponse::of_run(run, fetch.answer(&found))),
        note,
    ))
}

/// Hands a note up with an answer.
pub(crate) fn noted(mut response: Response, note: Note) -> Response {
    response.extensions_mut().insert(note);
    response
}

/// What a client is told of a program that was not run: the request is wrong, or worth repeating, or a sandbox's
/// error with this message.
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

/// A run as the protocol has it: one command, which a limit other than time ends as a signal ends a process. `time`
/// is what it had.
fn result(report: &ProgramReport, time: Duration) -> Result<CommandRunResult, Refusal> {
    let took = report.wall.saturating_sub(report.queued);
    let (end, said) = match &report.stopped {
        None => (End::Finished(report.exit_code()), String::new()),
        Some(stopped) => of_stopped(stopped)?,
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

/// How something ended that had to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With what a process would have left with.
    Finished(Option<i32>),
    /// By its own time.
    OutOfTime,
}

/// What is left of a process that a signal ended, as Python's `subprocess` gives it: too much output.
pub(crate) const SIGXFSZ: i32 = -25;

/// What a client is told of something that was stopped, and what is added to its standard error. What the machine
/// was to blame for says nothing of the program, and is worth repeating.
pub(crate) fn of_stopped(stopped: &Stopped) -> Result<(End, String), Refusal> {
    // As above: broken, and too much memory.
    const SIGABRT: i32 = -6;
    const SIGKILL: i32 = -9;
    let code = match stopped.ended {
        ended if ended.is_infrastructure() => {
            return Err(Refusal::later(format!(
                "the program could not be run to an end that says anything of it: {}",
                stopped.reason
            )));
        }
        Ended::Timeout {
            clock: Clock::Cpu | Clock::Virtual,
        } => return Ok((End::OutOfTime, String::new())),
        Ended::Exited { code } => return Ok((End::Finished(Some(code)), String::new())),
        Ended::MemoryLimit => SIGKILL,
        Ended::OutputLimit => SIGXFSZ,
        // Traps, and what can no longer be told.
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

/// What was printed, as it was; what lies between head and tail of too much is counted.
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

    fn stopped(ended: Ended) -> Stopped {
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
        let timeout = |clock| of_stopped(&stopped(Ended::Timeout { clock }));
        assert_eq!(
            timeout(Clock::Cpu).unwrap(),
            (End::OutOfTime, String::new())
        );
        assert_eq!(timeout(Clock::Virtual).unwrap().0, End::OutOfTime);
        for clock in [Clock::Wall, Clock::Host] {
            assert_eq!(timeout(clock).unwrap_err().status(), 504);
        }
        assert_eq!(
            of_stopped(&stopped(Ended::Unavailable))
                .unwrap_err()
                .status(),
            504
        );
        for (ended, code) in [
            (Ended::Trap, -6),
            (Ended::MemoryLimit, -9),
            (Ended::OutputLimit, -25),
        ] {
            let (end, said) = of_stopped(&stopped(ended)).unwrap();
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
