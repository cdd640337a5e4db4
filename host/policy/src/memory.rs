//! The memory that a policy takes, before anything is loaded.
//!
//! A pass is not described a second time here. It runs through [`crate::qwen3`] and [`crate::grad`] with a backend that
//! allocates nothing and counts what the CPU or CUDA would allocate. So a plan changes with the code. Sizes of operators'
//! scratch come from the functions that allocate it.
//!
//! Not counted: small buffers of operators (partial sums on CUDA, packed blocks of matrix products), and the memory that an
//! allocator keeps.

mod counting;

use std::rc::Rc;

use crate::batch::{PackedBatch, Sequence};
use crate::config::Qwen3Config;
use crate::decode::{PAGE_TOKENS, pages_of};
use crate::device::Processor;
use crate::error::Result;
use crate::grad::{TrainedParameters, network_pass};
use crate::lora::{AdapterLayout, LoraConfig, has_factor};
use crate::model::Precision;
use crate::ops::attention::Heads;
use crate::optimizer::MOMENTS;
use crate::pass::PassOptions;
use crate::qwen3::{Backend, Network};
use crate::weights::{Parameter, head_index, parameters};
use counting::{BF16, Counting, F32, Matrix, Meter, row_bytes};

pub use counting::PassMemory;

/// The bytes that a policy of one shape takes on one kind of device.
#[derive(Debug, Clone)]
pub struct PolicyMemory {
    config: Qwen3Config,
    processor: Processor,
    precision: Precision,
    layout: Vec<Parameter>,
    adapters: Option<AdapterLayout>,
}

impl PolicyMemory {
    /// The memory of a policy of this shape with fused operators, and with adapters if `lora` has settings of some.
    pub fn new(
        config: &Qwen3Config,
        lora: Option<&LoraConfig>,
        processor: Processor,
        precision: Precision,
    ) -> Self {
        let layout = parameters(config);
        Self {
            adapters: lora.map(|lora| AdapterLayout::new(lora, &layout)),
            config: config.clone(),
            processor,
            precision,
            layout,
        }
    }

    /// The weights, adapters among them, and the table of rotary positions. They are in f32; frozen matrices are in the
    /// precision of products.
    pub fn weights(&self) -> u64 {
        let frozen = self.adapters.as_ref().map_or(0, |_| self.frozen());
        frozen + self.trained() + self.positions()
    }

    /// Weights without adapters that never change.
    fn frozen(&self) -> u64 {
        match self.precision {
            Precision::F32 => bytes(&self.layout),
            Precision::Bf16 => {
                let (matrices, gains): (Vec<_>, Vec<_>) =
                    self.layout.iter().partition(|one| one.shape.len() > 1);
                numbers(matrices.into_iter()) * BF16 + numbers(gains.into_iter()) * F32
            }
        }
    }

    /// The copies that products read: of trained matrices in bf16, and of adapters that have a factor in any precision.
    pub fn operands(&self) -> u64 {
        let matrices = self.layout.iter().filter(|one| one.shape.len() > 1);
        let of_weights = match self.precision {
            Precision::Bf16 if self.adapters.is_none() => numbers(matrices) * BF16,
            Precision::Bf16 | Precision::F32 => 0,
        };
        of_weights + self.adapter_operands()
    }

    /// The part of [`Self::operands`] that copies adapters. In f32, products read those without a factor as they are.
    fn adapter_operands(&self) -> u64 {
        let adapters = self.adapters.as_ref().map(AdapterLayout::parameters);
        let adapters = adapters.unwrap_or_default().iter();
        match self.precision {
            Precision::F32 => numbers(adapters.filter(|one| has_factor(one))) * F32,
            Precision::Bf16 => numbers(adapters) * BF16,
        }
    }

    /// A copy of the policy as it is now that never changes, such as the reference policy of a KL term. With adapters, it
    /// shares the frozen weights.
    pub fn frozen_copy(&self) -> u64 {
        if self.adapters.is_some() {
            return self.copy();
        }
        self.frozen() + self.positions()
    }

    /// A copy of the policy as it is now, which has operands of its own. With adapters, it shares the frozen weights.
    pub fn copy(&self) -> u64 {
        let operands = if self.adapters.is_some() {
            self.adapter_operands()
        } else {
            self.operands() + self.positions()
        };
        self.trained() + operands
    }

    /// The optimiser's moments.
    pub fn moments(&self) -> u64 {
        MOMENTS as u64 * self.trained()
    }

    /// The cache of keys and values of a [`Decoder`](crate::Decoder) with room for so many tokens, in whole pages.
    pub fn cache(&self, tokens: usize) -> u64 {
        let (heads, layers) = (self.heads(), self.config.num_hidden_layers);
        let numbers = 2 * layers * heads.key_value * heads.dim;
        (pages_of(tokens) * PAGE_TOKENS * numbers) as u64
            * row_bytes(self.processor, self.precision)
    }

