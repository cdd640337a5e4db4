//! A plan: the memory and the time that a run needs, before anything is loaded.
//!
//! | looking for | module |
//! |---|---|
//! | the memory of each phase | `phases`, which asks [`rlf_policy::PolicyMemory`] |
//! | the time of a step | `time`, which asks [`rlf_policy::Operations`] |
//! | this machine, and GPUs by name | `machine` |
//! | the lengths that are assumed | `lengths` |
//! | changes that save memory | `changes` |
//! | which of them make a run fit | `suggestions` |

mod changes;
mod lengths;
mod machine;
mod phases;
mod suggestions;
mod time;

use std::path::Path;

use candle_core::Device;
use rlf_dialogue::tokenizer::Tokenizer;
use rlf_policy::{PolicyError, Qwen3Config};
use rlf_train::config::{RlConfig, SftConfig};

pub use lengths::Lengths;
pub use machine::{PlannedMachine, Speed};
pub use phases::{MemoryPart, PhaseMemory, RunMemory};
pub use suggestions::Suggestion;
pub use time::StepTimes;

use crate::config::RunConfig;
use crate::error::{ConfigurationError, RunFailure};
use crate::reporter::RunReporter;
use suggestions::suggest;

/// Share of the memory by which an estimate may be wrong.
const MARGIN: f64 = 0.1;

/// Number of trajectories of full length for which a cache has room, at the least, if its size is open.
const LEAST_TRAJECTORIES: usize = 8;

/// Options of [`Plan::new`], in addition to the configuration.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// The machine.
    pub machine: PlannedMachine,
    /// The shape of the policy. Default: that of `[model]`.
    pub shape: Option<Qwen3Config>,
    /// Tokens of a trajectory. Default: as many as the configuration allows.
    pub tokens_per_trajectory: Option<usize>,
}

/// Needs of a run, and whether a machine meets them.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The shape of the policy.
    pub shape: Qwen3Config,
    /// The machine.
    pub machine: PlannedMachine,
    /// The lengths that are assumed.
    pub lengths: Lengths,
    /// The configuration, with what it leaves open: the cache of keys and values, and whether activations are computed again.
    pub completed: RunConfig,
    /// Keys of phases whose activations are computed again, because the run does not fit with them.
    pub recomputed: Vec<&'static str>,
    /// Memory of the device, and of the host.
    pub memory: RunMemory,
    /// Time of a step. None if the machine's speed is unknown.
    pub times: Option<StepTimes>,
    /// Changes that save memory, if it does not fit, in the order in which to make them.
    pub suggestions: Vec<Suggestion>,
    /// The peak with all these changes.
    pub with_all: Option<u64>,
}

impl Plan {
    /// Plans a run of `config`. Nothing is loaded but the shape of `model.checkpoint`, and `tokenizer.file` for a shape
    /// without a `vocab_size`.
    pub fn new(config: &RunConfig, options: &PlanOptions) -> Result<Self, RunFailure> {
        let shape = match &options.shape {
            Some(shape) => shape.clone(),
            None => shape(config)?,
        };
        let (context, most) = (config.dialogue.context, shape.max_position_embeddings);
        if context as usize > most {
            return Err(ConfigurationError::long_context(context, most).into());
        }
        let machine = options.machine.clone();
        let lengths = Lengths::new(config, options.tokens_per_trajectory);
        let asked = config;
        let config = &completed(asked, &shape, &machine, lengths)?;
        let memory = RunMemory::new(config, &shape, machine.processor, lengths)?;
        let times = (machine.speed).map(|speed| StepTimes::new(config, &shape, speed, lengths));
        let mut plan = Self {
            shape,
            machine,
            lengths,
            completed: config.clone(),
            recomputed: recomputed(asked, config),
            memory,
            times,
            suggestions: Vec::new(),
            with_all: None,
        };
        if let Some(limit) = plan.machine.memory
            && plan.memory.peak() > limit
        {
            let (shape, machine) = (&plan.shape, &plan.machine);
            let peak = |config: &RunConfig| -> Result<u64, PolicyError> {
                Ok(RunMemory::new(config, shape, machine.processor, lengths)?.peak())
            };
            let (mut suggestions, mut changed) = suggest(config, machine.processor, limit, peak)?;
            // With these changes, what the configuration leaves open is decided anew.
            let is_suggested = |key| suggestions.iter().any(|one: &Suggestion| one.key == key);
            if asked.engine.cache_tokens.is_none() && !is_suggested("engine.cache_tokens") {
                changed.engine.cache_tokens = None;
            }
            let mut decided = Vec::new();
            if let (Some(sft), Some(asked)) = (&mut changed.sft, &asked.sft)
                && asked.activation_checkpointing.is_none()
            {
                sft.activation_checkpointing = None;
                decided.push("sft.activation_checkpointing");
            }
            if let (Some(rl), Some(asked)) = (&mut changed.rl, &asked.rl)
                && asked.activation_checkpointing.is_none()
            {
                rl.activation_checkpointing = None;
                decided.push("rl.activation_checkpointing");
            }
            suggestions.retain(|one| !decided.contains(&one.key));
            plan.with_all = Some(peak(&completed(&changed, shape, machine, lengths)?)?);
            plan.suggestions = suggestions;
        }
        Ok(plan)
    }

