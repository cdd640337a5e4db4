//! Programs for an interpreter, and the report of a run.

use std::fmt::Write as _;
use std::time::Duration;

use rlf_dialogue::tool::{Ended, Fault};
use rlf_sandbox::{Output, Stopped};

use rlf_plugins::bindings::{code, types};
use rlf_plugins::convert::{ended_to_guest, error_text};
use rlf_plugins::outcome::CallEnd;
use rlf_plugins::programs::{ProgramGrants, ProgramLimits};

/// A file by its path, with `/` between names, relative to the root of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path.
    pub path: String,
    /// Its contents.
    pub data: Vec<u8>,
}

/// A module that programs can import, for the interpreter that compiled it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The name that imports it.
    pub name: String,
    /// The compiled code, in the interpreter's own format.
    pub data: Vec<u8>,
}

/// A program with everything that it finds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// Its text.
    pub code: String,
    /// The first names the program, in tracebacks too; none is the interpreter's own name for it.
    pub arguments: Vec<String>,
    /// Standard input.
    pub stdin: Vec<u8>,
    /// Files that exist when it starts.
    pub files: Vec<File>,
    /// Paths of files that are taken when it is over; missing ones are left out.
    pub fetch: Vec<String>,
    /// Modules that it can import beside the library.
    pub modules: Vec<Compiled>,
    /// Seed of everything random.
    pub seed: u64,
    /// Limits.
    pub limits: ProgramLimits,
}

impl Program {
    pub(crate) fn check(&self, grants: &ProgramGrants) -> Result<(), ProgramError> {
        let files: usize = self.files.iter().map(|file| file.data.len()).sum();
        let modules: usize = self.modules.iter().map(|module| module.data.len()).sum();
        check_given(
            grants,
            (self.code.len() + self.stdin.len() + files + modules) as u64,
        )
    }

    pub(crate) fn into_guest(self, language: &str, grants: &ProgramGrants) -> code::Program {
        code::Program {
            language: language.to_owned(),
            // A mark of some editors, and no part of the program.
            code: match self.code.strip_prefix('\u{feff}') {
                Some(code) => code.to_owned(),
                None => self.code,
            },
            arguments: self.arguments,
            stdin: self.stdin,
            files: self.files.into_iter().map(Into::into).collect(),
            fetch: self.fetch,
            modules: self.modules.into_iter().map(Into::into).collect(),
            seed: self.seed,
            limits: self.limits.into_guest(grants),
        }
    }

    /// A program as a plugin hands it over.
    pub(crate) fn from_guest(program: code::Program) -> Self {
        Self {
            code: program.code,
            arguments: program.arguments,
            stdin: program.stdin,
            files: program.files.into_iter().map(Into::into).collect(),
            fetch: program.fetch,
            modules: program.modules.into_iter().map(Into::into).collect(),
            seed: program.seed,
            limits: ProgramLimits::from_guest(program.limits),
        }
    }
}

/// Refuses more than a program may be given.
pub(crate) fn check_given(grants: &ProgramGrants, bytes: u64) -> Result<(), ProgramError> {
    if bytes <= grants.file_bytes {
        return Ok(());
    }
    Err(ProgramError::Exhausted(format!(
        "code, input, files and modules have {bytes} bytes; {} are allowed (programs.file_bytes)",
        grants.file_bytes
    )))
}

/// Refuses more than may be taken from a program.
pub(crate) fn check_fetched(
    grants: &ProgramGrants,
    bytes: u64,
    wanted: &ProgramLimits,
) -> Result<(), ProgramError> {
    let max = (wanted.file_bytes.unwrap_or(u64::MAX)).min(grants.file_bytes);
    if bytes <= max {
        return Ok(());
    }
    Err(ProgramError::Exhausted(format!(
        "the files that were asked for have {bytes} bytes; {max} are allowed (file_bytes)"
    )))
}

/// An exception that nobody caught.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// Its class, such as `ZeroDivisionError`.
    pub kind: String,
    /// Its message.
    pub message: String,
    /// As the interpreter prints it.
    pub traceback: String,
}

/// The end of a program that was not stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramOutcome {
    /// Ran off its end.
    Completed,
    /// Asked to exit with this status.
    Exited(i32),
    /// Nobody caught this.
    Raised(Exception),
    /// Did not compile or parse; nothing ran.
    Rejected(Exception),
}

impl ProgramOutcome {
    /// The exit code that a process would have had.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Completed => 0,
            Self::Exited(code) => *code,
            Self::Raised(_) | Self::Rejected(_) => 1,
        }
    }

    /// The exception that nobody caught, if that is how it ended.
    pub fn exception(&self) -> Option<&Exception> {
        match self {
            Self::Raised(exception) | Self::Rejected(exception) => Some(exception),
            Self::Completed | Self::Exited(_) => None,
        }
    }
}

/// The report of a program.
#[derive(Debug, Clone)]
pub struct ProgramReport {
    /// How it ended by itself; `None` if it was stopped.
    pub outcome: Option<ProgramOutcome>,
    /// The reason why it was stopped, if it was.
    pub stopped: Option<Stopped>,
    /// Standard output.
    pub stdout: Output,
    /// Standard error, tracebacks included.
    pub stderr: Output,
    /// The files that were asked for and were there.
    pub files: Vec<File>,
    /// CPU time.
    pub cpu: Duration,
    /// Real time, queueing included.
    pub wall: Duration,
    /// Real time until it had a place.
    pub queued: Duration,
    /// The most memory that it had at once, in bytes, what is shared included.
    pub memory_peak: u64,
}