    /// A step of decoding that reads `rows` tokens of at most `entries` sequences, without the cache.
    pub fn decode_step(&self, rows: usize, entries: usize) -> Result<u64> {
        let meter = Rc::new(Meter::default());
        let network = self.network(&meter)?;
        let last = entries.min(rows);
        let out_width = self.heads().out_width();
        network.decode((&rows, rows), (&last, last), |_, _, _, _| {
            if self.processor == Processor::Cuda {
                // The queries, which the kernel reads beside the cache.
                network.backend.rows(rows, out_width)?;
            }
            Ok(())
        })?;
        Ok(meter.peak().bytes())
    }

    /// One micro-batch of sequences with these lengths, forwards and backwards, at its peak. `targets` is the largest number
    /// of trained tokens in a sequence.
    pub fn pass(
        &self,
        lengths: &[usize],
        targets: usize,
        checkpointing: bool,
    ) -> Result<PassMemory> {
        let batch = made_up(lengths, targets)?;
        let meter = Rc::new(Meter::default());
        let network = self.network(&meter)?;
        let options = PassOptions {
            checkpointing,
            ..PassOptions::default()
        };
        let trained = TrainedParameters {
            layout: self.trained_layout(),
            head: head_index(&self.config),
            factors: &[],
        };
        network_pass(
            &network,
            &trained,
            &batch,
            &options,
            None,
            |stats| Ok((stats.log_probs.sum_all()?, ())),
            // It goes to the sum of all micro-batches.
            |_, _| Ok(()),
        )?;
        Ok(meter.peak())
    }

    /// Bytes that a value head adds to the activations of [`Self::pass`]: the rows that predict trained tokens, the copy
    /// from which values are computed, and its gradient.
    pub fn value_rows(&self, lengths: &[usize], targets: usize) -> u64 {
        let rows = lengths
            .iter()
            .map(|length| trained_tokens(*length, targets));
        3 * (rows.sum::<usize>() * self.config.hidden_size) as u64 * F32
    }

    /// `count` micro-batches that each take `pass`, at their peak, and the sum of all gradients. Several workers may hold
    /// gradients whose turn to be added has not come, together as many as in one sum: [`crate::gradient_sum`].
    pub fn accumulate(&self, pass: PassMemory, count: usize, workers: usize) -> PassMemory {
        let at_once = match self.processor {
            Processor::Cpu => workers.clamp(1, count.max(1)),
            Processor::Cuda => 1,
        };
        let sets = if at_once > 1 { 2 } else { 1 };
        PassMemory {
            gradients: at_once as u64 * pass.gradients + sets * self.trained(),
            activations: at_once as u64 * pass.activations,
        }
    }

    /// Log-probabilities of one micro-batch without gradients, as [`Self::pass`] is asked for.
    pub fn log_probs(&self, lengths: &[usize], targets: usize) -> Result<u64> {
        let batch = made_up(lengths, targets)?;
        let meter = Rc::new(Meter::default());
        let network = self.network(&meter)?;
        let batch = network.batch(&batch)?;
        let rows = network.rows_only(&batch)?;
        let (b, head) = (&network.backend, network.head);
        b.log_probs(&rows, head, &batch.places, 1.0)?;
        Ok(meter.peak().bytes())
    }

    /// The copies that loading or saving a checkpoint makes in the host's memory: of one parameter at a time, as it is here
    /// and as it is on disk, or of its two moments.
    pub fn checkpoint_copies(&self) -> u64 {
        let largest = self.layout.iter().map(Parameter::len).max();
        2 * largest.unwrap_or(0) as u64 * F32
    }

    /// The parameters that are trained: those of adapters, or all.
    fn trained_layout(&self) -> &[Parameter] {
        let adapters = self.adapters.as_ref().map(AdapterLayout::parameters);
        adapters.unwrap_or(&self.layout)
    }

    /// The table of rotary positions.
    fn positions(&self) -> u64 {
        (self.config.max_position_embeddings * self.config.head_dim) as u64 * F32
    }

    fn trained(&self) -> u64 {
        bytes(self.trained_layout())
    }

    fn heads(&self) -> Heads {
        Heads {
            query: self.config.num_attention_heads,
            key_value: self.config.num_key_value_heads,
            dim: self.config.head_dim,
            eps: self.config.rms_norm_eps as f32,
        }
    }

