//! The examination of a candidate: static checks, the plan, and verification by playing.

use std::cmp::Reverse;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use rlf_environments::environments::Environments;
use rlf_specification::{Program, Severity, check_text};
use serde::{Deserialize, Serialize};

use super::WriteError;
use super::candidate::{Candidate, Source};
use super::plan::{Plan, specified};
use crate::compose::TOOLS;
use crate::verify::{self, Effort, Start, Unserved, first_calls, verify, verify_program};

/// Opens candidates, so that they can be played. The program provides it: it knows the plugins.
#[async_trait]
pub trait Opener: Send + Sync {
    /// Loads the environment in a file. The name of the environment is that of the file.
    async fn open(&self, file: &Path) -> Result<Environments, NotOpened>;
}

/// The reason why a candidate was not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// The candidate is to blame. The text tells the model why.
    #[error("{0}")]
    Faulty(String),
    /// The candidate is not to blame: a plugin is missing, the disk is full, or the machine is too busy.
    #[error("{0}")]
    Unavailable(String),
}

impl From<Unserved> for NotOpened {
    fn from(unserved: Unserved) -> Self {
        Self::Unavailable(unserved.to_string())
    }
}

/// The thoroughness of examinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thoroughness {
    /// Seeds with which each scenario of a specification is generated.
    pub seeds: u64,
    /// Walks and calls.
    pub effort: Effort,
    /// Maximum time for one candidate. A slower one gets a finding.
    pub time: Duration,
}

impl Thoroughness {
    /// The default, with a seed for the walks.
    pub fn for_seed(seed: u64) -> Self {
        let mut how = Self::default();
        how.effort.seed = seed;
        how
    }
}

impl Default for Thoroughness {
    fn default() -> Self {
        Self {
            seeds: 3,
            effort: Effort::default(),
            time: Duration::from_mins(5),
        }
    }
}

/// A fault of a candidate. Its kind is a name such as `bad-expression` or `never-succeeds`, and its place a JSON pointer, a
/// tool or a scenario.
pub type Finding = rlf_specification::Finding<String>;

/// An error with the name of its kind.
fn error(kind: &str, place: impl Into<String>, message: String, mend: &str) -> Finding {
    Finding {
        kind: kind.to_owned(),
        severity: Severity::Error,
        place: place.into(),
        line: None,
        message,
        mend: mend.to_owned(),
    }
}

/// True for an error, and false for a warning.
pub(super) fn is_error(finding: &Finding) -> bool {
    finding.severity == Severity::Error
}

/// True if two findings say the same of the same place.
pub(super) fn is_same(one: &Finding, other: &Finding) -> bool {
    one.kind == other.kind && one.place == other.place
}

/// The point that a candidate reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reached {
    /// The static checks found errors, or it does not load.
    Checked,
    /// It was played, and errors were found.
    Played,
    /// No error was found.
    Sound,
}

/// The result of an examination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examination {
    /// The point that it reached.
    pub reached: Reached,
    /// Number of tools that were played.
    pub tools: usize,
    /// Number of calls that were made.
    pub calls: usize,
    /// Number of scenarios that loaded, and number of all scenarios.
    pub loaded: (usize, usize),
    /// All findings, errors first.
    pub findings: Vec<Finding>,
}

impl Examination {
    /// Number of errors.
    pub fn errors(&self) -> usize {
        self.findings.iter().filter(|one| is_error(one)).count()
    }

    /// A key that is greater for a better candidate: first the point that it reached, then fewer errors, then fewer
    /// warnings.
    pub(super) fn rank(&self) -> (Reached, Reverse<usize>, Reverse<usize>) {
        (
            self.reached,
            Reverse(self.errors()),
            Reverse(self.findings.len()),
        )
    }

    fn before_play(findings: Vec<Finding>) -> Self {
        Self {
            reached: Reached::Checked,
            tools: 0,
            calls: 0,
            loaded: (0, 0),
            findings,
        }
        .sorted()
    }

    fn sorted(mut self) -> Self {
        self.findings.sort_by_key(|one| !is_error(one));
        self
    }
}

