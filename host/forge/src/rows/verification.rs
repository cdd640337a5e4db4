//! Verification of rows by execution. All calls of a row are made by one program in the sandbox: the gold calls, calls with
//! wrong arguments, and calls with everything that a policy could know.
//!
//! | check | finds |
//! |---|---|
//! | static | trivial answers, answers in descriptions, calls that do not fit their schema |
//! | gold calls | sub-answers that are not given, results that FTRL's executor does not give |
//! | information flow | arguments that nobody could know |
//! | other calls | sub-answers in error texts, from distractors, or without the results that should be needed |

mod execution;
mod information_flow;
mod judgement;
mod probes;
mod static_checks;

use rlf_interpreters::interpreter::Interpreter;
use serde::{Deserialize, Serialize};

use super::rejection::{Check, Finding};
use super::row::Row;

pub use self::execution::ExecutionError;

/// The result of verifying a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Everything that is wrong. A row without findings is kept.
    pub findings: Vec<Finding>,
    /// The results of the gold calls, in order.
    #[serde(default)]
    pub results: Vec<String>,
    /// Number of calls that were made.
    #[serde(default)]
    pub calls: usize,
}

/// Verifies a row. An error is a failure of the machine, not of the row.
pub async fn verify(row: &Row, interpreter: &Interpreter) -> Result<Verdict, ExecutionError> {
    let mut findings = static_checks::check(row);
    // A row that cannot be called as it says is not executed.
    if findings
        .iter()
        .any(|finding| finding.check == Check::Malformed)
    {
        return Ok(Verdict {
            findings,
            ..Verdict::default()
        });
    }
    let probes = probes::plan(row);
    let outputs = match execution::execute(row, &probes, interpreter).await? {
        execution::Executed::Results(outputs) => outputs,
        execution::Executed::Finding(finding) => {
            findings.push(finding);
            return Ok(Verdict {
                findings,
                ..Verdict::default()
            });
        }
    };
    findings.extend(judgement::gold(row, &outputs));
    findings.extend(information_flow::check(row, &outputs.gold()));
    findings.extend(judgement::others(row, &probes, &outputs));
    Ok(Verdict {
        calls: outputs.clean.len() + outputs.published.len(),
        results: outputs
            .clean
            .into_iter()
            .take(row.calls.len())
            .map(|output| output.text)
            .collect(),
        findings,
    })
}
