//! Preparing a component in a child process.
//!
//! No limit of a call covers parsing, initialising, snapshotting and compiling an untrusted component: a
//! compiler cannot be interrupted. So a child does it. The operating system limits the child's memory, CPU time
//! and wall-clock time; its environment is empty and its only descriptors are three pipes. It answers with
//! compiled code, or with one line that gives the reason for a failure.
//!
//! The child is a program of the same build, started with the argument [`ARGUMENT`]: it calls
//! [`prepare_from_stdin`] and exits. The request is a line of JSON and the component. Code that was compiled for it before
//! is a file that the parent has open. The answer is a line of JSON and then compiled code.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rlf_config::milliseconds;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use serde::{Deserialize, Serialize};

use super::compile::make;
use super::error::LoadError;
use super::job::{Earlier, Entry, Job, Made};
use crate::cache::CompiledCode;
use crate::engine::{Sandbox, SandboxConfig};
use crate::grants::Grants;
use crate::guest::{Gates, OpenGate};
use crate::limits::Limits;
use crate::record::Record;
use crate::report::{safe_text, shortened};
use crate::wasi::data::DataSet;

/// Command-line argument that starts a program as the child: see [`prepare_from_stdin`].
pub const ARGUMENT: &str = "prepare";

/// Path of the running program. On Linux it is valid also if the program's file was replaced.
#[must_use]
pub fn this_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        return PathBuf::from("/proc/self/exe");
    }
    // Without a path, the error is that of a program that cannot be started.
    std::env::current_exe().unwrap_or_default()
}

/// Folder with an entry for each open descriptor of this process.
const DESCRIPTORS: &str = if cfg!(target_os = "linux") {
    "/proc/self/fd"
} else {
    "/dev/fd"
};

/// Maximum number of bytes read from a child.
const MAX_COMPILED_BYTES: u64 = 2 << 30;

/// Bytes of a component for which the time of `prepare_ms` is allowed once.
const SIZE_OF_PREPARE: u64 = 64 << 20;

/// Bytes of memory that are allowed for each byte of a component, in addition to `prepare_memory_bytes`.
const MEMORY_OF_SIZE: u64 = 16;

/// Request to the child. The component follows it, and then what [`InitCode::Piped`] says.
#[derive(Serialize, Deserialize)]
struct Request {
    name: String,
    config_json: String,
    data: Grants,
    limits: Limits,
    gates: Vec<String>,
    has_init: bool,
    /// Process id of the parent. A child without its parent does nothing.
    parent: i32,
    component_bytes: u64,
    /// The compiled component, if there is one.
    init_code: Option<InitCode>,
    /// Name of the code that needs no compiling.
    code: Option<String>,
    max_memory_bytes: u64,
    #[serde(with = "milliseconds")]
    tick: Duration,
    memory_bytes: u64,
    #[serde(with = "milliseconds")]
    cpu: Duration,
}

/// Place of the compiled component that `init` runs in.
#[derive(Serialize, Deserialize)]
enum InitCode {
    /// A file that the parent has open.
    File(PathBuf),
    /// Behind the component, with this length.
    Piped(u64),
}

/// Answer of the child. After a success, the three pieces of compiled code of [`Made`] follow it.
#[derive(Serialize, Deserialize)]
enum Answer {
    Ready {
        entry: Entry,
        /// Lengths of the pieces.
        compiled_bytes: usize,
        code_bytes: Option<usize>,
        init_code_bytes: Option<usize>,
        /// Hash of the data that `init` could read.
        data: Option<String>,
        #[serde(with = "milliseconds")]
        prepare: Duration,
        #[serde(with = "milliseconds")]
        compile: Duration,
    },
    /// Its `init` refused its config.
    Config { reason: String, printed: String },
    /// Its `init` failed in another way.
    Init { reason: String, printed: String },
    /// The component does not compile or link.
    Compile { reason: String },
    /// Anything else.
    Other { reason: String },
}

