//! The requests and answers of SandboxFusion, field by field, with its names and in its order.
//!
//! Requests may have other fields, which are ignored, as in SandboxFusion. Fields with a default may be missing.
//! Answers have every field; a field without a value is null.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::number::{Mebibytes, Seconds};

/// Every language in the protocol. Only those with an interpreter run here.
pub(crate) const LANGUAGES: [&str; 32] = [
    "python",
    "python2",
    "cpp",
    "nodejs",
    "go",
    "go_test",
    "java",
    "php",
    "csharp",
    "bash",
    "typescript",
    "sql",
    "rust",
    "cuda",
    "lua",
    "R",
    "perl",
    "D_ut",
    "ruby",
    "scala",
    "julia",
    "pytest",
    "junit",
    "kotlin_script",
    "jest",
    "verilog",
    "python_gpu",
    "lean",
    "swift",
    "racket",
    "gtest",
    "react",
];

fn ten_seconds() -> Seconds {
    Seconds(10.0)
}

fn no_limit() -> Seconds {
    Seconds(0.0)
}

fn total() -> Seconds {
    Seconds(45.0)
}

fn all_memory() -> Mebibytes {
    Mebibytes(-1)
}

/// `POST /run_code`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RunCodeRequest {
    /// Seconds for the compiler, in languages that have one.
    #[serde(default = "ten_seconds")]
    #[expect(dead_code, reason = "no language here has a compiler of its own")]
    pub(crate) compile_timeout: Seconds,
    /// Seconds of CPU time, and of the time that the program sees; at most the interpreter's limit.
    #[serde(default = "ten_seconds")]
    pub(crate) run_timeout: Seconds,
    /// Megabytes, clamped to the interpreter's limit; -1 for that limit.
    #[serde(rename = "memory_limit_MB", default = "all_memory")]
    pub(crate) memory_limit: Mebibytes,
    /// The program.
    pub(crate) code: String,
    /// Its standard input.
    #[serde(default)]
    pub(crate) stdin: Option<String>,
    /// Its language: a name of SandboxFusion, or the name of a language of a loaded interpreter.
    pub(crate) language: String,
    /// Files that exist when it starts: path to base64, or null for none.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, Option<String>>,
    /// Paths of files to return after the run.
    #[serde(default)]
    pub(crate) fetch_files: Vec<String>,
}

/// The status of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum RunStatus {
    /// Every command ended with exit code 0.
    Success,
    /// A command ended otherwise, or ran out of time.
    Failed,
    /// The service could not run the program, so the answer says nothing about the program.
    SandboxError,
}

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum CommandRunStatus {
    /// It ended by itself, or by a limit other than time.
    Finished,
    /// It could not be run.
    Error,
    /// It was stopped at its time limit.
    TimeLimitExceeded,
}

/// The result of one command. For interpreted languages, the run is the only command.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct CommandRunResult {
    pub(crate) status: CommandRunStatus,
    /// Seconds.
    pub(crate) execution_time: Option<f64>,
    /// Exit code that a process would have. Null if the command ran out of time.
    pub(crate) return_code: Option<i32>,
    /// The printed text, also of a program that was stopped.
    pub(crate) stdout: Option<String>,
    pub(crate) stderr: Option<String>,
}

/// Answer to `POST /run_code`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunCodeResponse {
    pub(crate) status: RunStatus,
    /// Empty unless the status is `SandboxError`.
    pub(crate) message: String,
    /// Null for interpreted languages.
    pub(crate) compile_result: Option<CommandRunResult>,
    pub(crate) run_result: Option<CommandRunResult>,
    /// Always null here.
    pub(crate) executor_pod_name: Option<String>,
    /// Requested path to base64. Files that were not found are left out.
    pub(crate) files: BTreeMap<String, String>,
}

impl RunCodeResponse {
    /// Creates the answer for a run. The protocol's rules derive the status from the run.
    pub(crate) fn from_run(run: CommandRunResult, files: BTreeMap<String, String>) -> Self {
        let (status, message) = match (run.status, run.return_code) {
            (CommandRunStatus::Error, _) => (
                RunStatus::SandboxError,
                run.stderr.clone().unwrap_or_default(),
            ),
            (CommandRunStatus::Finished, Some(0) | None) => (RunStatus::Success, String::new()),
            (CommandRunStatus::TimeLimitExceeded | CommandRunStatus::Finished, _) => {
                (RunStatus::Failed, String::new())
            }
        };
        Self {
            status,
            message,
            compile_result: None,
            run_result: Some(run),
            executor_pod_name: None,
            files,
        }
    }

    /// Creates the answer for a run during which the sandbox failed.
    pub(crate) fn broken(message: String) -> Self {
        let run = CommandRunResult {
            status: CommandRunStatus::Error,
            execution_time: None,
            return_code: None,
            stdout: None,
            stderr: Some(message),
        };
        Self::from_run(run, BTreeMap::new())
    }

    /// Creates the answer for a program that was not run.
    pub(crate) fn not_run(message: String) -> Self {
        Self {
            status: RunStatus::SandboxError,
            message,
            compile_result: None,
            run_result: None,
            executor_pod_name: None,
            files: BTreeMap::new(),
        }
    }
}

/// The kernel of a notebook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum Kernel {
    /// Python, in the version of the loaded interpreter.
    #[default]
    #[serde(rename = "python3")]
    Python3,
}

