//! `rlf-host run`: runs a program in a sandbox, as its own interpreter would.

mod source;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::{self, ExitCode};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use console::style;
use rlf_dialogue::tool::{Ended, Fault};
use rlf_interpreters::imports::imported;
use rlf_interpreters::interpreter::{Interpreter, Interpreters, ProgramOptions};
use rlf_interpreters::program::{File, Program, ProgramError, ProgramReport};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::problem::{Problem, ProblemKind};
use rlf_plugins::registry::Registry;
use rlf_sandbox::{Stream, Tee, safe_text};

use self::source::Source;
use crate::arguments;
use crate::display::printable;
use crate::operator::Operator;
use crate::plugins::sources;
use crate::progress::Progress;

/// Exit code if the program ran out of time, as with `timeout`.
const TIMED_OUT: u8 = 124;
/// Exit code if the program could not be run, as with `docker`. Programs hardly ever use it themselves.
pub(crate) const NOT_RUN: u8 = 125;
/// Exit code if another limit stopped the program, the same as that of a killed process.
const KILLED: u8 = 137;
/// Exit code after Ctrl-C, the same as that of a process ended by SIGINT.
const INTERRUPTED: u8 = 130;
/// Exit code if nobody reads the output any more, the same as that of a process ended by SIGPIPE.
const UNREAD: u8 = 141;

/// Larger inputs are refused, unless `--files` allows them.
const MAX_INPUT_BYTES: u64 = 64 << 20;
/// Time after which a note says that standard input is still being read.
const NOTED_AFTER: Duration = Duration::from_secs(2);

/// Runs the program. An error means that the program could not be run; its exit code is [`NOT_RUN`].
pub(crate) fn run(options: &arguments::Run) -> anyhow::Result<ExitCode> {
    ctrlc::set_handler(|| {
        end("interrupted", INTERRUPTED);
    })
    .context("cannot watch for Ctrl-C")?;
    let from_stdin = options.script.as_os_str() == "-";
    let most = options.files.unwrap_or(MAX_INPUT_BYTES);
    let name = options.script.to_string_lossy().into_owned();
    let mut script = if from_stdin {
        None
    } else {
        Some(open(&options.script)?)
    };
    let language = language(options, from_stdin)?;
    let code = match &mut script {
        None => read_stdin(most)?,
        Some(file) => read(file, &name, most)?,
    };
    // The name that python3 shows for standard input.
    let shown = if from_stdin { "<stdin>" } else { &name };
    let code = match Source::read(code, &language, shown)? {
        Source::Text(code) => code,
        Source::Rejected(said) => {
            let _ = std::io::stderr().write_all(said.as_bytes());
            return Ok(ExitCode::FAILURE);
        }
    };
    let stdin = if from_stdin || std::io::stdin().is_terminal() {
        Vec::new()
    } else {
        read_stdin(most)?
    };
    let files = options
        .given
        .iter()
        .map(|given| give(given, most))
        .collect::<anyhow::Result<Vec<File>>>()?;
    let fetched: Vec<(&str, &str)> = (options.fetched.iter())
        .map(|fetched| {
            fetched
                .split_once('=')
                .unwrap_or((fetched, base_name(fetched)))
        })
        .collect();
    // Never taken down: when the process ends, the system frees everything at once, and faster.
    let interpreter = ManuallyDrop::new(interpreter(options, &language, &imported(&code, &files))?);
    let runtime = ManuallyDrop::new(crate::commands::runtime()?);
    let mut arguments = vec![if from_stdin { "-".to_owned() } else { name }];
    arguments.extend(options.arguments.iter().cloned());
    let program = Program {
        code,
        arguments,
        stdin,
        files,
        fetch: fetched.iter().map(|(name, _)| (*name).to_owned()).collect(),
        seed: options.seed,
        ..Program::default()
    };
    let spec = ProgramOptions {
        label: "command-line".to_owned(),
        // Output is passed on as it comes, so that the two streams keep their order.
        tee: Some(Tee::new(pass_on)),
        ..ProgramOptions::default()
    };
    let report = runtime
        .block_on(interpreter.run(program, spec))
        .map_err(|error| match error {
            ProgramError::Exhausted(what) => anyhow!("{what}; --files allows more"),
            other => other.into(),
        })?;
    if let Some(limit) = &report.files_refused {
        let allowed_by = match limit.name.as_str() {
            "file_bytes" => "; --files allows more",
            _ => "",
        };
        note(&format!(
            "its files came to their limit ({limit}){allowed_by}"
        ));
    }
    for (name, _) in &fetched {
        let found = |file: &File| same_place(&file.path, name);
        if !report.files.iter().any(found) {
            note(&format!("it left no file {}", printable(name)));
        }
    }
    for file in &report.files {
        let places = fetched
            .iter()
            .filter(|(name, _)| same_place(&file.path, name));
        for (_, path) in places {
            fs::write(path, &file.data).with_context(|| format!("cannot write {path}"))?;
        }
    }
    Ok(exit_code(&report))
}

