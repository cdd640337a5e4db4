//! The reward `exact-match`: the answer equals an accepted one, after SQuAD's normalisation or as written.
//!
//! | term | is |
//! |---|---|
//! | `em` | 1 if the normalised answer equals a normalised reference, else 0 |
//! | `f1` | overlap of the words of both, the best over all references, 0 to 1 |
//! | `verbatim` | 1 if the answer is a reference character for character, white space around it aside, else 0 |
//!
//! A trajectory without an answer scores 0 on all terms. The reference is any form of
//! [`accepted_answers`](rlf_plugin::accepted_answers). A task whose references are empty after normalisation is an
//! error, because no answer could match it.
//!
//! `em` is not for numbers: without punctuation -5 is 5, and 3.14 is 314. If numbers may be written in several ways,
//! use `numeric-match`; if answers are names or numbers as a tool prints them, use `verbatim`.

mod normalize;
mod score;

use rlf_plugin::{Task, Terms, Trajectory, plugin, reward};

/// Compares the answer with the references.
#[reward]
fn exact_match(task: &Task, trajectory: &Trajectory) -> Result<Terms, String> {
    let references = task.accepted_answers().map_err(|error| error.to_string())?;
    let normalized: Vec<String> = references
        .iter()
        .map(|r| normalize::normalize(r))
        .filter(|r| !r.is_empty())
        .collect();
    if normalized.is_empty() {
        return Err("nothing is left of the task's references without articles and punctuation, so no answer \
                    can match"
            .to_owned());
    }
    let written = trajectory.answer.as_deref().unwrap_or_default();
    let answer = normalize::normalize(written);
    let best = |score: fn(&str, &str) -> f64, answer: &str, references: &[String]| {
        references
            .iter()
            .map(|r| score(answer, r))
            .fold(0.0, f64::max)
    };
    Ok(Terms::new()
        .term("em", best(score::exact, &answer, &normalized))
        .term("f1", best(score::f1, &answer, &normalized))
        .term("verbatim", best(score::verbatim, written, &references)))
}

plugin!(reward: exact_match);

#[cfg(test)]
mod tests;
