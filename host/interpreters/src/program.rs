//! Programs for an interpreter, and the report of a run.

use std::fmt::Write as _;
use std::time::Duration;

use rlf_dialogue::tool::{Ended, Fault};
use rlf_sandbox::{LimitReached, Output, Stopped};

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

/// A compiled module that programs can import. Only the interpreter that compiled it can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The name by which programs import it.
    pub name: String,
    /// The compiled code, in the interpreter's own format.
    pub data: Vec<u8>,
}

/// A program with everything that it is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// The source text.
    pub code: String,
    /// The arguments. The first one names the program, also in tracebacks. If there is none, the interpreter chooses a
    /// name.
    pub arguments: Vec<String>,
    /// Standard input.
    pub stdin: Vec<u8>,
    /// Files that exist when it starts.
    pub files: Vec<File>,
    /// Paths of files to fetch at the end. Missing files are left out.
    pub fetch: Vec<String>,
    /// Modules that it can import, in addition to the library.
    pub modules: Vec<Compiled>,
    /// Seed of all randomness.
    pub seed: u64,
    /// The limits that it asks for.
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
            // Some editors write this mark. It is not part of the program.
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

    /// Converts a program of a plugin.
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

/// Refuses input that exceeds the limit.
pub(crate) fn check_given(grants: &ProgramGrants, bytes: u64) -> Result<(), ProgramError> {
    if bytes <= grants.file_bytes {
        return Ok(());
    }
    Err(ProgramError::Exhausted(format!(
        "code, input, files and modules have {bytes} bytes; {} are allowed (programs.file_bytes)",
        grants.file_bytes
    )))
}

/// The limit that fetched files of this size exceed, if they do.
pub(crate) fn fetched_limit(
    grants: &ProgramGrants,
    bytes: u64,
    wanted: &ProgramLimits,
) -> Option<LimitReached> {
    let max = (wanted.file_bytes.unwrap_or(u64::MAX)).min(grants.file_bytes);
    (bytes > max).then(|| LimitReached {
        name: "file_bytes".to_owned(),
        value: max,
        used: bytes,
    })
}

/// An uncaught exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// The class, such as `ZeroDivisionError`.
    pub kind: String,
    /// The message.
    pub message: String,
    /// The traceback, as the interpreter prints it.
    pub traceback: String,
}

/// The end of a program that was not stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramOutcome {
    /// The program reached the end of its code.
    Completed,
    /// The program exited with this status.
    Exited(i32),
    /// The program raised this exception and did not catch it.
    Raised(Exception),
    /// The program did not compile or parse. None of it ran.
    Rejected(Exception),
}

impl ProgramOutcome {
    /// The exit code that a process would have.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Completed => 0,
            // A process has one byte for it.
            Self::Exited(code) => code & 0xff,
            Self::Raised(_) | Self::Rejected(_) => 1,
        }
    }

    /// The uncaught exception that ended it, if one did.
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
    /// The end of the program; `None` if it was stopped.
    pub outcome: Option<ProgramOutcome>,
    /// The reason why it was stopped, if it was.
    pub stopped: Option<Stopped>,
    /// Standard output.
    pub stdout: Output,
    /// Standard error, tracebacks included.
    pub stderr: Output,
    /// The requested files that exist; none if they exceed the limit together, or if the program was stopped.
    pub files: Vec<File>,
    /// The last limit on its files that refused it something, such as `file_bytes`. Many C libraries tell a program only of
    /// an I/O error.
    pub files_refused: Option<LimitReached>,
    /// CPU time.
    pub cpu: Duration,
    /// Real time, queueing included.
    pub wall: Duration,
    /// Real time until it got a place.
    pub queued: Duration,
    /// Maximum memory that it used at once, in bytes, shared memory included.
    pub memory_peak: u64,
}

impl ProgramReport {
    /// The exit code that a process would have; `None` if it was stopped.
    pub fn exit_code(&self) -> Option<i32> {
        self.outcome.as_ref().map(ProgramOutcome::exit_code)
    }

    /// The end of the program in the words for calls: `ok` if a process would exit with 0, `failed` if with another code.
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
            // If a program breaks its interpreter, the author of the program is responsible.
            Some(stopped) => match CallEnd::from_stopped(stopped).fault {
                Fault::Plugin => Fault::Model,
                other => other,
            },
            None => Fault::of_answer(self.ended() != Ended::Ok),
        }
    }
}

/// The reason why a program did not run, or gave no meaningful result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The request is invalid, for example because a path leads out of the program's root.
    #[error("{0}")]
    InvalidArguments(String),
    /// There is no such language.
    #[error("{0}")]
    NotFound(String),
    /// A limit was exceeded.
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
    /// The source has an error.
    #[error("{}: {}", .0.kind, .0.message)]
    Rejected(Exception),
    /// The source could not be tested.
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

    /// The error of a stopped request other than a run.
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

/// Shortens the text of an exception, because a program can raise any amount of text.
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

/// Converts a report for plugins.
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
