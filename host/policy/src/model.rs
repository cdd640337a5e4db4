//! A policy: its weights, its shape, and the operators that it uses.
//!
//! The network itself is in [`crate::qwen3`], and in candle's operators in [`crate::plain_network`]. Adapters, which are
//! trained instead of the weights, are in [`adapters`].

pub(crate) mod adapters;

use std::sync::Arc;

use candle_core::{DType, Device, Tensor, Var};
use serde::{Deserialize, Serialize};

use crate::batch::PackedBatch;
use crate::config::Qwen3Config;
use crate::error::{PolicyError, Result};
use crate::lora::{Adapters, LoraConfig};
use crate::ops::attention::{Attention, Heads};
use crate::ops::bf16::RoundInto;
use crate::ops::rotary::RotaryTable;
use crate::weights::{Parameter, Weights, head_index, parameters, variable};

/// The two implementations of a model's operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operators {
    /// Fused operators with their own backward pass, for the CPU and for CUDA: the default there.
    Fused,
    /// Their plain twins in candle's operators, on any device: the reference, and the default elsewhere.
    Plain,
}

/// The numbers that matrix products read. Sums, the residual stream, the optimiser's weights and its state are f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits.
    #[default]
    F32,
    /// bfloat16, with the fused operators. On the CPU, only products have it, and they are faster than in f32 if the
    /// processor has AVX512-BF16 ([`crate::CpuFacts::bf16`]).
    Bf16,
}

/// A policy: weights and the way to run them. Weights change only through an optimiser's step, in place, and never
/// during a computation with them.
pub struct Model {
    config: Qwen3Config,
    device: Device,
    operators: Operators,
    vocabulary: usize,
    /// Parameters of the whole model. With adapters they are frozen.
    parameters: Vec<Parameter>,
    /// In f32, or matrices in bf16 ([`Model::load_frozen`]).
    variables: Vec<Var>,
    /// The digest of the weights without adapters, if it was computed when they were read.
    digest: Option<String>,
    adapters: Option<Adapters>,
    tracked: Weights,
    frozen: Weights,
    precision: Precision,
    /// The operands of products, by parameter, and then those of adapters: the weights themselves, or copies of matrices
    /// that are in bf16 or have a factor.
    operands: Vec<Tensor>,
    table: Arc<RotaryTable>,
    #[cfg(feature = "cuda")]
    device_table: Arc<std::sync::OnceLock<crate::ops::rotary::DeviceTable>>,
}

impl Model {
    /// A model with initial weights drawn from `seed`: normal with the configuration's `initializer_range`.
    pub fn init(config: &Qwen3Config, seed: u64, device: &Device) -> Result<Self> {
        config.validate()?;
        let variables = parameters(config)
            .iter()
            .map(|parameter| variable(parameter, parameter.initial(seed), device))
            .collect::<candle_core::Result<_>>()?;
        Ok(Self::from_variables(config, variables, device))
    }

    pub(crate) fn from_variables(
        config: &Qwen3Config,
        variables: Vec<Var>,
        device: &Device,
    ) -> Self {
        let operators = if has_fused(device) {
            Operators::Fused
        } else {
            Operators::Plain
        };
        Self {
            config: config.clone(),
            device: device.clone(),
            operators,
            vocabulary: config.vocab_size,
            parameters: parameters(config),
            adapters: None,
            tracked: views(config, &variables, None, |variable| {
                variable.as_tensor().clone()
            }),
            frozen: views(config, &variables, None, Var::as_detached_tensor),
            precision: Precision::F32,
            operands: variables.iter().map(Var::as_detached_tensor).collect(),
            variables,
            digest: None,
            #[cfg(feature = "cuda")]
            device_table: Arc::default(),
            table: Arc::new(RotaryTable::new(
                config.head_dim,
                config.rope_theta,
                config.max_position_embeddings,
            )),
        }
    }

    /// Another handle on the same weights, for a thread that decodes. It sees every step of the optimiser.
    #[must_use]
    pub fn share(&self) -> Self {
        Self {
            config: self.config.clone(),
            device: self.device.clone(),
            operators: self.operators,
            vocabulary: self.vocabulary,
            parameters: self.parameters.clone(),
            adapters: self.adapters.clone(),
            tracked: self.tracked.clone(),
            frozen: self.frozen.clone(),
            variables: self.variables.clone(),
            digest: self.digest.clone(),
            precision: self.precision,
            operands: self.operands.clone(),
            table: self.table.clone(),
            #[cfg(feature = "cuda")]
            device_table: self.device_table.clone(),
        }
    }

    /// Makes its matrices, which were read in bf16, what products read.
    pub(crate) fn with_rounded(mut self, digest: String) -> Result<Self> {
        self.digest = Some(digest);
        self.use_precision(Precision::Bf16)?;
        Ok(self)
    }

