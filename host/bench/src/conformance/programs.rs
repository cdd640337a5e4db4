//! Runs programs and compares their output, files and exit codes with recorded ones. A folder `programs` has `NAME.py`
//! (or another extension) beside `NAME.toml`; a folder `sessions` has one `.toml` for each notebook. The README beside
//! them explains the keys.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use rlf_dialogue::tool::Ended;
use rlf_interpreters::interpreter::{Interpreter, ProgramOptions};
use rlf_interpreters::notebook::{CellReport, NotebookRequest};
use rlf_interpreters::program::{CompileError, Compiled, File, Program, ProgramOutcome};
use rlf_plugins::programs::ProgramLimits;
use rlf_sandbox::Output;
use serde::Deserialize;

use super::Tally;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Case {
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    stdin: String,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    fetch: Vec<String>,
    /// Read only by the recorder.
    #[serde(default, rename = "native")]
    _native: Option<bool>,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    modules: BTreeMap<String, String>,
    #[serde(default)]
    sandbox: Expected,
    /// Expectations that replace these in interpreters whose version begins with the key.
    #[serde(default)]
    versions: BTreeMap<String, Expected>,
    #[serde(default)]
    expected: Expected,
}

#[derive(Default, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Limits {
    wall_ms: u64,
    memory_bytes: u64,
    output_bytes: u64,
    file_bytes: u64,
}

