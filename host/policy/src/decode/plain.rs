//! Decoding in candle's operators, for devices without fused ones. The same results within rounding, not to the bit.

use candle_core::{D, DType, Tensor};

use super::{DeviceCache, PAGE_TOKENS, Placed, rows_of};
use crate::error::Result;
use crate::model::Model;
use crate::ops::attention::Heads;
use crate::ops::attention_plain::plain_masked_attention;
use crate::ops::embedding::plain_embedding;
use crate::ops::norm::plain_rms_norm;
use crate::ops::rotary::plain_rotate;
use crate::ops::swiglu::plain_swiglu;
use crate::weights::LayerWeights;

/// Keys and values of all pages, per layer `[pages * positions of a page, kv heads * dim]`.
pub(super) struct PlainCache {
    keys: Vec<Tensor>,
    values: Vec<Tensor>,
}

/// The places of a step's rows, as index tensors.
struct Places {
    /// Padded entry rows, `[entries * longest]`, into the packed rows.
    padded: Tensor,
    /// Packed rows into the padded ones.
    packed: Tensor,
    /// Cache rows to write, `[rows, kv width]`.
    write: Tensor,
    /// Cache rows to read, `[entries * positions]`.
    read: Tensor,
    /// 0 or minus infinity, `[entries, 1, longest, positions]`.
    mask: Tensor,
    /// Rotary tables of the padded rows, `[entries, 1, longest, dim / 2]`.
    cos: Tensor,
    sin: Tensor,
    entries: usize,
    longest: usize,
    positions: usize,
}

impl PlainCache {
    /// A cache of so many pages for a model's shape.
    pub(super) fn new(model: &Model, pages: usize) -> Result<Self> {
        let heads = model.heads();
        let shape = (pages * PAGE_TOKENS, heads.key_value * heads.dim);
        let layers = model.config().num_hidden_layers;
        let zeros = || Tensor::zeros(shape, DType::F32, model.device());
        Ok(Self {
            keys: (0..layers)
                .map(|_| zeros())
                .collect::<candle_core::Result<_>>()?,
            values: (0..layers)
                .map(|_| zeros())
                .collect::<candle_core::Result<_>>()?,
        })
    }
}

impl DeviceCache for PlainCache {
    fn copy_page(&mut self, from: usize, to: usize) -> Result<()> {
        for cache in self.keys.iter().chain(&self.values) {
            let rows = cache.narrow(0, from * PAGE_TOKENS, PAGE_TOKENS)?.copy()?;
            cache.slice_set(&rows, 0, to * PAGE_TOKENS)?;
        }
        Ok(())
    }