    /// Tokens in the cache of keys and values.
    pub fn cache_tokens(&self) -> usize {
        self.completed.cache_tokens()
    }

    /// True if the device's memory is enough. None if its size is unknown.
    pub fn fits(&self) -> Option<bool> {
        (self.machine.memory).map(|memory| self.memory.peak() <= memory)
    }
}

/// The configuration with what it leaves open: the cache of keys and values, and the phases whose activations are computed
/// again. These are as few as fit into the memory. If nothing fits, the choice that needs least memory is taken.
fn completed(
    config: &RunConfig,
    shape: &Qwen3Config,
    machine: &PlannedMachine,
    lengths: Lengths,
) -> Result<RunConfig, PolicyError> {
    let mut least: Option<(u64, RunConfig)> = None;
    for [in_sft, in_rl] in [[false, false], [true, false], [false, true], [true, true]] {
        let mut config = config.clone();
        if let Some(sft) = &mut config.sft {
            sft.activation_checkpointing.get_or_insert(in_sft);
        }
        if let Some(rl) = &mut config.rl {
            rl.activation_checkpointing.get_or_insert(in_rl);
        }
        let config = with_room(&config, shape, machine, lengths)?;
        let peak = RunMemory::new(&config, shape, machine.processor, lengths)?.peak();
        if machine.memory.is_none_or(|limit| peak <= limit) {
            return Ok(config);
        }
        if least.as_ref().is_none_or(|(least, _)| peak < *least) {
            least = Some((peak, config));
        }
    }
    Ok(least.map_or_else(|| config.clone(), |(_, config)| config))
}

/// The keys of phases that [`completed`] lets compute activations again.
fn recomputed(asked: &RunConfig, completed: &RunConfig) -> Vec<&'static str> {
    let of_sft = |config: &RunConfig| config.sft.as_ref().is_some_and(SftConfig::recomputes);
    let of_rl = |config: &RunConfig| config.rl.as_ref().is_some_and(RlConfig::recomputes);
    [
        (
            "sft.activation_checkpointing",
            of_sft(completed) && !of_sft(asked),
        ),
        (
            "rl.activation_checkpointing",
            of_rl(completed) && !of_rl(asked),
        ),
    ]
    .into_iter()
    .filter_map(|(key, is_new)| is_new.then_some(key))
    .collect()
}

/// The configuration with a cache of keys and values for which the machine has the memory, if `engine.cache_tokens` leaves
/// the size open: its default, or a half, a quarter, .. of it. The smallest if none fits.
fn with_room(
    config: &RunConfig,
    shape: &Qwen3Config,
    machine: &PlannedMachine,
    lengths: Lengths,
) -> Result<RunConfig, PolicyError> {
    let Some(limit) = machine
        .memory
        .filter(|_| config.engine.cache_tokens.is_none())
    else {
        return Ok(config.clone());
    };
    let mut smaller = changes::smaller_caches(config, LEAST_TRAJECTORIES);
    let mut with_room = config.clone();
    loop {
        let memory = RunMemory::new(&with_room, shape, machine.processor, lengths)?;
        if memory.peak() as f64 <= limit as f64 * (1.0 - MARGIN) {
            return Ok(with_room);
        }
        match smaller.next() {
            Some(variant) => with_room = variant.applied_to(config),
            None => return Ok(with_room),
        }
    }
}

/// Tokens in the cache of keys and values on this device if nothing is trained: see `engine.cache_tokens`.
pub(crate) fn cache_tokens_without_training(
    config: &RunConfig,
    shape: &Qwen3Config,
    device: &Device,
) -> Result<usize, PolicyError> {
    let machine = PlannedMachine::without_speed(device);
    let lengths = Lengths::new(config, None);
    let mut played = config.clone();
    (played.sft, played.rl) = (None, None);
    Ok(with_room(&played, shape, &machine, lengths)?.cache_tokens())
}

/// Reads a configuration to plan it. Its tasks may be missing, and so may its model, if the plan gets a shape.
pub fn configuration(
    path: &Path,
    settings: &[String],
    has_shape: bool,
) -> Result<RunConfig, ConfigurationError> {
    let text = rlf_config::read(path)?;
    let table: toml::Table = rlf_config::parse(&text, &path.display().to_string())?;
    let has = |table_name: &str, keys: [&str; 2]| {
        let found = table.get(table_name).and_then(toml::Value::as_table);
        found.is_some_and(|found| keys.iter().any(|key| found.contains_key(*key)))
    };
    // Sizes depend neither on the tasks nor on the weights.
    let mut all = Vec::new();
    if !has("tasks", ["train", "facts"]) {
        all.push("tasks.train=tasks.jsonl".to_owned());
    }
    if has_shape && !has("model", ["checkpoint", "init"]) {
        all.push("model.checkpoint=checkpoint".to_owned());
    }
    all.extend_from_slice(settings);
    RunConfig::load(path, &all)
}

