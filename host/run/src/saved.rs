//! A run with a checkpoint: evaluates its policy and plays single tasks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use rlf_dialogue::group::Group;
use rlf_dialogue::split::Split;
use rlf_dialogue::task::NumberedTask;
use rlf_policy::{GenerationConfig, Model, Purpose, SamplingParams, open_device};
use rlf_rollout::agent::PolicyChat;
use rlf_rollout::evaluate::Evaluation;
use rlf_rollout::rollout::rollout;
use rlf_train::run::{Checkpoint, config_path, content_changes};

use crate::config::RunConfig;
use crate::error::{RunFailure, SavedRunError};
use crate::inputs;
use crate::own_weights::Progress;
use crate::parts::RunParts;
use crate::plugins::PluginSources;
use crate::reporter::RunReporter;
use crate::weights;

/// A run with one of its checkpoints.
pub struct SavedRun {
    /// All parts except the weights.
    pub parts: RunParts,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The policy of the checkpoint.
    pub model: Model,
}

impl SavedRun {
    /// Opens the run in the folder `run` with its newest checkpoint; or, if the folder is a checkpoint of a run, such as
    /// `RUN/checkpoints/best`, that run with this checkpoint. It uses `device` if it is given, else the configured one.
    /// Reports plugins and inputs that have changed since the run began.
    pub fn open(
        run: &Path,
        plugins: &PluginSources,
        device: Option<&str>,
        reporter: &dyn RunReporter,
    ) -> Result<Self, RunFailure> {
        let (run, mut config, checkpoint) = find(run)?;
        if let Some(device) = device {
            device.clone_into(&mut config.device);
        }
        let parts = parts_of(config, &run, plugins, reporter)?;
        let progress = Progress::from(&checkpoint.state);
        parts.own_weights.advance(&run, progress, None)?;
        let device = open_device(&parts.config.device)?;
        let model = weights::of_checkpoint(&parts, &run, &checkpoint.path, &device.device)?;
        Ok(Self {
            parts,
            checkpoint,
            model,
        })
    }

    /// The sampling parameters in generation_config.json of the run's first checkpoint, or of its newest.
    pub fn generation_config(&self) -> Result<SamplingParams, RunFailure> {
        let first = self.parts.config.model.checkpoint.as_deref();
        let folder = first.unwrap_or(&self.checkpoint.path);
        let config = GenerationConfig::load(folder)?
            .ok_or_else(|| SavedRunError::NoGenerationConfig(folder.to_owned()))?;
        Ok(config.sampling())
    }

    /// Evaluates the policy on tasks of a split: greedily, and with `samples` samples for each task.
    pub fn evaluate<'a>(
        &'a self,
        split: Split,
        tasks: &'a [NumberedTask],
        samples: usize,
        params: SamplingParams,
    ) -> BoxFuture<'a, Result<Evaluation, RunFailure>> {
        Box::pin(async move {
            let step = self.checkpoint.state.step;
            let (evaluation, _) = self
                .parts
                .evaluate(&self.model, split, tasks, samples, params, step)
                .await?;
            RunFailure::if_nothing_graded(&evaluation)?;
            Ok(evaluation)
        })
    }

    /// The policy as it answers conversations that belong to no task.
    pub fn chat(&self) -> Result<PolicyChat, RunFailure> {
        let generator = self.parts.generator(&self.model)?;
        let dialogue = self.parts.dialogue.clone();
        Ok(PolicyChat::new(dialogue, generator, self.parts.config.seed))
    }

    /// Plays one task `samples` times. The samples are those of one group, numbered from 0.
    pub fn rollout(
        &self,
        split: Split,
        task: NumberedTask,
        samples: usize,
        params: SamplingParams,
    ) -> BoxFuture<'_, Result<Group, RunFailure>> {
        Box::pin(async move {
            let step = self.checkpoint.state.step;
            let settings = (self.parts).settings(params, Purpose::Evaluation, split, step)?;
            let (engine, _generator) = self.parts.rollout_engine(&self.model)?;
            let groups = rollout(&engine, &[task], samples, &settings).await?;
            (groups.into_iter().next())
                .ok_or_else(|| RunFailure::Bug("the rollout returned no group".into()))
        })
    }
}

/// The run in the folder `run` with its configuration and its newest checkpoint; or, if the folder is a checkpoint of a run,
/// that run with this checkpoint, whose weights are checked.
pub(crate) fn find(run: &Path) -> Result<(PathBuf, RunConfig, Checkpoint), RunFailure> {
    let (run, chosen) = match Checkpoint::run_of(run) {
        Some((run, checkpoint)) => (run, Some(checkpoint)),
        None => (run.to_owned(), None),
    };
    let file = config_path(&run);
    SavedRunError::unless_run(&run, &file)?;
    let config = RunConfig::load(&file, &[])?;
    let checkpoint = match chosen {
        Some(path) => Checkpoint::read(&path)?,
        None => {
            Checkpoint::latest(&run)?.ok_or_else(|| SavedRunError::NoCheckpoint(run.clone()))?
        }
    };
    checkpoint.verify_weights()?;
    Ok((run, config, checkpoint))
}

/// Makes the parts of the run in the folder `run`. Reports plugins and inputs that have changed since the run began.
pub(crate) fn parts_of(
    config: RunConfig,
    run: &Path,
    plugins: &PluginSources,
    reporter: &dyn RunReporter,
) -> Result<RunParts, RunFailure> {
    let parts = RunParts::from_run(config, &plugins.with_recorded(run), run, reporter)?;
    let inputs = inputs::read(&parts.config).unwrap_or_else(|error| {
        // Only a comparison needs them here.
        reporter.warn(&format!(
            "whether the inputs of the run have changed is not known: {error}"
        ));
        BTreeMap::new()
    });
    let changes = content_changes(run, &parts.plugin_hashes(), &inputs)?;
    for change in changes {
        reporter.warn(&format!(
            "since the run began or was last resumed, {change}"
        ));
    }
    Ok(parts)
}
