//! The memory of a run: what is always there, and what each phase adds.

use std::collections::BTreeSet;

use rlf_policy::{
    LoraConfig, PolicyMemory, Precision, Processor, Qwen3Config, Result, micro_batches,
};
use rlf_train::config::{RlConfig, SftConfig};

use super::lengths::Lengths;
use crate::config::RunConfig;
use crate::frozen_engine::{cache_tokens, same_path};

/// Memory of the program with the quickstart's plugins, tokenizer and tasks, without a policy. Measured: the peak of
/// resident memory was 201 MiB in a run whose policy has one layer of 8 numbers, and takes 31 MiB by this plan.
const PROGRAM: u64 = 170 << 20;
/// Memory that the driver, its libraries and kernels take on a GPU. An estimate.
const CUDA_LIBRARIES: u64 = 1 << 30;

/// Name of the memory that the CPU's allocator keeps.
const ALLOCATOR: &str = "memory that the allocator keeps";

/// Freed memory of other phases stays with the program for a minute, in whole pages: one in this many bytes of the peak.
/// Measured with 0.35, 3.7 and 30 M parameters (`rlf-bench memory`).
const OF_OTHER_PHASES: u64 = 8;

/// One kind of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPart {
    /// Its content.
    pub name: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// True if it is an upper bound, because it depends on how long trajectories are or on the allocator. False if the run
    /// takes it in any case.
    pub is_bound: bool,
}

/// A part of a run that has a peak of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseMemory {
    /// Its name.
    pub name: &'static str,
    /// The memory that it takes in addition to what is always there.
    pub parts: Vec<MemoryPart>,
}

impl PhaseMemory {
    /// The sum of its parts.
    pub fn bytes(&self) -> u64 {
        sum(&self.parts)
    }
}

/// The memory of a run on its device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunMemory {
    /// Parts that exist from the beginning to the end.
    pub always: Vec<MemoryPart>,
    /// Parts that exist in one phase, by phase.
    pub phases: Vec<PhaseMemory>,
    /// Memory of the host, if the device has its own.
    pub host: Option<u64>,
    /// Models that plugins ask and whose files cannot be read, each with the reason.
    pub not_counted: Vec<String>,
}

impl RunMemory {
    /// Bytes of the parts that always exist and of the largest phase.
    pub fn peak(&self) -> u64 {
        let phases = self.phases.iter().map(PhaseMemory::bytes);
        sum(&self.always) + phases.max().unwrap_or(0)
    }

    /// The part of the peak that the run takes in any case.
    pub fn least(&self) -> u64 {
        let certain = |parts: &[MemoryPart]| {
            let certain = parts.iter().filter(|part| !part.is_bound);
            certain.map(|part| part.bytes).sum::<u64>()
        };
        let phases = self.phases.iter().map(|phase| certain(&phase.parts));
        certain(&self.always) + phases.max().unwrap_or(0)
    }

    /// The memory of a run of `config` whose policy has this shape.
    pub(super) fn new(
        config: &RunConfig,
        shape: &Qwen3Config,
        processor: Processor,
        lengths: Lengths,
    ) -> Result<Self> {
        let planner = Planner {
            config,
            memory: PolicyMemory::new(
                shape,
                config.model.lora.as_ref(),
                processor,
                config.precision,
            ),
            processor,
            lengths,
        };
        let on_cpu = processor == Processor::Cpu;
        let models = models(config, shape, on_cpu && config.precision == Precision::F32);
        let on_device = |bytes| if on_cpu { bytes } else { 0 };
        let sft = config.sft.as_ref().filter(|sft| sft.steps > 0);
        let rl = config.rl.as_ref().filter(|rl| rl.steps > 0);
        let moments = match (sft, rl) {
            (None, None) => 0,
            _ => planner.memory.moments(),
        };
        let replayed = rl.map_or(0, |rl| planner.replay_buffer(rl));
        let always = [
            if on_cpu {
                certain("program, plugins, tasks", PROGRAM)
            } else {
                certain("driver and kernels", CUDA_LIBRARIES)
            },
            certain("weights", planner.memory.weights()),
            certain("copies of weights for products", planner.memory.operands()),
            certain("moments of the optimiser", moments),
            certain(
                "weights of models that plugins ask",
                on_device(models.weights),
            ),
            bound(
                "caches of models that plugins ask",
                on_device(models.caches),
            ),
            bound("groups that may train again", on_device(replayed)),
        ];
        let copies = planner.memory.checkpoint_copies();
        let mut phases = Vec::new();
        if on_cpu {
            phases.push(PhaseMemory {
                name: "loading and saving",
                parts: vec![certain("copies of a parameter", copies)],
            });
        }
        if let Some(sft) = sft {
            phases.extend(planner.sft(sft)?);
        }
        if let Some(rl) = rl {
            phases.extend(planner.rl(rl)?);
        }
        if sft.is_none() && rl.is_none() {
            phases.push(PhaseMemory {
                name: "rollout and evaluation",
                parts: present([planner.cache(), planner.decoding_step()?]),
            });
        }
        let mut memory = Self {
            always: present(always),
            phases,
            not_counted: models.not_counted,
            host: (!on_cpu).then_some(PROGRAM + models.weights + models.caches + copies + replayed),
        };
        if on_cpu {
            let bytes = memory.peak() / OF_OTHER_PHASES;
            memory
                .always
                .push(bound("freed memory of other phases", bytes));
        }
        Ok(memory)
    }
}

