//! The reward `numeric-match`: the answer is the right number.
//!
//! | term | is |
//! |---|---|
//! | `match` | 1 if the answer holds exactly one number and it equals a reference, else 0 |
//!
//! A number is a decimal with an optional sign, thousands separators (groups of three, by `,` or a no-break or thin
//! space), exponent and percent sign. It may be surrounded by words, units and currency signs. A second number makes
//! the answer ambiguous, and it does not match: `3 or 4`, `1/3` and `2 x 21` are not answers. Comparison is exact, in
//! fractions, unless a tolerance is set.
//!
//! ```toml
//! [plugins.numeric-match.config]   # every key may be left out
//! absolute = 0.0                   # equal if they differ by at most this
//! relative = 0.0                   # or by at most this share of the reference
//! percent = "hundredths"           # 12% is 0.12; "ignored": 12% is 12
//! ```
//!
//! The reference is any form of [`accepted_answers`](rlf_plugin::accepted_answers); one without a
//! number in it is an error of the data set and excludes the trajectory.

mod number;

use num_rational::BigRational;
use num_traits::Signed;
use rlf_plugin::serde::Deserialize;
use rlf_plugin::{Task, Terms, Trajectory, plugin, reward};

use number::Percent;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, crate = "rlf_plugin::serde")]
struct Config {
    absolute: f64,
    relative: f64,
    percent: Percent,
}

/// The largest difference of numbers that count as equal.
struct Tolerance {
    absolute: BigRational,
    relative: BigRational,
    percent: Percent,
}

fn init(config: Config) -> Result<Tolerance, String> {
    // The value as it is written, not the nearest binary fraction: 0.01 is one hundredth.
    let exact = |name: &str, value: f64| {
        number::only_number(&value.to_string(), Percent::Ignored)
            .filter(|value| !value.is_negative())
            .ok_or_else(|| format!("configuration: {name} is 0 or more, not {value}"))
    };
    Ok(Tolerance {
        absolute: exact("absolute", config.absolute)?,
        relative: exact("relative", config.relative)?,
        percent: config.percent,
    })
}

/// Compares the number in the answer with those of the references.
#[reward]
fn numeric_match(
    task: &Task,
    trajectory: &Trajectory,
    tolerance: &Tolerance,
) -> Result<Terms, String> {
    let references = task.accepted_answers().map_err(|error| error.to_string())?;
    let references = references
        .iter()
        .map(|reference| {
            number::only_number(reference, tolerance.percent)
                .ok_or_else(|| format!("the task's reference {reference:?} is not one number"))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let answer = trajectory
        .answer
        .as_deref()
        .and_then(|answer| number::only_number(answer, tolerance.percent));
    let matches = answer.is_some_and(|answer| {
        references
            .iter()
            .any(|reference| tolerance.equal(&answer, reference))
    });
    Ok(Terms::new().term("match", if matches { 1.0 } else { 0.0 }))
}

plugin!(init: init, reward: numeric_match);

impl Tolerance {
    fn equal(&self, answer: &BigRational, reference: &BigRational) -> bool {
        let difference = (answer - reference).abs();
        difference <= self.absolute || difference <= &self.relative * reference.abs()
    }
}

#[cfg(test)]
mod tests;
