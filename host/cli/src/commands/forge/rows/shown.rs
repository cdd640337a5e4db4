//! Prints what `forge rows` does: its progress, and figures of the rows.

use std::io::IsTerminal as _;
use std::path::Path;
use std::time::{Duration, Instant};

use console::style;
use indicatif::ProgressBar;
use rlf_forge::rows::figures::{Figures, Spread};
use rlf_forge::rows::{Progress, Stage};

use super::counted;

/// The rows that were verified in this run, and the time that it took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct VerifiedNow {
    pub(super) rows: usize,
    pub(super) time: Duration,
}

/// Prints the progress of a run.
pub(super) struct Display {
    quiet: bool,
    count: usize,
    bar: Option<ProgressBar>,
    begun: Option<(Instant, usize)>,
    seen: usize,
}

impl Display {
    pub(super) fn new(count: usize, quiet: bool) -> Self {
        Self {
            quiet,
            count,
            bar: None,
            begun: None,
            seen: 0,
        }
    }

    pub(super) fn show(&mut self, progress: Progress) {
        match progress {
            // Only the first round of candidates is listed.
            Progress::Stage { stage, .. } if self.begun.is_some() => {
                if !self.quiet && stage == Stage::Decompose {
                    say!("too few rows passed: more candidates are drawn");
                }
            }
            Progress::Stage { stage, kept } => {
                if !self.quiet {
                    let what = if kept { "kept" } else { "made" };
                    say!("{what} {}.jsonl", stage.artefact());
                }
            }
            Progress::VerificationBegins { kept } => {
                let is_first = self.begun.is_none();
                self.begun.get_or_insert((Instant::now(), kept));
                self.seen = kept;
                if !self.quiet && is_first && kept > 0 {
                    let verdicts = counted(kept, "verdict");
                    say!("kept {verdicts} in {}.jsonl", Stage::Verify.artefact());
                }
                let is_shown = !self.quiet && std::io::stderr().is_terminal();
                if is_shown && is_first && self.count < usize::MAX {
                    self.bar = Some(ProgressBar::new(self.count as u64));
                }
            }
            Progress::Verified { accepted, rejected } => {
                self.seen = accepted + rejected;
                if let Some(bar) = &self.bar {
                    bar.set_position(accepted as u64);
                }
            }
        }
    }

    pub(super) fn finish(self) -> VerifiedNow {
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

/// Prints the result of a run.
pub(super) fn figures(figures: &Figures, output: &Path, time: Duration, verified: VerifiedNow) {
    say!(
        "{} {} in {} in {:.0} s",
        style("made").bold(),
        counted(figures.rows, "row"),
        output.display(),
        time.as_secs_f64()
    );
    let rate = verified.rows as f64 / verified.time.as_secs_f64().max(1e-3);
    say!(
        "verified now: {}, {rate:.0} rows/s; {} in all",
        counted(verified.rows, "row"),
        counted(figures.calls, "call")
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

/// Prints the sizes of rows and tools.
pub(super) fn sizes(figures: &Figures) {
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
