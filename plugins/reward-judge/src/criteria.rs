//! The criteria of a rubric and their scales.

use rlf_plugin::serde::Deserialize;
use rlf_plugin::serde_json::{self, Value};

const MAX_CRITERIA: usize = 16;
const MAX_NAME: usize = 32;
const MAX_SPAN: i128 = 100;

/// One thing that is judged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Criterion {
    /// The name of its term, `[a-z0-9_]{1,32}`.
    pub(crate) name: String,
    pub(crate) question: String,
    /// Above 0. The sum of all weights is finite.
    pub(crate) weight: f64,
    pub(crate) scale: Scale,
}

/// The whole numbers between which a score lies, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    pub(crate) low: i64,
    pub(crate) high: i64,
}

impl Scale {
    /// Reads `[low, high]`. The error continues a sentence that begins with the key.
    pub(crate) fn read(bounds: &[i64]) -> Result<Self, String> {
        let &[low, high] = bounds else {
            return Err(format!(
                "has {} numbers; write [low, high], such as [0, 10]",
                bounds.len()
            ));
        };
        let span = i128::from(high) - i128::from(low);
        if span <= 0 {
            return Err(format!(
                "= [{low}, {high}] has no room; the first number must be below the second"
            ));
        }
        if span > MAX_SPAN {
            return Err(format!(
                "= [{low}, {high}] is too wide for a judge; its ends may be at most {MAX_SPAN} apart"
            ));
        }
        Ok(Self { low, high })
    }

    /// The score as a share of the scale, 0 to 1. None if it is outside the scale.
    pub(crate) fn share(self, score: f64) -> Option<f64> {
        let (low, high) = (self.low as f64, self.high as f64);
        (low..=high)
            .contains(&score)
            .then(|| (score - low) / (high - low))
    }
}

/// The mean of the criteria's values, each with its criterion's weight.
pub(crate) fn weighted_mean(criteria: &[Criterion], values: &[f64]) -> f64 {
    let sum = |term: fn((&Criterion, &f64)) -> f64| -> f64 {
        criteria.iter().zip(values).map(term).sum()
    };
    sum(|(criterion, value)| criterion.weight * value) / sum(|(criterion, _)| criterion.weight)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, crate = "rlf_plugin::serde")]
struct Written {
    name: String,
    question: String,
    weight: Option<f64>,
    scale: Option<Vec<i64>>,
}

/// Reads `criteria`. Those without a scale of their own have the default one.
pub(crate) fn read(written: &[Value], default: Scale) -> Result<Vec<Criterion>, String> {
    if written.is_empty() {
        return Err(
            "`criteria` is missing: name at least one criterion, such as \
                    criteria = [{ name = \"accuracy\", question = \"Is the answer right?\" }]"
                .to_owned(),
        );
    }
    if written.len() > MAX_CRITERIA {
        return Err(format!(
            "`criteria` has {} entries; a rubric has at most {MAX_CRITERIA}",
            written.len()
        ));
    }
    let mut criteria: Vec<Criterion> = Vec::with_capacity(written.len());
    for (index, entry) in written.iter().enumerate() {
        let place = match entry.get("name").and_then(Value::as_str) {
            Some(name) => format!("`criteria`, entry {} ({name:?})", index + 1),
            None => format!("`criteria`, entry {}", index + 1),
        };
        let criterion = one(entry, default).map_err(|why| format!("{place}: {why}"))?;
        if criteria.iter().any(|other| other.name == criterion.name) {
            return Err(format!(
                "{place}: another criterion has the same `name`; each needs its own"
            ));
        }
        criteria.push(criterion);
    }
    let weights: f64 = criteria.iter().map(|criterion| criterion.weight).sum();
    if !weights.is_finite() {
        return Err(
            "`criteria`: the sum of the weights is too large; write smaller ones".to_owned(),
        );
    }
    Ok(criteria)
}

fn one(entry: &Value, default: Scale) -> Result<Criterion, String> {
    let written: Written =
        serde_json::from_value(entry.clone()).map_err(|error| error.to_string())?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !(1..=MAX_NAME).contains(&written.name.len()) || !written.name.chars().all(plain) {
        return Err(format!(
            "`name` becomes a term; write 1 to {MAX_NAME} of a-z 0-9 _"
        ));
    }
    if written.name == "score" {
        return Err(
            "`name`: `score` is the term of all criteria together; choose another name".to_owned(),
        );
    }
    if written.question.trim().is_empty() {
        return Err("`question` is empty; write what is judged".to_owned());
    }
    let weight = written.weight.unwrap_or(1.0);
    if !(weight.is_finite() && weight > 0.0) {
        return Err(format!(
            "`weight` = {weight}; write a number above 0, or leave the criterion out"
        ));
    }
    let scale = match written.scale {
        Some(bounds) => Scale::read(&bounds).map_err(|why| format!("`scale` {why}"))?,
        None => default,
    };
    Ok(Criterion {
        name: written.name,
        question: written.question.trim().to_owned(),
        weight,
        scale,
    })
}