impl From<Limits> for ProgramLimits {
    fn from(limits: Limits) -> Self {
        let given = |value: u64| (value > 0).then_some(value);
        Self {
            time: given(limits.wall_ms).map(Duration::from_millis),
            memory_bytes: given(limits.memory_bytes),
            output_bytes: given(limits.output_bytes),
            file_bytes: given(limits.file_bytes),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Expected {
    /// Reason why the sandbox differs from native Python, for readers.
    #[serde(rename = "because")]
    because: Option<String>,
    ended: Option<String>,
    exit_code: Option<i32>,
    stdout: Option<String>,
    stderr: Option<String>,
    stdout_contains: Option<Texts>,
    stderr_contains: Option<Texts>,
    stdout_begins: Option<String>,
    stdout_ends: Option<String>,
    files: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    fn each(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Several(texts) => texts,
        }
    }
}

impl Expected {
    /// Combines the sandbox's own expectations with the common ones. The sandbox's own keys win.
    fn or(self, other: Self) -> Self {
        // An own expectation for a part also replaces the common one for the whole.
        let whole = |own: Option<String>, part: &Option<Texts>, other: Option<String>| {
            own.or(if part.is_some() { None } else { other })
        };
        Self {
            because: self.because.or(other.because),
            ended: self.ended.or(other.ended),
            exit_code: self.exit_code.or(other.exit_code),
            stdout: whole(self.stdout, &self.stdout_contains, other.stdout),
            stderr: whole(self.stderr, &self.stderr_contains, other.stderr),
            stdout_contains: self.stdout_contains.or(other.stdout_contains),
            stderr_contains: self.stderr_contains.or(other.stderr_contains),
            stdout_begins: self.stdout_begins.or(other.stdout_begins),
            stdout_ends: self.stdout_ends.or(other.stdout_ends),
            files: self.files.or(other.files),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SessionCase {
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    modules: BTreeMap<String, String>,
    #[serde(default)]
    fetch: Vec<String>,
    cell: Vec<CellCase>,
    #[serde(default)]
    expected: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CellCase {
    code: String,
    outcome: Option<String>,
    exit_code: Option<i32>,
    kind: Option<String>,
    message: Option<String>,
    traceback: Option<String>,
    traceback_contains: Option<Texts>,
    value: Option<String>,
    #[serde(default)]
    displays: Vec<(String, String)>,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    stderr: String,
    stderr_contains: Option<Texts>,
}

/// Runs all cases of a folder, in order of their names.
pub(super) async fn run(
    interpreter: &Interpreter,
    folder: &Path,
) -> anyhow::Result<Vec<(&'static str, Tally)>> {
    let mut tallies = Vec::new();
    let programs = folder.join("programs");
    if programs.is_dir() {
        let mut tally = Tally::default();
        for name in cases(&programs)? {
            let case: Case = rlf_config::parse(
                &read(&programs.join(format!("{name}.toml")))?,
                &format!("{name}.toml"),
            )?;
            let code = read(&source(&programs, &name)?)?;
            tally.count(&name, check(interpreter, case, code).await);
        }
        tallies.push(("programs", tally));
    }
    let sessions = folder.join("sessions");
    if sessions.is_dir() {
        let mut tally = Tally::default();
        for name in cases(&sessions)? {
            let case: SessionCase = rlf_config::parse(
                &read(&sessions.join(format!("{name}.toml")))?,
                &format!("{name}.toml"),
            )?;
            tally.count(&name, check_session(interpreter, case).await);
        }
        tallies.push(("notebooks", tally));
    }
    if tallies.is_empty() {
        bail!(
            "{} has neither a folder `programs` nor one `sessions`",
            folder.display()
        );
    }
    Ok(tallies)
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The names of the cases of a folder, sorted.
fn cases(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let name = path.file_stem().unwrap_or_default();
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The source file of a case.
fn source(folder: &Path, name: &str) -> anyhow::Result<std::path::PathBuf> {
    ["py", "js", "mjs"]
        .iter()
        .map(|extension| folder.join(format!("{name}.{extension}")))
        .find(|path| path.is_file())
        .with_context(|| format!("{} has a case {name} without a program", folder.display()))
}

fn files(files: BTreeMap<String, String>) -> Vec<File> {
    let file = |(path, text): (String, String)| File {
        path,
        data: text.into_bytes(),
    };
    files.into_iter().map(file).collect()
}

async fn compile(
    interpreter: &Interpreter,
    modules: BTreeMap<String, String>,
) -> Result<Vec<Compiled>, String> {
    let mut compiled = Vec::new();
    for (name, source) in modules {
        let module = interpreter.compile(&name, &source).await;
        compiled.push(module.map_err(|error| match error {
            CompileError::Rejected(exception) => format!("{name}: {}", exception.traceback),
            CompileError::Program(error) => error.to_string(),
        })?);
    }
    Ok(compiled)
}

async fn check(interpreter: &Interpreter, case: Case, code: String) -> Result<(), String> {
    let version = &interpreter.language().version;
    let mut versions = case.versions.into_iter();
    let of_version = versions.find(|(start, _)| version.starts_with(start.as_str()));
    let of_version = of_version.map(|(_, expected)| expected);
    let expected = (of_version.unwrap_or_default()).or(case.sandbox.or(case.expected));
    let program = Program {
        code,
        arguments: case.arguments,
        stdin: case.stdin.into_bytes(),
        files: files(case.files),
        fetch: case.fetch,
        modules: compile(interpreter, case.modules).await?,
        seed: case.seed,
        limits: case.limits.into(),
    };
    let report = interpreter.run(program, ProgramOptions::default()).await;
    let report = report.map_err(|error| error.to_string())?;
    let ended = match &report.stopped {
        Some(_) => report.ended(),
        None => Ended::Ok,
    };
    same(
        "ended",
        ended.as_str(),
        expected.ended.as_deref().unwrap_or("ok"),
    )?;
    if let Some(code) = expected.exit_code.filter(|_| ended == Ended::Ok) {
        // A shell sees only the low eight bits.
        same(
            "exit code",
            &(report.exit_code().unwrap_or_default() & 0xff).to_string(),
            &code.to_string(),
        )?;
    }
    let stdout = text(&report.stdout);
    let stderr = text(&report.stderr);
    for (name, printed, whole, parts) in [
        (
            "stdout",
            &stdout,
            &expected.stdout,
            &expected.stdout_contains,
        ),
        (
            "stderr",
            &stderr,
            &expected.stderr,
            &expected.stderr_contains,
        ),
    ] {
        if let Some(whole) = whole {
            same(name, printed, whole)?;
        }
        contains(name, printed, parts.as_ref())?;
    }
    let has = |holds: bool, what: &str, part: &Option<String>| match part {
        Some(part) if !holds => Err(format!(
            "stdout does not {what} {part:?}: {}",
            excerpt(&stdout)
        )),
        _ => Ok(()),
    };
    let begins = expected.stdout_begins.as_deref().unwrap_or_default();
    has(
        stdout.starts_with(begins),
        "begin with",
        &expected.stdout_begins,
    )?;
    let ends = expected.stdout_ends.as_deref().unwrap_or_default();
    has(stdout.ends_with(ends), "end with", &expected.stdout_ends)?;
    check_files(expected.files, &report.files)
}

fn check_files(expected: Option<BTreeMap<String, String>>, found: &[File]) -> Result<(), String> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let found: BTreeMap<String, String> = found
        .iter()
        .map(|file| {
            (
                file.path.clone(),
                String::from_utf8_lossy(&file.data).into_owned(),
            )
        })
        .collect();
    same("files", &format!("{found:#?}"), &format!("{expected:#?}"))
}

async fn check_session(interpreter: &Interpreter, case: SessionCase) -> Result<(), String> {
    let request = NotebookRequest {
        files: files(case.files),
        modules: compile(interpreter, case.modules).await?,
        seed: case.seed,
        limits: ProgramLimits::default(),
    };
    let notebook = interpreter
        .open_notebook(request, ProgramOptions::default())
        .await;
    let mut notebook = notebook.map_err(|error| error.to_string())?;
    for (number, cell) in case.cell.into_iter().enumerate() {
        let report = notebook.execute(&cell.code, ProgramLimits::default()).await;
        let report = report.map_err(|error| error.to_string())?;
        check_cell(&cell, &report).map_err(|why| format!("cell {}: {why}", number + 1))?;
    }
    let fetched = notebook.fetch(&case.fetch).await;
    let fetched = fetched.map_err(|error| error.to_string())?;
    check_files(case.expected.files, &fetched)
}

fn check_cell(cell: &CellCase, report: &CellReport) -> Result<(), String> {
    if let Some(stopped) = &report.stopped {
        return Err(stopped.to_string());
    }
    let outcome = report.outcome.as_ref();
    let (name, code) = match outcome {
        None => ("stopped", None),
        Some(ProgramOutcome::Completed) => ("completed", None),
        Some(ProgramOutcome::Exited(code)) => ("exited", Some(*code)),
        Some(ProgramOutcome::Raised(_)) => ("raised", None),
        Some(ProgramOutcome::Rejected(_)) => ("rejected", None),
    };
    let exception = outcome.and_then(ProgramOutcome::exception);
    let told = |what: &str| {
        exception.map_or_else(|| what.to_owned(), |exception| exception.traceback.clone())
    };
    same(
        "outcome",
        name,
        cell.outcome.as_deref().unwrap_or("completed"),
    )
    .map_err(|why| format!("{why}; {}", told("no exception")))?;
    if cell.exit_code.is_some() {
        same(
            "exit code",
            &format!("{code:?}"),
            &format!("{:?}", cell.exit_code),
        )?;
    }
    if let Some(exception) = exception {
        for (what, found, expected) in [
            ("kind", &exception.kind, &cell.kind),
            ("message", &exception.message, &cell.message),
            ("traceback", &exception.traceback, &cell.traceback),
        ] {
            if let Some(expected) = expected {
                same(what, found, expected)?;
            }
        }
        contains(
            "traceback",
            &exception.traceback,
            cell.traceback_contains.as_ref(),
        )?;
    }
    same(
        "value",
        &format!("{:?}", report.value),
        &format!("{:?}", cell.value),
    )?;
    let displays: Vec<(String, String)> = report
        .displays
        .iter()
        .map(|display| (display.media_type.clone(), readable(&display.data)))
        .collect();
    same(
        "displays",
        &format!("{displays:?}"),
        &format!("{:?}", cell.displays),
    )?;
    same("stdout", &text(&report.stdout), &cell.stdout)?;
    let stderr = text(&report.stderr);
    if cell.stderr_contains.is_some() {
        return contains("stderr", &stderr, cell.stderr_contains.as_ref());
    }
    same("stderr", &stderr, &cell.stderr)
}

/// UTF-8 as text; otherwise each byte as the character of the same number.
fn readable(data: &[u8]) -> String {
    std::str::from_utf8(data).map_or_else(
        |_| data.iter().map(|byte| char::from(*byte)).collect(),
        str::to_owned,
    )
}

fn text(output: &Output) -> String {
    let mut bytes = output.head().to_vec();
    bytes.extend(output.tail());
    String::from_utf8_lossy(&bytes).into_owned()
}

fn same(what: &str, found: &str, expected: &str) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{what} is not as expected\n- {}\n+ {}",
        excerpt(expected),
        excerpt(found)
    ))
}

fn contains(what: &str, found: &str, parts: Option<&Texts>) -> Result<(), String> {
    let missing = parts
        .into_iter()
        .flat_map(Texts::each)
        .find(|part| !found.contains(part.as_str()));
    match missing {
        Some(part) => Err(format!("{what} has no {part:?}: {}", excerpt(found))),
        None => Ok(()),
    }
}

fn excerpt(text: &str) -> String {
    const MAX_SHOWN: usize = 1_200;
    let end = text.floor_char_boundary(MAX_SHOWN);
    let rest = if end < text.len() { " .." } else { "" };
    format!("{:?}{rest}", &text[..end]).replace("\\n", "\n    ")
}