/// Starts `program` as the child that prepares the component of `job`.
pub(crate) fn prepare_elsewhere(
    program: &Path,
    config: &SandboxConfig,
    job: &Job<'_>,
    grants: &Grants,
    has_init: bool,
    earlier: &Earlier,
) -> Result<Made, LoadError> {
    let limits = job.record.limits();
    let size = job.bytes.len() as u64;
    // The time for `init` is added.
    let allowed = config.prepare * size.div_ceil(SIZE_OF_PREPARE).max(1) as u32 + limits.init;
    let memory_bytes = (config.prepare_memory_bytes).saturating_add(MEMORY_OF_SIZE * size);
    let mut piped: &[u8] = &[];
    let init_code = (earlier.init_code.as_ref()).and_then(|code| match code {
        CompiledCode::Memory(bytes) => {
            piped = bytes;
            Some(InitCode::Piped(bytes.len() as u64))
        }
        open => open.for_child().map(InitCode::File),
    });
    let request = Request {
        name: job.plugin.to_string(),
        config_json: job.config_json.clone(),
        data: grants.clone(),
        limits: Limits::clone(limits),
        gates: job
            .gates
            .interfaces()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        has_init,
        parent: std::process::id() as i32,
        component_bytes: job.bytes.len() as u64,
        init_code,
        code: earlier.code.clone(),
        max_memory_bytes: config.max_memory_bytes,
        tick: config.tick,
        memory_bytes,
        cpu: allowed,
    };
    let failed = |what: &str, error: &dyn std::fmt::Display| LoadError::Preparation {
        reason: format!("the process that prepares it {what}: {error}"),
    };
    let mut child = Command::new(program)
        .arg(ARGUMENT)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            failed(
                &format!("({}) cannot be started", program.display()),
                &error,
            )
        })?;
    let mut header = serde_json::to_vec(&request)
        .map_err(|error| failed("cannot be given its request", &error))?;
    header.push(b'\n');

    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        // A child that reads nothing, or prints more than fits into a pipe, must not block this process.
        scope.spawn(move || {
            let mut stdin = stdin?;
            stdin.write_all(&header).ok()?;
            stdin.write_all(job.bytes).ok()?;
            stdin.write_all(piped).ok()
        });
        let said = scope.spawn(move || read_at_most(stderr, 64 << 10));
        let (sender, answered) = mpsc::channel();
        scope.spawn(move || sender.send(read_at_most(stdout, MAX_COMPILED_BYTES)));
        let answer = answered.recv_timeout(allowed);
        if answer.is_err() {
            let _ = child.kill();
        }
        let status = child
            .wait()
            .map_err(|error| failed("cannot be waited for", &error))?;
        let said = said.join().unwrap_or_default();
        let Ok(answer) = answer else {
            return Err(out_of_time(allowed));
        };
        if !status.success() {
            return Err(ended_badly(status, &said, allowed, memory_bytes));
        }
        let (answer, code) = read_answer(answer)
            .map_err(|error| failed("gave an answer that cannot be read", &error))?;
        let (made, data) = answer.into_made(code)?;
        // Both processes opened the same paths. The cache's key has the hash of this one.
        if data != data_hash(&job.data) {
            return Err(LoadError::Preparation {
                reason: "the data bound to it changed while it was being prepared; load it again"
                    .into(),
            });
        }
        Ok(made)
    })
}

fn data_hash(data: &DataSet) -> Option<String> {
    data.hash().map(|hash| hash.to_hex().to_string())
}

fn read_at_most(pipe: Option<impl Read>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // After an error the bytes that were read are kept.
        let _ = pipe.take(most).read_to_end(&mut bytes);
    }
    bytes
}

/// The answer of a child, and the compiled code that follows it.
fn read_answer(mut bytes: Vec<u8>) -> io::Result<(Answer, Vec<u8>)> {
    let end = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .ok_or_else(|| {
            io::Error::new(io::ErrorKind::UnexpectedEof, "it ended before its answer")
        })?;
    let answer = serde_json::from_slice(&bytes[..end])?;
    bytes.drain(..=end);
    Ok((answer, bytes))
}

