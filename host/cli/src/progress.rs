//! Progress: a live line on a terminal, one quiet line a step in a pipe; a word where one waits.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rlf_rollout::evaluate::Evaluation;
use rlf_train::metrics::Line;
use rlf_train::phase::Phase;

use crate::display::{interval, percent};

/// How long people are left to wait without a word.
const PATIENCE: Duration = Duration::from_secs(3);

/// Loads plugins, and says so on a terminal where it takes a while.
pub(crate) fn loading<T>(load: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return load();
    }
    let (done, waits) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if waits.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                eprintln!(
                    "loading plugins: a component that is new on this machine is compiled first"
                );
            }
        });
        let loaded = load();
        drop(done);
        loaded
    })
}

/// Shows how a run goes.
pub(crate) struct Progress {
    /// None in a pipe.
    live: bool,
    bar: Option<(Phase, ProgressBar)>,
}

/// In a pipe, SFT steps are too many and too alike to print all.
const SFT_STEPS_PER_LINE: u64 = 50;

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            live: std::io::stderr().is_terminal(),
            bar: None,
        }
    }

    /// A step is done.
    pub(crate) fn step(&mut self, line: &Line, steps: u64) {
        let (phase, step) = (line.phase(), line.step());
        let said = describe(line);
        if self.live {
            if self.bar.as_ref().is_none_or(|(of, _)| *of != phase) {
                self.close();
                let bar = ProgressBar::new(steps);
                let style = "{prefix} {bar:30} {pos}/{len} {elapsed} (about {eta} left)  {msg}";
                if let Ok(style) = ProgressStyle::with_template(style) {
                    bar.set_style(style);
                }
                bar.set_prefix(name(phase));
                self.bar = Some((phase, bar));
            }
            if let Some((_, bar)) = &self.bar {
                bar.set_position(step);
                bar.set_message(said);
            }
        } else if phase == Phase::Rl || step.is_multiple_of(SFT_STEPS_PER_LINE) || step == steps {
            say!("{} {step}/{steps}  {said}", name(phase));
        }
    }

    /// Something takes a while.
    pub(crate) fn note(&self, what: &str) {
        if let Some((_, bar)) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }

    /// Success was measured.
    pub(crate) fn evaluation(&self, moment: &str, evaluation: &Evaluation) {
        let mut text = format!(
            "{}{} split: greedy {}, sampled {} {}",
            if moment.is_empty() {
                String::new()
            } else {
                format!("{moment}, ")
            },
            evaluation.split,
            percent(evaluation.greedy.mean),
            percent(evaluation.sampled.mean),
            interval(&evaluation.sampled),
        );
        text.truncate(text.trim_end().len());
        if !moment.is_empty() {
            for (kind, rate) in &evaluation.sampled_by_kind {
                let _ = write!(
                    text,
                    "\n    {kind:<14} {:>7}  ({} tasks)",
                    percent(rate.mean),
                    rate.tasks
                );
            }
        }
        self.say(&text);
    }

    /// A line that stays.
    pub(crate) fn say(&self, text: &str) {
        if let Some((_, bar)) = &self.bar {
            bar.suspend(|| say!("{text}"));
        } else {
            say!("{text}");
        }
    }

    /// Ends the live display.
    pub(crate) fn close(&mut self) {
        if let Some((_, bar)) = self.bar.take() {
            bar.finish();
        }
    }
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Sft => "sft",
        Phase::Rl => "rl ",
    }
}

/// The few numbers that say whether it goes well.
fn describe(line: &Line) -> String {
    let shown: &[(&str, &str, usize)] = match line.phase() {
        Phase::Sft => &[("loss", "loss", 4), ("train_tokens_per_s", "tokens/s", 0)],
        Phase::Rl => &[
            ("reward", "reward", 3),
            ("success", "success", 3),
            ("calls_per_trajectory", "calls", 2),
            ("kl", "kl", 4),
            ("entropy", "entropy", 3),
            ("grad_norm", "grad norm", 3),
            ("excluded", "excluded", 2),
            ("decode_tokens_per_s", "decode tokens/s", 0),
            ("train_tokens_per_s", "train tokens/s", 0),
        ],
    };
    shown
        .iter()
        .filter_map(|(key, name, digits)| Some(format!("{name} {:.*}", *digits, line.get(key)?)))
        .collect::<Vec<_>>()
        .join("  ")
}
