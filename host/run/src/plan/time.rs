//! An estimate of the time of a step, from the operations of the policy and the speed of the machine.
//!
//! The shares of the machine's speed that training and decoding reach are constants, which docs/performance.md and
//! docs/cuda.md explain. Tools, environments, rewards and evaluations are not counted.

use rlf_policy::{Operations, PolicyMemory, Precision, Processor, Qwen3Config};
use rlf_train::config::RlConfig;

use super::lengths::Lengths;
use super::machine::Speed;
use super::phases::replayed_groups;
use crate::config::RunConfig;

/// Share of the speed of matrix products that training reaches on the CPU: 99 to 138 GFLOP/s of about 300 on two cores.
const TRAINING_ON_CPU: f64 = 0.4;
/// The same for decoding of 64 sequences: 73 to 137 GFLOP/s.
const DECODING_ON_CPU: f64 = 0.3;
/// The same for training in bf16: 0.35 to 0.76.
const TRAINING_ON_CPU_IN_BF16: f64 = 0.35;
/// The same for decoding in bf16: 0.16 to 0.38 with 64 sequences.
const DECODING_ON_CPU_IN_BF16: f64 = 0.2;
/// Share of a GPU's stated speed that training reaches in f32: 36 of 67 TFLOP/s, on an H200.
const TRAINING_IN_F32: f64 = 0.54;
/// The same in bf16 from 1.7B on: 356 and 373 of 989 TFLOP/s.
const TRAINING_IN_BF16: f64 = 0.37;
/// The same below [`LARGE`]: 226 of 989 TFLOP/s at 0.6B.
const TRAINING_SMALL_IN_BF16: f64 = 0.23;
/// Parameters from which a model is large enough for [`TRAINING_IN_BF16`].
const LARGE: usize = 1_000_000_000;
/// Seconds that a step of decoding takes on a GPU for each layer, besides reading the weights: 2.1 ms for 28 layers.
const LAYER_SECONDS: f64 = 75e-6;
/// Share of a GPU's stated speed that the rows of a step of decoding reach beyond that: from 64 sequences on an H200.
const DECODING_ON_GPU: f64 = 0.25;

/// The estimated seconds of the parts of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepTimes {
    /// A step of SFT; none without SFT.
    pub sft: Option<f64>,
    /// The trajectories of a step of RL, with all rounds of `rl.refill`; none without RL, or with an external engine.
    pub rollout: Option<f64>,
    /// The updates of a step of RL.
    pub update: Option<f64>,
    /// A step of RL with both. With `rl.staleness`, a GPU does one beside the other, so it is the longer of the two. A
    /// CPU's cores do all the work one way or the other. None if one of the two is.
    pub rl_step: Option<f64>,
}

impl StepTimes {
    /// The times of the steps of `config` with a policy of this shape.
    pub(super) fn new(
        config: &RunConfig,
        shape: &Qwen3Config,
        speed: Speed,
        lengths: Lengths,
    ) -> Self {
        let operations = Operations::new(shape);
        let clock = Clock {
            shape,
            operations: if config.model.lora.is_some() {
                operations.with_frozen_weights()
            } else {
                operations
            },
            precision: config.precision,
            speed,
            lengths,
        };
        let sft = config.sft.as_ref().filter(|sft| sft.steps > 0);
        let rl = config.rl.as_ref().filter(|rl| rl.steps > 0);
        let rollout = (rl.filter(|_| config.external_engine.is_none())).map(|rl| {
            // Trajectories that have no room in the cache wait.
            let group = group(rl);
            let own = lengths.tokens - lengths.prompt + lengths.prompt / group;
            let room = config.cache_tokens() / own.max(1);
            let slots = config.engine.slots.min(room);
            clock.rollout(slots, trajectories(rl), group)
        });
        let update = rl.map(|rl| clock.update(rl));
        let is_on_gpu = matches!(speed, Speed::Gpu { .. });
        let overlap = is_on_gpu && rl.is_some_and(|rl| rl.staleness > 0);
        let both = |(rollout, update): (f64, f64)| {
            if overlap {
                rollout.max(update)
            } else {
                rollout + update
            }
        };
        Self {
            sft: sft.map(|sft| {
                let targets = if sft.prompt_loss_weight > 0.0 {
                    lengths.tokens
                } else {
                    lengths.written
                };
                let checkpointing = sft.recomputes();
                let one = (clock.operations).training(lengths.tokens, targets, checkpointing);
                sft.batch_size as f64 * one / clock.training_rate()
            }),
            rollout,
            update,
            rl_step: rollout.zip(update).map(both),
        }
    }
}

/// Trajectories that a step plays for each task.
fn group(rl: &RlConfig) -> usize {
    (rl.group_size + usize::from(rl.estimator().needs_baseline())).max(1)
}

/// Trajectories that a step plays, at most: with `rl.refill`, each round replaces all tasks.
fn trajectories(rl: &RlConfig) -> usize {
    let rounds = 1 + rl.refill as usize;
    rounds * rl.prompts_per_step * group(rl)
}

struct Clock<'a> {
    shape: &'a Qwen3Config,
    operations: Operations,
    precision: Precision,
    speed: Speed,
    lengths: Lengths,
}