impl ProgramReport {
    /// The exit code that a process would have had; `None` if it was stopped.
    pub fn exit_code(&self) -> Option<i32> {
        self.outcome.as_ref().map(ProgramOutcome::exit_code)
    }

    /// In the words that calls end in: `ok` where a process would have left with 0, `failed` where with another code.
    pub fn ended(&self) -> Ended {
        match (&self.stopped, self.exit_code()) {
            (Some(stopped), _) => CallEnd::from_stopped(stopped).ended,
            (None, Some(0)) => Ended::Ok,
            (None, _) => Ended::Failed,
        }
    }

    /// The side that caused its end.
    pub fn fault(&self) -> Fault {
        match &self.stopped {
            // A program that breaks its interpreter is the doing of who wrote it.
            Some(stopped) => match CallEnd::from_stopped(stopped).fault {
                Fault::Plugin => Fault::Model,
                other => other,
            },
            None => Fault::Model,
        }
    }
}

/// The reason why nothing was run, or not to an end that says anything of the program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The request cannot be: a path that leads out, for instance.
    #[error("{0}")]
    InvalidArguments(String),
    /// No such language.
    #[error("{0}")]
    NotFound(String),
    /// More than is allowed.
    #[error("{0}")]
    Exhausted(String),
    /// The interpreter broke.
    #[error("{0}")]
    Broken(String),
    /// An infrastructure failure.
    #[error("{0}")]
    Unavailable(String),
}

/// The reason why a module was not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The source is wrong.
    #[error("{}: {}", .0.kind, .0.message)]
    Rejected(Exception),
    /// Nothing is known of the source.
    #[error(transparent)]
    Program(#[from] ProgramError),
}

impl ProgramError {
    pub(crate) fn from_guest(error: types::Error) -> Self {
        match error {
            types::Error::InvalidArguments(text) => Self::InvalidArguments(text),
            types::Error::NotFound(text) => Self::NotFound(text),
            types::Error::Exhausted(text) => Self::Exhausted(text),
            types::Error::Unavailable(text) => Self::Unavailable(text),
            other => Self::Broken(error_text(&other)),
        }
    }

    /// A request other than a program, that was stopped.
    pub(crate) fn from_stopped(stopped: Stopped) -> Self {
        if stopped.ended.is_infrastructure() {
            Self::Unavailable(stopped.reason)
        } else {
            Self::Broken(stopped.to_string())
        }
    }
}

impl From<code::File> for File {
    fn from(code::File { path, data }: code::File) -> Self {
        Self { path, data }
    }
}

impl From<File> for code::File {
    fn from(File { path, data }: File) -> Self {
        Self { path, data }
    }
}

impl From<code::Compiled> for Compiled {
    fn from(code::Compiled { name, data }: code::Compiled) -> Self {
        Self { name, data }
    }
}

impl From<Compiled> for code::Compiled {
    fn from(Compiled { name, data }: Compiled) -> Self {
        Self { name, data }
    }
}

impl From<code::Exception> for Exception {
    fn from(exception: code::Exception) -> Self {
        Self {
            kind: shortened(exception.kind),
            message: shortened(exception.message),
            traceback: shortened(exception.traceback),
        }
    }
}

/// Shortens the text of an exception: a program can raise any amount of it.
fn shortened(mut text: String) -> String {
    const MAX_BYTES: usize = 64 << 10;
    if text.len() > MAX_BYTES {
        let omitted = text.len() - MAX_BYTES;
        text.truncate(text.floor_char_boundary(MAX_BYTES));
        let _ = write!(text, " [... {omitted} bytes left out]");
    }
    text
}

impl From<Exception> for code::Exception {
    fn from(exception: Exception) -> Self {
        Self {
            kind: exception.kind,
            message: exception.message,
            traceback: exception.traceback,
        }
    }
}

impl From<code::Outcome> for ProgramOutcome {
    fn from(outcome: code::Outcome) -> Self {
        match outcome {
            code::Outcome::Completed => Self::Completed,
            code::Outcome::Exited(status) => Self::Exited(status),
            code::Outcome::Raised(exception) => Self::Raised(exception.into()),
            code::Outcome::Rejected(exception) => Self::Rejected(exception.into()),
        }
    }
}

impl From<ProgramOutcome> for code::Outcome {
    fn from(outcome: ProgramOutcome) -> Self {
        match outcome {
            ProgramOutcome::Completed => Self::Completed,
            ProgramOutcome::Exited(status) => Self::Exited(status),
            ProgramOutcome::Raised(exception) => Self::Raised(exception.into()),
            ProgramOutcome::Rejected(exception) => Self::Rejected(exception.into()),
        }
    }
}

/// A report as plugins are given it.
pub(crate) fn report_to_guest(report: ProgramReport) -> code::Report {
    let captured = |output: &Output| code::Captured {
        head: output.head().to_vec(),
        tail: output.tail(),
        omitted: output.omitted_bytes(),
    };
    code::Report {
        ended: ended_to_guest(report.ended()),
        stdout: captured(&report.stdout),
        stderr: captured(&report.stderr),
        files: report.files.into_iter().map(Into::into).collect(),
        cpu_us: u64::try_from(report.cpu.as_micros()).unwrap_or(u64::MAX),
        outcome: report.outcome.map(Into::into),
    }
}
