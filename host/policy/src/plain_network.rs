//! Qwen3 in candle's operators, for any device: the reference for [`crate::qwen3`].

use candle_core::Tensor;

use crate::batch::PackedBatch;
use crate::model::Model;
use crate::ops::attention_plain::{Padded, plain_attention};
use crate::ops::embedding::plain_embedding;
use crate::ops::head::PlainHead;
use crate::ops::linear::plain_linear;
use crate::ops::norm::plain_rms_norm;
use crate::ops::swiglu::plain_swiglu;
use crate::weights::{LayerWeights, LinearWeights, Weights};

impl Model {
    /// The vocabulary head of the plain network.
    pub(crate) fn plain_head(&self, temperature: f32) -> PlainHead<'_> {
        PlainHead {
            w: &self.frozen().head,
            vocabulary: self.vocabulary(),
            temperature,
        }
    }

    /// The residual stream after the last layer, `[tokens, hidden]`, in candle's operators.
    pub(crate) fn plain_trunk(
        &self,
        weights: &Weights,
        batch: &PackedBatch,
    ) -> candle_core::Result<Tensor> {
        let padded = self.padded(batch)?;
        let mut x = plain_embedding(&weights.embedding, &batch.ids)?;
        for layer in &weights.layers {
            x = self.plain_layer(layer, &x, &padded)?;
        }
        Ok(x)
    }

    /// The sequences of a batch, as attention in candle's operators needs them.
    pub(crate) fn padded(&self, batch: &PackedBatch) -> candle_core::Result<Padded> {
        Padded::new(&self.attention(batch), self.device())
    }

    /// One decoder layer on packed rows `[tokens, hidden]`.
    pub(crate) fn plain_layer(
        &self,
        w: &LayerWeights,
        x: &Tensor,
        padded: &Padded,
    ) -> candle_core::Result<Tensor> {
        let eps = self.eps();
        let h = w.qkv.plain(&plain_rms_norm(x, &w.input_norm, eps)?)?;
        let h = plain_attention(&h, &w.q_norm, &w.k_norm, padded)?;
        let x = (x + w.out.plain(&h)?)?;
        let h = w.gate_up.plain(&plain_rms_norm(&x, &w.post_norm, eps)?)?;
        x + w.down.plain(&plain_swiglu(&h)?)?
    }

    /// The rows that predict targets, normed: what the vocabulary head reads, `[targets, hidden]`.
    pub(crate) fn plain_rows(
        &self,
        weights: &Weights,
        x: &Tensor,
        batch: &PackedBatch,
    ) -> candle_core::Result<Tensor> {
        let rows = Tensor::from_slice(&batch.rows, batch.rows.len(), self.device())?;
        plain_rms_norm(&x.index_select(&rows, 0)?, &weights.norm, self.eps())
    }
}

impl LinearWeights {
    /// The layer on rows `x`: `x W`, plus `(x A) B` with an adapter.
    pub(crate) fn plain(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        let y = plain_linear(x, &self.w)?;
        let Some(adapter) = &self.adapter else {
            return Ok(y);
        };
        let reduced = plain_linear(x, &adapter.down.product()?)?;
        y + plain_linear(&reduced, &adapter.up.product()?)?
    }
}
