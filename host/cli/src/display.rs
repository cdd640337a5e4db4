//! Prints a trajectory for people: events, loss mask and grades.

use console::{Style, style};
use indicatif::{ProgressBar, ProgressStyle};
use rlf_dialogue::message::plain_text;
use rlf_dialogue::score::Graded;
use rlf_dialogue::task::Task;
use rlf_dialogue::tokenizer::Tokenizer;
use rlf_dialogue::tool::Ended;
use rlf_dialogue::trajectory::{Event, ModelSegment, Segment, Trajectory};
use rlf_rollout::evaluate::Evaluation;
use rlf_rollout::statistics::Rate;

/// A progress bar for work of `parts` parts, on standard error. In a pipe, it shows nothing.
pub(crate) fn progress_bar(parts: usize) -> ProgressBar {
    let bar = ProgressBar::new(parts as u64);
    let style = "{bar:30} {pos}/{len} {elapsed} (about {eta} left)  {msg}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}

/// A share as a percentage, or a dash if there is none.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// Says how many trajectories of an evaluation were excluded, and why the first was; `None` if none was.
pub(crate) fn excluded(evaluation: &Evaluation) -> Option<String> {
    let why = evaluation.excluded_because.as_ref()?;
    let share = percent(Some(evaluation.excluded));
    Some(format!(
        "{share} of the trajectories were excluded, the first because: {}",
        printable(why)
    ))
}

/// The confidence interval of a rate in percent; empty if nothing was scored.
pub(crate) fn interval(rate: &Rate) -> String {
    let (low, high) = (rate.low * 100.0, rate.high * 100.0);
    rate.mean
        .map_or_else(String::new, |_| format!("[{low:.1}, {high:.1}]"))
}

/// Prints one trajectory.
pub(crate) fn trajectory(
    task: &Task,
    trajectory: &Trajectory,
    graded: &Graded,
    tokenizer: &Tokenizer,
) {
    let heading = Style::new().bold();
    say!("{} {} ({})", heading.apply_to("task"), task.id, task.kind());
    for message in &task.prompt {
        say!("  {:?}: {}", message.role, printable(&message.plain_text()));
    }
    say!("  reference: {}", beginning(&task.reference.to_string()));
    say!();
    say!("{}", heading.apply_to("what happened"));
    let mut turn = 0;
    for event in &trajectory.events {
        match event {
            Event::Turn(model) => {
                turn += 1;
                say!("  turn {turn}, {} tokens", model.tokens);
                if let Some(reasoning) = &model.reasoning {
                    say!("    thinks   {}", style(printable(reasoning)).dim());
                }
                if !model.visible.trim().is_empty() {
                    say!("    says     {}", printable(model.visible.trim()));
                }
                for call in &model.calls {
                    say!(
                        "    calls    {} {}",
                        style(&call.name).cyan(),
                        call.arguments
                    );
                }
                for malformed in &model.malformed {
                    say!(
                        "    {} {}: {}",
                        style("malformed").yellow(),
                        malformed.diagnostic,
                        printable(&malformed.text)
                    );
                }
            }
            Event::Outcome(outcome) => {
                let seen = outcome
                    .observation
                    .as_ref()
                    .map(|seen| plain_text(&seen.content));
                say!(
                    "    {} {} in {} us: {}",
                    style(&outcome.name).cyan(),
                    outcome.ended.as_str(),
                    outcome.wall_us,
                    printable(&seen.or_else(|| outcome.detail.clone()).unwrap_or_default())
                );
            }
            Event::User(message) => say!("    user     {}", printable(&message.plain_text())),
        }
    }
    say!(
        "  finished: {}, answer {}",
        trajectory.finish.as_str(),
        trajectory
            .answer
            .as_deref()
            .map_or_else(|| "none".into(), |answer| format!("{answer:?}"))
    );
    say!();
    loss_mask(trajectory, tokenizer);
    say!();
    say!("{}", heading.apply_to("rewards"));
    match graded {
        Ok(score) => {
            let longest = score
                .terms
                .iter()
                .map(|(term, _)| term.len())
                .max()
                .unwrap_or(0);
            let width = longest.max(24);
            for (term, value) in &score.terms {
                // Adding 0 takes the sign from what is rounded to 0.
                let rounded = (value * 1e3).round() / 1e3 + 0.0;
                say!("  {term:<width$} {rounded:>8.3}");
            }
            let success = if score.success {
                style("success").green()
            } else {
                style("failure").red()
            };
            say!("  {:<width$} {:>8.3}  {success}", "reward", score.reward);
        }
        Err(excluded) => say!("  excluded: {}", excluded.reason),
    }
}

/// Prints the training sequences as text, and marks the tokens that count in the loss.
fn loss_mask(trajectory: &Trajectory, tokenizer: &Tokenizer) {
    let coloured = console::colors_enabled();
    let mark = |origin, text: &str| marked(origin, text, coloured);
    say!(
        "{} ({}, {}, {})",
        style("what training sees").bold(),
        mark(Origin::Prompt, "prompt"),
        mark(Origin::Model, "model: trained"),
        mark(Origin::Observation, "observation: masked")
    );
    for (index, sequence) in trajectory.sequences.iter().enumerate() {
        if trajectory.sequences.len() > 1 {
            say!("  sequence {}", index + 1);
        }
        let mut text = String::new();
        for segment in sequence.segments() {
            let (origin, said) = match segment {
                Segment::Prompt(ids) => (Origin::Prompt, tokenizer.decode(ids)),
                Segment::Observation(ids) => (Origin::Observation, tokenizer.decode(ids)),
                Segment::Model(
                    ModelSegment::Sampled { ids, .. } | ModelSegment::Demonstrated { ids, .. },
                ) => (Origin::Model, tokenizer.decode(ids)),
                Segment::Model(ModelSegment::Text(said)) => (Origin::Model, said.clone()),
            };
            text.push_str(&mark(origin, &printable(&said)));
        }
        for line in text.lines() {
            say!("  {line}");
        }
    }
}

/// The origin of a piece of a training sequence.
#[derive(Clone, Copy, PartialEq)]
enum Origin {
    Prompt,
    Model,
    Observation,
}

/// Marks text by its origin: in colour, or else only the text of the model, in brackets.
fn marked(origin: Origin, text: &str, coloured: bool) -> String {
    if !coloured {
        return match origin {
            Origin::Model => format!("[[{text}]]"),
            Origin::Prompt | Origin::Observation => text.to_owned(),
        };
    }
    let style = match origin {
        Origin::Prompt => Style::new().dim(),
        Origin::Model => Style::new().green().bold(),
        Origin::Observation => Style::new().blue(),
    };
    // Each line gets its own style, because terminals do not carry a style across line ends.
    let lines = text.split('\n');
    let lines: Vec<String> = lines.map(|line| style.apply_to(line).to_string()).collect();
    lines.join("\n")
}

/// The end of a call that did not succeed, and the text that the model reads, without words that repeat the end.
pub(crate) fn failure(ended: Ended, seen: &str) -> (String, String) {
    let arguments = seen.strip_prefix("error: invalid arguments: ");
    match arguments.filter(|_| ended == Ended::InvalidArguments) {
        Some(why) => ("invalid-arguments:".to_owned(), printable(why)),
        None => (ended.as_str().to_owned(), printable(seen)),
    }
}

/// Width of a column of names that has these kinds of task, each indented by two spaces.
pub(crate) fn name_width<'a>(kinds: impl Iterator<Item = &'a String>) -> usize {
    kinds
        .map(|kind| 2 + kind.chars().count())
        .fold(16, usize::max)
}

