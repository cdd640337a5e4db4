//! Qwen3 on the CPU, on slices of f32: the forward pass that training and decoding share, and the backward pass.
//!
//! A forward pass for a gradient keeps each layer's input and the results between its operators. With checkpointing it
//! keeps the input only, and the backward pass computes the rest again. Norms and the result of the gated unit are
//! computed again in any case, because that is cheaper than keeping them.

use std::ops::Deref;

use candle_core::{Layout, Storage};

use crate::batch::PackedBatch;
use crate::error::Result;
use crate::model::Model;
use crate::ops::attention::{Attention, attention_into};
use crate::ops::attention_backward::attention_backward_into;
use crate::ops::embedding::{embed_backward_into, embed_into};
use crate::ops::linear::{Weight, input_gradient_into, linear_into, weight_gradient_into};
use crate::ops::norm::{rms_norm_backward_into, rms_norm_into};
use crate::ops::numbers;
use crate::ops::rotary::RotaryTable;
use crate::ops::swiglu::{swiglu_backward_into, swiglu_into};
use crate::weights::PER_LAYER;

/// Read locks on all weights. The [`Network`] made from them borrows them.
pub(crate) fn lock(model: &Model) -> Vec<(impl Deref<Target = Storage> + '_, &Layout)> {
    model
        .variables()
        .iter()
        .map(|variable| variable.storage_and_layout())
        .collect()
}

/// One decoder layer.
pub(crate) struct NetworkLayer<'a> {
    pub(crate) input_norm: &'a [f32],
    pub(crate) qkv: Weight<'a>,
    pub(crate) q_norm: &'a [f32],
    pub(crate) k_norm: &'a [f32],
    pub(crate) out: Weight<'a>,
    pub(crate) post_norm: &'a [f32],
    pub(crate) gate_up: Weight<'a>,
    pub(crate) down: Weight<'a>,
}

/// The weights as slices of f32.
pub(crate) struct Network<'a> {
    pub(crate) embedding: &'a [f32],
    pub(crate) embedding_columns: usize,
    pub(crate) layers: Vec<NetworkLayer<'a>>,
    pub(crate) norm: &'a [f32],
    /// The columns that have logits.
    pub(crate) head: Weight<'a>,
    pub(crate) table: &'a RotaryTable,
    pub(crate) eps: f32,
    /// Width of the gated unit.
    pub(crate) inner: usize,
    /// Numbers in the model.
    pub(crate) size: usize,
}

/// The numbers that a forward pass keeps for the backward pass.
pub(crate) struct Tape {
    /// Every layer's input, and the last one's output, `[tokens, hidden]`.
    streams: Vec<Vec<f32>>,
    /// Per layer; empty with checkpointing.
    intermediates: Vec<Intermediates>,
}

/// The results between a layer's operators.
struct Intermediates {
    /// Queries, keys and values.
    packed: Vec<f32>,
    /// The output of attention.
    mixed: Vec<f32>,
    /// The residual stream after attention.
    middle: Vec<f32>,
    /// Gate and up.
    wide: Vec<f32>,
}

impl<'a> Network<'a> {
    pub(crate) fn new<G: Deref<Target = Storage>>(
        model: &'a Model,
        locked: &'a [(G, &Layout)],
    ) -> Result<Self> {
        let all = locked
            .iter()
            .map(|(storage, layout)| match &**storage {
                Storage::Cpu(storage) => numbers(storage, layout),
                _ => candle_core::bail!("weights are not on the CPU"),
            })
            .collect::<candle_core::Result<Vec<_>>>()?;
        let config = model.config();
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let layers = all[1..]
            .chunks_exact(PER_LAYER)
            .take(config.num_hidden_layers)
            .map(|layer| NetworkLayer {
                input_norm: layer[0],
                qkv: Weight::new(layer[1], hidden, config.qkv_width()),
                q_norm: layer[2],
                k_norm: layer[3],
                out: Weight::new(layer[4], config.attention_width(), hidden),
                post_norm: layer[5],
                gate_up: Weight::new(layer[6], hidden, 2 * inner),
                down: Weight::new(layer[7], inner, hidden),
            })
            .collect();
        Ok(Self {
            embedding: all[0],
            embedding_columns: config.vocab_size,
            layers,
            norm: all[1 + PER_LAYER * config.num_hidden_layers],
            head: Weight::new(all[model.head_index()], hidden, config.vocab_size)
                .first_columns(model.vocabulary()),
            table: model.table(),
            eps: model.eps(),
            inner,
            size: config.parameter_count(),
        })
    }