/// The shape of the configured policy.
fn shape(config: &RunConfig) -> Result<Qwen3Config, RunFailure> {
    if let Some(checkpoint) = &config.model.checkpoint {
        return Ok(Qwen3Config::load(checkpoint).map_err(|error| {
            ConfigurationError::value("model.checkpoint", format!("model.checkpoint: {error}"))
        })?);
    }
    let vocabulary = match (&config.tokenizer.train, &config.tokenizer.file) {
        (Some(options), _) => options.vocab_size,
        (None, Some(file)) => Tokenizer::load(file)?.vocab_size(),
        (None, None) => 0,
    };
    let shape = config.shape(vocabulary)?;
    Ok(shape.ok_or_else(|| {
        ConfigurationError::value("model", "[model] has neither `checkpoint` nor `init`")
    })?)
}

/// Decides for this device whether a run computes activations again, if its configuration leaves it open. Refuses a run
/// whose policy cannot fit by a clear margin, and warns if it may not fit. Returns the tokens in its cache of keys and values.
pub(crate) fn complete(
    config: &mut RunConfig,
    vocabulary: usize,
    device: &Device,
    reporter: &dyn RunReporter,
) -> Result<usize, RunFailure> {
    // A shape that cannot be read is an error of loading, which says more.
    let shape = match &config.model.checkpoint {
        Some(checkpoint) => Qwen3Config::load(checkpoint).ok(),
        None => config.shape(vocabulary)?,
    };
    let machine = PlannedMachine::without_speed(device);
    let (Some(shape), Some(limit)) = (shape, machine.memory) else {
        return Ok(config.cache_tokens());
    };
    // Loading refuses it.
    if config.dialogue.context as usize > shape.max_position_embeddings {
        return Ok(config.cache_tokens());
    }
    let options = PlanOptions {
        machine,
        shape: Some(shape),
        tokens_per_trajectory: None,
    };
    let plan = Plan::new(config, &options)?;
    let (peak, least) = (plan.memory.peak(), plan.memory.least());
    let device = plan.machine.name.clone();
    if least as f64 > limit as f64 * (1.0 + MARGIN) {
        return Err(RunFailure::TooLarge {
            needed: gigabytes(least),
            memory: gigabytes(limit),
            device,
            mend: mend(&plan),
        });
    }
    if plan.cache_tokens() < config.cache_tokens() {
        reporter.warn(&format!(
            "{} has no memory for a cache of {} tokens (`engine.slots` trajectories of `dialogue.context` tokens). The cache \
             has {} tokens; `engine.cache_tokens` chooses the size",
            device,
            config.cache_tokens(),
            plan.cache_tokens()
        ));
    }
    if peak as f64 > limit as f64 * (1.0 - MARGIN) {
        reporter.warn(&format!(
            "the run may need up to {} GB on {device}, which has {} GB{}",
            gigabytes(peak),
            gigabytes(limit),
            if plan.with_all.is_some() {
                format!("; {}", mend(&plan))
            } else {
                String::new()
            }
        ));
    }
    if let Some(host) = plan.memory.host
        && let Some(memory) = rlf_policy::machine_memory()
        && host as f64 > memory as f64 * (1.0 - MARGIN)
    {
        reporter.warn(&format!(
            "the run may need up to {} GB of this machine's own memory, which has {} GB",
            gigabytes(host),
            gigabytes(memory)
        ));
    }
    if !plan.recomputed.is_empty() {
        reporter.warn(&format!(
            "{} has no memory for all activations: {} = true, which takes a third more time and changes no result",
            plan.machine.name,
            plan.recomputed.join(" and ")
        ));
    }
    let (engine, cache_tokens) = (config.engine, plan.cache_tokens());
    *config = RunConfig {
        engine,
        ..plan.completed
    };
    Ok(cache_tokens)
}

/// Says which changes make a run fit, and whether they do.
fn mend(plan: &Plan) -> String {
    let settings: Vec<String> = (plan.suggestions.iter())
        .map(|suggestion| format!("`{suggestion}`"))
        .collect();
    let settings = settings.join(", ");
    let larger = "use a smaller model, or a device with more memory";
    match plan.with_all {
        Some(all) if !plan.suggestions.is_empty() => {
            let all_gigabytes = gigabytes(all);
            if plan.machine.memory.is_some_and(|memory| all <= memory) {
                format!("it fits in {all_gigabytes} GB with {settings}")
            } else {
                format!("with {settings}, it may still need {all_gigabytes} GB; {larger}")
            }
        }
        _ => larger.to_owned(),
    }
}

/// Bytes in GB (10^9 bytes), with one digit after the point.
fn gigabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests;
