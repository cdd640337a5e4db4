//! Qwen3 from token ids to the rows that the vocabulary head reads, and the backward pass.
//!
//! This file is the model. It says which operators a layer has and in which order, once for every device, and for
//! training and decoding. Only attention differs between the two: in decoding it reads a cache, in [`crate::decode`]. A
//! [`Backend`] does the arithmetic of operators: [`crate::cpu`] on slices of f32, and `crate::cuda` with kernels and
//! cuBLAS. [`crate::plain_network`] is the same forward pass in candle's operators, as the reference for both.
//!
//! A forward pass for a gradient keeps each layer's input and the results between its operators. With checkpointing it
//! keeps the input only, and the backward pass computes the rest again. Norms and the result of the gated unit are
//! computed again in any case, because that is cheaper than keeping them.
//!
//! A model with adapters ([`crate::lora`]) trains nothing else. The backward pass then gives their gradients only.

mod linear;

use std::ops::Deref;

use candle_core::{Layout, Result, Storage, Tensor};

use self::linear::{Adapter, Linear, Trained};
use crate::batch::PackedBatch;
use crate::config::Qwen3Config;
use crate::error;
use crate::lora::{AdapterLayout, Place};
use crate::weights::{PER_LAYER, head_index};

/// The operators of Qwen3 on one device.
///
/// Results go to buffers that the caller made with [`Self::stream`], [`Self::rows`] or [`Self::gradient`]. The number
/// of rows follows from the lengths of buffers.
pub(crate) trait Backend {
    /// Rows of f32: the residual stream, or its gradient.
    type Stream;
    /// Rows that products read and write: f32, or bf16.
    type Rows;
    /// A weight of a product, `[in, out]`.
    type Matrix: Copy;
    /// The weight of a norm.
    type Gain: Copy;
    /// The gradient of a weight, in f32.
    type Gradient;
    /// Ids of tokens, or numbers of rows.
    type Indices;
    /// The places of a batch's rows, which all layers share.
    type Places;
    /// A stream as products read it.
    type Operand<'s>: Deref<Target = Self::Rows>
    where
        Self: 's;

    /// The places of a batch's rows.
    fn places(&self, batch: &PackedBatch) -> Result<Self::Places>;
    /// Ids or numbers of rows, where operators read them.
    fn indices(&self, numbers: &[u32]) -> Result<Self::Indices>;
    /// `tokens` rows of zeros.
    fn stream(&self, tokens: usize, width: usize) -> Result<Self::Stream>;
    /// `tokens` rows of any numbers.
    fn rows(&self, tokens: usize, width: usize) -> Result<Self::Rows>;
    /// The gradient of a weight with `len` numbers, zeros.
    fn gradient(&self, len: usize) -> Result<Self::Gradient>;
    /// A copy of a stream.
    fn copy(&self, stream: &Self::Stream) -> Result<Self::Stream>;
    /// A stream as products read it.
    fn operand<'s>(&'s self, stream: &'s Self::Stream) -> Result<Self::Operand<'s>>;
    /// Adds `part` to `sum`.
    fn add(&self, sum: &mut Self::Gradient, part: &Self::Gradient) -> Result<()>;
    /// A copy of rows as a tensor in f32, `[rows, width]`.
    fn rows_tensor(&self, rows: &Self::Rows, width: usize) -> Result<Tensor>;
    /// Adds a tensor in f32, `[rows, width]`, to rows.
    fn add_to_rows(&self, rows: &mut Self::Rows, part: &Tensor) -> Result<()>;
    /// A gradient as a tensor.
    fn tensor(&self, gradient: Self::Gradient, shape: &[usize]) -> Result<Tensor>;

