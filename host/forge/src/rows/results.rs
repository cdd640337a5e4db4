//! The results of a run: rows in FTRL's form, tasks of each split, demonstrations, rejections and figures.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rlf_dialogue::split::Split;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::artefact::{self, Line, Raw};
use super::error::RowsError;
use super::figures::Figures;
use super::options::RowOptions;
use super::output::{demonstration, ftrl_row, task};
use super::rejection::{Check, Finding, Rejection};
use super::row::Row;
use super::stage::Stage;
use super::verification::Verdict;
use crate::lines;

/// Rows in FTRL's form.
const ROWS: &str = "rows.jsonl";
const DEMONSTRATIONS: &str = "demonstrations.jsonl";
const REJECTED: &str = "rejected.jsonl";
const FIGURES: &str = "rows.json";

/// The file of the tasks of a split.
fn tasks(split: Split) -> String {
    format!("tasks-{split}.jsonl")
}

/// Maximum number of findings that are reported for one row.
const MAX_FINDINGS: usize = 3;

/// A line of the verdicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Verified {
    /// The row.
    pub id: String,
    /// The hash of the deployed row.
    pub row: String,
    /// The verdict.
    pub verdict: Verdict,
}

/// Writes all results from the deployed rows and their verdicts.
pub(crate) fn write(output: &Path, options: &RowOptions) -> Result<Figures, RowsError> {
    let mut figures = Figures::default();
    let mut rejections = earlier_rejections(output)?;
    let mut splits = Splits::default();
    // The split of each verified row; none of one that is not written.
    let mut kept: Vec<Option<Split>> = Vec::new();
    let path = output.join(ROWS);
    artefact::write_with(&path, |out| {
        for judged in Judged::all(output)? {
            if figures.rows == options.count {
                break;
            }
            let judged = judged?;
            let (row, verdict) = (judged.row()?, judged.verified.verdict);
            figures.calls = figures.calls.saturating_add(verdict.calls);
            let finding = match verdict.findings.first() {
                Some(first) => Some(Finding::new(first.check, reasons(&verdict))),
                None => splits.conflict(&row),
            };
            kept.push(finding.is_none().then_some(row.split));
            if let Some(finding) = finding {
                rejections.push(finding.rejects(judged.verified.id, Stage::Verify));
                continue;
            }
            figures.add(&row);
            lines::write(out, &ftrl_row(&row)).map_err(|source| RowsError::write(&path, source))?;
        }
        Ok(())
    })?;
    for split in Split::ALL {
        let path = output.join(tasks(split));
        write_rows(output, &path, &kept, split, |row, _| task(row))?;
    }
    let path = output.join(DEMONSTRATIONS);
    write_rows(output, &path, &kept, Split::Train, |row, verdict| {
        demonstration(row, &verdict.results)
    })?;
    let path = output.join(REJECTED);
    artefact::write_with(&path, |out| {
        for rejection in &rejections {
            lines::write(out, rejection).map_err(|source| RowsError::write(&path, source))?;
            figures.reject(rejection);
        }
        Ok(())
    })?;
    figures.finish(options.count);
    let path = output.join(FIGURES);
    artefact::write_with(&path, |out| {
        let text = serde_json::to_string_pretty(&figures).map_err(io::Error::from);
        text.and_then(|text| writeln!(out, "{text}"))
            .map_err(|source| RowsError::write(&path, source))
    })?;
    Ok(figures)
}

/// Removes the results of an earlier run.
pub(crate) fn remove(output: &Path) -> Result<(), RowsError> {
    let names = [ROWS, DEMONSTRATIONS, REJECTED, FIGURES].map(str::to_owned);
    for name in names.into_iter().chain(Split::ALL.map(tasks)) {
        let path = output.join(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(RowsError::write(&path, source));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Size of a row in all files of results together, in bytes, as if each file contained it.
pub(crate) fn size(row: &Row) -> u64 {
    let forms = [
        ftrl_row(row).to_string().len(),
        serde_json::to_string(&task(row)).map_or(0, |text| text.len()),
        if row.split == Split::Train {
            demonstration(row, &[]).to_string().len()
        } else {
            0
        },
    ];
    forms.iter().sum::<usize>() as u64
}

fn reasons(verdict: &Verdict) -> String {
    let findings = verdict.findings.iter().take(MAX_FINDINGS);
    let reasons: Vec<&str> = findings.map(|finding| finding.reason.as_str()).collect();
    reasons.join("; ")
}

/// Writes the kept rows of one split, in another form.
fn write_rows<T: Serialize>(
    output: &Path,
    path: &Path,
    kept: &[Option<Split>],
    split: Split,
    form: impl Fn(&Row, &Verdict) -> T,
) -> Result<(), RowsError> {
    artefact::write_with(path, |out| {
        for (judged, kept) in Judged::all(output)?.zip(kept) {
            let judged = judged?;
            if *kept == Some(split) {
                let made = form(&judged.row()?, &judged.verified.verdict);
                lines::write(out, &made).map_err(|source| RowsError::write(path, source))?;
            }
        }
        Ok(())
    })
}

/// The rejections of the stages before verification.
fn earlier_rejections(output: &Path) -> Result<Vec<Rejection>, RowsError> {
    let mut rejections = Vec::new();
    for stage in [Stage::Decompose, Stage::Deploy] {
        let path = artefact::file(output, stage);
        for line in artefact::lines::<IgnoredAny>(&path)? {
            if let Line::Rejected(rejection) = line? {
                rejections.push(rejection);
            }
        }
    }
    Ok(rejections)
}

/// A deployed row as text, not parsed yet, with its verdict.
struct Judged {
    verified: Verified,
    line: Raw,
    deployed: PathBuf,
}

impl Judged {
    /// All rows that have a verdict, in order.
    fn all(output: &Path) -> Result<impl Iterator<Item = Result<Self, RowsError>>, RowsError> {
        let deployed = artefact::file(output, Stage::Deploy);
        let path = artefact::file(output, Stage::Verify);
        let lines = artefact::raw_items(&deployed)?;
        let both = artefact::raw_lines(&path)?.zip(lines);
        Ok(both.map(move |(verdict, line)| -> Result<Self, RowsError> {
            Ok(Self {
                verified: verdict?.parse(&path)?,
                line: line?,
                deployed: deployed.clone(),
            })
        }))
    }

    fn row(&self) -> Result<Row, RowsError> {
        self.line.item(&self.deployed)
    }
}

/// The splits in which tools and entities were met.
#[derive(Default)]
struct Splits {
    owners: BTreeMap<String, Split>,
}

impl Splits {
    /// Returns a finding if a row cannot be in its split. Otherwise assigns the row's tools and entities to the split.
    fn conflict(&mut self, row: &Row) -> Option<Finding> {
        let tools = row.tools.iter().map(|tool| format!("tool {}", tool.name));
        let answers = row.calls.iter().map(|call| call.answer.as_str());
        let named = answers.filter(|answer| answer.chars().any(char::is_alphabetic));
        let entities = row.given.iter().map(String::as_str).chain(named);
        let all: Vec<String> = tools
            .chain(entities.map(|name| format!("entity {}", name.to_lowercase())))
            .collect();
        for name in &all {
            if let Some(owner) = self.owners.get(name).filter(|owner| **owner != row.split) {
                let reason = format!(
                    "it is in the split {}, and its {name} in {owner}",
                    row.split
                );
                return Some(Finding::new(Check::Split, reason));
            }
        }
        for name in all {
            self.owners.insert(name, row.split);
        }
        None
    }
}
