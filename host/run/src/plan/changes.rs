//! Changes of a configuration that save memory.

use std::fmt::Display;
use std::rc::Rc;

use rlf_policy::{LoraConfig, Precision, Processor};
use rlf_train::config::{RlConfig, SftConfig};

use crate::config::RunConfig;

/// Changes of one key.
pub(super) struct Change {
    /// The key.
    pub(super) key: &'static str,
    /// Effect on training, if it has one.
    pub(super) effect: Option<&'static str>,
    /// Its new values. Each saves at least as much as the one before it.
    pub(super) variants: Vec<Variant>,
}

/// A new value of a key.
#[derive(Clone)]
pub(super) struct Variant {
    /// The value, as TOML.
    pub(super) value: String,
    set: Rc<dyn Fn(&mut RunConfig)>,
}

impl Variant {
    fn new(value: impl Display, set: impl Fn(&mut RunConfig) + 'static) -> Self {
        Self {
            value: value.to_string(),
            set: Rc::new(set),
        }
    }

    /// The configuration with this value.
    pub(super) fn applied_to(&self, config: &RunConfig) -> RunConfig {
        let mut changed = config.clone();
        (self.set)(&mut changed);
        changed
    }
}

/// Tokens of a micro-batch, at the least.
const LEAST_TOKENS: usize = 512;

/// All changes that could save memory on a device of this kind, without variants that a run would refuse.
pub(super) fn changes(config: &RunConfig, processor: Processor) -> Vec<Change> {
    let mut all = Vec::new();
    let mut add = |key, effect, variants| {
        all.push(Change {
            key,
            effect,
            variants,
        });
    };
    if processor == Processor::Cuda && config.precision == Precision::F32 {
        let bf16 = Variant::new("\"bf16\"", |config| config.precision = Precision::Bf16);
        add("precision", None, vec![bf16]);
    }
    add(
        "engine.cache_tokens",
        None,
        smaller_caches(config, 1).collect(),
    );
    if processor == Processor::Cpu {
        let fewer = halves(config.workers(), 1)
            .map(|workers| Variant::new(workers, move |config| config.workers = Some(workers)));
        add("workers", None, fewer.collect());
    }
    if let Some(sft) = &config.sft {
        let checkpointing = of_sft(true, |sft, on| sft.activation_checkpointing = Some(on));
        add("sft.activation_checkpointing", None, vec![checkpointing]);
        let fewer = halves(sft.micro_batch_tokens, LEAST_TOKENS);
        let fewer =
            fewer.map(|tokens| of_sft(tokens, |sft, tokens| sft.micro_batch_tokens = tokens));
        add("sft.micro_batch_tokens", None, fewer.collect());
    }
    if let Some(rl) = &config.rl {
        let checkpointing = of_rl(true, |rl, on| rl.activation_checkpointing = Some(on));
        add("rl.activation_checkpointing", None, vec![checkpointing]);
        let fewer = halves(rl.micro_batch_tokens, LEAST_TOKENS);
        let fewer = fewer.map(|tokens| of_rl(tokens, |rl, tokens| rl.micro_batch_tokens = tokens));
        add("rl.micro_batch_tokens", None, fewer.collect());
        let effect = "plays and updates in turn, without older weights";
        let in_turn = of_rl(0, |rl, staleness| rl.staleness = staleness);
        add("rl.staleness", Some(effect), vec![in_turn]);
        let no_kl = Variant::new("0.0", |config| {
            config.rl.iter_mut().for_each(|rl| rl.kl_coefficient = 0.0);
        });
        add(
            "rl.kl_coefficient",
            Some("trains without the KL term"),
            vec![no_kl],
        );
    }
    if config.model.lora.is_none() {
        let lora = LoraConfig::default();
        let adapters = Variant::new(lora.rank, move |config| {
            config.model.lora = Some(lora.clone());
        });
        let effect = "trains adapters instead of the weights";
        add("model.lora.rank", Some(effect), vec![adapters]);
    }
    for change in &mut all {
        let is_accepted = |variant: &Variant| variant.applied_to(config).check().is_ok();
        change.variants.retain(is_accepted);
    }
    all
}

/// A half, a quarter, .. of the cache of keys and values, with room for at least so many trajectories of full length.
pub(super) fn smaller_caches(
    config: &RunConfig,
    trajectories: usize,
) -> impl Iterator<Item = Variant> + use<> {
    let least = trajectories * config.dialogue.context as usize;
    halves(config.cache_tokens(), least).map(|tokens| {
        Variant::new(tokens, move |config| {
            config.engine.cache_tokens = Some(tokens);
        })
    })
}

fn of_sft<T: Copy + Display + 'static>(value: T, set: fn(&mut SftConfig, T)) -> Variant {
    let set = move |config: &mut RunConfig| config.sft.iter_mut().for_each(|sft| set(sft, value));
    Variant::new(value, set)
}

fn of_rl<T: Copy + Display + 'static>(value: T, set: fn(&mut RlConfig, T)) -> Variant {
    let set = move |config: &mut RunConfig| config.rl.iter_mut().for_each(|rl| set(rl, value));
    Variant::new(value, set)
}

/// Half of `value`, half of that, and so on, down to `least`.
fn halves(value: usize, least: usize) -> impl Iterator<Item = usize> {
    let half = |value: &usize| Some(value / 2);
    std::iter::successors(half(&value), half).take_while(move |value| *value >= least)
}