/// The parts of a run's memory.
struct Planner<'a> {
    config: &'a RunConfig,
    memory: PolicyMemory,
    processor: Processor,
    lengths: Lengths,
}

/// A phase's passes over its data.
struct Passes {
    /// Sequences of one update.
    sequences: usize,
    /// Tokens of a micro-batch.
    micro_batch_tokens: usize,
    /// Trained tokens of a sequence.
    targets: usize,
    checkpointing: bool,
    /// True if a critic reads the rows of trained tokens.
    has_critic: bool,
}

/// The memory of an update.
struct Update {
    gradients: [MemoryPart; 2],
    activations: MemoryPart,
}

impl Update {
    fn parts(self) -> impl Iterator<Item = MemoryPart> {
        self.gradients.into_iter().chain([self.activations])
    }
}

impl Planner<'_> {
    fn sft(&self, sft: &SftConfig) -> Result<[PhaseMemory; 2]> {
        let passes = Passes {
            sequences: sft.batch_size,
            micro_batch_tokens: sft.micro_batch_tokens,
            targets: if sft.prompt_loss_weight > 0.0 {
                self.lengths.tokens
            } else {
                self.lengths.written
            },
            checkpointing: sft.recomputes(),
            has_critic: false,
        };
        self.training(["SFT: evaluation", "SFT: update"], &passes, &[])
    }

    fn rl(&self, rl: &RlConfig) -> Result<[PhaseMemory; 2]> {
        let trajectories = (rl.prompts_per_step + replayed_groups(rl)) * rl.group_size;
        let passes = Passes {
            sequences: trajectories.div_ceil(rl.mini_batches.max(1)),
            micro_batch_tokens: rl.micro_batch_tokens,
            targets: self.lengths.written,
            checkpointing: rl.recomputes(),
            has_critic: rl.estimator().needs_values(),
        };
        let copy = self.memory.copy();
        let has_reference = rl.kl_coefficient != 0.0;
        let reference = if has_reference {
            self.memory.frozen_copy()
        } else {
            0
        };
        let beside = [
            certain("reference policy", reference),
            certain("copies of older weights", rl.staleness * copy),
        ];
        if rl.staleness == 0 {
            return self.training(
                ["RL: rollout and evaluation", "RL: update"],
                &passes,
                &beside,
            );
        }
        let [evaluation, mut update] = self.training(
            ["RL: evaluation", "RL: update beside a rollout"],
            &passes,
            &beside,
        )?;
        // The allocator keeps nothing of a cache that is in use.
        update.parts.retain(|part| part.name != ALLOCATOR);
        let rollout = [self.cache(), self.decoding_step()?];
        update.parts.extend(present(rollout));
        Ok([evaluation, update])
    }

    /// The groups of a replay buffer: an id and a log-probability for each token.
    fn replay_buffer(&self, rl: &RlConfig) -> u64 {
        let Some(buffer) = &rl.replay_buffer else {
            return 0;
        };
        let played = (rl.prompts_per_step as u64).saturating_mul(buffer.max_age);
        let groups = played.min(buffer.most_groups() as u64);
        groups * (rl.group_size * self.lengths.tokens) as u64 * 8
    }

    /// Decoding and updates, which take turns and have these names, beside these parts.
    fn training(
        &self,
        [decoding, updating]: [&'static str; 2],
        passes: &Passes,
        beside: &[MemoryPart],
    ) -> Result<[PhaseMemory; 2]> {
        let update = self.update(passes)?;
        let cache = self.cache();
        let step = self.decoding_step()?;
        let kept = self.kept(&update.activations);
        // Decoding uses what the allocator kept.
        let larger = kept.filter(|kept| kept.bytes > step.bytes).unwrap_or(step);
        let mut rollout = beside.to_vec();
        rollout.extend([cache.clone(), larger]);
        let mut parts = beside.to_vec();
        parts.extend(update.parts());
        parts.extend(self.kept(&cache));
        let phase = |name, parts: Vec<MemoryPart>| PhaseMemory {
            name,
            parts: present(parts),
        };
        Ok([phase(decoding, rollout), phase(updating, parts)])
    }

    /// The gradients and the activations of an update.
    fn update(&self, passes: &Passes) -> Result<Update> {
        let lengths = vec![self.lengths.tokens; passes.sequences.max(1)];
        let cuts = micro_batches(&lengths, passes.micro_batch_tokens, self.processor);
        let longest = cuts
            .iter()
            .map(|cut| &lengths[cut.clone()])
            .max_by_key(|cut| cut.len());
        let longest = longest.unwrap_or(&lengths);
        let mut one = (self.memory).pass(longest, passes.targets, passes.checkpointing)?;
        if passes.has_critic {
            one.activations += self.memory.value_rows(longest, passes.targets);
        }
        let all = self
            .memory
            .accumulate(one, cuts.len(), self.config.workers());
        Ok(Update {
            // Short trajectories may all be one micro-batch.
            gradients: [
                certain("gradients of a micro-batch", one.gradients),
                bound(
                    "gradients of others, and their sum",
                    all.gradients.saturating_sub(one.gradients),
                ),
            ],
            activations: bound("activations and logits of micro-batches", all.activations),
        })
    }

    /// The cache of an engine, all of which is taken with the first turn. An external engine has its own memory.
    fn cache(&self) -> MemoryPart {
        if self.config.external_engine.is_some() {
            return bound("cache of keys and values", 0);
        }
        certain(
            "cache of keys and values",
            self.memory.cache(self.config.cache_tokens()),
        )
    }

    fn decoding_step(&self) -> Result<MemoryPart> {
        if self.config.external_engine.is_some() {
            return Ok(bound("a step of decoding", 0));
        }
        let engine = &self.config.engine;
        let rows = engine.step_tokens.min(self.config.cache_tokens()).max(1);
        let mut bytes = self.memory.decode_step(rows, engine.slots)?;
        if self.processor == Processor::Cuda {
            // Steps that are recorded have memory of their own.
            bytes += self.memory.decode_step(engine.slots, engine.slots)?;
        }
        Ok(bound("a step of decoding", bytes))
    }

    /// Memory that the CPU's allocator keeps of an earlier part of the phase. A GPU's pool gives it to the next one.
    ///
    /// Measured with 0.35, 3.7 and 30 M parameters (`rlf-bench memory`): the peak is the cache and about half of an update's
    /// activations, although they do not exist at once.
    fn kept(&self, part: &MemoryPart) -> Option<MemoryPart> {
        (self.processor == Processor::Cpu).then(|| bound(ALLOCATOR, part.bytes / 2))
    }
}

