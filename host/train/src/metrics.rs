//! One line of metrics: named numbers about one step of one phase. [`names`] has the names that other code reads.

pub mod names;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::loss::LossStatistics;
use crate::phase::Phase;

/// One line of `metrics.jsonl`, without the time.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricsLine {
    phase: Phase,
    step: u64,
    fields: Map<String, Value>,
}

impl MetricsLine {
    /// A line about `step` steps done in `phase`.
    pub fn new(phase: Phase, step: u64) -> Self {
        Self {
            phase,
            step,
            fields: Map::new(),
        }
    }

    /// Adds a number. JSON has no NaN and no infinity; they are written as null.
    #[must_use]
    pub fn number(self, name: impl Into<String>, value: f64) -> Self {
        self.value(
            name,
            serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number),
        )
    }

    /// Adds a number, if there is one.
    #[must_use]
    pub fn optional(self, name: impl Into<String>, value: Option<f64>) -> Self {
        match value {
            Some(value) => self.number(name, value),
            None => self,
        }
    }

    /// Adds a count.
    #[must_use]
    pub fn count(self, name: impl Into<String>, value: usize) -> Self {
        self.value(name, Value::from(value))
    }

    /// Adds any JSON. TensorBoard shows the numbers within objects as `name/key`.
    #[must_use]
    pub fn value(mut self, name: impl Into<String>, value: Value) -> Self {
        self.fields.insert(name.into(), value);
        self
    }

    /// The phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Steps done in the phase.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The fields, in the order in which they were added.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// A number of this line by its name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.fields.get(name)?.as_f64()
    }

    /// Adds the sums of a loss as means per model token.
    pub(crate) fn loss(self, s: &LossStatistics) -> Self {
        let line = self
            .number(names::LOSS, s.loss)
            .number(names::ENTROPY, s.mean(s.entropy));
        match line.phase {
            Phase::Sft => line,
            Phase::Rl => line
                .number(names::KL, s.mean(s.kl_old))
                .number("kl_reference", s.mean(s.kl_reference))
                .number("clip_fraction", s.mean(s.clipped as f64)),
        }
    }

    /// The numbers with their TensorBoard tags: phase, then the split if there is one, then the name.
    pub(crate) fn scalars(&self) -> Vec<(String, f64)> {
        let mut prefix = self.phase.as_str().to_owned();
        if let Some(split) = self.fields.get(names::SPLIT).and_then(Value::as_str) {
            prefix = format!("{prefix}/{split}");
        }
        let mut scalars = Vec::new();
        for (name, value) in &self.fields {
            flatten(&format!("{prefix}/{name}"), value, &mut scalars);
        }
        scalars
    }
}

fn flatten(tag: &str, value: &Value, scalars: &mut Vec<(String, f64)>) {
    match value {
        Value::Number(number) => scalars.extend(number.as_f64().map(|n| (tag.to_owned(), n))),
        Value::Object(fields) => {
            for (name, value) in fields {
                flatten(&format!("{tag}/{name}"), value, scalars);
            }
        }
        _ => {}
    }
}

/// Means by name, of values that are not present every time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Means(BTreeMap<String, (f64, usize)>);

impl Means {
    pub(crate) fn add(&mut self, name: &str, value: f64) {
        let (sum, count) = self.0.entry(name.to_owned()).or_default();
        *sum += value;
        *count += 1;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0
            .iter()
            .map(|(name, (sum, count))| (name.as_str(), sum / *count as f64))
    }
}
