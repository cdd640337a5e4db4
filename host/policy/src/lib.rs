//! The policy: Qwen3 in candle, trained and decoded by one implementation.
//!
//! # Why
//!
//! Trainers in this field decode with one engine, train with another, and correct for the difference. Here, on the CPU,
//! the log-probability recorded when a token is sampled *is* the one that training computes, bit for bit. It does not
//! depend on the sequences decoded beside it, on the packing, or on the number of threads. The reasons are in the modules:
//! [`ops::linear`] (one matrix product), [`ops::attention`] (the order of every sum), [`ops::head`] (one log-probability),
//! [`mod@grad`] (gradients summed in index order) and [`rlf_random`] (no hidden state).
//!
//! # What it must not know
//!
//! Tools, tasks, rewards and losses. It takes token ids and masks, and returns log-probabilities and gradients.
//!
//! | looking for | module |
//! |---|---|
//! | the network, forward and backward, for every device | `qwen3` |
//! | its operators on the CPU and on CUDA; the choice between them | `cpu` and [`ops`], `cuda`; `on_network` |
//! | the same network in candle's operators, the reference | `plain_network`, `tape` |
//! | weights, shape and vocabulary of a model | `model`, `weights`, `config` |
//! | packed sequences and micro-batches | `batch` |
//! | log-probabilities without and with gradients; the sum of gradients | `pass`, [`mod@grad`]; `gradient_sum` |
//! | values of tokens, for a critic | `value_head` |
//! | adapters of low rank, in memory and on disk | `lora`, `adapter_files` |
//! | the optimiser, its settings and schedule | `optimizer` |
//! | decoding with a KV cache, and sampling | `decode`, `sample` |
//! | weights on disk, in Hugging Face's format; the files of tensors in it | `hugging_face`, `generation`; `tensor_file` |
//! | processors, GPUs and their facts | `device` |
//! | the memory and the operations of a policy, before anything is loaded | `memory`, `operations`; `blocks` on CUDA |
//! | the shapes of published models | `shapes` |
//! | a made-up batch, to measure speed | [`measure`] |
//! | vector instructions; work shared by threads in a fixed order | `simd`, `in_order` |
//! | errors | `error` |
//!
//! # Example
//!
//! ```
//! use candle_core::{DType, Device, Tensor};
//! use rlf_policy::{AdamW, OptimizerConfig, Decoder, Draw, DrawKey, Entry, Model, PackedBatch, PassOptions, Purpose};
//! use rlf_policy::{Qwen3Config, Sampler, SamplingParams, Sequence};
//!
//! # fn main() -> Result<(), rlf_policy::PolicyError> {
//! let config = Qwen3Config {
//!     vocab_size: 32, hidden_size: 16, intermediate_size: 32, num_hidden_layers: 1, num_attention_heads: 2,
//!     num_key_value_heads: 1, head_dim: 8, max_position_embeddings: 64, rms_norm_eps: 1e-6, rope_theta: 1e4,
//!     tie_word_embeddings: true, initializer_range: 0.05,
//! };
//! let model = Model::init(&config, 0, &Device::Cpu)?;
//!
//! // Decode: read a prompt into sequence 0, draw the next token. The cache has room for 256 tokens.
//! let sampler = Sampler::new(SamplingParams::default(), 0, Purpose::Rollout)?;
//! let mut decoder = Decoder::new(&model, 256, 64, 1)?;
//! let key = DrawKey { step: 0, task: 0, sample: 0, position: 3 };
//! let prompt = Entry { sequence: 0, start: 0, tokens: &[1, 2, 3] };
//! let drawn = decoder.sample(&model, &[prompt], &[Some(Draw { sampler, key })])?;
//! let drawn = drawn[0].expect("one draw was asked for");
//!
//! // Train on it: the log-probability is the recorded one, exactly.
//! let ids = [1, 2, 3, drawn.id];
//! let batch = PackedBatch::new(&[Sequence { ids: &ids, mask: &[false, false, false, true] }])?;
//! let done = model.accumulate(&[batch], &PassOptions::default(), |_, tokens| {
//!     let recorded = tokens.log_probs.to_vec1::<f32>()?[0];
//!     Ok((tokens.log_probs.sum_all()?.neg()?, recorded))
//! })?;
//! assert_eq!(done.outputs[0].to_bits(), drawn.log_prob.to_bits());
//! AdamW::new(&model, OptimizerConfig::default())?.step(&model, &done.gradients, 1e-3)?;
//! # Ok(()) }
//! ```

// Modules' documentation is the specification of what they do inside, and names it.
#![allow(rustdoc::private_intra_doc_links)]

mod adapter_files;
mod batch;
mod blocks;
mod config;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod cuda_network;
mod decode;
mod device;
mod error;
mod generation;
pub mod grad;
mod gradient_sum;
mod hugging_face;
mod in_order;
#[cfg(test)]
mod kernel_tests;
mod lora;
pub mod measure;
mod memory;
mod model;
mod on_network;
mod operations;
pub mod ops;
mod optimizer;
mod pass;
mod plain_network;
mod qwen3;
mod sample;
mod shapes;
mod simd;
mod tape;
mod tensor_file;
mod value_head;
mod weights;

pub use batch::{PackedBatch, Sequence, micro_batches};
pub use config::Qwen3Config;
pub use decode::{Decoder, Entry, PAGE_TOKENS};
pub use device::{
    CpuFacts, DeviceChoice, DeviceFacts, NoCuda, Processor, cpu_facts, cuda_status, device_facts,
    machine_memory, open_device,
};
pub use error::{InvalidSetting, PolicyError, Result};
pub use generation::GenerationConfig;
pub use grad::{Accumulated, Gradients};
pub use hugging_face::SaveOptions;
pub use lora::{LoraConfig, Projection, holds_adapters};
pub use memory::{PassMemory, PolicyMemory};
pub use model::{Model, Operators, Precision};
pub use operations::Operations;
pub use optimizer::{AdamW, OptimizerConfig, Schedule, StepReport, Trainable};
pub use pass::{PassOptions, TokenStats};
pub use rlf_random::{Key, Purpose};
pub use sample::{Draw, DrawKey, Sampled, Sampler, SamplingParams};
pub use shapes::PublishedShape;
pub use tensor_file::StoredDtype;
pub use value_head::ValueHead;
