//! The files that a run's metrics go to: JSON lines for programs, TensorBoard events for people.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::append_file::AppendFile;
use super::error::RunError;
use super::layout::metrics_path;
use crate::metrics::{MetricsLine, names};
use crate::tensorboard;

/// Writes the metrics of one run: training and evaluations use the same one.
#[derive(Debug)]
pub struct Metrics {
    lines: AppendFile,
    events: AppendFile,
    started: Instant,
    before: Duration,
    labels: Map<String, Value>,
}

/// The lengths of the files at a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsPosition {
    /// Length of `metrics.jsonl`, in bytes.
    pub lines: u64,
    /// Length of the TensorBoard event file, in bytes.
    pub events: u64,
}

impl Metrics {
    /// Opens both files in `folder` and cuts them back to `position`. The clock continues from `elapsed`.
    pub(super) fn open(
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

    /// Time that this run has spent, without the times in which it was interrupted.
    pub fn elapsed(&self) -> Duration {
        self.before + self.started.elapsed()
    }

    /// Adds a field to every line from now on, such as who played the users. If a line has a field of the same name,
    /// the line's own is kept.
    pub fn label(&mut self, name: impl Into<String>, value: Value) {
        self.labels.insert(name.into(), value);
    }

    /// Appends one line to both files.
    pub fn write(&mut self, line: &MetricsLine) -> Result<(), RunError> {
        let mut json = Map::new();
        json.insert(names::PHASE.into(), line.phase().as_str().into());
        json.insert(names::STEP.into(), line.step().into());
        json.insert(
            names::ELAPSED_S.into(),
            round(self.elapsed().as_secs_f64()).into(),
        );
        json.extend(self.labels.clone());
        json.extend(line.fields().clone());
        self.lines
            .append(format!("{}\n", Value::Object(json)).as_bytes())?;
        let scalars = line.scalars();
        let scalars = scalars.iter().map(|(tag, value)| (tag.as_str(), *value));
        self.events
            .append(&tensorboard::scalars(wall_time(), line.step(), scalars))
    }

    /// The lengths of the files.
    pub(crate) fn position(&self) -> MetricsPosition {
        MetricsPosition {
            lines: self.lines.bytes(),
            events: self.events.bytes(),
        }
    }

    /// Waits until all lines are on disk, and returns the lengths of the files.
    pub(super) fn sync(&self) -> Result<MetricsPosition, RunError> {
        Ok(MetricsPosition {
            lines: self.lines.sync()?,
            events: self.events.sync()?,
        })
    }
}

/// Rounds to the millisecond.
fn round(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// Seconds since 1970.
fn wall_time() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |d| d.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::Phase;

    #[test]
    fn a_label_is_in_every_line_written_after_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tensorboard")).unwrap();
        let mut metrics =
            Metrics::open(folder.path(), MetricsPosition::default(), Duration::ZERO).unwrap();
        metrics.label("users", "solo".into());
        for step in 0..2 {
            let line = MetricsLine::new(Phase::Rl, step).number("reward", 0.5);
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
