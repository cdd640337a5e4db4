//! Models and sequences for tests.

use std::path::Path;

use candle_core::Device;
use rlf_policy::measure::quickstart_shape;
use rlf_policy::{
    AdamW, Key, LoraConfig, Model, OptimizerConfig, PackedBatch, PassOptions, Purpose, Qwen3Config,
    Sequence,
};

/// The quickstart's shape, with a larger vocabulary and larger weights.
pub(crate) fn quickstart() -> Qwen3Config {
    Qwen3Config {
        vocab_size: 461,
        initializer_range: 0.05,
        ..quickstart_shape()
    }
}

/// The next size up.
pub(crate) fn small() -> Qwen3Config {
    Qwen3Config {
        vocab_size: 512,
        hidden_size: 128,
        intermediate_size: 384,
        num_hidden_layers: 4,
        head_dim: 32,
        ..quickstart()
    }
}

/// One layer of Qwen3-0.6B with part of its vocabulary.
pub(crate) fn qwen3_06b_slice() -> Qwen3Config {
    Qwen3Config {
        vocab_size: 2048,
        hidden_size: 1024,
        intermediate_size: 3072,
        num_hidden_layers: 1,
        num_attention_heads: 16,
        num_key_value_heads: 8,
        head_dim: 128,
        rope_theta: 1e6,
        initializer_range: 0.03,
        ..quickstart()
    }
}

/// Small enough for numeric gradients; a group of three queries and an untied head.
pub(crate) fn tiny() -> Qwen3Config {
    Qwen3Config {
        vocab_size: 40,
        hidden_size: 16,
        intermediate_size: 24,
        num_hidden_layers: 2,
        num_attention_heads: 3,
        num_key_value_heads: 1,
        head_dim: 8,
        tie_word_embeddings: false,
        initializer_range: 0.3,
        ..quickstart()
    }
}

pub(crate) fn cpu(config: &Qwen3Config) -> Model {
    let model = Model::init(config, 11, &Device::Cpu).unwrap();
    // Norm weights start as ones; other values reveal mistakes that ones hide.
    for (index, (name, variable)) in model.parameters().enumerate() {
        if name.contains("norm") {
            let key = Key::new(3, Purpose::Test).at(index as u64);
            let numbers = (0..variable.elem_count() as u64)
                .map(|i| 1.0 + 0.3 * key.normal(i) as f32)
                .collect::<Vec<_>>();
            let tensor =
                candle_core::Tensor::from_vec(numbers, variable.shape(), &Device::Cpu).unwrap();
            variable.set(&tensor).unwrap();
        }
    }
    model
}

/// A model with adapters that one large step has trained, so that they change what it computes.
pub(crate) fn adapted(config: &Qwen3Config, lora: &LoraConfig) -> Model {
    let model = cpu(config).with_lora(lora, 4, Path::new("base")).unwrap();
    let mut optimizer = AdamW::new(&model, OptimizerConfig::default()).unwrap();
    train(&model, &mut optimizer, 0.02);
    model
}

/// One step of a model on a sequence.
pub(crate) fn train(model: &Model, optimizer: &mut AdamW, learning_rate: f64) {
    let batch = pack(&[ids(8, 30, model.vocabulary())]);
    let done = model
        .accumulate(&[batch], &PassOptions::default(), |_, tokens| {
            Ok((tokens.log_probs.mean_all()?.neg()?, ()))
        })
        .unwrap();
    optimizer
        .step(model, &done.gradients, learning_rate)
        .unwrap();
}

/// A sequence of pseudo-random ids.
pub(crate) fn ids(seed: u64, len: usize, vocabulary: usize) -> Vec<u32> {
    let key = Key::new(seed, Purpose::Test).named("ids");
    (0..len as u64)
        .map(|i| key.below(i, vocabulary as u64) as u32)
        .collect()
}

/// A mask of every token after the first.
pub(crate) fn all_but_first(len: usize) -> Vec<bool> {
    (0..len).map(|i| i > 0).collect()
}

pub(crate) fn pack(sequences: &[Vec<u32>]) -> PackedBatch {
    let masks: Vec<Vec<bool>> = sequences
        .iter()
        .map(|ids| all_but_first(ids.len()))
        .collect();
    let sequences: Vec<Sequence<'_>> = sequences
        .iter()
        .zip(&masks)
        .map(|(ids, mask)| Sequence { ids, mask })
        .collect();
    PackedBatch::new(&sequences).unwrap()
}

pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}
