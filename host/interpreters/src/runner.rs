//! Programs for plugins that are granted the gate `execute`.

use std::time::Instant;

use rlf_dialogue::tool::{Ended, Fault};
use rlf_plugins::bindings::code::{self, Report};
use rlf_plugins::bindings::types::Error;
use rlf_plugins::gates::{GateAnswer, ProgramRunner};
use rlf_sandbox::{BoxFuture, Stopped};

use crate::interpreter::{Interpreter, ProgramOptions};
use crate::program::{CompileError, Program, ProgramError, ProgramReport, report_to_guest};

impl ProgramRunner for Interpreter {
    fn compile<'a>(
        &'a self,
        name: &'a str,
        source: &'a str,
    ) -> BoxFuture<'a, GateAnswer<Result<code::Compiled, code::Exception>>> {
        Box::pin(async move {
            Ok(match self.compile(name, source).await {
                Ok(compiled) => Ok(Ok(compiled.into())),
                Err(CompileError::Rejected(exception)) => Ok(Err(exception.into())),
                Err(CompileError::Program(error)) => Err(answer(error)?),
            })
        })
    }

    fn run(
        &self,
        program: code::Program,
        label: String,
        deadline: Instant,
    ) -> BoxFuture<'_, GateAnswer<Report>> {
        Box::pin(async move {
            let spec = ProgramOptions {
                label,
                deadline: Some(deadline),
                ..ProgramOptions::default()
            };
            report(self.run(Program::from_guest(program), spec).await)
        })
    }
}

/// The answer for the plugin. Fails if its own call must end.
fn answer(error: ProgramError) -> Result<Error, Stopped> {
    Ok(match error {
        ProgramError::InvalidArguments(text) => Error::InvalidArguments(text),
        ProgramError::NotFound(text) => Error::NotFound(text),
        ProgramError::Exhausted(text) => Error::Exhausted(text),
        ProgramError::Broken(text) => Error::Internal(text),
        ProgramError::Unavailable(text) => {
            let reason = format!("a program could not be run: {text}");
            return Err(Stopped::unavailable(reason));
        }
    })
}

/// The report of a run for the plugin. Fails if its own call must end after an infrastructure failure.
fn report(run: Result<ProgramReport, ProgramError>) -> GateAnswer<Report> {
    match run {
        Ok(report) if report.fault() == Fault::Infrastructure => {
            // The programs share the caller's deadline. A short deadline may be the reason, not the machine.
            let mend = if report.ended() == Ended::Timeout {
                "; `limits.wall_ms` of the plugin that runs it has to cover all programs of a call"
            } else {
                ""
            };
            let why = report.stopped.map(|stopped| stopped.reason);
            let why = why.unwrap_or_default();
            Err(Stopped::unavailable(format!(
                "a program could not be run to its end: {why}{mend}"
            )))
        }
        Ok(report) => Ok(Ok(report_to_guest(report))),
        Err(error) => Ok(Err(answer(error)?)),
    }
}
