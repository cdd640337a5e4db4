//! What a run measures, one line at a time: JSON lines for programs, TensorBoard for eyes.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::atomic::AppendFile;
use crate::loss::LossStatistics;
use crate::run::{RunError, metrics_path};
use crate::tensorboard;

/// The stages of a run, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Supervised fine-tuning.
    Sft,
    /// Reinforcement learning.
    Rl,
}

impl Phase {
    /// As written in logs and file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sft => "sft",
            Self::Rl => "rl",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One line of `metrics.jsonl`, before the sink adds the time.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    phase: Phase,
    step: u64,
    fields: Map<String, Value>,
}

impl Line {
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

    /// Adds a count.
    #[must_use]
    pub fn count(self, name: impl Into<String>, value: usize) -> Self {
        self.value(name, Value::from(value))
    }

    /// Adds any JSON; numbers within objects reach TensorBoard as `name/key`.
    #[must_use]
    pub fn value(mut self, name: impl Into<String>, value: Value) -> Self {
        self.fields.insert(name.into(), value);
        self
    }

    /// Which phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Steps done in the phase.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// What was added, in order.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// A number of this line.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.fields.get(name)?.as_f64()
    }

    /// Adds the sums of a loss as means per model token.
    pub(crate) fn loss(self, phase: Phase, s: &LossStatistics) -> Self {
        let line = self
            .number("loss", s.loss)
            .number("entropy", s.mean(s.entropy));
        match phase {
            Phase::Sft => line,
            Phase::Rl => line
                .number("kl", s.mean(s.kl_old))
                .number("kl_reference", s.mean(s.kl_reference))
                .number("clip_fraction", s.mean(s.clipped as f64)),
        }
    }

    /// TensorBoard tags: phase, then split where there is one, then the name.
    fn scalars(&self) -> Vec<(String, f64)> {
        let mut prefix = self.phase.as_str().to_owned();
        if let Some(split) = self.fields.get("split").and_then(Value::as_str) {
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

/// Where lines go. One per run; whoever evaluates writes through the same.
#[derive(Debug)]
pub struct Metrics {
    lines: AppendFile,
    events: AppendFile,
    started: Instant,
    before: Duration,
    labels: Map<String, Value>,
}

/// How long the files were at a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsPosition {
    /// Of `metrics.jsonl`, bytes.
    pub lines: u64,
    /// Of the TensorBoard event file, bytes.
    pub events: u64,
}

impl Metrics {
    /// Opens both files in `folder`, cut back to `position`; the clock goes on from `elapsed`.
    pub(crate) fn open(
        folder: &Path,
        position: MetricsPosition,
        elapsed: Duration,
    ) -> Result<Self, RunError> {
        // TensorBoard looks for `tfevents` in the name.
        let events = folder.join("tensorboard/events.out.tfevents.0.rlf-host");
        let mut metrics = Self {
            lines: AppendFile::open(metrics_path(folder), position.lines)?,
            events: AppendFile::open(events, position.events)?,
            started: Instant::now(),
            before: elapsed,
            labels: Map::new(),
        };
        if position.events == 0 {
            metrics.events.append(&tensorboard::header(wall_time()))?;
        }
        Ok(metrics)
    }

    /// Time this run has spent, interrupted stretches left out.
    pub fn elapsed(&self) -> Duration {
        self.before + self.started.elapsed()
    }

    /// Adds what the numbers of every line from now on are to be read with, such as who played the users. A line's own field
    /// of the name goes before.
    pub fn label(&mut self, name: impl Into<String>, value: Value) {
        self.labels.insert(name.into(), value);
    }

    /// Appends one line to both.
    pub fn write(&mut self, line: &Line) -> Result<(), RunError> {
        let mut json = Map::new();
        json.insert("phase".into(), line.phase.as_str().into());
        json.insert("step".into(), line.step.into());
        json.insert(
            "elapsed_s".into(),
            round(self.elapsed().as_secs_f64()).into(),
        );
        json.extend(self.labels.clone());
        json.extend(line.fields.clone());
        self.lines
            .append(format!("{}\n", Value::Object(json)).as_bytes())?;
        let scalars = line.scalars();
        let scalars = scalars.iter().map(|(tag, value)| (tag.as_str(), *value));
        self.events
            .append(&tensorboard::scalars(wall_time(), line.step, scalars))
    }

    /// Where the files stand, once all of it is on disk.
    pub(crate) fn sync(&self) -> Result<MetricsPosition, RunError> {
        Ok(MetricsPosition {
            lines: self.lines.sync()?,
            events: self.events.sync()?,
        })
    }
}

/// To the millisecond.
fn round(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// Seconds since 1970.
fn wall_time() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |d| d.as_secs_f64())
}

/// Means by name: of values that are only sometimes there.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_in_every_line_written_after_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tensorboard")).unwrap();
        let mut metrics =
            Metrics::open(folder.path(), MetricsPosition::default(), Duration::ZERO).unwrap();
        metrics.label("users", "solo".into());
        for step in 0..2 {
            let line = Line::new(Phase::Rl, step).number("reward", 0.5);
            metrics.write(&line).unwrap();
        }
        let text = std::fs::read_to_string(metrics_path(folder.path())).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        for line in lines {
            assert_eq!(
                (&line["users"], &line["reward"]),
                (&"solo".into(), &0.5.into())
            );
        }
    }
}