    /// The rows of ids, from the embedding `[hidden, vocabulary]`.
    fn embed(&self, w: Self::Matrix, ids: &Self::Indices, out: &mut Self::Stream) -> Result<()>;
    /// Adds the gradient of the embedding, given that of the stream.
    fn embed_backward(
        &self,
        d: &Self::Stream,
        places: &Self::Places,
        dw: &mut Self::Gradient,
    ) -> Result<()>;
    /// Some rows of a stream, of `width` numbers each.
    fn pick(&self, x: &Self::Stream, rows: &Self::Indices, width: usize) -> Result<Self::Stream>;
    /// Copies the gradients of picked rows, which are distinct, to their places in that of the whole stream.
    fn pick_backward(
        &self,
        d_picked: &Self::Stream,
        rows: &Self::Indices,
        width: usize,
        d: &mut Self::Stream,
    ) -> Result<()>;

    /// Norms every row.
    fn rms_norm(&self, x: &Self::Stream, w: Self::Gain, out: &mut Self::Rows) -> Result<()>;
    /// Adds the gradients of `x` and `w` to `dx` and `dw`, given that of the result.
    fn rms_norm_backward(
        &self,
        x: &Self::Stream,
        w: Self::Gain,
        g: &Self::Rows,
        dx: &mut Self::Stream,
        dw: &mut Self::Gradient,
    ) -> Result<()>;
    /// `out = x w`.
    fn linear(&self, x: &Self::Rows, w: Self::Matrix, out: &mut Self::Rows) -> Result<()>;
    /// `out += x w`.
    fn linear_add(&self, x: &Self::Rows, w: Self::Matrix, out: &mut Self::Stream) -> Result<()>;
    /// `out += x w`, to rows.
    fn linear_add_rows(&self, x: &Self::Rows, w: Self::Matrix, out: &mut Self::Rows) -> Result<()>;
    /// `dx = g wᵀ`.
    fn input_gradient(&self, g: &Self::Rows, w: Self::Matrix, dx: &mut Self::Rows) -> Result<()>;
    /// `dx += g wᵀ`.
    fn input_gradient_add(
        &self,
        g: &Self::Rows,
        w: Self::Matrix,
        dx: &mut Self::Rows,
    ) -> Result<()>;
    /// The gradient of a weight whose rows are not padded, `xᵀ g`.
    fn weight_gradient(
        &self,
        x: &Self::Rows,
        g: &Self::Rows,
        w: Self::Matrix,
    ) -> Result<Self::Gradient>;
    /// Causal attention from packed queries, keys and values, with norms and rotary positions.
    fn attention(
        &self,
        places: &Self::Places,
        packed: &Self::Rows,
        norms: [Self::Gain; 2],
        out: &mut Self::Rows,
    ) -> Result<()>;
    /// The gradient of `packed`, given that of the result; adds those of the two norms.
    fn attention_backward(
        &self,
        places: &Self::Places,
        packed: &Self::Rows,
        norms: [Self::Gain; 2],
        g: &Self::Rows,
        d_packed: &mut Self::Rows,
        d_norms: [&mut Self::Gradient; 2],
    ) -> Result<()>;
    /// `silu(gate) * up`, which are side by side in a row.
    fn swiglu(&self, x: &Self::Rows, width: usize, out: &mut Self::Rows) -> Result<()>;
    /// The gradient of `x`, and the result once more.
    fn swiglu_backward(
        &self,
        x: &Self::Rows,
        width: usize,
        g: &Self::Rows,
        dx: &mut Self::Rows,
        out: &mut Self::Rows,
    ) -> Result<()>;