/// Passes on the program's output. A terminal gets text that cannot control it; a file or a pipe gets the bytes
/// unchanged.
fn pass_on(stream: Stream, bytes: &[u8]) {
    let (mut stdout, mut stderr) = (std::io::stdout().lock(), std::io::stderr().lock());
    let (out, is_terminal): (&mut dyn Write, bool) = match stream {
        Stream::Stdout => {
            let is_terminal = stdout.is_terminal();
            (&mut stdout, is_terminal)
        }
        Stream::Stderr => {
            let is_terminal = stderr.is_terminal();
            (&mut stderr, is_terminal)
        }
    };
    let shown = if is_terminal {
        Cow::Owned(safe_text(bytes).into_bytes())
    } else {
        Cow::Borrowed(bytes)
    };
    let written = out.write_all(&shown).and_then(|()| out.flush());
    match written {
        Ok(()) => {}
        // As with `| head`: the program might otherwise print for ever.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            end("nobody reads what it prints any more", UNREAD)
        }
        Err(error) => crate::output::unwritten(error),
    }
}

/// Ends this process, and with it the program.
fn end(why: &str, code: u8) -> ! {
    let mark = style("stopped:").yellow().bold().for_stderr();
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "{mark} {why}");
    process::exit(code.into())
}

fn note(text: &str) {
    let mark = style("note:").bold().for_stderr();
    let _ = writeln!(std::io::stderr(), "{mark} {text}");
}

/// True if two paths of a program are the same file. Both start at its root.
fn same_place(one: &str, other: &str) -> bool {
    one.trim_start_matches('/') == other.trim_start_matches('/')
}

/// Prints what stopped the program, if anything did, and returns the exit code.
fn exit_code(report: &ProgramReport) -> ExitCode {
    let Some(stopped) = &report.stopped else {
        // A shell sees only the low eight bits.
        return ExitCode::from(report.exit_code().unwrap_or_default() as u8);
    };
    let infrastructure = report.fault() == Fault::Infrastructure;
    let reason = match &stopped.limit {
        Some(limit) if limit.name == "deadline_ms" && infrastructure => {
            too_busy(report.cpu, limit.value)
        }
        _ => stopped.reason.clone(),
    };
    let limit = stopped.limit.as_ref().map(|limit| limit.name.as_str());
    let allowed_by = match limit {
        Some("time_ms") => "; --time-ms allows more",
        Some("memory_bytes") => "; --memory allows more",
        Some("output_stop_bytes") => "; --output allows more",
        _ => "",
    };
    eprintln!(
        "{} {}{allowed_by}",
        style("stopped:").yellow().bold().for_stderr(),
        printable(&reason)
    );
    ExitCode::from(match (report.ended(), report.fault()) {
        (_, Fault::Infrastructure | Fault::Nobody) => NOT_RUN,
        (Ended::Timeout, _) => TIMED_OUT,
        _ => KILLED,
    })
}

/// The reason that is shown if a program was stopped because it got too little CPU time.
fn too_busy(cpu: Duration, deadline_ms: u64) -> String {
    format!(
        "the machine was too busy: the program got {:.1} s of CPU time in {:.1} s (programs.deadline_ms); try again",
        cpu.as_secs_f64(),
        deadline_ms as f64 / 1e3
    )
}

fn language(options: &arguments::Run, from_stdin: bool) -> anyhow::Result<String> {
    if let Some(language) = &options.lang {
        return Ok(language.clone());
    }
    let extension = options.script.extension().unwrap_or_default();
    Ok(match extension.to_str() {
        Some("py") => "python",
        Some("js" | "mjs" | "cjs") => "javascript",
        _ if from_stdin => "python",
        _ => bail!(
            "the extension of {} names no language; say it with --lang",
            options.script.display()
        ),
    }
    .to_owned())
}