    /// An independent model with the same weights, such as the policy that plays while training goes on. Frozen weights
    /// are shared: with adapters, only those are copied.
    pub fn copy(&self) -> Result<Self> {
        if let Some(adapters) = &self.adapters {
            let mut copy = self.share();
            copy.put_adapters(adapters.copy()?)?;
            return Ok(copy);
        }
        let variables = self
            .variables
            .iter()
            .map(|variable| Var::from_tensor(&variable.as_detached_tensor().copy()?))
            .collect::<candle_core::Result<_>>()?;
        let mut copy = Self::from_variables(&self.config, variables, &self.device);
        copy.operators = self.operators;
        copy.vocabulary = self.vocabulary;
        copy.use_precision(self.precision)?;
        // Another thread, with another stream, may read it first.
        self.device.synchronize()?;
        Ok(copy)
    }

    /// The model's shape.
    pub fn config(&self) -> &Qwen3Config {
        &self.config
    }

    /// The device of its weights.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The operators that it uses.
    pub fn operators(&self) -> Operators {
        self.operators
    }

    /// Changes the operators. The plain ones work on any device.
    ///
    /// # Errors
    /// If this device has no fused operators.
    pub fn use_operators(&mut self, operators: Operators) -> Result<()> {
        if operators == Operators::Fused && !has_fused(&self.device) {
            return Err(PolicyError::Input(
                "fused operators run on the CPU and on CUDA only".to_owned(),
            ));
        }
        if operators == Operators::Plain {
            self.needs_f32("use plain operators")?;
        }
        self.operators = operators;
        Ok(())
    }

    /// Refuses to do something with matrices that are in bf16 alone.
    pub(crate) fn needs_f32(&self, what: &str) -> Result<()> {
        let is_rounded = |variable: &Var| variable.dtype() == DType::BF16;
        if self.variables.iter().any(is_rounded) {
            return Err(PolicyError::Input(format!(
                "the model's frozen weights are in bf16 alone, so it cannot {what}; load them in f32"
            )));
        }
        Ok(())
    }

    /// The numbers that its matrix products read.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Changes the numbers that matrix products read. With bf16 the operators become the fused ones.
    ///
    /// # Errors
    /// If the device has no fused operators, or its memory is short; in f32, if the model has its weights in bf16 alone.
    pub fn use_precision(&mut self, precision: Precision) -> Result<()> {
        if precision == Precision::F32 {
            self.needs_f32("compute in f32")?;
        }
        if precision == Precision::Bf16 {
            if !has_fused(&self.device) {
                return Err(PolicyError::Input(
                    "precision = \"bf16\" needs a CPU or CUDA; write precision = \"f32\""
                        .to_owned(),
                ));
            }
            self.operators = Operators::Fused;
        }
        self.precision = precision;
        let whole = self
            .variables
            .iter()
            .map(|variable| (variable, None::<&Tensor>));
        let adapters = self.adapters.iter().flat_map(Self::factored);
        self.operands = whole
            .chain(adapters)
            .map(|(variable, factor)| self.operand(variable, factor))
            .collect::<candle_core::Result<_>>()?;
        // Another thread, with another stream, may read them first.
        self.device.synchronize()?;
        Ok(())
    }

    /// The variables of adapters, each with its factor.
    fn factored(adapters: &Adapters) -> impl Iterator<Item = (&Var, Option<&Tensor>)> {
        let factors = adapters.factors().iter().map(Option::as_ref);
        adapters.variables().iter().zip(factors)
    }

    /// The operand that products read: a variable times this factor.
    fn operand(&self, variable: &Var, factor: Option<&Tensor>) -> candle_core::Result<Tensor> {
        let mut weights = variable.as_detached_tensor();
        if let Some(factor) = factor {
            weights = weights.broadcast_mul(factor)?;
        }
        if self.copies(&weights) {
            weights.to_dtype(DType::BF16)
        } else {
            Ok(weights)
        }
    }

    /// True if products read a copy of these weights in bf16.
    fn copies(&self, weights: &Tensor) -> bool {
        self.precision == Precision::Bf16 && weights.rank() > 1
    }

    /// Brings what products read up to the weights, which an optimiser's step has changed.
    pub(crate) fn weights_changed(&self) -> candle_core::Result<()> {
        let update = |variable: &Var, factor: Option<&Tensor>, operand: &Tensor| {
            #[cfg(feature = "cuda")]
            if factor.is_none() && self.copies(variable) {
                return crate::cuda::optimizer::to_bf16(variable, operand);
            }
            if factor.is_none() && self.copies(variable) && self.device.is_cpu() {
                return operand.inplace_op2(variable, &RoundInto);
            }
            if factor.is_some() || self.copies(variable) {
                operand.slice_set(&self.operand(variable, factor)?, 0, 0)?;
            }
            Ok::<(), candle_core::Error>(())
        };
        match &self.adapters {
            Some(adapters) => {
                let operands = &self.operands[self.variables.len()..];
                for ((variable, factor), operand) in Self::factored(adapters).zip(operands) {
                    update(variable, factor, operand)?;
                }
            }
            None => {
                for (variable, operand) in self.variables.iter().zip(&self.operands) {
                    update(variable, None, operand)?;
                }
            }
        }
        // Other threads, with other streams, read them next.
        self.device.synchronize()
    }

