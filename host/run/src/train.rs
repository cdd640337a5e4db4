//! Training: SFT if configured, then RL if configured, each with its checkpoints.

use std::path::Path;
use std::slice;
use std::sync::Arc;

use candle_core::{Device, DeviceLocation};
use futures_util::future::BoxFuture;
use rlf_agents::InvalidAgent;
use rlf_policy::{CpuFacts, Model, Precision, cpu_facts, open_device};
use rlf_rollout::RolloutError;
use rlf_train::config::{RlConfig, SftConfig};
use rlf_train::phase::{Phase, PhaseEnd};
use rlf_train::run::{
    Checkpoint, Machine, Resumed, RunDirectory, RunError, RunSpec, binary_hash, config_path,
};
use rlf_train::{rl, sft};

use crate::config::RunConfig;
use crate::control;
use crate::demonstrations::batches::{DemonstrationBatches, rehearse_demonstrations};
use crate::error::{ConfigurationError, RunFailure, TasksError};
use crate::folder::NewRunFolder;
use crate::inputs;
use crate::interruption::Interruption;
use crate::observer::RunObserver;
use crate::own_weights::Progress;
use crate::parts::RunParts;
use crate::plan;
use crate::plugins::PluginSources;
use crate::reporter::{Moment, RunReporter, RunSummary};
use crate::rollouts::PolicyRollouts;
use crate::weights;

/// Options of [`train`], in addition to the configuration.
#[derive(Debug, Clone)]
pub struct TrainOptions {
    /// Directories of plugins.
    pub plugins: PluginSources,
    /// The way the run starts. Default: as a new run.
    pub start: RunStart,
    /// After training, also continues SFT from the same start for as long as RL took. Default false.
    pub control: bool,
    /// Requests to stop the run, so that it can be resumed. Default: none.
    pub interruption: Interruption,
}

impl TrainOptions {
    /// Options for a new run with these plugins, without interruption.
    pub fn new(plugins: PluginSources) -> Self {
        Self {
            plugins,
            start: RunStart::New,
            control: false,
            interruption: Interruption::default(),
        }
    }
}

/// The way a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStart {
    /// A new run. An existing run in the folder is an error.
    New,
    /// A new run that replaces an existing one.
    Replace,
    /// The run in the folder, from its last checkpoint.
    Resume {
        /// Continues although the configuration, a plugin or a task file changed.
        allow_changes: bool,
    },
}

/// The way training ended if there was no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// All steps are done.
    Finished,
    /// Training was interrupted, and can be resumed from its newest checkpoint.
    Interrupted,
    /// The run is complete, but its control was interrupted and must be repeated.
    ControlInterrupted,
}

