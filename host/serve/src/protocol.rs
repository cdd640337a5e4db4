//! What SandboxFusion's clients send and read: field by field, in its order, with its names.
//!
//! Requests may have fields that are not here (they are ignored, as there), and any field with a default may be
//! missing. Answers have every field, null where there is nothing to say.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::number::{Mebibytes, Seconds};

/// Every language that the protocol names. Which of them run here is another matter.
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
    /// Of languages with a compiler, seconds.
    #[serde(default = "ten_seconds")]
    #[expect(dead_code, reason = "no language here has a compiler of its own")]
    pub(crate) compile_timeout: Seconds,
    /// Seconds of the program's own time and of CPU time; at most what the interpreter's policy allows.
    #[serde(default = "ten_seconds")]
    pub(crate) run_timeout: Seconds,
    /// Megabytes; -1 for all that the interpreter's policy allows, which more than that also is.
    #[serde(rename = "memory_limit_MB", default = "all_memory")]
    pub(crate) memory_limit: Mebibytes,
    /// The program.
    pub(crate) code: String,
    /// What it can read from standard input.
    #[serde(default)]
    pub(crate) stdin: Option<String>,
    /// What it is written in: a name of SandboxFusion's, or one of an interpreter that is there.
    pub(crate) language: String,
    /// Files that lie there when it starts: path to base64, or null for none.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, Option<String>>,
    /// Paths of files to return after the run.
    #[serde(default)]
    pub(crate) fetch_files: Vec<String>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum RunStatus {
    /// Everything that ran ended with 0.
    Success,
    /// Something ended otherwise, or was out of time.
    Failed,
    /// Nothing can be said of the program: the service could not run it.
    SandboxError,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum CommandRunStatus {
    /// By itself, or by a limit other than time.
    Finished,
    /// It could not be run.
    Error,
    /// It was stopped.
    TimeLimitExceeded,
}

/// One command: of a program in an interpreted language, the run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct CommandRunResult {
    pub(crate) status: CommandRunStatus,
    /// Seconds.
    pub(crate) execution_time: Option<f64>,
    /// What the process would have ended with; null where it was out of time.
    pub(crate) return_code: Option<i32>,
    /// What was printed, also by a program that was stopped.
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
    /// Path as it was asked for, to base64. What was not found is left out.
    pub(crate) files: BTreeMap<String, String>,
}

impl RunCodeResponse {
    /// The status follows from the run alone, by the protocol's rules.
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

    /// The sandbox failed at the run.
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

    /// Nothing was tried.
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
    /// Python, by the interpreter that is there.
    #[default]
    #[serde(rename = "python3")]
    Python3,
}

/// `POST /run_jupyter`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RunJupyterRequest {
    /// Run one after the other in one namespace. One that raises does not keep the next from running.
    pub(crate) cells: Vec<String>,
    /// Seconds for each cell; 0 for no limit but that of all.
    #[serde(default = "no_limit")]
    pub(crate) cell_timeout: Seconds,
    /// Seconds for all cells.
    #[serde(default = "total")]
    pub(crate) total_timeout: Seconds,
    /// As for `/run_code`.
    #[serde(rename = "memory_limit_MB", default = "all_memory")]
    pub(crate) memory_limit: Mebibytes,
    #[serde(default)]
    #[expect(dead_code, reason = "there is one")]
    pub(crate) kernel: Kernel,
    /// As for `/run_code`.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, Option<String>>,
    /// As for `/run_code`.
    #[serde(default)]
    pub(crate) fetch_files: Vec<String>,
}

/// What came of one cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct CellRunResult {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// What was shown, in order: media type to data, the value of a trailing expression last.
    pub(crate) display: Vec<Map<String, Value>>,
    /// `ename`, `evalue` and the lines of `traceback`, where it raised.
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
    /// The notebook as a whole.
    pub(crate) driver: Option<CommandRunResult>,
    /// Those that ran, the one that was out of time with them.
    pub(crate) cells: Vec<CellRunResult>,
    /// Always null here.
    pub(crate) executor_pod_name: Option<String>,
    /// As of `/run_code`.
    pub(crate) files: BTreeMap<String, String>,
}

impl RunJupyterResponse {
    /// Nothing was run.
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
