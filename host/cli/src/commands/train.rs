//! `rlf-host train CONFIG`: SFT if configured, then RL if configured, each with its checkpoints.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, bail};
use candle_core::Device;
use console::style;
use rlf_dialogue::History;
use rlf_policy::{Model, open_device};
use rlf_train::phase::{Phase, PhaseEnd};
use rlf_train::run::{Checkpoint, Machine, RunDirectory, RunError, RunSpec, config_path};
use rlf_train::{rl, sft};
use serde_json::{Map, Value};

use crate::arguments::Train;
use crate::assemble::Parts;
use crate::config::Config;
use crate::demonstrations::{self, Demonstrations};
use crate::display::percent;
use crate::player::Player;
use crate::report::RunData;
use crate::room::Room;
use crate::watch::Watch;
use crate::{interrupt, provenance};

/// What a program is told that a run was stopped and can go on: EX_TEMPFAIL.
const INTERRUPTED: u8 = 75;

pub(crate) fn run(options: &Train) -> anyhow::Result<ExitCode> {
    let mut config = Config::load(&options.config, &options.set)?;
    if let Some(output) = &options.run {
        config.output.clone_from(output);
    }
    if let Some(device) = &options.device {
        config.device.clone_from(device);
    }
    if let Some(seed) = options.seed {
        config.seed = seed;
    }
    config.share_workers();
    let interrupted = interrupt::watch()?;
    super::runtime()?.block_on(train(config, options, interrupted))
}