    fn step(&mut self, model: &Model, entries: &[Placed<'_>]) -> Result<Vec<f32>> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let places = Self::places(model, entries)?;
        let weights = model.frozen();
        let (ids, last) = rows_of(entries.iter().map(|placed| &placed.entry));
        let mut x = plain_embedding(&weights.embedding, &ids)?;
        let eps = model.eps();
        for (number, layer) in weights.layers.iter().enumerate() {
            let normed = plain_rms_norm(&x, &layer.input_norm, eps)?;
            let packed = layer.qkv.plain(&normed)?;
            let mixed = self.attend(&model.heads(), layer, number, &packed, &places)?;
            x = (x + layer.out.plain(&mixed)?)?;
            let normed = plain_rms_norm(&x, &layer.post_norm, eps)?;
            let wide = layer.gate_up.plain(&normed)?;
            x = (x + layer.down.plain(&plain_swiglu(&wide)?)?)?;
        }
        let last = Tensor::from_slice(&last, last.len(), model.device())?;
        let x = plain_rms_norm(&x.index_select(&last, 0)?, &weights.norm, eps)?;
        let head = weights
            .head
            .narrow(1, 0, model.vocabulary())?
            .contiguous()?;
        Ok(x.matmul(&head)?.flatten_all()?.to_vec1()?)
    }
}

impl PlainCache {
    fn places(model: &Model, entries: &[Placed<'_>]) -> Result<Places> {
        let heads = model.heads();
        let device = model.device();
        let longest = entries
            .iter()
            .map(|placed| placed.entry.tokens.len())
            .max()
            .unwrap_or(0);
        let positions = entries
            .iter()
            .map(|placed| placed.entry.end())
            .max()
            .unwrap_or(0);
        let (mut padded, mut packed, mut write, mut read) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut mask, mut cos, mut sin) = (Vec::new(), Vec::new(), Vec::new());
        let mut first = 0u32;
        for (index, placed) in entries.iter().enumerate() {
            let (entry, count) = (placed.entry, placed.entry.tokens.len());
            for row in 0..longest {
                // Padding repeats the entry's last row; its result is never read.
                let real = row.min(count - 1);
                padded.push(first + real as u32);
                let position = entry.start + real;
                if row < count {
                    packed.push((index * longest + row) as u32);
                    write.extend(vec![
                        placed.cell(position) as u32;
                        heads.key_value * heads.dim
                    ]);
                }
                mask.extend((0..positions).map(|j| {
                    if j <= position {
                        0.0
                    } else {
                        f32::NEG_INFINITY
                    }
                }));
                let (c, s) = model.table().at(position);
                cos.extend_from_slice(c);
                sin.extend_from_slice(s);
            }
            read.extend((0..positions).map(|j| placed.cell(j.min(entry.end() - 1)) as u32));
            first += count as u32;
        }
        let rows = packed.len();
        let table = (entries.len(), 1, longest, heads.dim / 2);
        Ok(Places {
            padded: Tensor::from_vec(padded, entries.len() * longest, device)?,
            packed: Tensor::from_vec(packed, rows, device)?,
            write: Tensor::from_vec(write, (rows, heads.key_value * heads.dim), device)?,
            read: Tensor::from_vec(read, entries.len() * positions, device)?,
            mask: Tensor::from_vec(mask, (entries.len(), 1, longest, positions), device)?,
            cos: Tensor::from_vec(cos, table, device)?,
            sin: Tensor::from_vec(sin, table, device)?,
            entries: entries.len(),
            longest,
            positions,
        })
    }

    fn attend(
        &self,
        heads: &Heads,
        layer: &LayerWeights,
        number: usize,
        packed: &Tensor,
        places: &Places,
    ) -> candle_core::Result<Tensor> {
        let (entries, longest) = (places.entries, places.longest);
        let rows = packed.index_select(&places.padded, 0)?.reshape((
            entries,
            longest,
            heads.packed_width(),
        ))?;
        let part = |from: usize, count: usize| {
            rows.narrow(D::Minus1, from, count * heads.dim)?
                .contiguous()?
                .reshape((entries, longest, count, heads.dim))?
                .transpose(1, 2)?
                .contiguous()
        };
        let rotated = |x: &Tensor, w: &Tensor| {
            plain_rotate(&plain_rms_norm(x, w, heads.eps)?, &places.cos, &places.sin)
        };
        // [entries, heads, longest, dim] to [rows, heads * dim]
        let back = |x: &Tensor, width: usize| {
            x.transpose(1, 2)?
                .contiguous()?
                .reshape((entries * longest, width))?
                .index_select(&places.packed, 0)
        };
        let width = heads.key_value * heads.dim;
        let q = rotated(&part(0, heads.query)?, &layer.q_norm)?;
        let k = rotated(&part(heads.key_column(0), heads.key_value)?, &layer.k_norm)?;
        let v = part(heads.value_column(0), heads.key_value)?;
        self.keys[number].scatter_set(&places.write, &back(&k, width)?, 0)?;
        self.values[number].scatter_set(&places.write, &back(&v, width)?, 0)?;
        let cached = |cache: &Tensor| {
            cache
                .index_select(&places.read, 0)?
                .reshape((entries, places.positions, heads.key_value, heads.dim))?
                .transpose(1, 2)?
                .contiguous()
        };
        let (k, v) = (cached(&self.keys[number])?, cached(&self.values[number])?);
        let out = plain_masked_attention(&q, &k, &v, &places.mask, heads)?;
        back(&out, heads.out_width())
    }
}