/// Policies that are models of plugins or users.
#[derive(Default)]
struct PlannedModels {
    weights: u64,
    caches: u64,
    not_counted: Vec<String>,
}

/// The weights and caches of models: checkpoints, or the run's own weights, whose shape is `own`. `shared` is true if the
/// frozen weights of the policy in training can be those of models, too.
fn models(config: &RunConfig, own: &Qwen3Config, shared: bool) -> PlannedModels {
    let mut planned = PlannedModels::default();
    let mut seen = BTreeSet::new();
    for (name, model) in config.asked_models() {
        let Some(policy) = &model.policy else {
            continue;
        };
        let read = match &policy.checkpoint {
            Some(folder) => {
                let adapter = policy.adapter.as_deref().map(LoraConfig::of_adapter);
                Qwen3Config::load(folder).and_then(|shape| Ok((shape, adapter.transpose()?)))
            }
            None => Ok((own.clone(), config.model.lora.clone())),
        };
        let (shape, lora) = match read {
            Ok(read) => read,
            Err(error) => {
                planned
                    .not_counted
                    .push(format!("models.{name}.policy: {error}"));
                continue;
            }
        };
        let memory = |lora: Option<&LoraConfig>| {
            PolicyMemory::new(&shape, lora, Processor::Cpu, Precision::F32)
        };
        // Policies with the same weights share them. Those of a run share its frozen weights, if it has some.
        let shares = match &policy.checkpoint {
            Some(folder) => !seen.insert(Some(same_path(folder))),
            None => lora.is_some() && (shared || !seen.insert(None)),
        };
        if !shares {
            planned.weights += memory(None).weights();
        }
        planned.weights += lora.map_or(0, |lora| memory(Some(&lora)).copy());
        planned.caches += memory(None).cache(cache_tokens(policy));
    }
    planned
}

/// Groups of earlier steps that a step trains on, at most.
pub(super) fn replayed_groups(rl: &RlConfig) -> usize {
    let buffer = rl.replay_buffer.as_ref();
    buffer.map_or(0, |buffer| {
        let played = (rl.prompts_per_step as u64).saturating_mul(buffer.max_age);
        (buffer.groups_per_step).min(usize::try_from(played).unwrap_or(usize::MAX))
    })
}

fn certain(name: &'static str, bytes: u64) -> MemoryPart {
    MemoryPart {
        name,
        bytes,
        is_bound: false,
    }
}

fn bound(name: &'static str, bytes: u64) -> MemoryPart {
    MemoryPart {
        name,
        bytes,
        is_bound: true,
    }
}

/// The parts that take memory.
fn present(parts: impl IntoIterator<Item = MemoryPart>) -> Vec<MemoryPart> {
    parts.into_iter().filter(|part| part.bytes > 0).collect()
}

fn sum(parts: &[MemoryPart]) -> u64 {
    parts.iter().map(|part| part.bytes).sum()
}