/// The beginning of a reference, which may have the whole state of an environment.
fn beginning(reference: &str) -> String {
    const MOST: usize = 400;
    let shown = &reference[..reference.floor_char_boundary(MOST)];
    match reference.len() - shown.len() {
        0 => printable(shown),
        rest => format!("{} [... {rest} bytes left out]", printable(shown)),
    }
}

/// Makes characters in the text of a model or tool visible that could steer the terminal: control characters, and those
/// that turn the direction of writing. Line breaks stay.
pub(crate) fn printable(text: &str) -> String {
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .flat_map(|c| {
            if (c.is_control() && c != '\n') || turns(c) {
                c.escape_default().collect::<Vec<_>>()
            } else {
                vec![c]
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_scored_has_no_interval() {
        assert_eq!(interval(&Rate::by_task(&[])), "");
        assert_eq!(interval(&Rate::by_task(&[1.0, 1.0])), "[15.8, 100.0]");
    }

    #[test]
    fn without_colours_brackets_mark_what_is_trained() {
        let shown = [
            (Origin::Prompt, "user: 6 * 7?\n"),
            (Origin::Model, "<answer>42\n</answer>"),
            (Origin::Observation, "\n"),
        ]
        .map(|(origin, text)| marked(origin, text, false));
        assert_eq!(shown.concat(), "user: 6 * 7?\n[[<answer>42\n</answer>]]\n");
    }

    #[test]
    fn a_refusal_of_arguments_is_said_once() {
        let said = |ended, seen| {
            let (label, text) = failure(ended, seen);
            format!("{label} {text}")
        };
        assert_eq!(
            said(
                Ended::InvalidArguments,
                "error: invalid arguments: `n` is missing"
            ),
            "invalid-arguments: `n` is missing"
        );
        assert_eq!(said(Ended::Failed, "no such room"), "failed no such room");
    }

    #[test]
    fn of_a_long_reference_the_beginning_is_shown() {
        assert_eq!(beginning("{\"answer\":5}"), "{\"answer\":5}");
        let shown = beginning(&"ä".repeat(1_000));
        assert_eq!(
            shown,
            format!("{} [... 1600 bytes left out]", "ä".repeat(200))
        );
    }

    #[test]
    fn text_from_a_model_cannot_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\r\nc"), "a\\u{1b}[2Jb\\r\nc");
        assert_eq!(printable("54 \u{202e}12"), "54 \\u{202e}12");
    }
}