/// Loads the interpreter, with the grants of the configuration and the limits of the command line. An interpreter that
/// has one of the packages that the program imports is loaded as well.
fn interpreter(
    options: &arguments::Run,
    language: &str,
    imported: &BTreeSet<&str>,
) -> anyhow::Result<Interpreter> {
    let operator = Operator::load(options.config.as_deref())?;
    let mut grants_by_name = operator.grants_by_name;
    let sources = sources(&options.plugins.plugins)?;
    if grants_by_name
        .get(language)
        .is_some_and(|grants| !grants.enabled)
    {
        bail!("[plugins.{language}] of the configuration says `enabled = false`");
    }
    // Most interpreters are named after their language, so that plugin is tried alone first.
    grants_by_name.entry(language.to_owned()).or_default();
    let with_packages = Registry::with_packages(&sources.all(), &grants_by_name, imported);
    for name in &with_packages {
        grants_by_name.entry(name.clone()).or_default();
    }
    for grants in grants_by_name.values_mut() {
        // This command runs a program, so `functions` does not apply.
        grants.functions = None;
        let programs = &mut grants.programs;
        let given = |value: Option<u64>, place: &mut u64| {
            if let Some(value) = value {
                *place = value;
            }
        };
        if let Some(time) = options.time_ms {
            programs.time = Duration::from_millis(time);
            programs.deadline = programs.deadline.max(programs.time * 4);
        }
        given(options.memory, &mut programs.memory_bytes);
        given(options.output, &mut grants.limits.output_stop_bytes);
        given(options.files, &mut programs.file_bytes);
        if options.config.is_none() {
            // Output is passed on as it comes, so none of it is kept.
            programs.output_bytes = Some(0);
        }
    }
    let mut sandbox = operator.sandbox;
    if let Some(memory) = options.memory {
        sandbox.max_memory_bytes = sandbox.max_memory_bytes.max(memory);
    }
    // Only one program runs, so room for one is enough.
    sandbox.programs = sandbox.programs.or(Some(1));
    sandbox.instances = sandbox.instances.or(Some(1));
    sandbox.is_short_lived = true;
    let sandbox = sources.sandbox(&sandbox)?;
    let load = |wanted: &dyn Fn(&str) -> bool| {
        sources.load_where(&grants_by_name, &sandbox, &Progress::new(), wanted)
    };
    let mut registry = load(&|name| name == language || with_packages.contains(name));
    if registry.plugins().is_empty() && registry.problems().iter().all(is_absent) {
        grants_by_name.remove(language);
        registry = sources.load(&grants_by_name, &sandbox, &Progress::new());
    }
    let interpreters = Interpreters::new(&registry);
    if let Some(interpreter) = interpreters.get(language) {
        return Ok(interpreter.clone());
    }
    if let Some(problem) = registry.problem_of(language) {
        bail!("{problem}");
    }
    let languages: Vec<&str> = interpreters
        .all()
        .map(|interpreter| interpreter.language().id.as_str())
        .collect();
    let there_are = if languages.is_empty() {
        registry.explain_missing(language, PluginKind::Interpreter)
    } else {
        format!("; there are: {}", languages.join(", "))
    };
    bail!(
        "no plugin of {} runs {language}{there_are}",
        sources.display()
    )
}

/// True if a problem only says that a configuration grants something to a plugin that is not installed.
fn is_absent(problem: &Problem) -> bool {
    problem.plugin.is_some() && matches!(problem.kind, ProblemKind::Grants | ProblemKind::Misspelt)
}

/// Reads a file named `PATH` or `PATH=NAME` on the command line, under the name that the program sees.
fn give(given: &str, most: u64) -> anyhow::Result<File> {
    let (path, name) = given.split_once('=').unwrap_or((given, base_name(given)));
    Ok(File {
        path: name.to_owned(),
        data: read(&mut open(Path::new(path))?, path, most)?,
    })
}

fn open(path: &Path) -> anyhow::Result<fs::File> {
    let shown = path.display();
    let file = fs::File::open(path).with_context(|| format!("cannot open {shown}"))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        bail!("{shown} is a folder; name a file");
    }
    Ok(file)
}

/// Reads standard input to its end, without a time limit.
fn read_stdin(most: u64) -> anyhow::Result<Vec<u8>> {
    let (over, waits) = mpsc::channel::<()>();
    thread::spawn(move || {
        if waits.recv_timeout(NOTED_AFTER) == Err(RecvTimeoutError::Timeout) {
            note("waiting for the end of standard input; `< /dev/null` gives the program none");
        }
    });
    let bytes = read(&mut std::io::stdin().lock(), "standard input", most);
    drop(over);
    bytes
}

fn base_name(path: &str) -> &str {
    Path::new(path)
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or(path)
}

fn read(from: &mut dyn Read, name: &str, most: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > most {
        bail!("{name} has more than {most} bytes; --files allows more");
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_named_as_the_cause_and_not_the_program() {
        assert_eq!(
            too_busy(Duration::from_millis(8_420), 120_000),
            "the machine was too busy: the program got 8.4 s of CPU time in 120.0 s (programs.deadline_ms); try again"
        );
    }
}
