//! Changes of a configuration that save memory.

use rlf_policy::{LoraConfig, Precision, Processor};
use rlf_train::config::{RlConfig, SftConfig};

use crate::config::RunConfig;

/// Changes of one key.
pub(super) struct Change {
    /// The key.
    pub(super) key: &'static str,
    /// Effect on training, if it has one.
    pub(super) effect: Option<&'static str>,
    /// Reads the key's value, as TOML.
    pub(super) value: fn(&RunConfig) -> String,
    /// The changed configurations. Each saves at least as much as the one before it.
    pub(super) variants: Vec<RunConfig>,
}

/// Number of trajectories of full length that the cache has room for, at the least.
const LEAST_TRAJECTORIES: usize = 8;
/// Tokens of a micro-batch, at the least.
const LEAST_TOKENS: usize = 512;

/// All changes that could save memory on a device of this kind, without variants that a run would refuse.
pub(super) fn changes(config: &RunConfig, processor: Processor) -> Vec<Change> {
    let mut all = Vec::new();
    if processor == Processor::Cuda && config.precision == Precision::F32 {
        all.push(Change {
            key: "precision",
            effect: None,
            value: |_| "\"bf16\"".to_owned(),
            variants: vec![changed(config, |config| config.precision = Precision::Bf16)],
        });
    }
    all.push(Change {
        key: "engine.cache_tokens",
        effect: None,
        value: |config| config.cache_tokens().to_string(),
        variants: smaller_caches(config).collect(),
    });
    if processor == Processor::Cpu {
        all.push(Change {
            key: "workers",
            effect: None,
            value: |config| config.workers().to_string(),
            variants: halves(config.workers(), 1)
                .map(|workers| changed(config, |config| config.workers = Some(workers)))
                .collect(),
        });
    }
    all.extend(sft(config));
    all.extend(rl(config));
    if config.model.lora.is_none() {
        let lora = LoraConfig::default();
        all.push(Change {
            key: "model.lora.rank",
            effect: Some("trains adapters instead of the weights"),
            value: |config| {
                let rank = config.model.lora.as_ref().map(|lora| lora.rank);
                rank.unwrap_or_default().to_string()
            },
            variants: vec![changed(config, |config| config.model.lora = Some(lora))],
        });
    }
    for change in &mut all {
        change.variants.retain(|variant| variant.check().is_ok());
    }
    all
}

/// The configuration with a half, a quarter, .. of its cache of keys and values.
pub(super) fn smaller_caches(config: &RunConfig) -> impl Iterator<Item = RunConfig> + '_ {
    let least = LEAST_TRAJECTORIES * config.dialogue.context as usize;
    halves(config.cache_tokens(), least)
        .map(|tokens| changed(config, |config| config.engine.cache_tokens = Some(tokens)))
}

fn sft(config: &RunConfig) -> Vec<Change> {
    let Some(sft) = &config.sft else {
        return Vec::new();
    };
    let with = |apply: &dyn Fn(&mut SftConfig)| {
        changed(config, |config| config.sft.iter_mut().for_each(apply))
    };
    vec![
        Change {
            key: "sft.activation_checkpointing",
            effect: None,
            value: |_| "true".to_owned(),
            variants: vec![with(&|sft| sft.activation_checkpointing = true)],
        },
        Change {
            key: "sft.micro_batch_tokens",
            effect: None,
            value: |config| {
                let tokens = config.sft.as_ref().map(|sft| sft.micro_batch_tokens);
                tokens.unwrap_or_default().to_string()
            },
            variants: halves(sft.micro_batch_tokens, LEAST_TOKENS)
                .map(|tokens| with(&|sft| sft.micro_batch_tokens = tokens))
                .collect(),
        },
    ]
}

fn rl(config: &RunConfig) -> Vec<Change> {
    let Some(rl) = &config.rl else {
        return Vec::new();
    };
    let with = |apply: &dyn Fn(&mut RlConfig)| {
        changed(config, |config| config.rl.iter_mut().for_each(apply))
    };
    vec![
        Change {
            key: "rl.activation_checkpointing",
            effect: None,
            value: |_| "true".to_owned(),
            variants: vec![with(&|rl| rl.activation_checkpointing = true)],
        },
        Change {
            key: "rl.micro_batch_tokens",
            effect: None,
            value: |config| {
                let tokens = config.rl.as_ref().map(|rl| rl.micro_batch_tokens);
                tokens.unwrap_or_default().to_string()
            },
            variants: halves(rl.micro_batch_tokens, LEAST_TOKENS)
                .map(|tokens| with(&|rl| rl.micro_batch_tokens = tokens))
                .collect(),
        },
        Change {
            key: "rl.staleness",
            effect: Some("plays and updates in turn, without older weights"),
            value: |_| "0".to_owned(),
            variants: vec![with(&|rl| rl.staleness = 0)],
        },
        Change {
            key: "rl.kl_coefficient",
            effect: Some("trains without the KL term"),
            value: |_| "0.0".to_owned(),
            variants: vec![with(&|rl| rl.kl_coefficient = 0.0)],
        },
    ]
}

/// A copy of a configuration with a change.
fn changed(config: &RunConfig, apply: impl FnOnce(&mut RunConfig)) -> RunConfig {
    let mut changed = config.clone();
    apply(&mut changed);
    changed
}

/// Half of `value`, half of that, and so on, down to `least`.
fn halves(value: usize, least: usize) -> impl Iterator<Item = usize> {
    let half = |value: &usize| Some(value / 2);
    std::iter::successors(half(&value), half).take_while(move |value| *value >= least)
}