    /// The logits of rows, `[rows, vocabulary]`.
    fn logits(&self, x: &Self::Rows, head: Self::Matrix) -> Result<Self::Stream>;
    /// Log-probabilities and entropies of targets, `[targets]` each, from the rows that predict them.
    fn log_probs(
        &self,
        x: &Self::Rows,
        head: Self::Matrix,
        places: &Self::Places,
        temperature: f32,
    ) -> Result<(Tensor, Tensor)>;
    /// The gradients of `x` and, unless it is frozen, of the whole head, given those of log-probabilities and entropies.
    #[allow(clippy::too_many_arguments)]
    fn log_probs_backward(
        &self,
        x: &Self::Rows,
        head: Self::Matrix,
        frozen: bool,
        places: &Self::Places,
        temperature: f32,
        d_log_probs: &Tensor,
        d_entropy: Option<&Tensor>,
    ) -> Result<(Self::Rows, Option<Self::Gradient>)>;
}

/// A batch, prepared for a backend.
pub(crate) struct Batch<B: Backend> {
    pub(crate) places: B::Places,
    ids: B::Indices,
    /// The rows that predict targets.
    picked: B::Indices,
    tokens: usize,
    targets: usize,
}

/// Read locks on all weights. The [`Network`] made from them borrows them.
pub(crate) fn lock(tensors: &[Tensor]) -> Vec<(impl Deref<Target = Storage> + '_, &Layout)> {
    tensors.iter().map(Tensor::storage_and_layout).collect()
}

/// One decoder layer.
pub(crate) struct Layer<B: Backend> {
    pub(crate) input_norm: B::Gain,
    pub(crate) qkv: Linear<B>,
    pub(crate) q_norm: B::Gain,
    pub(crate) k_norm: B::Gain,
    pub(crate) out: Linear<B>,
    pub(crate) post_norm: B::Gain,
    pub(crate) gate_up: Linear<B>,
    pub(crate) down: Linear<B>,
}

/// Widths of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Widths {
    /// The residual stream.
    pub(crate) hidden: usize,
    /// Queries, keys and values.
    pub(crate) packed: usize,
    /// The output of attention.
    pub(crate) mixed: usize,
    /// The gated unit.
    pub(crate) inner: usize,
    /// One head.
    pub(crate) head: usize,
    /// Ids that the embedding has.
    pub(crate) vocabulary: usize,
}

/// The weights on a device, and its operators.
pub(crate) struct Network<B: Backend> {
    pub(crate) backend: B,
    pub(crate) embedding: B::Matrix,
    pub(crate) layers: Vec<Layer<B>>,
    pub(crate) norm: B::Gain,
    /// The columns that have logits.
    pub(crate) head: B::Matrix,
    pub(crate) widths: Widths,
    /// Numbers in the model.
    pub(crate) size: usize,
    /// True if only adapters are trained.
    pub(crate) frozen: bool,
    /// True if the head is the embedding.
    tied: bool,
}

/// The results that a forward pass keeps for the backward pass.
pub(crate) struct Tape<B: Backend> {
    /// Every layer's input, and the last one's output, `[tokens, hidden]`.
    streams: Vec<B::Stream>,
    /// Per layer; empty with checkpointing.
    between: Vec<Between<B>>,
}

/// The results between a layer's operators.
struct Between<B: Backend> {
    /// Queries, keys and values.
    packed: B::Rows,
    /// The output of attention.
    mixed: B::Rows,
    /// The residual stream after attention.
    middle: B::Stream,
    /// Gate and up.
    wide: B::Rows,
}

