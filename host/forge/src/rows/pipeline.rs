//! The pipeline: facts, the five stages, and verification, each an artefact on disk.
//!
//! An artefact is made again if its key changed: the hash of the options that it depends on, and of the artefacts that it
//! was made from. Verification is the long part. It appends verdict after verdict, and continues after the last one.

mod stages;
mod verdicts;

use std::fs;
use std::path::{Path, PathBuf};

use rlf_interpreters::interpreter::Interpreter;

use self::stages::Stages;
use super::artefact::{self, Line};
use super::decomposer::Decomposer;
use super::error::RowsError;
use super::figures::Figures;
use super::options::RowOptions;
use super::results;
use super::row::Row;
use super::stage::Stage;

/// Maximum number of times that more candidates are made because too many were rejected.
const MAX_ROUNDS: usize = 8;

/// The source of the questions.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    /// A graph of facts that is generated from the seed.
    Generated,
    /// A file of facts.
    Facts(PathBuf),
    /// A file of questions.
    Questions {
        /// The file.
        file: PathBuf,
        /// Finds the steps of questions that have none. None if all questions have steps.
        decomposer: Option<&'a Decomposer<'a>>,
    },
}

/// The state of a run, for a display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A stage is made, or kept from an earlier run.
    Stage {
        /// The stage.
        stage: Stage,
        /// True if it is kept.
        kept: bool,
    },
    /// Verification begins, or continues.
    VerificationBegins {
        /// Verdicts that are kept from an earlier run.
        kept: usize,
    },
    /// Rows that were verified so far.
    Verified {
        /// Rows without findings.
        accepted: usize,
        /// Rows with findings.
        rejected: usize,
    },
}

/// Makes rows in a folder, and continues what is there. With `only`, one stage is made again from the artefact before it,
/// and nothing else.
pub async fn make_rows(
    input: &Input<'_>,
    options: &RowOptions,
    output: &Path,
    only: Option<Stage>,
    interpreter: Option<&Interpreter>,
    mut progress: impl FnMut(Progress),
) -> Result<Figures, RowsError> {
    check(options)?;
    if let Some(only) = only {
        check_earlier(only, output)?;
    }
    fs::create_dir_all(output).map_err(|source| RowsError::write(output, source))?;
    let mut candidates = first_candidates(options.count);
    // An earlier run may have needed more.
    let made = artefact::raw_lines(&artefact::file(output, Stage::Decompose));
    let made = made.map_or(0, Iterator::count);
    if Stages::new(input, options, output, made).has_made(Stage::Decompose) {
        candidates = candidates.max(made);
    }
    let mut known = None;
    for _ in 0..MAX_ROUNDS {
        let stages = Stages::new(input, options, output, candidates);
        for stage in Stage::Verify.earlier() {
            if only.is_some_and(|only| only != stage) {
                continue;
            }
            let kept = stages.make(stage, only.is_some()).await?;
            progress(Progress::Stage { stage, kept });
        }
        let Some(interpreter) =
            interpreter.filter(|_| only.is_none_or(|only| only == Stage::Verify))
        else {
            break;
        };
        let accepted =
            verdicts::verify(&stages, options, interpreter, only.is_some(), &mut progress).await?;
        // Given questions are as many as they are.
        let is_enough = accepted >= options.count || matches!(input, Input::Questions { .. });
        if is_enough || only.is_some() || known == Some(accepted) {
            break;
        }
        known = Some(accepted);
        candidates += 2 * (options.count - accepted) + 16;
    }
    if only.is_some_and(|only| only != Stage::Verify) || interpreter.is_none() {
        return Ok(Figures::default());
    }
    results::write(output, options)
}

/// Checks that the artefacts before a stage are there.
fn check_earlier(stage: Stage, output: &Path) -> Result<(), RowsError> {
    for earlier in stage.earlier() {
        let path = artefact::file(output, earlier);
        if !path.is_file() {
            return Err(RowsError::Options(format!(
                "the stage {stage} needs {}, which is not there; run the command without --stage first",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Number of candidates that are made at first for a number of rows.
fn first_candidates(rows: usize) -> usize {
    rows.saturating_add(rows / 8 + 16)
}

/// Figures of the deployed rows of a folder, which need not be verified, and the bytes of all files of a run with
/// `wanted` rows. The folder was made with the options of the sample.
pub fn sampled(
    output: &Path,
    sample: &RowOptions,
    wanted: usize,
) -> Result<(Figures, u64), RowsError> {
    let mut figures = Figures::default();
    let mut results = 0;
    for line in artefact::lines::<Row>(&artefact::file(output, Stage::Deploy))? {
        let Line::Item(row) = line? else { continue };
        if figures.rows == sample.count {
            break;
        }
        results += results::size(&row);
        figures.add(&row);
    }
    figures.finish(sample.count);
    // A sample of a file's questions has all of them.
    let (candidates, rows) = if wanted == usize::MAX {
        (1.0, 1.0)
    } else {
        let candidates = first_candidates(wanted) as f64 / first_candidates(sample.count) as f64;
        (candidates, wanted as f64 / figures.rows.max(1) as f64)
    };
    let mut bytes = results as f64 * rows;
    for stage in Stage::Verify.earlier() {
        let path = artefact::file(output, stage);
        let file = fs::metadata(&path).map_err(|source| RowsError::read(&path, source))?;
        // The graph of facts is the same for any number of rows.
        let times = if stage == Stage::Facts {
            1.0
        } else {
            candidates
        };
        bytes += file.len() as f64 * times;
    }
    Ok((figures, bytes as u64))
}

/// Checks options that contradict each other.
pub fn check(options: &RowOptions) -> Result<(), RowsError> {
    if options.scenarios.is_empty() {
        return Err(RowsError::Options(
            "no scenario is left; name at least one".to_owned(),
        ));
    }
    for scenario in &options.scenarios {
        let least = scenario.sub_answers().0;
        if least > options.max_calls {
            return Err(RowsError::Options(format!(
                "a {scenario} question has at least {least} sub-answers, and at most {} are asked for; leave the scenario out with --scenario, or \
                 raise --max-calls",
                options.max_calls
            )));
        }
    }
    Ok(())
}
