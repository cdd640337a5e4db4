//! Shows the progress of a run: a live line on a terminal, one plain line a step in a pipe.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use console::style;
use indicatif::{ProgressBar, ProgressStyle};
use rlf_dialogue::History;
use rlf_policy::DeviceChoice;
use rlf_rollout::evaluate::Evaluation;
use rlf_run::{Moment, RunReporter, RunSummary};
use rlf_train::metrics::{MetricsLine, names};
use rlf_train::phase::Phase;

use crate::display::{excluded, interval, percent};
use crate::warning::warn;

/// Prints a run's reports on standard output and standard error.
pub(crate) struct Progress {
    /// True if standard error is a terminal.
    live: bool,
    /// True if a step was made, or an evaluation.
    worked: AtomicBool,
    bar: Mutex<Option<(Phase, ProgressBar)>>,
}

/// Number of SFT steps for each line that is printed in a pipe: there are many steps, and they are alike.
const SFT_STEPS_PER_LINE: u64 = 50;

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            live: std::io::stderr().is_terminal(),
            worked: AtomicBool::new(false),
            bar: Mutex::new(None),
        }
    }

    /// True if at least one step or evaluation was done.
    pub(crate) fn worked(&self) -> bool {
        self.worked.load(Ordering::Relaxed)
    }

    /// Calls `act` with the live display, if there is one.
    fn with_bar<T>(&self, act: impl FnOnce(&mut Option<(Phase, ProgressBar)>) -> T) -> T {
        act(&mut self.bar.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl RunReporter for Progress {
    fn warn(&self, warning: &str) {
        warn(warning);
    }

    fn loading_slowly(&self) {
        if self.live {
            eprintln!("loading plugins: a component that is new on this machine is compiled first");
        }
    }

    fn begins(&self, run: &Path, device: &DeviceChoice) {
        say!(
            "{} {} on {}",
            style("run").bold(),
            run.display(),
            device.reason
        );
    }

    fn assembled(&self, summary: &RunSummary) {
        describe(summary);
    }

    fn stepped(&self, line: &MetricsLine, steps: u64) {
        self.worked.store(true, Ordering::Relaxed);
        let (phase, step) = (line.phase(), line.step());
        let said = numbers(line);
        if self.live {
            self.with_bar(|shown| {
                if shown.as_ref().is_none_or(|(of, _)| *of != phase) {
                    close(shown);
                    let bar = ProgressBar::new(steps);
                    let style = "{prefix} {bar:30} {pos}/{len} {elapsed} (about {eta} left)  {msg}";
                    if let Ok(style) = ProgressStyle::with_template(style) {
                        bar.set_style(style);
                    }
                    bar.set_prefix(name(phase));
                    *shown = Some((phase, bar));
                }
                if let Some((_, bar)) = shown {
                    bar.set_position(step);
                    bar.set_message(said);
                }
            });
        } else if phase == Phase::Rl || step.is_multiple_of(SFT_STEPS_PER_LINE) || step == steps {
            say!("{} {step}/{steps}  {said}", name(phase));
        }
    }

    fn evaluating(&self, split: &str) {
        self.with_bar(|shown| {
            if let Some((_, bar)) = shown {
                bar.set_message(format!("measuring the {split} split"));
            }
        });
    }

    fn evaluated(&self, moment: Option<Moment>, after: (Phase, u64), evaluation: &Evaluation) {
        self.worked.store(true, Ordering::Relaxed);
        let mut text = success(moment, after, evaluation);
        if let Some(why) = excluded(evaluation) {
            let _ = write!(text, "\n    {why}");
        }
        self.with_bar(|shown| {
            if let Some((_, bar)) = shown {
                bar.suspend(|| say!("{text}"));
            } else {
                say!("{text}");
            }
        });
    }

    fn ended_early(&self, step: u64, steps: u64, patience: u64) {
        self.with_bar(close);
        say!(
            "RL ends after step {step} of {steps}: the last {patience} validations were no better than the best one \
             (rl.patience = {patience})"
        );
    }

    fn phases_ended(&self) {
        self.with_bar(close);
    }

    fn control_begins(&self, steps: u64, rl_seconds: f64) {
        say!("control: {steps} more SFT steps, for the {rl_seconds:.0} s that RL took");
    }
}

/// Closes the live display.
fn close(shown: &mut Option<(Phase, ProgressBar)>) {
    if let Some((_, bar)) = shown.take() {
        bar.finish();
    }
}

/// Formats the result of an evaluation. With a `moment`, it includes the result for each kind of task.
fn success(moment: Option<Moment>, (phase, step): (Phase, u64), evaluation: &Evaluation) -> String {
    let mut text = format!(
        "{}, {} split: greedy {}, sampled {} {}",
        moment.map_or_else(
            || format!("after {} step {step}", phase.as_str()),
            |moment| moment.as_str().to_owned()
        ),
        evaluation.split,
        percent(evaluation.greedy.mean),
        percent(evaluation.sampled.mean),
        interval(&evaluation.sampled),
    );
    text.truncate(text.trim_end().len());
    if moment.is_some() {
        for (kind, rate) in &evaluation.sampled_by_kind {
            let _ = write!(
                text,
                "\n    {kind:<14} {:>7}  ({} tasks)",
                percent(rate.mean),
                rate.tasks
            );
        }
    }
    text
}

/// Prints the parts of a run.
fn describe(summary: &RunSummary) {
    let trained = if summary.trained_parameters < summary.parameters {
        format!(
            " ({:.2} M of them in adapters, which are trained)",
            summary.trained_parameters as f64 / 1e6
        )
    } else {
        String::new()
    };
    say!(
        "{} {:.2} M parameters{trained}, {} tokens in the vocabulary",
        style("policy").bold(),
        summary.parameters as f64 / 1e6,
        summary.vocabulary
    );
    if !summary.environments.is_empty() {
        say!(
            "{} {}",
            style("environments").bold(),
            summary.environments.join(", ")
        );
    }
    if !summary.tools.is_empty() {
        say!("{} {}", style("tools").bold(), summary.tools.join(", "));
    }
    if let Some(agent) = &summary.agent {
        say!("{} {agent}", style("agent").bold());
    }
    say!("{} {}", style("template").bold(), template(summary));
    say!(
        "{} {}; success is {}",
        style("rewards").bold(),
        summary.rewards.join(", "),
        summary.success
    );
    if let Some(checkpoint) = &summary.resumed_from {
        say!("{} {}", style("resumed from").bold(), checkpoint.display());
    }
}

/// Says which earlier turns the chat template changes, and the consequence.
fn template(summary: &RunSummary) -> String {
    let (origin, changed) = (&summary.template, summary.template_changes.join(", "));
    match (changed.is_empty(), summary.history) {
        (true, _) => format!("{origin}: earlier turns read the same when they are rendered again"),
        (false, History::AsSampled) => format!(
            "{origin}: the model keeps reading its earlier turns exactly as it wrote them (the template would write some \
             otherwise: {changed})"
        ),
        (false, History::Template) => format!(
            "{origin}: changes earlier turns when it renders them again ({changed}); each change begins a new training sequence"
        ),
    }
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Sft => "sft",
        Phase::Rl => "rl ",
    }
}

/// The numbers of a step that show whether training goes well.
fn numbers(line: &MetricsLine) -> String {
    let shown: &[(&str, &str, usize)] = match line.phase() {
        Phase::Sft => &[
            (names::LOSS, "loss", 4),
            (names::TRAIN_TOKENS_PER_S, "tokens/s", 0),
        ],
        Phase::Rl => &[
            (names::REWARD, "reward", 3),
            (names::SUCCESS, "success", 3),
            (names::CALLS_PER_TRAJECTORY, "calls", 2),
            (names::KL, "kl", 4),
            (names::ENTROPY, "entropy", 3),
            (names::GRAD_NORM, "grad norm", 3),
            (names::EXCLUDED, "excluded", 2),
            (names::REPLAYED_GROUPS, "replayed", 0),
            (names::DECODE_TOKENS_PER_S, "decode tokens/s", 0),
            (names::TRAIN_TOKENS_PER_S, "train tokens/s", 0),
        ],
    };
    shown
        .iter()
        .filter_map(|(key, name, digits)| Some(format!("{name} {:.*}", *digits, line.get(key)?)))
        .collect::<Vec<_>>()
        .join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_line_says_what_becomes_of_changed_turns() {
        let told = |changes: &[&'static str], history| {
            template(&RunSummary {
                parameters: 0,
                trained_parameters: 0,
                vocabulary: 0,
                environments: Vec::new(),
                tools: Vec::new(),
                agent: None,
                template: "chat.jinja".to_owned(),
                template_changes: changes.to_vec(),
                history,
                rewards: Vec::new(),
                success: String::new(),
                resumed_from: None,
            })
        };
        let same = "chat.jinja: earlier turns read the same when they are rendered again";
        for history in [History::AsSampled, History::Template] {
            assert_eq!(told(&[], history), same);
        }
        assert_eq!(
            told(&["thoughts", "white space"], History::AsSampled),
            "chat.jinja: the model keeps reading its earlier turns exactly as it wrote them (the template would write some \
             otherwise: thoughts, white space)"
        );
        assert_eq!(
            told(&["thoughts"], History::Template),
            "chat.jinja: changes earlier turns when it renders them again (thoughts); each change begins a new training \
             sequence"
        );
    }
}