impl<B: Backend> Network<B> {
    /// The network of a model, with logits of the first `vocabulary` ids. With `adapters`, all else is frozen. `gain` and
    /// `matrix` give an operand by its index, a matrix with its `[in, out]`; the last number of `matrix` limits its columns.
    pub(crate) fn new(
        config: &Qwen3Config,
        vocabulary: usize,
        adapters: Option<&AdapterLayout>,
        backend: B,
        gain: impl Fn(usize) -> Result<B::Gain>,
        matrix: impl Fn(usize, [usize; 2], usize) -> Result<B::Matrix>,
    ) -> Result<Self> {
        let widths = Widths {
            hidden: config.hidden_size,
            packed: config.qkv_width(),
            mixed: config.attention_width(),
            inner: config.intermediate_size,
            head: config.head_dim,
            vocabulary: config.vocab_size,
        };
        let frozen = adapters.is_some();
        let whole = |index, shape: [usize; 2]| matrix(index, shape, shape[1]);
        let linear = |index, shape: [usize; 2]| -> Result<Linear<B>> {
            let trained = match adapters.and_then(|adapters| adapters.of(index)) {
                Some(Place { rank, operand, .. }) => Trained::Adapter(Adapter {
                    rank,
                    down: whole(operand, [shape[0], rank])?,
                    up: whole(operand + 1, [rank, shape[1]])?,
                }),
                None if frozen => Trained::Nothing,
                None => Trained::Weight,
            };
            Ok(Linear::new(whole(index, shape)?, trained))
        };
        let embedding = [widths.hidden, widths.vocabulary];
        let layers = (0..config.num_hidden_layers)
            .map(|number| {
                let first = 1 + PER_LAYER * number;
                Ok(Layer {
                    input_norm: gain(first)?,
                    qkv: linear(first + 1, [widths.hidden, widths.packed])?,
                    q_norm: gain(first + 2)?,
                    k_norm: gain(first + 3)?,
                    out: linear(first + 4, [widths.mixed, widths.hidden])?,
                    post_norm: gain(first + 5)?,
                    gate_up: linear(first + 6, [widths.hidden, 2 * widths.inner])?,
                    down: linear(first + 7, [widths.inner, widths.hidden])?,
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            backend,
            embedding: whole(0, embedding)?,
            layers,
            norm: gain(1 + PER_LAYER * config.num_hidden_layers)?,
            head: matrix(head_index(config), embedding, vocabulary)?,
            widths,
            size: config.parameter_count(),
            frozen,
            tied: config.tie_word_embeddings,
        })
    }

    /// Prepares a batch.
    pub(crate) fn batch(&self, batch: &PackedBatch) -> Result<Batch<B>> {
        Ok(Batch {
            places: self.backend.places(batch)?,
            ids: self.backend.indices(&batch.ids)?,
            picked: self.backend.indices(&batch.rows)?,
            tokens: batch.tokens(),
            targets: batch.targets().len(),
        })
    }

    /// The forward pass for a gradient. Without `checkpointing` it keeps the layers' intermediate results too.
    pub(crate) fn forward(&self, batch: &Batch<B>, checkpointing: bool) -> Result<Tape<B>> {
        let (b, widths) = (&self.backend, self.widths);
        let mut tape = Tape {
            streams: vec![self.embed(batch)?],
            between: Vec::new(),
        };
        let mut normed = b.rows(batch.tokens, widths.hidden)?;
        let mut gated = b.rows(batch.tokens, widths.inner)?;
        for (number, layer) in self.layers.iter().enumerate() {
            let between = self.between(layer, &tape.streams[number], batch, &mut normed)?;
            tape.streams
                .push(self.after(layer, &between, batch.tokens, &mut gated)?);
            if !checkpointing {
                tape.between.push(between);
            }
        }
        Ok(tape)
    }

    /// The normed rows that predict targets, the input of the vocabulary head: `[targets, hidden]`.
    pub(crate) fn rows(&self, tape: &Tape<B>, batch: &Batch<B>) -> Result<B::Rows> {
        self.head_rows(&tape.streams[tape.streams.len() - 1], batch)
    }

    /// [`Self::rows`] of a forward pass that keeps nothing for a backward pass.
    pub(crate) fn rows_only(&self, batch: &Batch<B>) -> Result<B::Rows> {
        let (b, widths) = (&self.backend, self.widths);
        let mut x = self.embed(batch)?;
        let mut normed = b.rows(batch.tokens, widths.hidden)?;
        let mut gated = b.rows(batch.tokens, widths.inner)?;
        for layer in &self.layers {
            let between = self.between(layer, &x, batch, &mut normed)?;
            x = self.after(layer, &between, batch.tokens, &mut gated)?;
        }
        self.head_rows(&x, batch)
    }

    fn embed(&self, batch: &Batch<B>) -> Result<B::Stream> {
        let mut x = self.backend.stream(batch.tokens, self.widths.hidden)?;
        self.backend.embed(self.embedding, &batch.ids, &mut x)?;
        Ok(x)
    }

    fn head_rows(&self, x: &B::Stream, batch: &Batch<B>) -> Result<B::Rows> {
        self.last_norm(x, &batch.picked, batch.targets)
    }

    /// Some rows of the last layer's output, normed.
    fn last_norm(&self, x: &B::Stream, picked: &B::Indices, count: usize) -> Result<B::Rows> {
        let (b, hidden) = (&self.backend, self.widths.hidden);
        let picked = b.pick(x, picked, hidden)?;
        let mut rows = b.rows(count, hidden)?;
        b.rms_norm(&picked, self.norm, &mut rows)?;
        Ok(rows)
    }

    /// A step of decoding: takes the rows of `ids` through all layers, and returns the logits of the rows `last`,
    /// `[last, vocabulary]`. Both come with their number. `attend` is attention over a cache: it gets a layer with its
    /// number, and computes from packed queries, keys and values what is mixed.
    pub(crate) fn decode(
        &self,
        (ids, tokens): (&B::Indices, usize),
        (last, count): (&B::Indices, usize),
        mut attend: impl FnMut(usize, &Layer<B>, &B::Rows, &mut B::Rows) -> Result<()>,
    ) -> Result<B::Stream> {
        let (b, widths) = (&self.backend, self.widths);
        let mut x = b.stream(tokens, widths.hidden)?;
        b.embed(self.embedding, ids, &mut x)?;
        let mut normed = b.rows(tokens, widths.hidden)?;
        let mut packed = b.rows(tokens, widths.packed)?;
        let mut mixed = b.rows(tokens, widths.mixed)?;
        let mut wide = b.rows(tokens, 2 * widths.inner)?;
        let mut gated = b.rows(tokens, widths.inner)?;
        for (number, layer) in self.layers.iter().enumerate() {
            self.pack(layer, &x, tokens, &mut normed, &mut packed)?;
            attend(number, layer, &packed, &mut mixed)?;
            layer.out.add(b, &mixed, tokens, &mut x)?;
            self.widen(layer, &x, tokens, &mut normed, &mut wide)?;
            self.narrow(layer, &wide, tokens, &mut gated, &mut x)?;
        }
        let rows = self.last_norm(&x, last, count)?;
        b.logits(&rows, self.head)
    }

    /// `packed = norm(x) qkv`.
    fn pack(
        &self,
        layer: &Layer<B>,
        x: &B::Stream,
        tokens: usize,
        normed: &mut B::Rows,
        packed: &mut B::Rows,
    ) -> Result<()> {
        let b = &self.backend;
        b.rms_norm(x, layer.input_norm, normed)?;
        layer.qkv.write(b, normed, tokens, packed)
    }

    /// `wide = norm(middle) gate_up`.
    fn widen(
        &self,
        layer: &Layer<B>,
        middle: &B::Stream,
        tokens: usize,
        normed: &mut B::Rows,
        wide: &mut B::Rows,
    ) -> Result<()> {
        let b = &self.backend;
        b.rms_norm(middle, layer.post_norm, normed)?;
        layer.gate_up.write(b, normed, tokens, wide)
    }

    /// `out += swiglu(wide) down`.
    fn narrow(
        &self,
        layer: &Layer<B>,
        wide: &B::Rows,
        tokens: usize,
        gated: &mut B::Rows,
        out: &mut B::Stream,
    ) -> Result<()> {
        let b = &self.backend;
        b.swiglu(wide, self.widths.inner, gated)?;
        layer.down.add(b, gated, tokens, out)
    }

    /// The first part of a layer: `middle = x + attention(norm(x) qkv) out`, and `wide = norm(middle) gate_up`.
    fn between(
        &self,
        layer: &Layer<B>,
        x: &B::Stream,
        batch: &Batch<B>,
        normed: &mut B::Rows,
    ) -> Result<Between<B>> {
        let (b, widths, tokens) = (&self.backend, self.widths, batch.tokens);
        let mut packed = b.rows(tokens, widths.packed)?;
        self.pack(layer, x, tokens, normed, &mut packed)?;
        let mut mixed = b.rows(tokens, widths.mixed)?;
        let norms = [layer.q_norm, layer.k_norm];
        b.attention(&batch.places, &packed, norms, &mut mixed)?;
        let mut middle = b.copy(x)?;
        layer.out.add(b, &mixed, tokens, &mut middle)?;
        let mut wide = b.rows(tokens, 2 * widths.inner)?;
        self.widen(layer, &middle, tokens, normed, &mut wide)?;
        Ok(Between {
            packed,
            mixed,
            middle,
            wide,
        })
    }

    /// The second part, and the layer's output: `middle + swiglu(wide) down`.
    fn after(
        &self,
        layer: &Layer<B>,
        between: &Between<B>,
        tokens: usize,
        gated: &mut B::Rows,
    ) -> Result<B::Stream> {
        let mut out = self.backend.copy(&between.middle)?;
        self.narrow(layer, &between.wide, tokens, gated, &mut out)?;
        Ok(out)
    }

    /// Gives `keep` the gradient of each trained parameter, but for the head's own part, with the parameter's index. `d_rows`
    /// is the gradient of [`Self::rows`].
    pub(crate) fn backward(
        &self,
        mut tape: Tape<B>,
        batch: &Batch<B>,
        d_rows: &B::Rows,
        mut keep: impl FnMut(usize, B::Gradient) -> error::Result<()>,
    ) -> error::Result<()> {
        let (b, widths) = (&self.backend, self.widths);
        let hidden = widths.hidden;
        let picked = b.pick(&tape.streams[tape.streams.len() - 1], &batch.picked, hidden)?;
        let mut d_picked = b.stream(batch.targets, hidden)?;
        let mut d_norm = b.gradient(hidden)?;
        b.rms_norm_backward(&picked, self.norm, d_rows, &mut d_picked, &mut d_norm)?;
        let mut d = b.stream(batch.tokens, hidden)?;
        b.pick_backward(&d_picked, &batch.picked, hidden, &mut d)?;
        tape.streams.pop();
        let mut scratch = Scratch::new(b, widths, batch.tokens)?;
        if !self.frozen {
            let of_norm = 1 + PER_LAYER * self.layers.len();
            keep(of_norm, d_norm)?;
            if !self.tied {
                keep(of_norm + 1, b.gradient(hidden * widths.vocabulary)?)?;
            }
        }
        for (number, layer) in self.layers.iter().enumerate().rev() {
            let (Some(x), kept) = (tape.streams.pop(), tape.between.pop()) else {
                break;
            };
            let between = match kept {
                Some(between) => between,
                None => self.between(layer, &x, batch, &mut scratch.normed)?,
            };
            let gradients =
                self.layer_backward(layer, &x, &between, batch, &mut d, &mut scratch)?;
            // Every layer has as many, after the embedding if that is trained.
            let first = usize::from(!self.frozen) + number * gradients.len();
            for (index, gradient) in (first..).zip(gradients) {
                keep(index, gradient)?;
            }
        }
        if self.frozen {
            return Ok(());
        }
        let mut d_embedding = b.gradient(hidden * widths.vocabulary)?;
        b.embed_backward(&d, &batch.places, &mut d_embedding)?;
        keep(0, d_embedding)
    }

    /// Takes one layer backwards: `d`, the gradient of its output, becomes that of its input. Returns the gradients of its
    /// trained parameters. Those of norms come with that of their input, and are dropped if norms are frozen.
    fn layer_backward(
        &self,
        layer: &Layer<B>,
        x: &B::Stream,
        between: &Between<B>,
        batch: &Batch<B>,
        d: &mut B::Stream,
        scratch: &mut Scratch<B>,
    ) -> Result<Vec<B::Gradient>> {
        let Scratch {
            normed,
            d_normed,
            gated,
            d_gated,
            d_wide,
            d_mixed,
            d_packed,
        } = scratch;
        let (b, widths, tokens) = (&self.backend, self.widths, batch.tokens);
        let middle = &between.middle;
        // out = middle + swiglu(norm(middle) gate_up) down
        let d_down = {
            let g = b.operand(d)?;
            layer.down.input_gradient(b, &g, tokens, d_gated)?;
            b.swiglu_backward(&between.wide, widths.inner, d_gated, d_wide, gated)?;
            layer.down.weight_gradients(b, gated, &g, tokens)?
        };
        b.rms_norm(middle, layer.post_norm, normed)?;
        let d_gate_up = layer.gate_up.weight_gradients(b, normed, d_wide, tokens)?;
        layer.gate_up.input_gradient(b, d_wide, tokens, d_normed)?;
        let mut d_post_norm = b.gradient(widths.hidden)?;
        b.rms_norm_backward(middle, layer.post_norm, d_normed, d, &mut d_post_norm)?;
        // middle = x + attention(norm(x) qkv) out
        let d_out = {
            let g = b.operand(d)?;
            layer.out.input_gradient(b, &g, tokens, d_mixed)?;
            layer.out.weight_gradients(b, &between.mixed, &g, tokens)?
        };
        let (mut d_q_norm, mut d_k_norm) = (b.gradient(widths.head)?, b.gradient(widths.head)?);
        b.attention_backward(
            &batch.places,
            &between.packed,
            [layer.q_norm, layer.k_norm],
            d_mixed,
            d_packed,
            [&mut d_q_norm, &mut d_k_norm],
        )?;
        b.rms_norm(x, layer.input_norm, normed)?;
        let d_qkv = layer.qkv.weight_gradients(b, normed, d_packed, tokens)?;
        layer.qkv.input_gradient(b, d_packed, tokens, d_normed)?;
        let mut d_input_norm = b.gradient(widths.hidden)?;
        b.rms_norm_backward(x, layer.input_norm, d_normed, d, &mut d_input_norm)?;
        let gain = |gradient: B::Gradient| (!self.frozen).then_some(gradient);
        let mut gradients = Vec::new();
        gradients.extend(gain(d_input_norm));
        gradients.extend(d_qkv);
        gradients.extend(gain(d_q_norm));
        gradients.extend(gain(d_k_norm));
        gradients.extend(d_out);
        gradients.extend(gain(d_post_norm));
        gradients.extend(d_gate_up);
        gradients.extend(d_down);
        Ok(gradients)
    }
}

/// Buffers of the backward pass, one set for all layers.
struct Scratch<B: Backend> {
    normed: B::Rows,
    d_normed: B::Rows,
    gated: B::Rows,
    d_gated: B::Rows,
    d_wide: B::Rows,
    d_mixed: B::Rows,
    d_packed: B::Rows,
}

impl<B: Backend> Scratch<B> {
    fn new(backend: &B, widths: Widths, tokens: usize) -> Result<Self> {
        let rows = |width| backend.rows(tokens, width);
        Ok(Self {
            normed: rows(widths.hidden)?,
            d_normed: rows(widths.hidden)?,
            gated: rows(widths.inner)?,
            d_gated: rows(widths.inner)?,
            d_wide: rows(2 * widths.inner)?,
            d_mixed: rows(widths.mixed)?,
            d_packed: rows(widths.packed)?,
        })
    }
}
