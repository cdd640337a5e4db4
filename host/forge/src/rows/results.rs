//! The results of a run: rows in FTRL's form, tasks of each split, demonstrations, rejections and figures.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::artefact::{self, Line, line};
use super::error::RowsError;
use super::figures::Figures;
use super::options::{RowOptions, SPLITS, Split};
use super::output::{demonstration, ftrl_row, task};
use super::rejection::{Check, Rejection};
use super::row::Row;
use super::stage::Stage;
use super::verification::Verdict;

/// Most findings that are told of one row.
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
    let mut kept = Vec::new();
    let rows = output.join("rows.jsonl");
    write_file(&rows, |out| {
        let mut of_question = Deployed::open(output)?;
        for (number, verified) in verdicts(output)?.enumerate() {
            let (verified, row) = (verified?, of_question.next_row()?);
            let finding = verified.verdict.findings.first().cloned();
            let rejected = match finding {
                Some(finding) => Some((finding.check, reasons(&verified.verdict))),
                None => splits.conflict(&row).map(|reason| (Check::Split, reason)),
            };
            figures.calls += verified.verdict.calls;
            if let Some((check, reason)) = rejected {
                rejections.push(Rejection {
                    id: verified.id,
                    stage: Stage::Verify.as_str().to_owned(),
                    check,
                    reason,
                });
                continue;
            }
            if kept.len() == options.count {
                break;
            }
            kept.push((number, row.split));
            figures.add(&row);
            line(out, &ftrl_row(&row)).map_err(|source| RowsError::write(&rows, source))?;
        }
        Ok(())
    })?;
    for split in SPLITS {
        let path = output.join(format!("tasks-{split}.jsonl"));
        write_rows(output, &path, &kept, split, |row, _| task(row))?;
    }
    let path = output.join("demonstrations.jsonl");
    write_rows(output, &path, &kept, Split::Train, |row, verdict| {
        demonstration(row, &verdict.results)
    })?;
    let path = output.join("rejected.jsonl");
    write_file(&path, |out| {
        for rejection in &rejections {
            line(out, rejection).map_err(|source| RowsError::write(&path, source))?;
            figures.reject(rejection);
        }
        Ok(())
    })?;
    figures.finish(options.count);
    let path = output.join("rows.json");
    write_file(&path, |out| {
        let text = serde_json::to_string_pretty(&figures).unwrap_or_default();
        writeln!(out, "{text}").map_err(|source| RowsError::write(&path, source))
    })?;
    Ok(figures)
}

/// The bytes that a row takes in the files of results, if all of them had it.
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
    kept: &[(usize, Split)],
    split: Split,
    form: impl Fn(&Row, &Verdict) -> T,
) -> Result<(), RowsError> {
    write_file(path, |out| {
        let mut wanted = kept
            .iter()
            .filter(|(_, of)| *of == split)
            .map(|(number, _)| *number);
        let mut next = wanted.next();
        let mut deployed = Deployed::open(output)?;
        for (number, verified) in verdicts(output)?.enumerate() {
            if next.is_none() {
                break;
            }
            if next != Some(number) {
                deployed.skip_row()?;
                continue;
            }
            let (verified, row) = (verified?, deployed.next_row()?);
            let made = form(&row, &verified.verdict);
            line(out, &made).map_err(|source| RowsError::write(path, source))?;
            next = wanted.next();
        }
        Ok(())
    })
}

/// Writes a file whole.
fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), RowsError>,
) -> Result<(), RowsError> {
    let mut failed = None;
    let written = rlf_files::write_with(path, |out| {
        fill(out).map_err(|error| {
            failed = Some(error);
            std::io::ErrorKind::Other.into()
        })
    });
    match (failed, written) {
        (Some(error), _) => Err(error),
        (None, written) => written.map_err(|source| RowsError::write(path, source)),
    }
}

/// The rejections of the stages before verification.
fn earlier_rejections(output: &Path) -> Result<Vec<Rejection>, RowsError> {
    let mut rejections = Vec::new();
    for stage in [Stage::Decompose, Stage::Deploy] {
        let path = artefact::file(output, stage.artefact());
        for line in artefact::lines::<serde::de::IgnoredAny>(&path)? {
            if let Line::Rejected(rejection) = line? {
                rejections.push(rejection);
            }
        }
    }
    Ok(rejections)
}

fn verdicts(
    output: &Path,
) -> Result<impl Iterator<Item = Result<Verified, RowsError>> + use<>, RowsError> {
    let path = artefact::file(output, Stage::Verify.artefact());
    let file = File::open(&path).map_err(|source| RowsError::read(&path, source))?;
    let lines = (1..).zip(BufReader::new(file).lines()).skip(1);
    Ok(lines.map(move |(number, line)| {
        let line = line.map_err(|source| RowsError::read(&path, source))?;
        serde_json::from_str(&line).map_err(|error| RowsError::line(&path, number, &error))
    }))
}

/// The deployed rows, one after the other.
struct Deployed {
    path: PathBuf,
    lines: std::iter::Skip<std::io::Lines<BufReader<File>>>,
}

impl Deployed {
    fn open(output: &Path) -> Result<Self, RowsError> {
        let path = artefact::file(output, Stage::Deploy.artefact());
        let file = File::open(&path).map_err(|source| RowsError::read(&path, source))?;
        Ok(Self {
            lines: BufReader::new(file).lines().skip(1),
            path,
        })
    }

    /// The line of the next row that was not rejected.
    fn next_line(&mut self) -> Result<String, RowsError> {
        for line in self.lines.by_ref() {
            let line = line.map_err(|source| RowsError::read(&self.path, source))?;
            if line.starts_with("{\"item\"") {
                return Ok(line);
            }
        }
        Err(RowsError::Empty {
            path: self.path.clone(),
            problem: "it has fewer rows than there are verdicts; run the command again",
        })
    }

    fn next_row(&mut self) -> Result<Row, RowsError> {
        let line = self.next_line()?;
        match serde_json::from_str(&line) {
            Ok(Line::Item(row)) => Ok(row),
            Ok(Line::Rejected(_)) => self.next_row(),
            Err(error) => Err(RowsError::line(&self.path, 0, &error)),
        }
    }

    fn skip_row(&mut self) -> Result<(), RowsError> {
        self.next_line().map(|_| ())
    }
}

/// The splits in which tools and entities were met.
#[derive(Default)]
struct Splits {
    owners: BTreeMap<String, Split>,
}

impl Splits {
    /// The reason why a row cannot be in its split. If there is none, its tools and entities belong to the split from now on.
    fn conflict(&mut self, row: &Row) -> Option<String> {
        let tools = row.tools.iter().map(|tool| format!("tool {}", tool.name));
        let answers = row.calls.iter().map(|call| call.answer.as_str());
        let named = answers.filter(|answer| answer.chars().any(char::is_alphabetic));
        let entities = row.given.iter().map(String::as_str).chain(named);
        let all: Vec<String> = tools
            .chain(entities.map(|name| format!("entity {}", name.to_lowercase())))
            .collect();
        for name in &all {
            if let Some(owner) = self.owners.get(name).filter(|owner| **owner != row.split) {
                return Some(format!(
                    "it is in the split {}, and its {name} in {owner}",
                    row.split
                ));
            }
        }
        for name in all {
            self.owners.insert(name, row.split);
        }
        None
    }
}
