//! Verdicts on environments, and how they are printed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;
use console::style;
use indicatif::ProgressBar;
use rlf_forge::verify::Report;
use rlf_specification::{Finding, Severity};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::display::{printable, progress_bar};

/// The verdict on one environment.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Verdict {
    file: String,
    sound: bool,
    /// Findings of the static checks.
    checks: Vec<Finding>,
    /// The verification by playing, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    played: Option<Report>,
    /// The reason why it could not be verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// True if the verdict was in the record.
    #[serde(skip_deserializing)]
    recorded: bool,
}

impl Verdict {
    /// The verdict of the static checks alone.
    pub(super) fn checked(file: &Path, checks: Vec<Finding>, sound: bool) -> Self {
        Self {
            file: file.display().to_string(),
            sound,
            checks,
            played: None,
            problem: None,
            recorded: false,
        }
    }

    /// The verdict on an environment that was played.
    pub(super) fn played(file: &Path, checks: Vec<Finding>, report: Report) -> Self {
        let sound = report.is_sound();
        Self {
            played: Some(report),
            ..Self::checked(file, checks, sound)
        }
    }

    /// The reason why an environment could not be verified.
    pub(super) fn failed(file: &Path, error: &anyhow::Error) -> Self {
        Self {
            problem: Some(format!("{error:#}")),
            ..Self::checked(file, Vec::new(), false)
        }
    }

    /// A verdict from the record, on a file that may have another name now.
    pub(super) fn recorded(self, file: &Path) -> Self {
        Self {
            file: file.display().to_string(),
            recorded: true,
            ..self
        }
    }

    /// Number of findings with a severity.
    fn count(&self, severity: Severity) -> usize {
        let played = self.played.iter().flat_map(|report| &report.findings);
        let checks = self.checks.iter().map(|finding| finding.severity);
        let all = checks.chain(played.map(|finding| finding.severity));
        all.filter(|one| *one == severity).count()
    }

    fn show(&self) {
        let file = style(printable(&self.file)).bold();
        if let Some(problem) = &self.problem {
            let verdict = style("not verified").red();
            say!("{file}: {verdict}: {}", printable(problem));
            return;
        }
        let verdict = if self.sound {
            style("sound").green()
        } else {
            style("not sound").red()
        };
        let detail = match &self.played {
            Some(report) => format!(
                "{} of {} initial states, {} operations, {} calls",
                report.loaded,
                report.starts,
                report.operations.len(),
                report.calls
            ),
            None => "not played".to_owned(),
        };
        say!("{file}: {verdict} ({detail})");
        for finding in &self.checks {
            let text = printable(&finding.to_string());
            say!("  {} {text}", label(finding.severity));
        }
        for finding in self.played.iter().flat_map(|report| &report.findings) {
            say!(
                "  {} {}",
                label(finding.severity),
                printable(&finding.to_string())
            );
        }
    }
}

/// The verdicts so far. They are printed in the order of the files, each as soon as all before it are known.
pub(super) struct Verdicts {
    json: bool,
    files: usize,
    began: Instant,
    bar: ProgressBar,
    /// Verdicts that are not printed yet, because earlier ones come first.
    waiting: BTreeMap<usize, Verdict>,
    printed: Vec<Verdict>,
}

impl Verdicts {
    pub(super) fn new(files: usize, json: bool) -> Self {
        Self {
            json,
            files,
            began: Instant::now(),
            bar: progress_bar(files),
            waiting: BTreeMap::new(),
            printed: Vec::new(),
        }
    }

    /// Shows the environment that is verified next.
    pub(super) fn begin(&self, file: &Path) {
        self.bar.set_message(printable(&file.display().to_string()));
    }

    /// Adds the verdict on the file at a place.
    pub(super) fn add(&mut self, place: usize, verdict: Verdict) {
        self.bar.inc(1);
        self.bar.set_message(printable(&verdict.file));
        self.waiting.insert(place, verdict);
        while let Some(next) = self.waiting.remove(&self.printed.len()) {
            // The problem of a single environment is the error of the command.
            let is_error = self.files == 1 && next.problem.is_some();
            if !self.json && !is_error {
                self.bar.suspend(|| next.show());
            }
            self.printed.push(next);
        }
    }

    /// Prints the summary. Succeeds if all environments are sound.
    pub(super) fn finish(self, record: Option<&Path>) -> anyhow::Result<ExitCode> {
        self.bar.finish_and_clear();
        let verdicts = &self.printed;
        if let [only] = verdicts.as_slice()
            && let Some(problem) = &only.problem
        {
            bail!("{problem}");
        }
        let count = |holds: &dyn Fn(&&Verdict) -> bool| verdicts.iter().filter(holds).count();
        let found = |severity| -> usize { verdicts.iter().map(|one| one.count(severity)).sum() };
        let (sound, problems) = (count(&|one| one.sound), count(&|one| one.problem.is_some()));
        let (errors, warnings) = (found(Severity::Error), found(Severity::Warning));
        let recorded = count(&|one| one.recorded);
        let played = verdicts.iter().filter_map(|one| one.played.as_ref());
        let calls: usize = played.map(|report| report.calls).sum();
        let unsound = verdicts.len() - sound - problems;
        if self.json {
            let report = json!({
                "environments": verdicts,
                "summary": {
                    "sound": sound, "unsound": unsound, "not_verified": problems, "errors": errors, "warnings": warnings,
                    "calls": calls, "recorded": recorded,
                },
            });
            say!("{}", serde_json::to_string_pretty(&report)?);
        } else if verdicts.len() > 1 {
            say!(
                "{} environments: {sound} sound, {unsound} not sound, {problems} not verified",
                verdicts.len()
            );
            let seconds = self.began.elapsed().as_secs_f64();
            say!("{errors} errors, {warnings} warnings; {calls} calls in {seconds:.1} s");
        }
        if let (false, Some(record)) = (self.json, record) {
            say!(
                "{recorded} of {} verdicts were in {}",
                verdicts.len(),
                record.display()
            );
        }
        Ok(if sound == verdicts.len() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// The word for a severity, in its colour.
pub(in crate::commands::forge) fn label(severity: Severity) -> console::StyledObject<&'static str> {
    match severity {
        Severity::Error => style("error  ").red(),
        Severity::Warning => style("warning").yellow(),
    }
}
