//! Replays a step of RL: plays it and trains on it again in a temporary folder, and compares it with the record.
//!
//! A replay is a resumed run that nobody goes on with. It begins with the newest checkpoint before the step. So it also
//! repeats the steps between the checkpoint and the step. The first step that differs ends it, because all later
//! weights follow from that step. The run's folder is only read.

mod compare;
mod folder;
mod outcomes;
mod record;
mod trajectory;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use candle_core::Device;
use futures_util::future::BoxFuture;
use rlf_policy::open_device;
use rlf_train::config::{CheckpointConfig, RlConfig};
use rlf_train::metrics::names;
use rlf_train::observer::{NextStep, Observer, Seen, StepDone};
use rlf_train::phase::Phase;
use rlf_train::rl;
use rlf_train::rollouts::BoxError;
use rlf_train::run::{
    Checkpoint, Machine, RunDirectory, RunSpec, binary_hash, config_path, content_changes,
    machine_changes,
};
use serde::Serialize;
use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::config::RunConfig;
use crate::error::{RunFailure, SavedRunError};
use crate::inputs;
use crate::parts::RunParts;
use crate::plan;
use crate::plugins::PluginSources;
use crate::reporter::RunReporter;
use crate::rollouts::PolicyRollouts;
use crate::train::device_name;
use crate::weights;

use self::compare::compare;
pub use self::compare::{Comparison, Difference, Place};
use self::folder::prepare;
use self::outcomes::recorded_outcomes;

/// The calls that a replay makes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplayedCalls {
    /// Makes calls that repeat, and all calls that an agent makes on its own. Other calls take their recorded outcomes:
    /// those that time or the infrastructure stopped, and those of tools that look outside of the sandbox. The default.
    #[default]
    Repeatable,
    /// All of them.
    All,
}

/// A step of a run that is about to be replayed.
pub struct Replay {
    run: PathBuf,
    step: u64,
    parts: Arc<RunParts>,
    config: RlConfig,
    checkpoint: Option<Checkpoint>,
    device: Device,
    machine: Machine,
    /// The folder in which the steps are played.
    folder: TempDir,
    calls: ReplayedCalls,
    changes: Vec<String>,
    seconds: f64,
}

/// The result of a replay.
#[derive(Debug, Clone, Serialize)]
pub struct Replayed {
    /// The last step that was compared: the step that was asked for, or an earlier one that differs already.
    pub compared: Comparison,
    /// Number of calls whose recorded outcomes were at hand, so that they were not made again.
    pub recorded_calls: usize,
    /// Changes since the run was made, one sentence each: binary, machine, plugins, inputs.
    pub changes: Vec<String>,
    /// Likely reasons for differences besides these changes, one sentence each. Empty without a difference.
    pub reasons: Vec<String>,
}

impl Replayed {
    /// True if the step is the same as it was recorded.
    pub fn is_same(&self) -> bool {
        self.compared.differences.is_empty()
    }
}

impl Replay {
    /// Opens the run in the folder `run` to replay a step of RL, counted from 1, in the empty folder `folder`. A run
    /// whose turns an external engine sampled is refused.
    pub fn open(
        run: &Path,
        step: u64,
        calls: ReplayedCalls,
        plugins: &PluginSources,
        folder: TempDir,
        reporter: &dyn RunReporter,
    ) -> Result<Self, RunFailure> {
        let file = config_path(run);
        SavedRunError::unless_run(run, &file)?;
        // Links in another folder lead to it.
        let run = fs::canonicalize(run)
            .map_err(RunFailure::io(format!("cannot open {}", run.display())))?;
        let lines = record::metrics(&run)?;
        let mut config = RunConfig::load(&file, &[])?;
        if config.external_engine.is_some() {
            return Err(SavedRunError::SampledElsewhere(run).into());
        }
        config.share_workers();
        let no_step = || SavedRunError::NoStep {
            path: run.clone(),
            step,
            last: lines.keys().next_back().copied(),
        };
        if config.rl.is_none() || !lines.contains_key(&step) {
            return Err(no_step().into());
        }
        let checkpoint = checkpoint_before(&run, step, &config)?;
        prepare(folder.path(), &run)?;
        folder.path().clone_into(&mut config.output);

        let plugins = plugins.with_recorded(&run);
        let mut parts = RunParts::from_run(config, &plugins, folder.path(), reporter)?;
        let first = first_step(checkpoint.as_ref());
        if calls == ReplayedCalls::Repeatable {
            let outcomes = recorded_outcomes(&parts, &run, first, step)?;
            parts.recorded = Some(Arc::new(outcomes));
        }
        let device = open_device(&parts.config.device)?.device;
        let vocabulary = parts.tokenizer.vocab_size();
        let cache_tokens = plan::complete(&mut parts.config, vocabulary, &device, reporter)?;
        parts.set_cache_tokens(cache_tokens);
        let mut rl = parts.config.rl.clone().ok_or_else(no_step)?;
        // The run may have gone on after a guard stopped it.
        (rl.guards.max_idle_steps, rl.guards.min_entropy) = (0, 0.0);
        let machine = Machine::current(binary_hash(), device_name(&device));
        let mut changes = machine_changes(&run, &machine)?;
        let (hashes, inputs) = (parts.plugin_hashes(), inputs::read(&parts.config)?);
        changes.extend(content_changes(&run, &hashes, &inputs)?);
        let took = |line: &Map<String, Value>| line.get(names::STEP_S)?.as_f64();
        let seconds = lines.range(first..=step).filter_map(|(_, line)| took(line));
        Ok(Self {
            seconds: seconds.sum(),
            run,
            step,
            parts: Arc::new(parts),
            config: rl,
            checkpoint,
            device,
            machine,
            folder,
            calls,
            changes,
        })
    }

