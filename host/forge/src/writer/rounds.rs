//! Rounds of verification and revision.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use rlf_endpoint::Spent;
use rlf_specification::Severity;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::candidate::{Candidate, Form, Source};
use super::claims::Claims;
use super::examine::{Examination, Finding, Reached, examine, is_error, is_same};
use super::plan::Plan;
use super::stages::{format_of, pretty, question};
use super::{Request, WriteError, Writer};
use crate::ask::prompts::PromptError;
use crate::ask::{AskError, Question};

/// Maximum number of findings that a revision is shown.
const MAX_FINDINGS: usize = 40;
/// The record of a round, in its folder.
const RECORD: &str = "round.json";

/// One round: a candidate, and what was found in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Its number. Round 0 is the first candidate; each revision is a round more.
    pub number: u32,
    /// The candidate's main file.
    pub file: PathBuf,
    /// The result of its examination.
    pub examination: Examination,
    /// The findings that the model says it mended, and those found again. None in round 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claims>,
    /// Tokens and time spent on it; on round 0, all stages before it.
    pub spent: Spent,
}

/// The reason why there is no further round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Stop {
    /// The candidate is sound.
    Sound,
    /// No revision is left.
    Rounds,
    /// The next question could go beyond the limit of tokens.
    Tokens {
        /// The limit, and what is spent.
        message: String,
    },
    /// The time is up.
    Time,
    /// The revision made no progress.
    NoProgress {
        /// The way in which the revision made no progress.
        why: Standstill,
    },
    /// The model gave no answer that can be used.
    Unanswered {
        /// The reason.
        message: String,
    },
}

/// The way in which a revision makes no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standstill {
    /// The model returned the file that it was given.
    Unchanged,
    /// The file is that of an earlier round.
    Repeated,
    /// None of the errors is mended.
    NothingMended,
}

impl Standstill {
    /// The reason in words, as the end of a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::Unchanged => "the model returned the file unchanged",
            Self::Repeated => "the model returned the file of an earlier round",
            Self::NothingMended => "the revision mended none of the errors",
        }
    }
}

/// All rounds of an environment.
#[derive(Debug)]
pub(super) struct Revised {
    pub(super) rounds: Vec<Round>,
    pub(super) candidates: Vec<Candidate>,
    /// Number of the best round.
    pub(super) best: usize,
    pub(super) stop: Stop,
}