    fn network(&self, meter: &Rc<Meter>) -> Result<Network<Counting>> {
        let meter = meter.clone();
        let backend = Counting::new(self.processor, self.precision, self.heads(), meter);
        let vocabulary = self.config.vocab_size;
        Ok(Network::new(
            &self.config,
            vocabulary,
            self.adapters.as_ref(),
            backend,
            |_| Ok(()),
            |_, [k, stride], n| Ok(Matrix { k, n, stride }),
        )?)
    }
}

/// The bytes of parameters in f32.
fn bytes(parameters: &[Parameter]) -> u64 {
    numbers(parameters.iter()) * F32
}

/// The numbers in parameters.
fn numbers<'a>(parameters: impl Iterator<Item = &'a Parameter>) -> u64 {
    parameters.map(Parameter::len).sum::<usize>() as u64
}

/// The trained tokens in a sequence of this length, at most `targets`. A batch needs a token that another one predicts.
fn trained_tokens(length: usize, targets: usize) -> usize {
    targets.clamp(1, length.max(2) - 1)
}

/// A batch of sequences with these lengths, of which the last tokens are trained, at most `targets` of each.
fn made_up(lengths: &[usize], targets: usize) -> Result<PackedBatch> {
    let sequences: Vec<(Vec<u32>, Vec<bool>)> = lengths
        .iter()
        .map(|length| {
            let length = (*length).max(2);
            let first = length - trained_tokens(length, targets);
            let mask = (0..length).map(|position| position >= first).collect();
            (vec![0; length], mask)
        })
        .collect();
    let borrowed: Vec<Sequence<'_>> = sequences
        .iter()
        .map(|(ids, mask)| Sequence { ids, mask })
        .collect();
    PackedBatch::new(&borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::quickstart_shape;
    use crate::shapes::PublishedShape;

    fn quickstart(processor: Processor) -> PolicyMemory {
        PolicyMemory::new(&quickstart_shape(), None, processor, Precision::F32)
    }

    #[test]
    fn weights_moments_and_operands_are_those_of_a_published_model() {
        let config = PublishedShape::Qwen3_0_6B.config();
        let memory = PolicyMemory::new(&config, None, Processor::Cuda, Precision::Bf16);
        // 596,049,920 numbers, as its model card says; 40,960 positions of 128 numbers.
        assert_eq!(memory.weights(), 4 * (596_049_920 + 40_960 * 128));
        assert_eq!(memory.moments(), 8 * 596_049_920);
        // All but the norms: 28 layers with 2 x 1,024 and 2 x 128 numbers, and 1,024 at the end.
        assert_eq!(memory.operands(), 2 * (596_049_920 - 28 * 2_304 - 1_024));
        let on_cpu = PolicyMemory::new(&config, None, Processor::Cpu, Precision::Bf16);
        assert_eq!(on_cpu.operands(), memory.operands());
        // Rows are in f32 there.
        assert_eq!(on_cpu.cache(16), 2 * memory.cache(16));
        // The embedding, twice.
        assert_eq!(memory.checkpoint_copies(), 8 * 151_936 * 1_024);
    }

    #[test]
    fn adapters_have_gradients_and_moments_and_frozen_weights_have_none() {
        let lora = LoraConfig::default();
        let shape = quickstart_shape();
        let memory = PolicyMemory::new(&shape, Some(&lora), Processor::Cpu, Precision::F32);
        let whole = quickstart(Processor::Cpu);
        // Rank 16 in three layers: A and B of queries, keys and values side by side, of the output, of gate and up, and of the
        // output of the gated unit.
        let numbers = 3 * (48 * (96 + 192) + 16 * (96 + 96) + 32 * (96 + 512) + 16 * (256 + 96));
        assert_eq!(memory.moments(), 8 * numbers);
        assert_eq!(memory.weights() - whole.weights(), 4 * numbers);
        // Products read B of the two outputs as it is: it has one block.
        let copied = numbers - 3 * (16 * 96 + 16 * 96);
        assert_eq!(memory.operands(), 4 * copied);
        assert_eq!(memory.copy(), 4 * (numbers + copied));
        let pass = |memory: &PolicyMemory| memory.pass(&[128; 4], 100, false).unwrap();
        assert!(pass(&memory).gradients < pass(&whole).gradients / 2);
    }

    #[test]
    fn the_cache_has_keys_and_values_of_every_token_in_whole_pages() {
        // Three layers, two heads of 24 numbers; 381 tokens take twelve pages of 32.
        for processor in [Processor::Cpu, Processor::Cuda] {
            assert_eq!(
                quickstart(processor).cache(381),
                2 * 3 * 2 * 24 * 12 * 32 * 4
            );
        }
    }

    #[test]
    fn a_pass_on_the_cpu_is_at_its_peak_in_the_attention_of_the_last_layer() {
        let (memory, lengths) = (quickstart(Processor::Cpu), [128; 16]);
        let pass = memory.pass(&lengths, 100, false).unwrap();
        let (tokens, targets) = (16 * 128, 16 * 100);
        let (hidden, packed, mixed, inner, layers) = (96, 192, 96, 256, 3);
        let streams = (layers + 1) * hidden; // Inputs of layers, and the gradient.
        let kept = layers * (packed + mixed + hidden + 2 * inner);
        let scratch = 2 * hidden + 2 * inner + 2 * inner + mixed + packed;
        // Picked rows, their norms, and the gradients of both.
        let rows = 4 * targets * hidden;
        let attention = 4 * 128 * 24 + 128 * 24 + 2 * 64 * 128;
        let numbers = tokens * (streams + kept + scratch) + rows + attention;
        assert_eq!(pass.activations, 4 * numbers as u64);
        // Those of the vocabulary head, and of the last layer from its end to its attention.
        let gradients = 421 * hidden + inner * hidden + hidden + 2 * inner * hidden;
        let gradients = gradients + mixed * hidden + 2 * 24;
        assert_eq!(pass.gradients, 4 * gradients as u64);
    }

    #[test]
    fn a_value_head_takes_three_rows_for_each_trained_token() {
        let memory = quickstart(Processor::Cpu);
        // The second sequence has 49 tokens that another one predicts.
        assert_eq!(memory.value_rows(&[128, 50], 100), 3 * (100 + 49) * 96 * 4);
    }

    #[test]
    fn checkpointing_keeps_the_inputs_of_layers_and_one_layers_results() {
        let memory = quickstart(Processor::Cpu);
        let bytes = |checkpointing| memory.pass(&[256; 8], 200, checkpointing).unwrap();
        let (kept, again) = (bytes(false), bytes(true));
        assert_eq!(kept.gradients, again.gradients);
        let of_layer = 4 * 8 * 256 * (192 + 96 + 96 + 512);
        assert_eq!(kept.activations - again.activations, 2 * of_layer);
    }

    #[test]
    fn bf16_halves_what_products_read_and_nothing_else() {
        let config = PublishedShape::Qwen3_0_6B.config();
        let pass = |precision| {
            let memory = PolicyMemory::new(&config, None, Processor::Cuda, precision);
            memory.pass(&[1024; 8], 512, true).unwrap()
        };
        let (full, half) = (pass(Precision::F32), pass(Precision::Bf16));
        // That of the vocabulary head stays f32, and lives as long as the pass.
        let of_head = 4 * 151_936 * 1_024;
        assert!(full.gradients >= of_head && half.gradients >= of_head);
        assert!(half.activations < full.activations);
        assert!(2 * half.activations > full.activations);
    }

    #[test]
    fn gradients_are_summed_in_one_set_and_held_in_another_if_there_are_workers() {
        let pass = PassMemory {
            gradients: 1_000,
            activations: 10,
        };
        let memory = quickstart(Processor::Cpu);
        let set = memory.trained();
        let sum = |count, workers| memory.accumulate(pass, count, workers).gradients;
        assert_eq!(sum(1, 4), 1_000 + set);
        assert_eq!(sum(8, 1), 1_000 + set);
        assert_eq!(sum(2, 2), 2_000 + 2 * set);
        assert_eq!(sum(8, 2), 2_000 + 2 * set);
        let on_cuda = quickstart(Processor::Cuda);
        assert_eq!(on_cuda.accumulate(pass, 8, 2).gradients, 1_000 + set);
    }

    #[test]
    fn sixteen_workers_have_far_less_than_sixteen_sets_of_gradients() {
        let config = PublishedShape::Qwen3_0_6B.config();
        let memory = PolicyMemory::new(&config, None, Processor::Cpu, Precision::F32);
        let pass = memory.pass(&[1024; 4], 512, false).unwrap();
        let gradients = memory.accumulate(pass, 64, 16).gradients;
        // Two sets, and the vocabulary head of each worker with a layer.
        assert!(gradients < 7 * memory.trained(), "{gradients}");
    }

    #[test]
    fn a_step_of_decoding_has_logits_for_every_sequence() {
        let memory = quickstart(Processor::Cpu);
        let one = memory.decode_step(512, 1).unwrap();
        let all = memory.decode_step(512, 512).unwrap();
        // Their normed rows, and 421 logits each.
        assert_eq!(all - one, 511 * (96 + 421) * 4);
    }

    #[test]
    fn log_probabilities_without_gradients_take_less_than_a_pass() {
        let memory = quickstart(Processor::Cpu);
        let without = memory.log_probs(&[128; 4], 100).unwrap();
        let pass = memory.pass(&[128; 4], 100, true).unwrap();
        assert!(without < pass.activations, "{without} of {pass:?}");
    }
}
