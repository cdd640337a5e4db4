//! Verifies an environment by playing it: one given as a specification, in Python, or as a component.
//!
//! Every initial state is loaded. From every one, random walks call the tools with arguments from their schemas, from the
//! state and from earlier results. Tools that never succeeded are called more often. Erroneous and boundary arguments
//! are tried as well. Then each walk is repeated from the same seed, and its end is saved and loaded again.
//!
//! A finding has a severity, a place and a way to mend it, so that the author of the environment can use it.
//!
//! | looking for | module |
//! |---|---|
//! | arguments: valid, at the limits, erroneous | `arguments` |
//! | one call of each tool, before anything is played | `first` |
//! | single calls | `play` |
//! | a walk, and the checks along its way | `walk` |
//! | specifications, which are also played without a sandbox | `program` |
//! | findings and reports | `report` |
//! | requests that the machine did not serve | `served` |
//! | verdicts that are kept | `record` |

pub(crate) mod arguments;
mod first;
pub(crate) mod play;
mod program;
mod record;
mod report;
pub(crate) mod served;
mod walk;

pub use first::first_calls;
pub use program::verify_program;
pub use record::{Record, RecordError};
pub use report::{Finding, FindingKind, OperationReport, Report};
pub use served::Unserved;

use std::collections::BTreeMap;

use rlf_environments::environments::Environments;
use rlf_plugins::python_environment::Scenario;
use rlf_random::Key;
use rlf_specification::Program;
use serde_json::{Value, json};

use self::report::Findings;
use self::walk::{Trail, Walk};

/// An initial state: a task that an environment is opened with.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Its name in findings.
    pub name: String,
    /// The task.
    pub task: Value,
    /// The seed of the session.
    pub seed: u64,
}

impl Start {
    /// Every scenario of a specification, generated with each of the seeds from 0.
    pub fn for_program(program: &Program, seeds: u64) -> Vec<Self> {
        let specification = program.specification();
        let sizes = specification.scenarios.iter().map(|scenario| scenario.size);
        let all = sizes.flat_map(|size| {
            (0..seeds).map(move |seed| Self {
                name: format!("{}, seed {seed}", size.name()),
                task: json!({ "servers": { specification.name.as_str(): { "scenario": size.name() } } }),
                seed,
            })
        });
        all.collect()
    }

    /// The scenarios that come with an environment.
    pub fn from_scenarios(scenarios: Vec<Scenario>) -> Vec<Self> {
        let all = scenarios.into_iter().map(|scenario| Self {
            name: scenario.id,
            task: scenario.task,
            seed: scenario.seed,
        });
        all.collect()
    }
}

/// The number of walks and calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Calls of each walk.
    pub calls: usize,
    /// Walks from each initial state.
    pub walks: usize,
    /// Seed of the walks.
    pub seed: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            calls: 60,
            walks: 3,
            seed: 0,
        }
    }
}

/// Verifies the environment `name` from each initial state.
pub async fn verify(
    environments: &Environments,
    name: &str,
    starts: &[Start],
    effort: Effort,
) -> Result<Report, Unserved> {
    let played = play_all(environments, name, false, starts, effort);
    served::served(environments, played).await
}

/// Like [`verify`]. In a specification, a refusal because a call would break a rule is a finding.
async fn play_all(
    environments: &Environments,
    name: &str,
    is_specification: bool,
    starts: &[Start],
    effort: Effort,
) -> Report {
    let mut findings = Findings::default();
    let mut operations: BTreeMap<String, OperationReport> = BTreeMap::new();
    let mut calls = 0;
    let mut loaded = 0;
    for (index, start) in starts.iter().enumerate() {
        let key = Key::from_value(effort.seed)
            .named("verify")
            .at(index as u64);
        for number in 0..effort.walks {
            let walk = Walk {
                environments,
                name,
                is_specification,
                start,
                key: key.at(number as u64),
                calls: effort.calls,
                findings: &mut findings,
                operations: &mut operations,
                is_first: number == 0,
                trail: Trail::default(),
            };
            match walk.run().await {
                Some(played) => {
                    loaded += usize::from(number == 0);
                    calls += played;
                }
                None => break,
            }
        }
    }
    // Without a state there is nothing to say about operations.
    if loaded > 0 {
        for (operation, report) in &operations {
            judge(operation, report, &mut findings);
        }
    }
    Report {
        environment: name.to_owned(),
        starts: starts.len(),
        loaded,
        calls,
        operations: operations.into_values().collect(),
        findings: findings.into_list(),
    }
}

/// Judges how an operation ended over all walks.
fn judge(operation: &str, report: &OperationReport, findings: &mut Findings) {
    let last = report
        .last_refusal
        .as_deref()
        .unwrap_or("it was never called");
    if report.succeeded == 0 {
        findings.add(
            FindingKind::NeverSucceeds,
            operation,
            format!("no state and no arguments were found that allow it, in {} calls; the last refusal: {last}", report.calls),
            "correct its conditions, or add a scenario that allows it",
        );
    } else if report.refused == 0 && report.has_parameters {
        findings.add(
            FindingKind::NeverRefuses,
            operation,
            format!("it was never refused, in {} calls", report.calls),
            "refuse arguments that name nothing; for an operation without conditions this is no fault",
        );
    }
}