    /// The first step that is played: the one after the checkpoint.
    pub fn first_step(&self) -> u64 {
        first_step(self.checkpoint.as_ref())
    }

    /// The folder of the checkpoint whose weights play the first step. None if these are the run's first weights.
    pub fn checkpoint(&self) -> Option<&Path> {
        let checkpoint = self.checkpoint.as_ref()?;
        Some(&checkpoint.path)
    }

    /// The seconds that the steps took in the run.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Plays the steps and compares them with their records, until one differs or the last one is done.
    pub fn play(
        self,
        reporter: Arc<dyn RunReporter>,
    ) -> BoxFuture<'static, Result<Replayed, RunFailure>> {
        Box::pin(async move {
            let parts = &self.parts;
            let spec = RunSpec {
                config_toml: parts.config.to_toml()?,
                machine: self.machine.clone(),
                ..RunSpec::default()
            };
            let keep = CheckpointConfig {
                every: u64::MAX,
                trajectories_every: 1,
                keep_best: false,
                ..parts.config.checkpoint.clone()
            };
            let folder = self.folder.path();
            let mut run = RunDirectory::create(folder, &spec, keep)?;
            let mut model = match &self.checkpoint {
                Some(checkpoint) => {
                    weights::of_checkpoint(parts, &self.run, &checkpoint.path, &self.device)?
                }
                None => weights::first(parts, &run, &self.device)?,
            };
            parts.label_users(&mut run);
            let mut rollouts = PolicyRollouts::new(parts.clone(), &self.config, reporter.clone())?;
            let mut observer = Comparing {
                replay: &self,
                reporter,
                last: None,
            };
            let ended = rl::train(
                &self.config,
                parts.config.seed,
                &mut model,
                &mut rollouts,
                &mut run,
                self.checkpoint.as_ref(),
                &mut observer,
            )
            .await;
            rollouts.ended().await;
            ended?;
            let compared = observer.last.ok_or_else(|| {
                RunFailure::Bug(format!("the replay did not reach step {}", self.step))
            })?;
            let reasons = if compared.differences.is_empty() {
                Vec::new()
            } else {
                self.reasons(&compared)?
            };
            let recorded = parts.recorded.as_ref();
            Ok(Replayed {
                compared,
                recorded_calls: recorded.map_or(0, |outcomes| outcomes.count()),
                changes: self.changes.clone(),
                reasons,
            })
        })
    }

    /// The likely reasons for differences, besides changes.
    fn reasons(&self, compared: &Comparison) -> Result<Vec<String>, RunFailure> {
        let parts = &self.parts;
        let mut reasons = Vec::new();
        if !self.device.is_cpu() {
            let device = &self.machine.device;
            reasons.push(format!("on {device}, the last bits of numbers can vary"));
        }
        if compared.stopped_calls > 0 {
            reasons.push(format!(
                "time or the infrastructure stopped calls, recorded or replayed: {}",
                compared.stopped_calls
            ));
        }
        if compared.trajectories.is_none() {
            reasons.push(format!(
                "the run kept no trajectories of step {} (checkpoint.trajectories_every), so its calls were made again",
                compared.step
            ));
        } else if self.calls == ReplayedCalls::All {
            let tools = parts.tools.definitions(None).unwrap_or_default();
            let outside = tools.iter().filter(|tool| !parts.tools.repeats(&tool.name));
            let outside: Vec<&str> = outside.map(|tool| tool.name.as_str()).collect();
            if !outside.is_empty() {
                let names = outside.join(", ");
                reasons.push(format!("calls of tools that do not repeat: {names}"));
            }
        }
        let line = record::metrics(self.folder.path())?.remove(&compared.step);
        let line = line.unwrap_or_default();
        for (model, count) in asked_anew(&line) {
            reasons.push(format!(
                "{count} questions to the model `{model}` have no recorded answer and were asked anew"
            ));
        }
        let user = parts.config.user.as_ref();
        let is_recorded = user.is_some_and(|user| user.named_model().is_some());
        if parts.episode_context().user.is_some() && !is_recorded {
            let why = "a model plays users ([user] with `url`), and its answers are not recorded";
            reasons.push(why.to_owned());
        }
        for (name, _) in parts.environments.servers() {
            reasons.push(format!("the environment `{name}` is on a server"));
        }
        let agent = parts.config.agent.as_ref();
        if agent.is_some_and(|agent| agent.plugin.is_none()) {
            let why = "an agent outside of the sandbox leads the trajectories";
            reasons.push(why.to_owned());
        }
        let leader = agent.and_then(|agent| agent.plugin.as_ref());
        if let Some(leader) = leader.and_then(|leader| parts.registry.plugin(leader))
            && !parts.tools.plugin_repeats(leader)
        {
            let name = leader.name();
            reasons.push(format!(
                "the plugin `{name}`, which leads the trajectories, looks outside of the sandbox"
            ));
        }
        if compared.agent_calls > 0 {
            reasons.push(format!(
                "calls that an agent made on its own, recorded or replayed, were made again: {}",
                compared.agent_calls
            ));
        }
        Ok(reasons)
    }
}