/// `POST /run_jupyter`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RunJupyterRequest {
    /// The cells. They run one after the other in one namespace. If one raises, the next one still runs.
    pub(crate) cells: Vec<String>,
    /// Seconds for each cell; 0 for no limit besides the total.
    #[serde(default = "no_limit")]
    pub(crate) cell_timeout: Seconds,
    /// Seconds for all cells together.
    #[serde(default = "total")]
    pub(crate) total_timeout: Seconds,
    /// Megabytes, clamped to the interpreter's limit; -1 for that limit.
    #[serde(rename = "memory_limit_MB", default = "all_memory")]
    pub(crate) memory_limit: Mebibytes,
    #[serde(default)]
    #[expect(dead_code, reason = "there is one")]
    pub(crate) kernel: Kernel,
    /// Files that exist when the first cell starts: path to base64, or null for none.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, Option<String>>,
    /// Paths of files to return after the last cell.
    #[serde(default)]
    pub(crate) fetch_files: Vec<String>,
}

/// The result of one cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct CellRunResult {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The displays, in order: media type to data. The last one is the value of a trailing expression.
    pub(crate) display: Vec<Map<String, Value>>,
    /// `ename`, `evalue` and the lines of `traceback`, if it raised.
    pub(crate) error: Vec<CellError>,
}

/// An exception of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct CellError {
    pub(crate) ename: String,
    pub(crate) evalue: String,
    pub(crate) traceback: Vec<String>,
}

/// Answer to `POST /run_jupyter`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunJupyterResponse {
    pub(crate) status: RunStatus,
    /// Empty unless the status is `SandboxError`.
    pub(crate) message: String,
    /// Result of the notebook as a whole.
    pub(crate) driver: Option<CommandRunResult>,
    /// The cells that ran, including one that ran out of time.
    pub(crate) cells: Vec<CellRunResult>,
    /// Always null here.
    pub(crate) executor_pod_name: Option<String>,
    /// Requested path to base64. Files that were not found are left out.
    pub(crate) files: BTreeMap<String, String>,
}

impl RunJupyterResponse {
    /// Creates the answer for a notebook that was not run.
    pub(crate) fn not_run(message: String) -> Self {
        Self {
            status: RunStatus::SandboxError,
            message,
            driver: None,
            cells: Vec::new(),
            executor_pod_name: None,
            files: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(status: CommandRunStatus, return_code: Option<i32>) -> CommandRunResult {
        CommandRunResult {
            status,
            execution_time: Some(0.5),
            return_code,
            stdout: Some("out".into()),
            stderr: Some("err".into()),
        }
    }

    #[test]
    fn the_status_follows_from_the_run() {
        use CommandRunStatus::{Error, Finished, TimeLimitExceeded};
        for (ended, code, status, message) in [
            (Finished, Some(0), RunStatus::Success, ""),
            (Finished, Some(1), RunStatus::Failed, ""),
            (Finished, Some(-9), RunStatus::Failed, ""),
            (TimeLimitExceeded, None, RunStatus::Failed, ""),
            (Error, None, RunStatus::SandboxError, "err"),
        ] {
            let response = RunCodeResponse::from_run(run(ended, code), BTreeMap::new());
            assert_eq!(
                (response.status, response.message.as_str()),
                (status, message)
            );
        }
    }

    #[test]
    fn answers_have_every_field_in_the_protocols_order() {
        let response = RunCodeResponse::from_run(
            run(CommandRunStatus::Finished, Some(0)),
            BTreeMap::from([("a".into(), "aGk=".into())]),
        );
        assert_eq!(
            serde_json::to_string(&response).unwrap(),
            r#"{"status":"Success","message":"","compile_result":null,"run_result":{"status":"Finished","execution_time":0.5,"return_code":0,"stdout":"out","stderr":"err"},"executor_pod_name":null,"files":{"a":"aGk="}}"#
        );
        let response = RunJupyterResponse::not_run("no".into());
        assert_eq!(
            serde_json::to_string(&response).unwrap(),
            r#"{"status":"SandboxError","message":"no","driver":null,"cells":[],"executor_pod_name":null,"files":{}}"#
        );
    }

    #[test]
    fn what_verl_sends_and_what_the_sdk_sends_is_read() {
        let verl = json!({
            "compile_timeout": 10, "run_timeout": 10, "code": "print(1)", "stdin": null,
            "memory_limit_MB": 1024, "language": "python", "files": {}, "fetch_files": []
        });
        let request: RunCodeRequest = serde_json::from_value(verl).unwrap();
        assert_eq!(
            (request.run_timeout, request.memory_limit),
            (Seconds(10.0), Mebibytes(1024))
        );
        let least: RunCodeRequest =
            serde_json::from_value(json!({"code": "", "language": "python", "unknown": 1}))
                .unwrap();
        assert_eq!(
            (least.run_timeout, least.memory_limit),
            (Seconds(10.0), Mebibytes(-1))
        );
        let notebook: RunJupyterRequest =
            serde_json::from_value(json!({"cells": ["a"], "kernel": "python3"})).unwrap();
        assert_eq!(
            (notebook.cell_timeout, notebook.total_timeout),
            (Seconds(0.0), Seconds(45.0))
        );
        assert!(
            serde_json::from_value::<RunJupyterRequest>(json!({"cells": [], "kernel": "ir"}))
                .is_err()
        );
        assert!(serde_json::from_value::<RunCodeRequest>(json!({"language": "python"})).is_err());
        let null = json!({"code": "", "language": "python", "files": null});
        assert!(serde_json::from_value::<RunCodeRequest>(null).is_err());
    }
}
