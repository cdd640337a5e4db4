//! A pass over micro-batches: its options, its results per token, and the pass without gradients.

use candle_core::Tensor;

use crate::batch::PackedBatch;
use crate::error::{PolicyError, Result};
use crate::in_order::run_in_order;
use crate::model::Model;
use crate::on_network::on_network;
use crate::qwen3::Backend;

/// The options of a pass over micro-batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassOptions {
    /// Threads that share the micro-batches. It changes speed and memory (each thread holds a micro-batch's activations
    /// and gradients), never the result. Default 1.
    pub workers: usize,
    /// Divides the logits: the temperature of sampling. Default 1.
    pub temperature: f32,
    /// Keeps only each layer's input and computes the rest again in the backward pass: a third more time, a small part of
    /// the memory. Default off.
    pub checkpointing: bool,
}

impl Default for PassOptions {
    fn default() -> Self {
        Self {
            workers: 1,
            temperature: 1.0,
            checkpointing: false,
        }
    }
}

/// The results of a pass for each target of a micro-batch, in the order of [`PackedBatch::targets`].
#[derive(Debug, Clone)]
pub struct TokenStats {
    /// Natural logarithm of the target's probability, `[targets]`.
    pub log_probs: Tensor,
    /// Entropy of the distribution that the target was drawn from, in nats, `[targets]`.
    pub entropy: Tensor,
    /// The values that a value head gives, `[targets]`; only in a pass with one.
    pub values: Option<Tensor>,
}

impl Model {
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
            let x = self.plain_trunk(self.frozen(), batch)?;
            let rows = self.plain_rows(self.frozen(), &x, batch)?;
            let (log_probs, entropy) = self
                .plain_head(temperature)
                .forward(&rows, &batch.targets)?;
            return Ok(TokenStats {
                log_probs,
                entropy,
                values: None,
            });
        }
        on_network!(self, |network| {
            let batch = network.batch(batch)?;
            let rows = network.rows_only(&batch)?;
            let (log_probs, entropy) =
                network
                    .backend
                    .log_probs(&rows, network.head, &batch.places, temperature)?;
            Ok(TokenStats {
                log_probs,
                entropy,
                values: None,
            })
        })
    }

    /// Number of threads that share the micro-batches; 0 on other devices than the CPU, which are parallel themselves.
    pub(crate) fn workers(&self, options: &PassOptions) -> usize {
        if self.device().is_cpu() {
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
            if batch.longest() > self.table().positions() {
                return Err(PolicyError::Input(format!(
                    "micro-batch {index} has a sequence of {} tokens; the model's max_position_embeddings is {}",
                    batch.longest(),
                    self.table().positions()
                )));
            }
            self.check_ids(&batch.ids)?;
        }
        Ok(())
    }
}