/// Examines a candidate whose files are in `folder`.
pub(super) async fn examine(
    candidate: &Candidate,
    plan: &Plan,
    file: &Path,
    opener: &dyn Opener,
    how: Thoroughness,
) -> Result<Examination, WriteError> {
    let mut findings = Vec::new();
    let mut program = None;
    if let Source::Specification { text, format } = &candidate.source {
        let checked = check_text(text, *format);
        findings.extend(checked.findings.into_iter().map(from_check));
        if let Some(found) = checked.program {
            findings.extend(planned(candidate, plan, &specified(found.specification())));
            let name = &found.specification().name;
            if *name != candidate.name {
                let message = format!("the name is {name}");
                let mend = format!("name it {}", candidate.name);
                findings.push(error("wrong-name", "/name", message, &mend));
            }
            program = Some(found);
        }
        if findings.iter().any(is_error) {
            return Ok(Examination::before_play(findings));
        }
    }
    let played = tokio::time::timeout(
        how.time,
        play(candidate, program.as_ref(), file, opener, how),
    );
    let report = match played.await {
        Ok(Ok(report)) => report,
        Ok(Err(NotOpened::Faulty(why))) => {
            let mend = "correct the file, so that it loads";
            findings.push(error("does-not-load", candidate.file(), why, mend));
            return Ok(Examination::before_play(findings));
        }
        Ok(Err(NotOpened::Unavailable(why))) => {
            let path = file.to_owned();
            return Err(WriteError::Unplayable { path, why });
        }
        Err(_) => {
            let message = format!("it was not played to the end in {} s", how.time.as_secs());
            let mend = "end every loop, and do less in one call";
            findings.push(error("too-slow", candidate.file(), message, mend));
            return Ok(Examination::before_play(findings));
        }
    };
    findings.extend(report.findings.iter().map(from_play));
    let tools: Vec<String> = report
        .operations
        .iter()
        .map(|one| tool(candidate, &one.name).to_owned())
        .collect();
    // Without a start that loads, no tool is known.
    if program.is_none() && report.loaded > 0 {
        findings.extend(planned(candidate, plan, &tools));
    }
    let sound = !findings.iter().any(is_error);
    let examination = Examination {
        reached: if sound {
            Reached::Sound
        } else {
            Reached::Played
        },
        tools: tools.len(),
        calls: report.calls,
        loaded: (report.loaded, report.starts),
        findings,
    };
    Ok(examination.sorted())
}

async fn play(
    candidate: &Candidate,
    program: Option<&Program>,
    file: &Path,
    opener: &dyn Opener,
    how: Thoroughness,
) -> Result<verify::Report, NotOpened> {
    let environments = opener.open(file).await?;
    let name = candidate.name.as_str();
    let starts = if let Some(program) = program {
        Start::for_program(program, how.seeds)
    } else {
        let scenarios = environments.scenarios(name).await;
        Start::from_scenarios(scenarios.map_err(|error| NotOpened::Faulty(error.to_string()))?)
    };
    if let Some(first) = starts.first() {
        let broken = first_calls(&environments, name, first, how.effort.seed).await?;
        if !broken.is_empty() {
            return Ok(verify::Report {
                environment: name.to_owned(),
                starts: starts.len(),
                loaded: 0,
                calls: 0,
                operations: Vec::new(),
                findings: broken,
            });
        }
    }
    Ok(match program {
        Some(program) => {
            verify_program(&environments, name, program, how.seeds, how.effort).await?
        }
        None => verify(&environments, name, &starts, how.effort).await?,
    })
}

/// Differences between the tools and the plan. Without this, a revision could mend a tool by leaving it out.
fn planned(candidate: &Candidate, plan: &Plan, tools: &[String]) -> Vec<Finding> {
    let missing = plan
        .operations()
        .filter(|planned| !tools.iter().any(|tool| tool == planned));
    let mut findings: Vec<Finding> = missing
        .map(|name| {
            let message = "the plan has this operation, and the file does not".to_owned();
            error("missing-operation", name, message, "write it")
        })
        .collect();
    if !TOOLS.contains(&tools.len()) {
        let message = format!("there are {} tools", tools.len());
        let mend = format!("write {} to {}", TOOLS.start(), TOOLS.end());
        findings.push(error("wrong-size", candidate.file(), message, &mend));
    }
    findings
}

/// The name of a tool without that of its environment.
fn tool<'t>(candidate: &Candidate, name: &'t str) -> &'t str {
    let own = name.strip_prefix(candidate.name.as_str());
    own.and_then(|name| name.strip_prefix('-')).unwrap_or(name)
}

/// The name of a kind, as it is written in reports.
fn kind(kind: impl Serialize) -> String {
    let name = serde_json::to_value(kind).ok();
    let name = name.as_ref().and_then(serde_json::Value::as_str);
    name.unwrap_or("finding").to_owned()
}

fn from_check(finding: rlf_specification::Finding) -> Finding {
    Finding {
        kind: kind(finding.kind),
        severity: finding.severity,
        place: finding.place,
        line: finding.line,
        message: finding.message,
        mend: finding.mend,
    }
}

fn from_play(finding: &verify::Finding) -> Finding {
    let times = if finding.times > 1 {
        format!(" ({} times)", finding.times)
    } else {
        String::new()
    };
    Finding {
        kind: kind(finding.kind),
        severity: finding.severity,
        place: finding.place.clone(),
        line: None,
        message: format!("{}{times}", finding.message),
        mend: finding.mend.clone(),
    }
}