impl Clock<'_> {
    /// Operations per second of training, with the optimiser's steps.
    fn training_rate(&self) -> f64 {
        let share = match (self.speed, self.precision) {
            (Speed::Cpu { .. }, Precision::F32) => TRAINING_ON_CPU,
            (Speed::Cpu { .. }, Precision::Bf16) => TRAINING_ON_CPU_IN_BF16,
            (Speed::Gpu { .. }, Precision::F32) => TRAINING_IN_F32,
            (Speed::Gpu { .. }, Precision::Bf16) => {
                if self.shape.parameter_count() < LARGE {
                    TRAINING_SMALL_IN_BF16
                } else {
                    TRAINING_IN_BF16
                }
            }
        };
        share * self.speed.products(self.precision)
    }

    fn update(&self, rl: &RlConfig) -> f64 {
        let Lengths {
            tokens, written, ..
        } = self.lengths;
        let checkpointing = rl.recomputes();
        let training = self.operations.training(tokens, written, checkpointing);
        // Of the reference policy, for the log-probabilities of training, and for the values of a critic.
        let forwards = [
            rl.kl_coefficient != 0.0,
            rl.importance_cap.is_some(),
            rl.estimator().needs_values(),
        ];
        let forwards = forwards.into_iter().filter(|is_made| *is_made).count();
        let forward = self.operations.forward(tokens, written);
        let played = rl.epochs as f64 * training + forwards as f64 * forward;
        // Replayed trajectories always need the log-probabilities of training.
        let is_uncorrected = f64::from(u8::from(rl.importance_cap.is_none()));
        let replayed = played + is_uncorrected * forward;
        let groups = rl.prompts_per_step as f64 * played + replayed_groups(rl) as f64 * replayed;
        groups * rl.group_size as f64 / self.training_rate()
    }

    /// The time of trajectories in groups of this size, which read their prompt once.
    fn rollout(&self, slots: usize, trajectories: usize, group: usize) -> f64 {
        let Lengths {
            tokens,
            written,
            prompt,
        } = self.lengths;
        let repeated = trajectories as f64 * (1.0 - 1.0 / group as f64);
        let shared = repeated * self.operations.forward(prompt, 0);
        let products = self.speed.products(self.precision);
        let Speed::Gpu { bandwidth, .. } = self.speed else {
            let forward = self.operations.forward(tokens, written);
            let share = match self.precision {
                Precision::F32 => DECODING_ON_CPU,
                Precision::Bf16 => DECODING_ON_CPU_IN_BF16,
            };
            return (trajectories as f64 * forward - shared) / (share * products);
        };
        let memory = PolicyMemory::new(self.shape, None, Processor::Cuda, self.precision);
        let read = match self.precision {
            Precision::F32 => memory.weights(),
            Precision::Bf16 => memory.operands(),
        };
        let rows = slots.min(trajectories).max(1);
        let row = self.operations.forward(1, 1) / (DECODING_ON_GPU * products);
        // On average, half of a sequence is in the cache.
        let cached = memory.cache(tokens) as f64 / 2.0;
        let pass = self.shape.num_hidden_layers as f64 * LAYER_SECONDS
            + read as f64 / bandwidth
            + rows as f64 * (row + cached / bandwidth);
        let passes = written as f64 * trajectories as f64 / rows as f64;
        let prompts = trajectories as f64 * self.operations.forward(tokens - written, 0) - shared;
        passes * pass + prompts / self.training_rate()
    }
}

#[cfg(test)]
mod tests {
    use rlf_policy::PublishedShape;

    use super::super::machine::PlannedMachine;
    use super::*;

    fn clock(shape: &Qwen3Config, lengths: Lengths) -> Clock<'_> {
        Clock {
            shape,
            operations: Operations::new(shape),
            precision: Precision::Bf16,
            speed: PlannedMachine::named("h200").unwrap().speed.unwrap(),
            lengths,
        }
    }

    /// The figures of docs/cuda.md: training 16 x 1,024, decoding 1 and 64 sequences after prompts of 128 tokens.
    #[test]
    fn estimates_are_near_what_an_h200_was_measured_to_do() {
        for (shape, training, decoding) in [
            (PublishedShape::Qwen3_0_6B, 64_277.0, [553.0, 23_204.0]),
            (PublishedShape::Qwen3_1_7B, 36_037.0, [424.0, 17_360.0]),
            (PublishedShape::Qwen3_4B, 15_936.0, [248.0, 8_080.0]),
        ] {
            let config = shape.config();
            let lengths = Lengths {
                tokens: 192,
                written: 64,
                prompt: 128,
            };
            for (sequences, measured) in [1, 64].into_iter().zip(decoding) {
                let seconds = clock(&config, lengths).rollout(64, sequences, 1);
                let ratio = 64.0 * sequences as f64 / seconds / measured;
                assert!(
                    (0.7..1.0).contains(&ratio),
                    "{shape:?}: {ratio} of {measured} tokens/s"
                );
            }
            let clock = clock(&config, lengths);
            let operations = clock.operations.training(1024, 1023, false);
            let ratio = 1024.0 / (operations / clock.training_rate()) / training;
            assert!(
                (0.7..1.0).contains(&ratio),
                "{shape:?}: {ratio} of the measured speed"
            );
        }
    }
}