/// Trains a policy into the folder `config.output`. [`runtime`](crate::runtime) makes a runtime for it.
///
/// If training fails before tools and rewards have worked once, the folder is left as it was, including a run that was
/// to be replaced. A run that is interrupted before then is kept, so that it can be resumed.
pub fn train(
    mut config: RunConfig,
    options: &TrainOptions,
    reporter: Arc<dyn RunReporter>,
) -> BoxFuture<'_, Result<RunEnd, RunFailure>> {
    Box::pin(async move {
        config.share_workers();
        if let Some(agent) = &config.agent {
            (agent.check_program())
                .map_err(ConfigurationError::in_table("agent", |e: &InvalidAgent| {
                    e.key
                }))?;
        }
        let path = config.output.clone();
        if matches!(options.start, RunStart::Resume { .. }) && !config_path(&path).exists() {
            return Err(RunError::NoRun { path }.into());
        }
        // Declared before everything that uses the run's folder, so that it is dropped last.
        let create = |overwrite| NewRunFolder::create(&path, overwrite, reporter.clone());
        let mut folder = match options.start {
            RunStart::New => Some(create(false)?),
            RunStart::Replace => Some(create(true)?),
            RunStart::Resume { .. } => None,
        };
        let choice = open_device(&config.device)?;
        reporter.begins(&path, &choice);
        let config_toml = config.to_toml()?;
        let mut parts = match options.start {
            RunStart::Resume { .. } => {
                let plugins = options.plugins.with_recorded(&path);
                RunParts::from_run(config, &plugins, &path, &*reporter)?
            }
            RunStart::New | RunStart::Replace => {
                RunParts::new(config, &options.plugins, &path, &*reporter)?
            }
        };

        if folder.is_some() {
            warn_of_rates(&parts.config, &*reporter);
            if let Some(warning) = slow_bf16(parts.config.precision, &choice.device, &cpu_facts()) {
                reporter.warn(warning);
            }
        }
        let vocabulary = parts.tokenizer.vocab_size();
        let cache_tokens =
            plan::complete(&mut parts.config, vocabulary, &choice.device, &*reporter)?;
        parts.set_cache_tokens(cache_tokens);
        let parts = Arc::new(parts);
        let spec = RunSpec {
            config_toml,
            plugins: parts.plugin_hashes(),
            inputs: inputs::read(&parts.config)?,
            machine: Machine::current(binary_hash(), device_name(&choice.device)),
            assets: parts.assets()?,
        };
        let (mut run, checkpoint, is_changed) = if let Some(folder) = &mut folder {
            let run = create_run(&parts, &spec, options, &path, folder)?;
            (run, None, false)
        } else {
            let resumed = resume_run(&parts, &spec, options, &path, &*reporter)?;
            (resumed.run, resumed.checkpoint, resumed.is_changed)
        };
        let mut model = match &checkpoint {
            Some(checkpoint) => {
                weights::of_checkpoint(&parts, &path, &checkpoint.path, &choice.device)?
            }
            None => weights::first(&parts, &run, &choice.device)?,
        };
        if is_changed {
            // The weights fit the changes. Otherwise the run would have stayed as it was.
            run.record(&spec)?;
        }
        let progress =
            (checkpoint.as_ref()).map_or(Progress::Start, |known| Progress::from(&known.state));
        parts.own_weights.advance(&path, progress, Some(&model))?;
        reporter.assembled(&summary(&parts, &model, checkpoint.as_ref()));

        parts.label_users(&mut run);
        let interruption = options.interruption.clone();
        let mut observer = RunObserver::new(parts.clone(), reporter.clone(), interruption);
        let mut tried = Some(());
        if checkpoint.is_none() {
            let trying = try_parts(&parts, &model, &mut run, &mut observer);
            let trying = options.interruption.unless_abandoned(trying).await;
            tried = trying.transpose()?;
        }
        // Tools and rewards have worked once, or their user has stopped them: the run has started.
        if let Some(folder) = folder {
            folder.keep()?;
        }
        if tried.is_none() {
            return Ok(RunEnd::Interrupted);
        }
        let end = train_phases(
            &parts,
            &mut model,
            &mut run,
            checkpoint.as_ref(),
            &mut observer,
            reporter.clone(),
        )
        .await?;
        reporter.phases_ended();
        drop(run);
        if end == PhaseEnd::Interrupted {
            return Ok(RunEnd::Interrupted);
        }
        if options.control {
            let end =
                control::train(&parts, &path, &spec, &choice.device, observer, &*reporter).await?;
            if end == PhaseEnd::Interrupted {
                return Ok(RunEnd::ControlInterrupted);
            }
        }
        Ok(RunEnd::Finished)
    })
}

/// Makes the directory of a new run in `folder`, which is at `path`.
fn create_run(
    parts: &RunParts,
    spec: &RunSpec,
    options: &TrainOptions,
    path: &Path,
    folder: &mut NewRunFolder,
) -> Result<RunDirectory, RunFailure> {
    let keep = parts.config.checkpoint.clone();
    let run = RunDirectory::create_in(folder.take_lock()?, spec, keep)?;
    options.plugins.record(path)?;
    Ok(run)
}

/// Opens the directory of the run at `path`, with its last checkpoint. Reports the warnings.
fn resume_run(
    parts: &RunParts,
    spec: &RunSpec,
    options: &TrainOptions,
    path: &Path,
    reporter: &dyn RunReporter,
) -> Result<Resumed, RunFailure> {
    let allow_changes = options.start
        == RunStart::Resume {
            allow_changes: true,
        };
    let keep = parts.config.checkpoint.clone();
    let resumed = RunDirectory::resume(path, spec, keep, allow_changes)?;
    for warning in &resumed.warnings {
        reporter.warn(warning);
    }
    Ok(resumed)
}

/// Warns of default learning rates with adapters, because the defaults are for all weights.
fn warn_of_rates(config: &RunConfig, reporter: &dyn RunReporter) {
    if config.model.lora.is_none() {
        return;
    }
    let sft = config.sft.as_ref().filter(|sft| sft.steps > 0);
    let rl = config.rl.as_ref().filter(|rl| rl.steps > 0);
    for (phase, rate, default, usual) in [
        (
            Phase::Sft,
            sft.map(|sft| sft.optimizer.learning_rate),
            SftConfig::default().optimizer.learning_rate,
            "1e-4",
        ),
        (
            Phase::Rl,
            rl.map(|rl| rl.optimizer.learning_rate),
            RlConfig::default().optimizer.learning_rate,
            "1e-5",
        ),
    ] {
        if rate == Some(default) {
            reporter.warn(&format!(
                "[model.lora]: `{phase}.optimizer.learning_rate` is {default:e}, the default, which is for all weights, and \
                 adapters learn little with it; set it, for example to {usual}"
            ));
        }
    }
}

