//! Running a row's calls in the sandbox, all in one program.

use std::collections::BTreeMap;

use rlf_interpreters::interpreter::{Interpreter, ProgramOptions};
use rlf_interpreters::program::{File, Program, ProgramError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::probes::Probe;
use crate::rows::rejection::{Check, Finding};
use crate::rows::row::Row;

const RUN_ROW: &str = include_str!("run_row.py");
const ROW: &str = "/row.json";
const RESULTS: &str = "/results.json";

/// The reason why a row could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// The interpreter did not run the program.
    #[error("row {id} could not be executed: {source}")]
    Program {
        /// The row.
        id: String,
        /// The interpreter's error.
        source: ProgramError,
    },
    /// The machine stopped the program, for example because it is busy.
    #[error(
        "row {id} could not be executed: {reason}; run the command again, with less running beside it"
    )]
    Infrastructure {
        /// The row.
        id: String,
        /// The limit that stopped it.
        reason: String,
    },
    /// The program left no result that can be read.
    #[error("row {id} left no results that can be read: {problem}")]
    Results {
        /// The row.
        id: String,
        /// The problem.
        problem: String,
    },
}

/// The text that a call shows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "(String, bool)")]
pub(super) struct Output {
    pub(super) text: String,
    /// True if the call raised an exception.
    pub(super) failed: bool,
}

impl From<(String, bool)> for Output {
    fn from((text, failed): (String, bool)) -> Self {
        Self { text, failed }
    }
}

/// All outputs of a row.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Outputs {
    /// Errors of sources that do not compile, fail, or define no function of their tool's name.
    broken: BTreeMap<String, String>,
    /// The gold calls and then the probes, made as an environment makes them.
    pub(super) clean: Vec<Output>,
    /// The gold calls, made as FTRL's executor makes them.
    pub(super) published: Vec<Output>,
}

impl Outputs {
    /// The texts of the gold calls.
    pub(super) fn gold(&self) -> Vec<&str> {
        let gold = self.clean.iter().take(self.published.len());
        gold.map(|output| output.text.as_str()).collect()
    }
}

/// The end of a row's program.
pub(super) enum Executed {
    Results(Outputs),
    /// The row is to blame for the program's end.
    Finding(Finding),
}

#[derive(Serialize)]
struct Given<'a> {
    tools: Vec<(&'a str, &'a str)>,
    gold: Vec<(&'a str, &'a Map<String, Value>)>,
    others: Vec<(&'a str, &'a Map<String, Value>)>,
}

pub(super) async fn execute(
    row: &Row,
    probes: &[Probe],
    interpreter: &Interpreter,
) -> Result<Executed, ExecutionError> {
    let given = Given {
        tools: row
            .tools
            .iter()
            .map(|tool| (tool.name.as_str(), tool.source.as_str()))
            .collect(),
        gold: row
            .calls
            .iter()
            .map(|call| (call.tool.as_str(), &call.arguments))
            .collect(),
        others: probes
            .iter()
            .map(|probe| (row.tools[probe.tool].name.as_str(), &probe.arguments))
            .collect(),
    };
    let program = Program {
        code: RUN_ROW.to_owned(),
        arguments: vec!["run_row.py".to_owned(), ROW.to_owned(), RESULTS.to_owned()],
        files: vec![File {
            path: ROW.to_owned(),
            data: json!(given).to_string().into_bytes(),
        }],
        fetch: vec![RESULTS.to_owned()],
        ..Program::default()
    };
    let options = ProgramOptions {
        label: format!("forge rows: {}", row.id),
        ..ProgramOptions::default()
    };
    let report =
        interpreter
            .run(program, options)
            .await
            .map_err(|source| ExecutionError::Program {
                id: row.id.clone(),
                source,
            })?;
    if let Some(stopped) = &report.stopped {
        let reason = stopped.reason.clone();
        if stopped.ended.is_infrastructure() {
            let id = row.id.clone();
            return Err(ExecutionError::Infrastructure { id, reason });
        }
        let finding = Finding::new(Check::Stopped, format!("its program was stopped: {reason}"));
        return Ok(Executed::Finding(finding));
    }
    let Some(file) = report.files.first() else {
        let end = match report
            .outcome
            .as_ref()
            .and_then(|outcome| outcome.exception())
        {
            Some(exception) => format!("{}: {}", exception.kind, exception.message),
            None => "a tool ended the program".to_owned(),
        };
        return Ok(Executed::Finding(Finding::new(Check::Stopped, end)));
    };
    let failed = |problem: String| ExecutionError::Results {
        id: row.id.clone(),
        problem,
    };
    let outputs: Outputs =
        serde_json::from_slice(&file.data).map_err(|error| failed(error.to_string()))?;
    if let Some((tool, error)) = outputs.broken.first_key_value() {
        let reason = format!("the source of `{tool}` cannot be executed: {error}");
        return Ok(Executed::Finding(Finding::malformed(reason)));
    }
    let expected = (row.calls.len() + probes.len(), row.calls.len());
    if (outputs.clean.len(), outputs.published.len()) != expected {
        return Err(failed("a call has no result".to_owned()));
    }
    Ok(Executed::Results(outputs))
}