async fn train(
    config: Config,
    options: &Train,
    interrupted: Arc<AtomicBool>,
) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let path = config.output.clone();
    if options.resume && !config_path(&path).exists() {
        return Err(RunError::NoRun { path }.into());
    }
    // Before whatever lies within the run, so that it goes last.
    let mut room = if options.resume {
        None
    } else {
        Some(Room::make(&path, options.overwrite)?)
    };
    let choice = open_device(&config.device)?;
    say!(
        "{} {} on {}",
        style("run").bold(),
        path.display(),
        choice.reason
    );
    let config_toml = config.to_toml()?;
    let make = if options.resume {
        Parts::existing
    } else {
        Parts::new
    };
    let parts = Arc::new(make(config, &options.plugins.plugins, &path)?);
    parts.report_problems();

    let spec = RunSpec {
        config_toml,
        plugins: parts.plugin_hashes(),
        machine: Machine::here(provenance::binary_hash(), device_name(&choice.device)),
        assets: parts.assets()?,
    };
    let keep = parts.config.checkpoint.clone();
    let (mut run, checkpoint) = match &mut room {
        None => RunDirectory::resume(&path, &spec, keep, options.allow_changes)?,
        Some(room) => (
            RunDirectory::create_in(room.take_lock()?, &spec, keep)?,
            None,
        ),
    };
    let mut model = first_model(&parts, checkpoint.as_ref(), &choice.device)?;
    describe(&parts, &model, checkpoint.as_ref());

    label_users(&parts, &mut run)?;
    let seed = parts.config.seed;
    if let (Some(sft), None) = (&parts.config.sft, &checkpoint) {
        let (workshop, _engine) = parts.workshop(&model)?;
        let drawn = sft.steps.saturating_mul(sft.batch_size as u64);
        demonstrations::rehearse(&workshop, &parts.demonstrations()?, seed, drawn)
            .await
            .context("[sft] has nothing to learn from a demonstration that fails")?;
    }
    let mut watch = Watch::new(parts.clone(), interrupted);
    if checkpoint.is_none() {
        let phase = if parts.config.sft.is_some() {
            Phase::Sft
        } else {
            Phase::Rl
        };
        watch
            .test("at the start", &model, phase, 0, run.metrics())
            .await?;
    }
    // Tools and rewards have worked once: this is a run.
    if let Some(room) = room {
        room.keep()?;
    }
    let mut end = PhaseEnd::Finished;
    if let Some(config) = &parts.config.sft {
        let (workshop, _engine) = parts.workshop(&model)?;
        let mut source = Demonstrations::new(workshop, parts.demonstrations()?, seed);
        end = sft::train(
            config,
            seed,
            &mut model,
            &mut source,
            &mut run,
            checkpoint.as_ref(),
            &mut watch,
        )
        .await?;
    }
    if let Some(config) = &parts.config.rl
        && end != PhaseEnd::Interrupted
    {
        let mut player = Player {
            parts: parts.clone(),
            prompts_per_step: config.prompts_per_step,
            group_size: config.group_size,
            temperature: config.temperature as f32,
        };
        end = rl::train(
            config,
            seed,
            &mut model,
            &mut player,
            &mut run,
            checkpoint.as_ref(),
            &mut watch,
        )
        .await?;
    }
    watch.close();
    drop(run);
    if end == PhaseEnd::Interrupted {
        // The run's own configuration: with everything that the command line had changed.
        say!(
            "stopped and saved; go on with: rlf-host train {} --plugins {} --run {} --resume{}",
            quoted(&config_path(&path)),
            quoted(&options.plugins.plugins),
            quoted(&path),
            if options.control { " --control" } else { "" }
        );
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if options.control {
        let end = control(&parts, &path, &spec, &choice.device, watch).await?;
        if end == PhaseEnd::Interrupted {
            say!(
                "the control was stopped before it was done, so there is nothing to compare; the run itself is complete"
            );
            return Ok(ExitCode::from(INTERRUPTED));
        }
    }
    let report = super::report::write(&path, None)?;
    say!();
    learned(&path)?;
    say!("{:.0} s in all", started.elapsed().as_secs_f64());
    say!("{} {}", style("run").bold(), path.display());
    say!("{} {}", style("report").bold(), report.display());
    Ok(ExitCode::SUCCESS)
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+@:,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Success on the test split at each of its moments, by kind of task.
fn learned(path: &Path) -> anyhow::Result<()> {
    let data = RunData::read(path)?;
    let moments = data.evaluations("test");
    let moment = |line: &Map<String, Value>| -> String {
        line.get("moment")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    // A column is as wide as its heading, and holds `100.0 %`.
    let cells = |cell: &dyn Fn(&Map<String, Value>) -> String| -> String {
        let cell = |line: &&Map<String, Value>| {
            format!(
                "  {:>width$}",
                cell(line),
                width = moment(line).len().max(7)
            )
        };
        moments.iter().map(cell).collect()
    };
    let row = |name: &str, key: &str, kind: Option<&str>| {
        let cell = |line: &Map<String, Value>| {
            let value = line.get(key);
            let value = kind.map_or(value, |kind| value.and_then(|kinds| kinds.get(kind)));
            percent(value.and_then(Value::as_f64))
        };
        say!("  {name:<16}{}", cells(&cell));
    };
    say!("{}", style("success on the test split").bold());
    say!("  {:<16}{}", "", cells(&moment));
    row("greedy", "eval/greedy", None);
    row("sampled", "eval/sampled", None);
    let kinds = moments
        .iter()
        .filter_map(|line| line.get("eval/sampled_by_kind")?.as_object())
        .flat_map(|kinds| kinds.keys().cloned())
        .collect::<BTreeSet<String>>();
    for kind in &kinds {
        row(&format!("  {kind}"), "eval/sampled_by_kind", Some(kind));
    }
    Ok(())
}

/// The control beside the curve: from where SFT ended, more SFT for as long as RL took, so that
/// what RL found is not put down to the time it had. A run of its own in `RUN/control`.
async fn control(
    parts: &Arc<Parts>,
    path: &Path,
    spec: &RunSpec,
    device: &Device,
    watch: Watch,
) -> anyhow::Result<PhaseEnd> {
    let ended = |phase| -> anyhow::Result<Checkpoint> {
        Checkpoint::latest_in_phase(path, phase)?
            .filter(|checkpoint| checkpoint.state.finished)
            .with_context(|| {
                format!(
                    "--control compares RL with SFT, but the {phase} phase has not been finished"
                )
            })
    };
    let sft_end = ended(Phase::Sft)?;
    ended(Phase::Rl)?;
    let Some(sft) = &parts.config.sft else {
        bail!("--control needs [sft] in the configuration")
    };
    // Of the steps alone: evaluations are not learning.
    let data = RunData::read(path)?;
    let time = |phase: Phase| -> f64 {
        data.phase(phase.as_str())
            .filter_map(|line| line.get("step_s")?.as_f64())
            .sum()
    };
    let (sft_time, rl_time) = (time(Phase::Sft), time(Phase::Rl));
    let mut config = sft.clone();
    config.steps = ((sft.steps as f64 * rl_time / sft_time.max(1e-9)).ceil() as u64).max(1);
    // From half the peak down again: the first phase has already annealed its own.
    config.optimizer.learning_rate /= 2.0;
    say!(
        "control: {} more SFT steps, for the {:.0} s that RL took",
        config.steps,
        rl_time
    );
    let folder = path.join("control");
    if folder.join("config.toml").exists() {
        std::fs::remove_dir_all(&folder).with_context(|| {
            format!("cannot remove the earlier control in {}", folder.display())
        })?;
    }
    let spec = RunSpec {
        config_toml: Config {
            sft: Some(config.clone()),
            rl: None,
            ..parts.config.clone()
        }
        .to_toml()?,
        ..spec.clone()
    };
    let mut run = RunDirectory::create(&folder, &spec, parts.config.checkpoint.clone())?;
    label_users(parts, &mut run)?;
    let mut model = parts.load_model(&sft_end.path, device)?;
    let (workshop, _engine) = parts.workshop(&model)?;
    let mut source =
        Demonstrations::new(workshop, parts.demonstrations()?, parts.config.seed).after(sft.steps);
    let mut watch = watch.named("control: SFT instead of RL");
    let seed = parts.config.seed;
    let end = sft::train(
        &config,
        seed,
        &mut model,
        &mut source,
        &mut run,
        None,
        &mut watch,
    )
    .await?;
    watch.close();
    Ok(end)
}

/// Says in every line of the metrics who plays the users: numbers under one are not to be compared with those under another.
fn label_users(parts: &Parts, run: &mut RunDirectory) -> anyhow::Result<()> {
    if let Some(users) = parts.users(None) {
        run.metrics().label("users", serde_json::to_value(users)?);
    }
    Ok(())
}

/// The weights to begin with: of the checkpoint resumed from, of the configured checkpoint, or
/// made from the seed.
fn first_model(
    parts: &Parts,
    checkpoint: Option<&Checkpoint>,
    device: &Device,
) -> anyhow::Result<Model> {
    let folder: Option<PathBuf> = checkpoint
        .map(|checkpoint| checkpoint.path.clone())
        .or_else(|| parts.config.model.checkpoint.clone());
    if let Some(folder) = folder {
        return parts.load_model(&folder, device);
    }
    let shape = parts
        .config
        .shape(parts.tokenizer.vocab_size())?
        .context("[model] has neither `checkpoint` nor `init`")?;
    parts.fitted(Model::init(&shape, parts.config.seed, device)?)
}

fn device_name(device: &Device) -> String {
    match device.location() {
        candle_core::DeviceLocation::Cpu => "cpu".into(),
        candle_core::DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
        candle_core::DeviceLocation::Metal { gpu_id } => format!("metal:{gpu_id}"),
    }
}

/// What the chat template does with earlier turns, and what follows from it.
fn template(parts: &Parts) -> String {
    let origin = parts.dialogue.template().origin();
    let changed: Vec<&str> = parts
        .dialogue
        .prefix_report()
        .cases
        .iter()
        .filter(|case| !case.kept)
        .map(|case| case.name)
        .collect();
    match (changed.is_empty(), parts.config.dialogue.history) {
        (true, _) => format!("{origin}: earlier turns read the same when they are rendered again"),
        (false, History::AsSampled) => format!(
            "{origin}: rendered again, earlier turns would change ({}); they are kept as they were sampled",
            changed.join(", ")
        ),
        (false, History::Template) => format!(
            "{origin}: rendered again, earlier turns change ({}); each change begins a new training sequence",
            changed.join(", ")
        ),
    }
}

fn describe(parts: &Parts, model: &Model, checkpoint: Option<&Checkpoint>) {
    let environments = parts.tasks.environments();
    // Tasks of an environment that name no tools are offered its own alone.
    let tools = match parts.tasks.tools() {
        Some(named) if named.is_empty() && !environments.is_empty() => Vec::new(),
        _ => parts.tools.definitions(None).unwrap_or_default(),
    };
    let parameters: usize = model.parameters().map(|(_, var)| var.elem_count()).sum();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    say!(
        "{} {:.2} M parameters, {} tokens in the vocabulary",
        style("policy").bold(),
        parameters as f64 / 1e6,
        parts.tokenizer.vocab_size()
    );
    if !environments.is_empty() {
        let environments: Vec<&str> = environments.iter().map(String::as_str).collect();
        say!(
            "{} {}",
            style("environments").bold(),
            environments.join(", ")
        );
    }
    if !names.is_empty() || environments.is_empty() {
        say!("{} {}", style("tools").bold(), names.join(", "));
    }
    say!("{} {}", style("template").bold(), template(parts));
    let rewards: Vec<&str> = parts.rewards.plugins().collect();
    say!(
        "{} {}; success is {}",
        style("rewards").bold(),
        rewards.join(", "),
        parts.rewards.success()
    );
    if let Some(checkpoint) = checkpoint {
        say!(
            "{} {}",
            style("resumed from").bold(),
            checkpoint.path.display()
        );
    }
}