/// The step after a checkpoint of RL, or the first one.
fn first_step(checkpoint: Option<&Checkpoint>) -> u64 {
    let state = checkpoint.map(|checkpoint| &checkpoint.state);
    state
        .filter(|state| state.phase == Phase::Rl)
        .map_or(1, |state| state.step + 1)
}

/// The newest checkpoint before a step, after a check that it is as it was written. None if the run began with RL and
/// has none so early.
fn checkpoint_before(
    run: &Path,
    step: u64,
    config: &RunConfig,
) -> Result<Option<Checkpoint>, RunFailure> {
    let is_before = |checkpoint: &Checkpoint| {
        let state = &checkpoint.state;
        match state.phase {
            Phase::Sft => state.finished,
            Phase::Rl => state.step < step,
        }
    };
    let Some(mut checkpoint) = Checkpoint::all(run)?.into_iter().rfind(is_before) else {
        return match &config.sft {
            Some(sft) if sft.steps > 0 => Err(SavedRunError::NoStart {
                path: run.to_owned(),
                step,
            }
            .into()),
            _ => Ok(None),
        };
    };
    checkpoint.verify()?;
    // An evaluation that was broken off is not repeated.
    checkpoint.state.unobserved = false;
    Ok(Some(checkpoint))
}

/// The models that were asked in a step although they had no recorded answer, and how often.
fn asked_anew(line: &Map<String, Value>) -> Vec<(&str, f64)> {
    let number = |model: &str, what: &str| {
        let value = line.get(&format!("model/{model}/{what}"));
        value.and_then(Value::as_f64).unwrap_or(0.0)
    };
    let models = line.keys().filter_map(|key| {
        let rest = key.strip_prefix("model/")?;
        rest.strip_suffix("/questions")
    });
    let asked = models.map(|model| {
        (
            model,
            number(model, "questions") - number(model, "recorded"),
        )
    });
    asked.filter(|(_, count)| *count > 0.0).collect()
}

/// Compares each step when it is done, and ends the replay after the last one, or after one that differs.
struct Comparing<'r> {
    replay: &'r Replay,
    reporter: Arc<dyn RunReporter>,
    last: Option<Comparison>,
}

#[async_trait]
impl Observer for Comparing<'_> {
    async fn after_step(&mut self, done: StepDone<'_>) -> Result<Seen, BoxError> {
        let replay = self.replay;
        if let Some(line) = done.line {
            self.reporter.stepped(line, replay.step);
        }
        let (folder, tokenizer) = (replay.folder.path(), &replay.parts.tokenizer);
        let compared = compare(&replay.run, folder, done.step, tokenizer)?;
        let is_over = done.step == replay.step || !compared.differences.is_empty();
        self.last = Some(compared);
        let next = if is_over {
            NextStep::Leave
        } else {
            NextStep::Continue
        };
        Ok(next.into())
    }

    fn last_step(&self) -> u64 {
        self.replay.step
    }
}