    /// Ids below this can be sampled and trained; see [`Self::limit_vocabulary`].
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Masks every id from `ids` on, in sampling and in training alike. Checkpoints often have more embedding rows than
    /// their tokenizer has ids; give the tokenizer's highest id plus one.
    ///
    /// # Errors
    /// If the embedding has fewer rows: the tokenizer belongs to another model.
    pub fn limit_vocabulary(&mut self, ids: usize) -> Result<()> {
        if ids > self.config.vocab_size {
            return Err(PolicyError::Input(format!(
                "the tokenizer has ids up to {}, but the model's vocab_size is {}: they do not belong together",
                ids.saturating_sub(1),
                self.config.vocab_size
            )));
        }
        if ids < 8 {
            return Err(PolicyError::Input(format!(
                "a vocabulary of {ids} ids; the least is 8"
            )));
        }
        self.vocabulary = ids;
        Ok(())
    }

    /// Every trained parameter with its name, in a fixed order: those of the model, or those of its adapters. Matrices are
    /// `[in, out]`, projections of one input are one parameter (`qkv_proj`, `gate_up_proj`), and the embedding is
    /// `[hidden, vocabulary]`.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &Var)> {
        self.layout()
            .iter()
            .map(|parameter| parameter.name.as_str())
            .zip(self.variables())
    }

    /// The trained parameters.
    pub(crate) fn layout(&self) -> &[Parameter] {
        match &self.adapters {
            Some(adapters) => adapters.parameters(),
            None => &self.parameters,
        }
    }

    /// The numbers of the trained parameters.
    pub(crate) fn variables(&self) -> &[Var] {
        match &self.adapters {
            Some(adapters) => adapters.variables(),
            None => &self.variables,
        }
    }

    /// The adapters, if it has some.
    pub(crate) fn adapters(&self) -> Option<&Adapters> {
        self.adapters.as_ref()
    }

    /// The settings of its adapters, if it has some.
    pub fn lora(&self) -> Option<&LoraConfig> {
        self.adapters.as_ref().map(|adapters| &adapters.config)
    }

    pub(crate) fn tracked(&self) -> &Weights {
        &self.tracked
    }

    pub(crate) fn frozen(&self) -> &Weights {
        &self.frozen
    }

    pub(crate) fn operands(&self) -> &[Tensor] {
        &self.operands
    }

    /// The rotary table on a CUDA device.
    #[cfg(feature = "cuda")]
    pub(crate) fn device_table(
        &self,
        device: &candle_core::CudaDevice,
    ) -> candle_core::Result<&crate::ops::rotary::DeviceTable> {
        if let Some(table) = self.device_table.get() {
            return Ok(table);
        }
        let table = crate::ops::rotary::DeviceTable::new(&self.table, device)?;
        self.device.synchronize()?;
        Ok(self.device_table.get_or_init(|| table))
    }

    pub(crate) fn table(&self) -> &Arc<RotaryTable> {
        &self.table
    }

    pub(crate) fn eps(&self) -> f32 {
        self.config.rms_norm_eps as f32
    }

    /// True if it computes with the fused operators, the default, and not with the plain ones.
    pub fn fused(&self) -> bool {
        self.operators == Operators::Fused
    }

    pub(crate) fn heads(&self) -> Heads {
        Heads {
            query: self.config.num_attention_heads,
            key_value: self.config.num_key_value_heads,
            dim: self.config.head_dim,
            eps: self.eps(),
        }
    }

    /// The index of the vocabulary head's parameter.
    pub(crate) fn head_index(&self) -> usize {
        head_index(&self.config)
    }

    pub(crate) fn check_ids(&self, ids: &[u32]) -> Result<()> {
        match ids.iter().find(|id| **id as usize >= self.vocabulary) {
            None => Ok(()),
            Some(id) => Err(PolicyError::Input(format!(
                "token id {id} is outside the vocabulary of {}: the tokenizer does not fit the model",
                self.vocabulary
            ))),
        }
    }

    pub(crate) fn attention(&self, batch: &PackedBatch) -> Attention {
        Attention {
            heads: self.heads(),
            spans: batch.spans.clone(),
            table: self.table.clone(),
        }
    }
}

/// The weights by their place in the network. Adapters are seen through `view`, and so is the rest, unless adapters freeze
/// it. A detached view shares the storage, so it sees every step of the optimiser, and computations with it keep nothing
/// for a gradient.
fn views(
    config: &Qwen3Config,
    variables: &[Var],
    adapters: Option<&Adapters>,
    view: impl Fn(&Var) -> Tensor,
) -> Weights {
    let of_base = |variable: &Var| match adapters {
        Some(_) => variable.as_detached_tensor(),
        None => view(variable),
    };
    Weights::new(config, variables, of_base, |index| {
        adapters?.weights(index, &view)
    })
}

/// True if a device has fused operators.
fn has_fused(device: &Device) -> bool {
    device.is_cpu() || (cfg!(feature = "cuda") && device.is_cuda())
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("config", &self.config)
            .field("device", &self.device.location())
            .field("operators", &self.operators)
            .field("precision", &self.precision)
            .field("vocabulary", &self.vocabulary)
            .finish_non_exhaustive()
    }
}
