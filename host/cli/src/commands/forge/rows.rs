//! `rlf-host forge rows`: makes rows in FTRL's form and verifies them by execution.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use console::style;
use indicatif::ProgressBar;
use rlf_forge::rows::figures::{Figures, Spread};
use rlf_forge::rows::options::{RowOptions, Scenario};
use rlf_forge::rows::{Input, Progress as RowProgress, Stage, make_rows, pipeline};
use rlf_interpreters::interpreter::Interpreter;
use serde_json::json;

use super::interpreter::python;
use crate::arguments::{ForgeRows, GroupOptions};
use crate::operator::Operator;

/// Number of rows from which a dry run estimates.
const SAMPLE: usize = 40;

pub(super) fn run(rows: &ForgeRows, forge: &GroupOptions) -> anyhow::Result<ExitCode> {
    let options = options(rows)?;
    let input = match (&rows.facts, &rows.questions) {
        (Some(file), _) => Input::Facts(file.clone()),
        (None, Some(file)) => Input::Questions(file.clone()),
        (None, None) => Input::Generated,
    };
    let stage = rows.stage;
    if rows.dry_run {
        return dry_run(&input, &options, forge.json);
    }
    let output = rows.output.as_deref().context("--output is missing")?;
    let executes = stage.is_none_or(|stage| stage == Stage::Verify);
    let interpreter = executes.then(|| interpreter(forge)).transpose()?;
    let mut display = Display::new(options.count, forge.json);
    let started = Instant::now();
    let making = make_rows(
        &input,
        &options,
        output,
        stage,
        interpreter.as_ref(),
        |progress| display.show(progress),
    );
    let figures = crate::commands::runtime()?.block_on(making);
    let verified = display.finish();
    let figures = figures?;
    if !executes {
        return Ok(ExitCode::SUCCESS);
    }
    if forge.json {
        let mut report = serde_json::to_value(&figures)?;
        report["seconds"] = json!(started.elapsed().as_secs_f64());
        report["verification"] =
            json!({ "rows": verified.rows, "seconds": verified.time.as_secs_f64() });
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        show(&figures, output, started.elapsed(), verified);
    }
    if figures.rows < options.count && input == Input::Generated {
        bail!(
            "only {} of {} rows passed; {} says why the others did not",
            figures.rows,
            options.count,
            output.join("rejected.jsonl").display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Loads the interpreter, with the grants of the configuration.
fn interpreter(forge: &GroupOptions) -> anyhow::Result<Interpreter> {
    let operator = Operator::load(forge.config.as_deref())?;
    python(forge.plugins.plugins.as_deref(), &operator)
}

fn options(rows: &ForgeRows) -> anyhow::Result<RowOptions> {
    let fits = |scenario: &Scenario| scenario.sub_answers().0 <= rows.max_calls;
    let options = RowOptions {
        count: if rows.questions.is_some() {
            usize::MAX
        } else {
            rows.count
        },
        seed: rows.seed,
        scenarios: if rows.scenario.is_empty() {
            Scenario::ALL.into_iter().filter(fits).collect()
        } else {
            rows.scenario.clone()
        },
        max_calls: rows.max_calls,
        complexity: rows.complexity,
    };
    pipeline::check(&options)?;
    Ok(options)
}

/// Prints the sizes of a small sample, which is made in a temporary folder.
fn dry_run(input: &Input, options: &RowOptions, as_json: bool) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let sample = RowOptions {
        count: options.count.min(SAMPLE),
        ..options.clone()
    };
    let making = make_rows(input, &sample, folder.path(), None, None, |_| {});
    crate::commands::runtime()?.block_on(making)?;
    let (figures, bytes) = pipeline::sampled(folder.path(), &sample)?;
    let rows = if matches!(input, Input::Questions(_)) {
        figures.rows
    } else {
        options.count
    };
    let size = bytes.saturating_mul(rows as u64) / figures.rows.max(1) as u64;
    if as_json {
        let report = json!({ "rows": rows, "bytes": size, "sample": figures });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "would make {rows} rows, about {:.1} MB in all files; nothing was written",
        size as f64 / 1e6
    );
    say!(
        "in a sample of {} rows that were not verified:",
        figures.rows
    );
    sizes(&figures);
    Ok(ExitCode::SUCCESS)
}

/// The rows that were verified in this run, and the time that it took.
#[derive(Debug, Clone, Copy, Default)]
struct VerifiedNow {
    rows: usize,
    time: Duration,
}

/// Shows how far a run is.
struct Display {
    quiet: bool,
    count: usize,
    bar: Option<ProgressBar>,
    begun: Option<(Instant, usize)>,
    seen: usize,
}

impl Display {
    fn new(count: usize, quiet: bool) -> Self {
        Self {
            quiet,
            count,
            bar: None,
            begun: None,
            seen: 0,
        }
    }

    fn show(&mut self, progress: RowProgress) {
        match progress {
            RowProgress::Stage { stage, kept } => {
                if !self.quiet {
                    let what = if kept { "kept" } else { "made" };
                    say!("{what} {}.jsonl", stage.artefact());
                }
            }
            RowProgress::VerificationBegins { kept } => {
                self.begun.get_or_insert((Instant::now(), kept));
                self.seen = kept;
                if !self.quiet && kept > 0 {
                    say!("kept {kept} verdicts in {}.jsonl", Stage::Verify.artefact());
                }
                if !self.quiet && std::io::stderr().is_terminal() && self.count < usize::MAX {
                    self.bar = Some(ProgressBar::new(self.count as u64));
                }
            }
            RowProgress::Verified { accepted, rejected } => {
                self.seen = accepted + rejected;
                if let Some(bar) = &self.bar {
                    bar.set_position(accepted as u64);
                }
            }
        }
    }

    fn finish(self) -> VerifiedNow {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.begun
            .map_or_else(VerifiedNow::default, |(begun, kept)| VerifiedNow {
                rows: self.seen.saturating_sub(kept),
                time: begun.elapsed(),
            })
    }
}

fn show(figures: &Figures, output: &Path, time: Duration, verified: VerifiedNow) {
    say!(
        "{} {} rows in {} in {:.0} s",
        style("made").bold(),
        figures.rows,
        output.display(),
        time.as_secs_f64()
    );
    let rate = verified.rows as f64 / verified.time.as_secs_f64().max(1e-3);
    say!(
        "verified now: {} rows, {rate:.0} rows/s; {} calls in all",
        verified.rows,
        figures.calls
    );
    sizes(figures);
    let examined = figures.rows + figures.rejected;
    let share = 100.0 * figures.rejected as f64 / examined.max(1) as f64;
    say!(
        "rejected: {} of {examined} ({share:.1} %); rejected.jsonl says why",
        figures.rejected
    );
    for (reason, count) in &figures.rejected_by {
        let share = 100.0 * *count as f64 / examined.max(1) as f64;
        say!("  {reason:<28} {count:>6}  {share:.1} %");
    }
}

/// The sizes of rows and tools.
fn sizes(figures: &Figures) {
    let list = |counts: &std::collections::BTreeMap<String, usize>| {
        let all: Vec<String> = counts
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        all.join(", ")
    };
    say!("scenarios: {}", list(&figures.scenarios));
    say!("splits: {}", list(&figures.splits));
    let spread = |name: &str, spread: &Spread| {
        let Spread {
            least,
            median,
            mean,
            most,
        } = spread;
        say!("{name:<26} {least:>6} / {median:>6} / {mean:>8.1} / {most:>6}");
    };
    say!(
        "{:<26} {:>6} / {:>6} / {:>8} / {:>6}",
        "",
        "least",
        "median",
        "mean",
        "most"
    );
    spread("sub-answers of a row", &figures.sub_answers);
    spread("tools of a row", &figures.tools);
    spread("characters of its tools", &figures.tool_characters);
    spread("lines of a function", &figures.function_lines);
    say!(
        "functions without imports: {:.0} %",
        100.0 * figures.without_imports
    );
}
