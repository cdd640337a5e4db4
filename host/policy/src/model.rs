//! A policy's weights, and Qwen3 in candle's operators; [`crate::network`] is the same on the CPU.

use std::sync::Arc;

use candle_core::{Device, Tensor, Var};

use crate::batch::PackedBatch;
use crate::config::Qwen3Config;
use crate::error::{PolicyError, Result};
use crate::grad::{PassOptions, TokenStats};
use crate::in_order::run_in_order;
use crate::network::{Network, lock};
use crate::ops::attention::{Attention, Heads};
use crate::ops::attention_plain::plain_attention;
use crate::ops::embedding::plain_embedding;
use crate::ops::head::{Head, PlainHead};
use crate::ops::linear::plain_linear;
use crate::ops::norm::plain_rms_norm;
use crate::ops::rotary::RotaryTable;
use crate::ops::swiglu::plain_swiglu;
use crate::weights::{LayerWeights, Parameter, Weights, head_index, parameters, variable};

/// Which implementation of the operators a model uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operators {
    /// Fused operators with their own backward: CPU only, exact, the default there.
    Fused,
    /// Their twins in candle's operators: any device, the default elsewhere.
    Plain,
}

/// A policy: weights, and how to run them. Weights change only through an optimiser's step, in place, and not while
/// anything is being computed with them.
pub struct Model {
    config: Qwen3Config,
    device: Device,
    operators: Operators,
    vocabulary: usize,
    parameters: Vec<Parameter>,
    variables: Vec<Var>,
    tracked: Weights,
    frozen: Weights,
    table: Arc<RotaryTable>,
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
        let operators = if device.is_cpu() {
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
            tracked: Weights::of(config, &variables, |variable| variable.as_tensor().clone()),
            // Shares the storage: sees every step of the optimiser, and nothing computed with it is kept for a gradient.
            frozen: Weights::of(config, &variables, Var::as_detached_tensor),
            variables,
            table: Arc::new(RotaryTable::new(
                config.head_dim,
                config.rope_theta,
                config.max_position_embeddings,
            )),
        }
    }

    /// Another handle on the same weights, for a thread that decodes: it sees every step of the optimiser.
    #[must_use]
    pub fn share(&self) -> Self {
        Self {
            config: self.config.clone(),
            device: self.device.clone(),
            operators: self.operators,
            vocabulary: self.vocabulary,
            parameters: parameters(&self.config),
            tracked: Weights::of(&self.config, &self.variables, |variable| {
                variable.as_tensor().clone()
            }),
            frozen: Weights::of(&self.config, &self.variables, Var::as_detached_tensor),
            variables: self.variables.clone(),
            table: self.table.clone(),
        }
    }

    /// An independent model with the same weights, such as the reference policy of a KL term.
    pub fn copy(&self) -> Result<Self> {
        let variables = self
            .variables
            .iter()
            .map(|variable| Var::from_tensor(&variable.as_detached_tensor().copy()?))
            .collect::<candle_core::Result<_>>()?;
        let mut copy = Self::from_variables(&self.config, variables, &self.device);
        copy.operators = self.operators;
        copy.vocabulary = self.vocabulary;
        Ok(copy)
    }

    /// The model's shape.
    pub fn config(&self) -> &Qwen3Config {
        &self.config
    }

    /// Where its weights live.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Which operators it uses.
    pub fn operators(&self) -> Operators {
        self.operators
    }

    /// Uses other operators from now on: the plain ones anywhere, the fused ones on the CPU.
    pub fn use_operators(&mut self, operators: Operators) -> Result<()> {
        if operators == Operators::Fused && !self.device.is_cpu() {
            return Err(PolicyError::Input(
                "fused operators run on the CPU only".to_owned(),
            ));
        }
        self.operators = operators;
        Ok(())
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

    /// Every parameter with its name, in a fixed order. Matrices are `[in, out]`, projections of one input are one
    /// parameter (`qkv_proj`, `gate_up_proj`), and the embedding is `[hidden, vocabulary]`.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &Var)> {
        self.parameters
            .iter()
            .map(|parameter| parameter.name.as_str())
            .zip(&self.variables)
    }

    pub(crate) fn layout(&self) -> &[Parameter] {
        &self.parameters
    }

    pub(crate) fn variables(&self) -> &[Var] {
        &self.variables
    }

    pub(crate) fn tracked(&self) -> &Weights {
        &self.tracked
    }

    pub(crate) fn frozen(&self) -> &Weights {
        &self.frozen
    }

    pub(crate) fn table(&self) -> &Arc<RotaryTable> {
        &self.table
    }

    pub(crate) fn eps(&self) -> f32 {
        self.config.rms_norm_eps as f32
    }

    /// Whether it computes with the fused operators, the default, and not with the plain ones.
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

    /// Which parameter the vocabulary head's weight is.
    pub(crate) fn head_index(&self) -> usize {
        head_index(&self.config)
    }

    /// Log-probabilities and entropies of the batches' targets, without gradient, at the options' temperature. One
    /// result per batch; `workers` threads share the batches.
    pub fn log_probs(
        &self,
        batches: &[PackedBatch],
        options: &PassOptions,
    ) -> Result<Vec<TokenStats>> {
        self.check_pass(batches, options)?;
        let mut all = Vec::with_capacity(batches.len());
        run_in_order(
            batches.len(),
            self.workers(options),
            |index| self.log_probs_of(&batches[index], options.temperature),
            |stats| {
                all.push(stats);
                Ok(())
            },
        )?;
        Ok(all)
    }

    fn log_probs_of(&self, batch: &PackedBatch, temperature: f32) -> Result<TokenStats> {
        if !self.fused() {
            let x = self.plain_trunk(&self.frozen, batch)?;
            let rows = self.plain_rows(&self.frozen, &x, batch)?;
            let (log_probs, entropy) = self
                .plain_head(temperature)
                .forward(&rows, &batch.targets)?;
            return Ok(TokenStats { log_probs, entropy });
        }
        let locked = lock(self);
        let network = Network::of(self, &locked)?;
        let rows = network.rows_only(batch, &self.attention(batch));
        let head = Head {
            w: network.head,
            temperature,
        };
        let (log_probs, entropy) = head.forward(&rows, &batch.targets);
        let count = batch.targets.len();
        Ok(TokenStats {
            log_probs: Tensor::from_vec(log_probs, count, &self.device)?,
            entropy: Tensor::from_vec(entropy, count, &self.device)?,
        })
    }

    /// Threads to share micro-batches; none of their own elsewhere than on the CPU, where the device is the parallel part.
    pub(crate) fn workers(&self, options: &PassOptions) -> usize {
        if self.device.is_cpu() {
            options.workers.max(1)
        } else {
            0
        }
    }

    pub(crate) fn check_pass(&self, batches: &[PackedBatch], options: &PassOptions) -> Result<()> {
        if !(options.temperature.is_finite() && options.temperature > 0.0) {
            return Err(PolicyError::Input(format!(
                "temperature is {}; log-probabilities need a positive one",
                options.temperature
            )));
        }
        for (index, batch) in batches.iter().enumerate() {
            if batch.longest() > self.table.positions() {
                return Err(PolicyError::Input(format!(
                    "micro-batch {index} has a sequence of {} tokens; the model's max_position_embeddings is {}",
                    batch.longest(),
                    self.table.positions()
                )));
            }
            self.check_ids(&batch.ids)?;
        }
        Ok(())
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

    /// The vocabulary head of the plain network.
    pub(crate) fn plain_head(&self, temperature: f32) -> PlainHead<'_> {
        PlainHead {
            w: &self.frozen.head,
            vocabulary: self.vocabulary,
            temperature,
        }
    }

    /// The residual stream after the last layer, `[tokens, hidden]`, in candle's operators.
    pub(crate) fn plain_trunk(
        &self,
        weights: &Weights,
        batch: &PackedBatch,
    ) -> candle_core::Result<Tensor> {
        let attention = self.attention(batch);
        let mut x = plain_embedding(&weights.embedding, &batch.ids)?;
        for layer in &weights.layers {
            x = self.plain_layer(layer, &x, &attention)?;
        }
        Ok(x)
    }

    /// One decoder layer on packed rows `[tokens, hidden]`.
    pub(crate) fn plain_layer(
        &self,
        w: &LayerWeights,
        x: &Tensor,
        attention: &Attention,
    ) -> candle_core::Result<Tensor> {
        let eps = self.eps();
        let h = plain_linear(&plain_rms_norm(x, &w.input_norm, eps)?, &w.qkv)?;
        let h = plain_attention(&h, &w.q_norm, &w.k_norm, attention)?;
        let x = (x + plain_linear(&h, &w.out)?)?;
        let h = plain_linear(&plain_rms_norm(&x, &w.post_norm, eps)?, &w.gate_up)?;
        x + plain_linear(&plain_swiglu(&h)?, &w.down)?
    }

    /// The rows that predict targets, normed: what the vocabulary head reads, `[targets, hidden]`.
    pub(crate) fn plain_rows(
        &self,
        weights: &Weights,
        x: &Tensor,
        batch: &PackedBatch,
    ) -> candle_core::Result<Tensor> {
        let rows = Tensor::from_slice(&batch.rows, batch.rows.len(), &self.device)?;
        plain_rms_norm(&x.index_select(&rows, 0)?, &weights.norm, self.eps())
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("config", &self.config)
            .field("device", &self.device.location())
            .field("operators", &self.operators)
            .field("vocabulary", &self.vocabulary)
            .finish_non_exhaustive()
    }
}
