//! A model's parameters: their names, their layouts in memory, and their places in a Hugging Face checkpoint.
//!
//! In memory, projections are `[in, out]`, those that read the same input are one parameter, and the embedding is
//! `[hidden, vocabulary]`. On disk they are separate and `[out, in]`, with Hugging Face's names.

use candle_core::{Device, Result, Tensor, Var};
use rayon::prelude::*;

use crate::config::Qwen3Config;
use rlf_random::{Key, Purpose};

/// One tensor of a checkpoint, and the block of a parameter that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) name: String,
    /// The place of its first number in the parameter.
    pub(crate) offset: usize,
    /// `[out, in]`, or `[width]`.
    pub(crate) shape: Vec<usize>,
}

/// The initial values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Start {
    Ones,
    Zeros,
    Normal {
        deviation: f64,
    },
    /// From `-bound` to `bound`.
    Uniform {
        bound: f64,
    },
}

/// One parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// `[in, out]`, or `[width]`.
    pub(crate) shape: Vec<usize>,
    pub(crate) start: Start,
    pub(crate) stored: Vec<Stored>,
}

impl Parameter {
    fn norm(name: String, width: usize) -> Self {
        let stored = Stored {
            name: name.clone(),
            offset: 0,
            shape: vec![width],
        };
        Self {
            name,
            shape: vec![width],
            start: Start::Ones,
            stored: vec![stored],
        }
    }