impl Writer<'_> {
    /// Examines a first candidate, and has it revised until there is a reason to stop.
    pub(super) async fn rounds(
        &self,
        request: &Request,
        plan: &Plan,
        first: Candidate,
    ) -> Result<Revised, WriteError> {
        let mut seen = BTreeSet::from([first.hash()]);
        let round = self
            .round(0, &first, plan, request, Spent::default(), None)
            .await?;
        let mut all = Revised {
            best: 0,
            stop: Stop::Rounds,
            rounds: vec![round],
            candidates: vec![first],
        };
        loop {
            // Both lists have an item for each round, and there is one round at least.
            let number = all.rounds.len() - 1;
            let (last, candidate) = (&all.rounds[number], &all.candidates[number]);
            let earlier = number.checked_sub(1).map(|before| &all.rounds[before]);
            let stop = if last.examination.reached == Reached::Sound {
                Some(Stop::Sound)
            } else if self.asker.account.time_left().is_zero() {
                Some(Stop::Time)
            } else if earlier.is_some_and(|before| !is_progress(before, last)) {
                let why = Standstill::NothingMended;
                Some(Stop::NoProgress { why })
            } else {
                (number >= request.rounds as usize).then_some(Stop::Rounds)
            };
            if let Some(stop) = stop {
                all.stop = stop;
                return Ok(all);
            }
            let before = self.asker.account.spent();
            let asked = self.revision(candidate, plan, last)?;
            let revised = self.asker.text(&asked, |answer| {
                Ok((answer.to_owned(), candidate.revised(answer)?))
            });
            let (answer, revised) = match revised.await {
                Ok(revised) => revised,
                Err(error) => {
                    all.stop = stop_for(&error);
                    return Ok(all);
                }
            };
            if !seen.insert(revised.hash()) {
                let why = if revised == *candidate {
                    Standstill::Unchanged
                } else {
                    Standstill::Repeated
                };
                all.stop = Stop::NoProgress { why };
                return Ok(all);
            }
            let said = Some((answer.as_str(), last));
            let number = number as u32 + 1;
            let round = self
                .round(number, &revised, plan, request, before, said)
                .await;
            let round = match round {
                Err(WriteError::Ask(AskError::OutOfTime { .. })) => {
                    all.stop = Stop::Time;
                    return Ok(all);
                }
                round => round?,
            };
            if round.examination.rank() > all.rounds[all.best].examination.rank() {
                all.best = all.rounds.len();
            }
            all.rounds.push(round);
            all.candidates.push(revised);
        }
    }

    /// Writes a candidate to disk, examines it, and keeps the findings beside it. If the account's time ends meanwhile,
    /// nothing is known about the candidate: that is an error.
    async fn round(
        &self,
        number: u32,
        candidate: &Candidate,
        plan: &Plan,
        request: &Request,
        before: Spent,
        said: Option<(&str, &Round)>,
    ) -> Result<Round, WriteError> {
        let hash = candidate.hash();
        let folder = self.folder.join(format!("round-{number}-{hash}"));
        let file = candidate
            .write(&folder)
            .map_err(|(path, source)| WriteError::Disk { path, source })?;
        let account = &self.asker.account;
        let how = request.thoroughness;
        let examining = Box::pin(examine(candidate, plan, &file, self.opener, how));
        let mut examination = tokio::time::timeout(account.time_left(), examining)
            .await
            .map_err(|_| account.out_of_time(&format!("round {number}")))??;
        // A message is the same wherever the folder is, so that the next question is the same too.
        let place = format!("{}/", folder.display());
        for finding in &mut examination.findings {
            finding.message = finding.message.replace(&place, "");
        }
        let claims = said.map(|(answer, earlier)| {
            Claims::new(answer, shown(&earlier.examination), &examination.findings)
        });
        let round = Round {
            number,
            file,
            examination,
            claims,
            spent: self.asker.account.spent().since(&before),
        };
        self.observer.examined(&round);
        super::keep(&folder.join(RECORD), &json!(round))?;
        Ok(round)
    }

    /// The question for a revision.
    fn revision(
        &self,
        candidate: &Candidate,
        plan: &Plan,
        last: &Round,
    ) -> Result<Question, PromptError> {
        let untrue = last.claims.iter().flat_map(|claims| &claims.untrue);
        let again: Vec<&str> = untrue.map(|finding| finding.place.as_str()).collect();
        let plan = pretty(&json!(plan));
        let findings = listed(shown(&last.examination));
        let again = again.join(", ");
        let (form, scenarios) = match &candidate.source {
            Source::Specification { .. } => (Form::Specification, String::new()),
            Source::Python { scenarios, .. } => {
                let scenarios = pretty(&json!({ "scenarios": scenarios }));
                (Form::Python, scenarios)
            }
        };
        let name = format!("revise-{}", form.name());
        let format = format_of(self.prompts, form)?;
        let values = [
            ("name", candidate.name.as_str()),
            ("file", candidate.text()),
            ("plan", &plan),
            ("findings", &findings),
            ("again", &again),
            ("format", &format),
            ("scenarios", &scenarios),
        ];
        let mut asked = question(self.prompts, &name, &values)?;
        asked.stage = format!("{name}-{}", last.number + 1);
        Ok(asked)
    }
}

/// The findings that a revision is shown. Errors come first.
fn shown(examination: &Examination) -> &[Finding] {
    let all = &examination.findings;
    &all[..all.len().min(MAX_FINDINGS)]
}

/// Findings as a numbered list.
pub(super) fn listed(findings: &[Finding]) -> String {
    let mut list = String::new();
    for (index, finding) in findings.iter().enumerate() {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let _ = writeln!(
            list,
            "{}. {severity}: {finding} ({})",
            index + 1,
            finding.kind
        );
    }
    list
}

/// True if a revision fixed an error of the round before it, or passed a check that the round before did not reach.
fn is_progress(before: &Round, after: &Round) -> bool {
    let (before, after) = (&before.examination, &after.examination);
    let is_gone = |error: &Finding| !after.findings.iter().any(|other| is_same(other, error));
    after.rank() > before.rank()
        || before
            .findings
            .iter()
            .any(|one| is_error(one) && is_gone(one))
}

fn stop_for(error: &AskError) -> Stop {
    let message = error.to_string();
    match error {
        AskError::OutOfTokens { .. } => Stop::Tokens { message },
        AskError::OutOfTime { .. } => Stop::Time,
        _ => Stop::Unanswered { message },
    }
}