    /// The forward pass for a gradient. Without `checkpointing` it keeps the layers' intermediate results too.
    pub(crate) fn forward(
        &self,
        batch: &PackedBatch,
        attention: &Attention,
        checkpointing: bool,
    ) -> Tape {
        let mut tape = Tape {
            streams: vec![self.embed(batch)],
            intermediates: Vec::new(),
        };
        let mut normed = vec![0.0; tape.streams[0].len()];
        let mut gated = vec![0.0; batch.tokens() * self.inner];
        for (number, layer) in self.layers.iter().enumerate() {
            let intermediates =
                self.intermediates(layer, &tape.streams[number], attention, &mut normed);
            tape.streams
                .push(self.after(layer, &intermediates, &mut gated));
            if !checkpointing {
                tape.intermediates.push(intermediates);
            }
        }
        tape
    }

    /// The normed rows that predict targets, the input of the vocabulary head: `[targets, hidden]`.
    pub(crate) fn rows(&self, tape: &Tape, batch: &PackedBatch) -> Vec<f32> {
        let picked = self.picked(tape, batch);
        let mut rows = vec![0.0; picked.len()];
        rms_norm_into(&picked, self.norm, self.eps, &mut rows);
        rows
    }

    /// [`Self::rows`] of a forward pass that keeps nothing for a backward pass.
    pub(crate) fn rows_only(&self, batch: &PackedBatch, attention: &Attention) -> Vec<f32> {
        let mut x = self.embed(batch);
        let mut normed = vec![0.0; x.len()];
        let mut gated = vec![0.0; batch.tokens() * self.inner];
        for layer in &self.layers {
            x = self.after(
                layer,
                &self.intermediates(layer, &x, attention, &mut normed),
                &mut gated,
            );
        }
        let tape = Tape {
            streams: vec![x],
            intermediates: Vec::new(),
        };
        self.rows(&tape, batch)
    }

    fn embed(&self, batch: &PackedBatch) -> Vec<f32> {
        let mut x = vec![0.0; batch.tokens() * self.norm.len()];
        embed_into(
            self.embedding,
            self.embedding_columns,
            batch.ids.iter().copied(),
            &mut x,
        );
        x
    }

    /// Rows of the last stream that predict targets.
    fn picked(&self, tape: &Tape, batch: &PackedBatch) -> Vec<f32> {
        let hidden = self.norm.len();
        let last = &tape.streams[tape.streams.len() - 1];
        let rows = batch
            .rows
            .iter()
            .map(|row| &last[*row as usize * hidden..][..hidden]);
        rows.flatten().copied().collect()
    }

    fn intermediates(
        &self,
        layer: &NetworkLayer<'_>,
        x: &[f32],
        attention: &Attention,
        normed: &mut [f32],
    ) -> Intermediates {
        let tokens = x.len() / self.norm.len();
        let mut packed = vec![0.0; tokens * layer.qkv.n];
        rms_norm_into(x, layer.input_norm, self.eps, normed);
        linear_into(normed, layer.qkv, &mut packed, false);
        let mut mixed = vec![0.0; tokens * layer.out.k];
        attention_into(attention, &packed, layer.q_norm, layer.k_norm, &mut mixed);
        let mut middle = x.to_vec();
        linear_into(&mixed, layer.out, &mut middle, true);
        let mut wide = vec![0.0; tokens * layer.gate_up.n];
        rms_norm_into(&middle, layer.post_norm, self.eps, normed);
        linear_into(normed, layer.gate_up, &mut wide, false);
        Intermediates {
            packed,
            mixed,
            middle,
            wide,
        }
    }

    /// The layer's output.
    fn after(
        &self,
        layer: &NetworkLayer<'_>,
        intermediates: &Intermediates,
        gated: &mut [f32],
    ) -> Vec<f32> {
        swiglu_into(&intermediates.wide, self.inner, gated);
        let mut out = intermediates.middle.clone();
        linear_into(gated, layer.down, &mut out, true);
        out
    }