    fn matrix(name: String, inputs: usize, deviation: f64, parts: &[(String, usize)]) -> Self {
        let mut column = 0;
        let stored = parts
            .iter()
            .map(|(name, outputs)| {
                let from = column;
                column += outputs;
                Stored {
                    name: name.clone(),
                    offset: from,
                    shape: vec![*outputs, inputs],
                }
            })
            .collect();
        Self {
            name,
            shape: vec![inputs, column],
            start: Start::Normal { deviation },
            stored,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Initial numbers, in this parameter's layout. They depend on the seed, the stored tensor's name and the place in
    /// it, and so not on how parameters are laid out or ordered here.
    pub(crate) fn initial(&self, seed: u64) -> Vec<f32> {
        let mut out = vec![0.0; self.len()];
        for stored in &self.stored {
            let key = Key::new(seed, Purpose::Weights).named(&stored.name);
            let number = |index: u64| match self.start {
                Start::Ones => 1.0,
                Start::Zeros => 0.0,
                Start::Normal { deviation } => (key.normal(index) * deviation) as f32,
                Start::Uniform { bound } => ((2.0 * key.uniform(index) - 1.0) * bound) as f32,
            };
            let numbers: Vec<f32> = (0..stored.shape.iter().product::<usize>())
                .into_par_iter()
                .map(|index| number(index as u64))
                .collect();
            self.copy_into(stored, &numbers, &mut out);
        }
        out
    }

    /// Copies a stored tensor's numbers into their block of this parameter.
    pub(crate) fn copy_into(&self, stored: &Stored, numbers: &[f32], out: &mut [f32]) {
        let [outputs, inputs] = stored.shape[..] else {
            out.copy_from_slice(numbers);
            return;
        };
        let columns = self.shape[1];
        transpose(
            numbers,
            (outputs, inputs),
            inputs,
            &mut out[stored.offset..],
            columns,
        );
    }

    /// The opposite of [`Self::copy_into`]: the numbers of a stored tensor.
    pub(crate) fn take(&self, stored: &Stored, numbers: &[f32]) -> Vec<f32> {
        let [outputs, inputs] = stored.shape[..] else {
            return numbers.to_vec();
        };
        let mut out = vec![0.0; outputs * inputs];
        transpose(
            &numbers[stored.offset..],
            (inputs, outputs),
            self.shape[1],
            &mut out,
            inputs,
        );
        out
    }
}

/// Computes `out[c, r] = from[r, c]`, in square pieces that stay in the cache.
fn transpose(
    from: &[f32],
    (rows, columns): (usize, usize),
    from_stride: usize,
    out: &mut [f32],
    out_stride: usize,
) {
    const PIECE: usize = 32;
    for r0 in (0..rows).step_by(PIECE) {
        for c0 in (0..columns).step_by(PIECE) {
            for r in r0..rows.min(r0 + PIECE) {
                for c in c0..columns.min(c0 + PIECE) {
                    out[c * out_stride + r] = from[r * from_stride + c];
                }
            }
        }
    }
}

/// Number of parameters of a layer.
pub(crate) const PER_LAYER: usize = 8;

/// All parameters, in the order of gradients and optimiser state.
pub(crate) fn parameters(config: &Qwen3Config) -> Vec<Parameter> {
    let hidden = config.hidden_size;
    let deviation = config.initializer_range;
    let into_residual = deviation / (2.0 * config.num_hidden_layers as f64).sqrt();
    let (q, kv) = (
        config.attention_width(),
        config.num_key_value_heads * config.head_dim,
    );
    let single = |name: String, inputs, outputs, deviation| {
        Parameter::matrix(name.clone(), inputs, deviation, &[(name, outputs)])
    };
    // On disk the embedding is [vocabulary, hidden], so it is read as the [out, in] of a map from hidden to vocabulary.
    let mut all = vec![single(
        "model.embed_tokens.weight".to_owned(),
        hidden,
        config.vocab_size,
        deviation,
    )];
    for layer in 0..config.num_hidden_layers {
        let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
        all.extend([
            Parameter::norm(name("input_layernorm"), hidden),
            Parameter::matrix(
                name("self_attn.qkv_proj"),
                hidden,
                deviation,
                &[
                    (name("self_attn.q_proj"), q),
                    (name("self_attn.k_proj"), kv),
                    (name("self_attn.v_proj"), kv),
                ],
            ),
            Parameter::norm(name("self_attn.q_norm"), config.head_dim),
            Parameter::norm(name("self_attn.k_norm"), config.head_dim),
            single(name("self_attn.o_proj"), q, hidden, into_residual),
            Parameter::norm(name("post_attention_layernorm"), hidden),
            Parameter::matrix(
                name("mlp.gate_up_proj"),
                hidden,
                deviation,
                &[
                    (name("mlp.gate_proj"), config.intermediate_size),
                    (name("mlp.up_proj"), config.intermediate_size),
                ],
            ),
            single(
                name("mlp.down_proj"),
                config.intermediate_size,
                hidden,
                into_residual,
            ),
        ]);
    }
    all.push(Parameter::norm("model.norm.weight".to_owned(), hidden));
    if !config.tie_word_embeddings {
        all.push(single(
            HEAD.to_owned(),
            hidden,
            config.vocab_size,
            deviation,
        ));
    }
    all
}

/// The parameters by their place in the network: views of the same storage, tracked for gradients or not.
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    pub(crate) embedding: Tensor,
    pub(crate) layers: Vec<LayerWeights>,
    pub(crate) norm: Tensor,
    /// `[hidden, vocabulary]`; the embedding itself if tied.
    pub(crate) head: Tensor,
}

/// One decoder layer.
#[derive(Debug, Clone)]
pub(crate) struct LayerWeights {
    pub(crate) input_norm: Tensor,
    pub(crate) qkv: LinearWeights,
    pub(crate) q_norm: Tensor,
    pub(crate) k_norm: Tensor,
    pub(crate) out: LinearWeights,
    pub(crate) post_norm: Tensor,
    pub(crate) gate_up: LinearWeights,
    pub(crate) down: LinearWeights,
}

/// A linear layer.
#[derive(Debug, Clone)]
pub(crate) struct LinearWeights {
    /// `[in, out]`.
    pub(crate) w: Tensor,
    pub(crate) adapter: Option<AdapterWeights>,
}

/// The adapter of a linear layer: see [`crate::lora`].
#[derive(Debug, Clone)]
pub(crate) struct AdapterWeights {
    /// `[in, rank]`.
    pub(crate) down: FactoredWeight,
    /// `[rank, out]`.
    pub(crate) up: FactoredWeight,
}

/// A weight that products read times a constant.
#[derive(Debug, Clone)]
pub(crate) struct FactoredWeight {
    pub(crate) w: Tensor,
    pub(crate) factor: Option<Tensor>,
}

impl FactoredWeight {
    /// The weight times its factor, on the weight's tape.
    pub(crate) fn product(&self) -> Result<Tensor> {
        match &self.factor {
            Some(factor) => self.w.broadcast_mul(factor),
            None => Ok(self.w.clone()),
        }
    }
}

impl Weights {
    /// The weights of a model. `adapter` gives the adapter of the parameter with an index, if it has one.
    pub(crate) fn new(
        config: &Qwen3Config,
        variables: &[Var],
        view: impl Fn(&Var) -> Tensor,
        adapter: impl Fn(usize) -> Option<AdapterWeights>,
    ) -> Self {
        let layers: Vec<LayerWeights> = (0..config.num_hidden_layers)
            .map(|number| {
                let first = 1 + PER_LAYER * number;
                let weight = |place: usize| view(&variables[first + place]);
                let linear = |place: usize| LinearWeights {
                    w: weight(place),
                    adapter: adapter(first + place),
                };
                LayerWeights {
                    input_norm: weight(0),
                    qkv: linear(1),
                    q_norm: weight(2),
                    k_norm: weight(3),
                    out: linear(4),
                    post_norm: weight(5),
                    gate_up: linear(6),
                    down: linear(7),
                }
            })
            .collect();
        let after = 1 + PER_LAYER * config.num_hidden_layers;
        Self {
            embedding: view(&variables[0]),
            layers,
            norm: view(&variables[after]),
            head: view(&variables[head_index(config)]),
        }
    }
}

/// The name of the vocabulary head on disk.
pub(crate) const HEAD: &str = "lm_head.weight";

/// The index of the vocabulary head's parameter.
pub(crate) fn head_index(config: &Qwen3Config) -> usize {
    if config.tie_word_embeddings {
        0
    } else {
        2 + PER_LAYER * config.num_hidden_layers
    }
}

/// A variable of a parameter's shape.
pub(crate) fn variable(parameter: &Parameter, numbers: Vec<f32>, device: &Device) -> Result<Var> {
    Var::from_vec(numbers, parameter.shape.clone(), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(tie: bool) -> Qwen3Config {
        Qwen3Config {
            vocab_size: 50,
            hidden_size: 16,
            intermediate_size: 40,
            num_hidden_layers: 2,
            num_attention_heads: 4,
            num_key_value_heads: 2,
            head_dim: 8,
            max_position_embeddings: 64,
            rms_norm_eps: 1e-6,
            rope_theta: 1e4,
            tie_word_embeddings: tie,
            initializer_range: 0.02,
        }
    }

    #[test]
    fn the_stored_tensors_are_those_of_transformers() {
        for (tie, count) in [(true, 2 * 11 + 2), (false, 2 * 11 + 3)] {
            let all = parameters(&config(tie));
            let stored: Vec<&Stored> = all.iter().flat_map(|parameter| &parameter.stored).collect();
            assert_eq!(stored.len(), count);
            let k = stored
                .iter()
                .find(|s| s.name == "model.layers.1.self_attn.k_proj.weight")
                .unwrap();
            assert_eq!((k.shape.as_slice(), k.offset), (&[16, 16][..], 32));
            let numbers: usize = all.iter().map(Parameter::len).sum();
            assert_eq!(numbers, config(tie).parameter_count());
        }
    }

    #[test]
    fn what_is_put_is_what_is_taken() {
        for parameter in parameters(&config(false)) {
            let numbers: Vec<f32> = (0..parameter.len()).map(|i| i as f32).collect();
            let mut again = vec![0.0; parameter.len()];
            for stored in &parameter.stored {
                parameter.copy_into(stored, &parameter.take(stored, &numbers), &mut again);
            }
            assert_eq!(again, numbers, "{}", parameter.name);
        }
    }

    #[test]
    fn initial_weights_depend_on_the_seed_and_have_the_deviation_asked_for() {
        let qkv = &parameters(&config(true))[2];
        assert_eq!(qkv.initial(1), qkv.initial(1));
        assert_ne!(qkv.initial(1), qkv.initial(2));
        let numbers = qkv.initial(1);
        let square =
            numbers.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / numbers.len() as f64;
        assert!(
            (square.sqrt() / 0.02 - 1.0).abs() < 0.1,
            "{}",
            square.sqrt()
        );
    }
}
