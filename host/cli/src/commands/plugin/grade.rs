//! `rlf-host plugin grade`: grades one answer or one trajectory with a reward.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::{Event, Finish, ModelTurn, Trajectory};
use rlf_plugins::plugin::Plugin;
use rlf_rewards::grading::Grading;
use rlf_rewards::reward::grade_alone;
use rlf_tools::tool_manager::ToolManager;
use serde_json::{Map, Value, json};

use super::call::show_printed;
use crate::arguments::Trial;

/// The answer or trajectory to grade, from the command line.
pub(super) struct Graded<'a> {
    pub(super) answer: Option<&'a str>,
    pub(super) reference: &'a str,
    pub(super) trajectory: Option<&'a Path>,
}

impl Trial {
    /// What to grade, if there is a reference.
    pub(super) fn graded(&self) -> Option<Graded<'_>> {
        Some(Graded {
            answer: self.answer.as_deref(),
            reference: self.reference.as_deref()?,
            trajectory: self.trajectory.as_deref(),
        })
    }
}

/// The circumstances of a grading outside a run.
pub(super) const GRADING: Grading = Grading {
    split: Split::Test,
    step: 0,
    steps: 0,
    seed: 0,
};

impl Graded<'_> {
    /// Reads the task, which has only a reference, and the trajectory.
    pub(super) fn read(&self) -> anyhow::Result<(Task, Trajectory)> {
        let trajectory = match self.trajectory {
            Some(file) => read(file)?,
            None => with_answer(self.answer),
        };
        let reference = match rlf_json::from_str(self.reference) {
            Ok(reference) => reference,
            Err(error) if error.is_data() => return Err(error).context("--reference"),
            // A plain text reference needs no quotes.
            Err(_) => Value::String(self.reference.to_owned()),
        };
        let task = Task {
            id: "command-line".into(),
            source: "command-line".into(),
            prompt: Vec::new(),
            tools: None,
            reference,
            environment: None,
            setup: Value::Null,
            extra: Map::new(),
        };
        Ok((task, trajectory))
    }
}

pub(super) fn run(
    plugin: &Arc<Plugin>,
    tools: &ToolManager,
    graded: &Graded<'_>,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let (task, trajectory) = graded.read()?;
    plugin.take_printed();
    let score = crate::commands::runtime()?
        .block_on(grade_alone(plugin, tools, &task, &trajectory, GRADING))
        .map_err(|error| anyhow!("`{}` gives no score: {error}", plugin.name()));
    let printed = plugin.take_printed().unwrap_or_default();
    // The JSON report of a score includes the output. There is no report if grading failed.
    if !as_json || score.is_err() {
        let told = score.as_ref().err().map(ToString::to_string);
        show_printed(&printed, &told.unwrap_or_default());
    }
    let score = score?;
    if as_json {
        let object = |pairs: &[(String, f64)]| -> Map<String, Value> {
            pairs
                .iter()
                .map(|(name, value)| (name.clone(), json!(value)))
                .collect()
        };
        let report = json!({
            "terms": object(&score.terms),
            "metrics": object(&score.metrics),
            "per_event": score.per_event,
            "printed": {"stdout": printed.stdout.text, "stderr": printed.stderr.text},
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    for (name, value) in &score.terms {
        say!("{name:<24} {value}");
    }
    for (event, name, value) in &score.per_event {
        say!("{:<24} {value}", format!("{name} of event {event}"));
    }
    for (name, value) in &score.metrics {
        say!("{:<24} {value}", format!("metric {name}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The trajectory of a model that answered in its first turn, or gave no answer.
fn with_answer(answer: Option<&str>) -> Trajectory {
    let turn = answer.map(|answer| {
        Event::Turn(ModelTurn {
            text: answer.to_owned(),
            reasoning: None,
            visible: answer.to_owned(),
            calls: Vec::new(),
            malformed: Vec::new(),
            tokens: 0,
            feedback: Vec::new(),
        })
    });
    Trajectory {
        id: "command-line".into(),
        task: "command-line".into(),
        tools: Vec::new(),
        events: turn.into_iter().collect(),
        sequences: Vec::new(),
        answer: answer.map(str::to_owned),
        finish: if answer.is_some() {
            Finish::Answered
        } else {
            Finish::MaxTurns
        },
        excluded: None,
        closed_turns: 0,
        final_state: None,
        verdict: None,
        unjudged: None,
    }
}

/// Reads the trajectory in a file: alone, or in the field `trajectory` as `rollout --json` prints it.
fn read(file: &Path) -> anyhow::Result<Trajectory> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut value: Value =
        rlf_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
    if let Some(inner) = value.get_mut("trajectory") {
        value = inner.take();
    }
    serde_json::from_value(value).with_context(|| format!("{} holds no trajectory", file.display()))
}