    /// Gradients of all parameters but for the head's own part, given that of [`Self::rows`].
    pub(crate) fn backward(
        &self,
        mut tape: Tape,
        batch: &PackedBatch,
        attention: &Attention,
        d_rows: &[f32],
        lengths: impl Iterator<Item = usize>,
    ) -> Vec<Vec<f32>> {
        let mut gradients: Vec<Vec<f32>> = lengths.map(|len| vec![0.0; len]).collect();
        let hidden = self.norm.len();
        let picked = self.picked(&tape, batch);
        let mut d_picked = vec![0.0; picked.len()];
        let d_norm = &mut gradients[1 + PER_LAYER * self.layers.len()];
        rms_norm_backward_into(&picked, self.norm, d_rows, self.eps, &mut d_picked, d_norm);
        let mut d = vec![0.0; batch.tokens() * hidden];
        for (row, d_row) in batch.rows.iter().zip(d_picked.chunks_exact(hidden)) {
            // Every row predicts at most one target.
            d[*row as usize * hidden..][..hidden].copy_from_slice(d_row);
        }
        tape.streams.pop();
        let mut scratch = Scratch::new(self, batch.tokens());
        for (number, layer) in self.layers.iter().enumerate().rev() {
            let (Some(x), kept) = (tape.streams.pop(), tape.intermediates.pop()) else {
                break;
            };
            let intermediates = kept
                .unwrap_or_else(|| self.intermediates(layer, &x, attention, &mut scratch.normed));
            let gradients = &mut gradients[1 + PER_LAYER * number..][..PER_LAYER];
            self.layer_backward(
                layer,
                &x,
                &intermediates,
                attention,
                &mut d,
                gradients,
                &mut scratch,
            );
        }
        embed_backward_into(&d, self.embedding_columns, &batch.ids, &mut gradients[0]);
        gradients
    }

    /// Takes one layer backwards: `d`, the gradient of its output, becomes that of its input.
    #[allow(clippy::too_many_arguments)]
    fn layer_backward(
        &self,
        layer: &NetworkLayer<'_>,
        x: &[f32],
        intermediates: &Intermediates,
        attention: &Attention,
        d: &mut [f32],
        gradients: &mut [Vec<f32>],
        scratch: &mut Scratch,
    ) {
        let [
            d_input_norm,
            d_qkv,
            d_q_norm,
            d_k_norm,
            d_out,
            d_post_norm,
            d_gate_up,
            d_down,
        ] = gradients
        else {
            return;
        };
        let Scratch {
            normed,
            d_normed,
            gated,
            d_gated,
            d_wide,
            d_mixed,
            d_packed,
        } = scratch;
        let eps = self.eps;
        // out = middle + swiglu(norm(middle) gate_up) down
        input_gradient_into(d, layer.down, d_gated);
        swiglu_backward_into(&intermediates.wide, self.inner, d_gated, d_wide, gated);
        weight_gradient_into(gated, d, layer.down, d_down, false);
        rms_norm_into(&intermediates.middle, layer.post_norm, eps, normed);
        weight_gradient_into(normed, d_wide, layer.gate_up, d_gate_up, false);
        input_gradient_into(d_wide, layer.gate_up, d_normed);
        rms_norm_backward_into(
            &intermediates.middle,
            layer.post_norm,
            d_normed,
            eps,
            d,
            d_post_norm,
        );
        // middle = x + attention(norm(x) qkv) out
        input_gradient_into(d, layer.out, d_mixed);
        weight_gradient_into(&intermediates.mixed, d, layer.out, d_out, false);
        d_packed.fill(0.0);
        attention_backward_into(
            attention,
            &intermediates.packed,
            layer.q_norm,
            layer.k_norm,
            d_mixed,
            d_packed,
            d_q_norm,
            d_k_norm,
        );
        rms_norm_into(x, layer.input_norm, eps, normed);
        weight_gradient_into(normed, d_packed, layer.qkv, d_qkv, false);
        input_gradient_into(d_packed, layer.qkv, d_normed);
        rms_norm_backward_into(x, layer.input_norm, d_normed, eps, d, d_input_norm);
    }
}

/// Buffers of the backward pass, one set for all layers.
struct Scratch {
    normed: Vec<f32>,
    d_normed: Vec<f32>,
    gated: Vec<f32>,
    d_gated: Vec<f32>,
    d_wide: Vec<f32>,
    d_mixed: Vec<f32>,
    d_packed: Vec<f32>,
}

impl Scratch {
    fn new(network: &Network<'_>, tokens: usize) -> Self {
        let zeros = |width: usize| vec![0.0; tokens * width];
        let (qkv, mixed) = network
            .layers
            .first()
            .map_or((0, 0), |layer| (layer.qkv.n, layer.out.k));
        Self {
            normed: zeros(network.norm.len()),
            d_normed: zeros(network.norm.len()),
            gated: zeros(network.inner),
            d_gated: zeros(network.inner),
            d_wide: zeros(2 * network.inner),
            d_mixed: zeros(mixed),
            d_packed: zeros(qkv),
        }
    }
}