impl Answer {
    /// The prepared component, and the hash of the data that its `init` could read.
    fn into_made(self, mut code: Vec<u8>) -> Result<(Made, Option<String>), LoadError> {
        // Only what follows a piece is copied, which is nothing if the code is known.
        let mut piece = |bytes: usize| {
            if bytes > code.len() {
                return Err(LoadError::Preparation {
                    reason: "the process that prepares it ended within its answer".to_owned(),
                });
            }
            let rest = code.split_off(bytes);
            Ok(std::mem::replace(&mut code, rest))
        };
        match self {
            Self::Ready {
                entry,
                compiled_bytes,
                code_bytes,
                init_code_bytes,
                data,
                prepare,
                compile,
            } => {
                let made = Made {
                    entry,
                    compiled: piece(compiled_bytes)?,
                    code: code_bytes.map(&mut piece).transpose()?,
                    init_code: init_code_bytes.map(&mut piece).transpose()?,
                    prepare,
                    compile,
                };
                Ok((made, data))
            }
            Self::Config { reason, printed } => Err(LoadError::Config { reason, printed }),
            Self::Init { reason, printed } => Err(LoadError::Init { reason, printed }),
            Self::Compile { reason } => Err(LoadError::Compile { reason }),
            Self::Other { reason } => Err(LoadError::Preparation { reason }),
        }
    }
}

fn out_of_time(allowed: Duration) -> LoadError {
    LoadError::Preparation {
        reason: format!(
            "preparing it took more than {} ms (the sandbox's prepare_ms and the plugin's init_ms together)",
            allowed.as_millis()
        ),
    }
}

fn needed_more_memory(bytes: u64) -> String {
    format!(
        "preparing it needed more than {bytes} bytes of memory (the sandbox's prepare_memory_bytes and 16 times its size)"
    )
}

/// Reason that a child ended without an answer. The system's limits end it by a signal.
fn ended_badly(status: ExitStatus, said: &[u8], allowed: Duration, memory: u64) -> LoadError {
    let last = safe_text(said);
    let last = last
        .lines()
        .rfind(|line| !line.trim().is_empty())
        .unwrap_or("nothing");
    let last = shortened(last.to_owned(), 300);
    match status.signal() {
        Some(signal) if signal == Signal::XCPU.as_raw() || signal == Signal::KILL.as_raw() => {
            out_of_time(allowed)
        }
        Some(_) => LoadError::Preparation {
            reason: format!(
                "{}, or broke the compiler, which said: {last}",
                needed_more_memory(memory)
            ),
        },
        None => LoadError::Preparation {
            reason: format!("the process that prepares it ended with {status} and said: {last}"),
        },
    }
}

/// Separates the child from its parent, except for the three pipes: closes inherited descriptors, and ends the child
/// with the parent. Only Linux ends it at once; elsewhere its limit of CPU time does.
fn stand_alone() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let numbers: Vec<i32> = fs::read_dir(DESCRIPTORS)?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // SAFETY: this process has opened nothing yet that it keeps, so nobody here owns the number. That of the
        // folder which was just read is closed already, and closing it again fails without harm.
        #[allow(unsafe_code)]
        unsafe {
            rustix::io::close(number);
        }
    }
    Ok(())
}