/// A warning, if products in bf16 are no faster than in f32.
fn slow_bf16(precision: Precision, device: &Device, cpu: &CpuFacts) -> Option<&'static str> {
    (precision == Precision::Bf16 && device.is_cpu() && !cpu.bf16).then_some(
        "precision = \"bf16\": this processor has no AVX512-BF16, so training is no faster than in \"f32\"",
    )
}

/// Uses tools and rewards before the first step: plays demonstrations, if the run has SFT, and evaluates the policy.
async fn try_parts(
    parts: &RunParts,
    model: &Model,
    run: &mut RunDirectory,
    observer: &mut RunObserver,
) -> Result<(), RunFailure> {
    let mut phase = Phase::Rl;
    if let Some(sft) = &parts.config.sft {
        let (engine, _generator) = parts.rollout_engine(model)?;
        let set = parts.demonstrations()?;
        let (seed, steps, size) = (parts.config.seed, sft.steps, sft.batch_size);
        rehearse_demonstrations(&engine, &set, seed, steps, size)
            .await
            .map_err(|error| match error {
                // The rewards are at fault, and no demonstration.
                RunFailure::Rollout(RolloutError::Rewards(_)) => error,
                error => TasksError::Rehearsal(error.into()).into(),
            })?;
        phase = Phase::Sft;
    }
    let evaluation = observer
        .test(Moment::Start, model, phase, 0, run.metrics())
        .await?;
    RunFailure::if_nothing_graded(&evaluation)
}

/// Trains the configured phases from the checkpoint on. Returns how the last one ended.
async fn train_phases(
    parts: &Arc<RunParts>,
    model: &mut Model,
    run: &mut RunDirectory,
    checkpoint: Option<&Checkpoint>,
    observer: &mut RunObserver,
    reporter: Arc<dyn RunReporter>,
) -> Result<PhaseEnd, RunFailure> {
    let seed = parts.config.seed;
    let mut end = PhaseEnd::Finished;
    if let Some(config) = &parts.config.sft {
        let (engine, _generator) = parts.rollout_engine(model)?;
        let mut source = DemonstrationBatches::new(engine, parts.demonstrations()?, seed);
        if config.weighs_calls() {
            source = source.marking_calls(parts.dialogue.clone());
        }
        end = sft::train(config, seed, model, &mut source, run, checkpoint, observer).await?;
    }
    if let Some(config) = &parts.config.rl
        && end != PhaseEnd::Interrupted
    {
        let mut rollouts = PolicyRollouts::new(parts.clone(), config, reporter)?;
        let ended = rl::train(
            config,
            seed,
            model,
            &mut rollouts,
            run,
            checkpoint,
            observer,
        )
        .await;
        rollouts.ended().await;
        end = ended?;
    }
    Ok(end)
}

/// The name of a device, as the record of a run's machine has it.
pub(crate) fn device_name(device: &Device) -> String {
    match device.location() {
        DeviceLocation::Cpu => "cpu".into(),
        DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
        DeviceLocation::Metal { gpu_id } => format!("metal:{gpu_id}"),
    }
}

fn summary(parts: &RunParts, model: &Model, checkpoint: Option<&Checkpoint>) -> RunSummary {
    let environments = parts.tasks.environments();
    // Without names, tasks are offered all tools. Names that no plugin has are of tools of an environment.
    let tools: Vec<_> = match parts.tasks.tools() {
        Some(named) => named
            .iter()
            .filter_map(|name| parts.tools.definitions(Some(slice::from_ref(name))).ok())
            .flatten()
            .collect(),
        None => parts.tools.definitions(None).unwrap_or_default(),
    };
    let cases = &parts.dialogue.prefix_report().cases;
    let trained: usize = model.parameters().map(|(_, var)| var.elem_count()).sum();
    let frozen = match model.lora() {
        Some(_) => model.config().parameter_count(),
        None => 0,
    };
    RunSummary {
        parameters: frozen + trained,
        trained_parameters: trained,
        vocabulary: parts.tokenizer.vocab_size(),
        environments: environments.into_iter().collect(),
        tools: tools.iter().map(|tool| tool.name.clone()).collect(),
        agent: parts.config.agent.as_ref().map(ToString::to_string),
        template: parts.dialogue.template().origin().to_owned(),
        template_changes: cases
            .iter()
            .filter(|case| !case.kept)
            .map(|case| case.name)
            .collect(),
        history: parts.config.dialogue.history,
        rewards: parts.rewards.plugins().map(str::to_owned).collect(),
        success: parts.rewards.success().to_string(),
        resumed_from: checkpoint.map(|checkpoint| checkpoint.path.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_is_warned_of_where_it_is_slow() {
        let warned = |precision, bf16| {
            let cpu = CpuFacts {
                bf16,
                ..cpu_facts()
            };
            slow_bf16(precision, &Device::Cpu, &cpu).is_some()
        };
        assert!(warned(Precision::Bf16, false));
        assert!(!warned(Precision::Bf16, true));
        assert!(!warned(Precision::F32, false));
    }
}