/// Prepares, as the child, the component on standard input and answers on standard output. A program that uses a
/// [`Sandbox`] calls this before anything else if its only argument is [`ARGUMENT`].
///
/// `gates` are all gates of the program. They are linked if the component imports them, and stay shut.
pub fn prepare_from_stdin(gates: &[Arc<dyn OpenGate>]) -> ExitCode {
    let served = || -> Result<(), String> {
        let say = |error: io::Error| error.to_string();
        stand_alone().map_err(say)?;
        let mut input = BufReader::new(io::stdin().lock());
        let mut header = String::new();
        input.read_line(&mut header).map_err(say)?;
        let request: Request = serde_json::from_str(&header).map_err(|error| error.to_string())?;
        let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
        if parent != Some(request.parent) {
            return Err("the process that asked for it is gone".to_owned());
        }
        // Before a byte of the component is read.
        limit(&request)?;
        let mut piece = |bytes: u64| {
            let mut piece = Vec::new();
            let read = (&mut input).take(bytes).read_to_end(&mut piece);
            read.map(|_| piece).map_err(|error| match error.kind() {
                io::ErrorKind::OutOfMemory => needed_more_memory(request.memory_bytes),
                _ => error.to_string(),
            })
        };
        let component = piece(request.component_bytes)?;
        let earlier = Earlier {
            init_code: match &request.init_code {
                Some(InitCode::File(path)) => Some(CompiledCode::OfParent(path.clone())),
                Some(InitCode::Piped(bytes)) => Some(CompiledCode::Memory(piece(*bytes)?)),
                None => None,
            },
            code: request.code.clone(),
        };
        let (answer, code) = answer(&request, gates, &component, &earlier);
        let mut output = io::stdout().lock();
        let mut line = serde_json::to_vec(&answer).map_err(|error| error.to_string())?;
        line.push(b'\n');
        output.write_all(&line).map_err(say)?;
        for piece in code {
            output.write_all(&piece).map_err(say)?;
        }
        output.flush().map_err(say)
    };
    match served() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Sets the limits that the operating system enforces.
fn limit(request: &Request) -> Result<(), String> {
    let seconds = request.cpu.as_secs() + 1;
    for (resource, most) in [
        // Memory that can be written: reservations of address space cost nothing and do not count.
        (Resource::Data, request.memory_bytes),
        (Resource::Cpu, seconds),
        (Resource::Core, 0),
        // Data bound to it, and images of memories. (Those are files to the system, so that it cannot be
        // forbidden to write any.)
        (Resource::Nofile, 256),
    ] {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit)
            .map_err(|error| format!("cannot limit {resource:?}: {error}"))?;
    }
    Ok(())
}

fn answer(
    request: &Request,
    gates: &[Arc<dyn OpenGate>],
    component: &[u8],
    earlier: &Earlier,
) -> (Answer, Vec<Vec<u8>>) {
    let prepared = || -> Result<(Answer, Vec<Vec<u8>>), LoadError> {
        let other = |reason: String| LoadError::Preparation { reason };
        let sandbox = Sandbox::new(&SandboxConfig {
            instances: Some(1),
            programs: Some(1),
            workers: Some(1),
            max_memory_bytes: request.max_memory_bytes,
            tick: request.tick,
            ..SandboxConfig::default()
        })
        .map_err(|error| {
            let needed = needed_more_memory(request.memory_bytes);
            other(format!("{needed}: {error}"))
        })?;
        let imported: Vec<Arc<dyn OpenGate>> = gates
            .iter()
            .filter(|gate| request.gates.iter().any(|name| name == gate.interface()))
            .cloned()
            .collect();
        let job = Job {
            plugin: Arc::from(request.name.as_str()),
            bytes: component,
            config_json: &request.config_json,
            data: Arc::new(DataSet::open(&request.data.data)?),
            files: request.data.file_grant()?,
            record: Record::new(Arc::new(request.limits.clone()), None),
            gates: Gates::new(&imported),
        };
        let made = make(&sandbox.inner, &job, request.has_init, earlier)?;
        let answer = Answer::Ready {
            entry: made.entry,
            compiled_bytes: made.compiled.len(),
            code_bytes: made.code.as_ref().map(Vec::len),
            init_code_bytes: made.init_code.as_ref().map(Vec::len),
            data: data_hash(&job.data),
            prepare: made.prepare,
            compile: made.compile,
        };
        let pieces = [Some(made.compiled), made.code, made.init_code];
        Ok((answer, pieces.into_iter().flatten().collect()))
    };
    prepared().unwrap_or_else(|error| {
        let answer = match error {
            LoadError::Config { reason, printed } => Answer::Config { reason, printed },
            LoadError::Init { reason, printed } => Answer::Init { reason, printed },
            LoadError::Compile { reason } => Answer::Compile { reason },
            other => Answer::Other {
                reason: other.to_string(),
            },
        };
        (answer, Vec::new())
    })
}
