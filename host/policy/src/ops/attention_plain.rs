//! The twin of [`attention`](super::attention) in candle's operators.

use candle_core::{D, Device, Result, Tensor};

use super::attention::{Attention, Heads};
use super::by_hand::by_hand;
use super::norm::plain_rms_norm;
use super::rotary::plain_rotate;

/// The sequences of a batch, padded to the longest, as tensors. All layers share them.
pub(crate) struct Padded {
    heads: Heads,
    sequences: usize,
    longest: usize,
    /// Packed row of each padded one, `[sequences * longest]`.
    rows: Tensor,
    /// Padded row of each packed one, `[tokens]`.
    packed: Tensor,
    /// 1 for each padded row that is real and 0 for padding, `[sequences * longest, 1]`.
    real: Tensor,
    /// 0 or minus infinity, `[1, 1, longest, longest]`.
    mask: Tensor,
    /// Rotary tables, `[longest, dim / 2]`.
    cos: Tensor,
    sin: Tensor,
}

impl Padded {
    pub(crate) fn new(attention: &Attention, device: &Device) -> Result<Self> {
        let Attention {
            heads,
            spans,
            table,
        } = attention;
        let sequences = spans.len();
        let longest = spans.iter().map(|span| span.len).max().unwrap_or(0);
        // Padding repeats the first row; it comes after every real position, so nothing real sees it.
        let mut rows = vec![0u32; sequences * longest];
        let mut real = vec![0f32; sequences * longest];
        let mut packed = Vec::new();
        for (sequence, span) in spans.iter().enumerate() {
            for position in 0..span.len {
                let row = sequence * longest + position;
                rows[row] = (span.start + position) as u32;
                real[row] = 1.0;
                packed.push(row as u32);
            }
        }
        let mask: Vec<f32> = (0..longest)
            .flat_map(|i| (0..longest).map(move |j| if j <= i { 0.0 } else { f32::NEG_INFINITY }))
            .collect();
        let (cos, sin) = table.tensors(longest, device)?;
        Ok(Self {
            heads: *heads,
            sequences,
            longest,
            rows: Tensor::from_vec(rows, sequences * longest, device)?,
            packed: Tensor::from_slice(&packed, packed.len(), device)?,
            real: Tensor::from_vec(real, (sequences * longest, 1), device)?,
            mask: Tensor::from_vec(mask, (1, 1, longest, longest), device)?,
            cos,
            sin,
        })
    }

    /// Packed rows `[tokens, ..]` to padded ones `[sequences * longest, ..]`. Nothing real sees padding, so the gradient of
    /// a row is that of its one real copy. The tape would add up all copies, row after row.
    fn pad(&self, x: &Tensor) -> Result<Tensor> {
        let packed = self.packed.clone();
        let y = x.detach().index_select(&self.rows, 0)?;
        by_hand(x, y, move |_, d| d.index_select(&packed, 0))
    }

    /// Padded rows to packed ones.
    fn unpad(&self, x: &Tensor) -> Result<Tensor> {
        let (rows, real) = (self.rows.clone(), self.real.clone());
        let y = x.detach().index_select(&self.packed, 0)?;
        by_hand(x, y, move |_, d| {
            d.index_select(&rows, 0)?.broadcast_mul(&real)
        })
    }
}

/// The twin of [`attention_into`](super::attention::attention_into) in candle's operators.
pub(crate) fn plain_attention(
    x: &Tensor,
    q_norm: &Tensor,
    k_norm: &Tensor,
    padded: &Padded,
) -> Result<Tensor> {
    let Padded {
        heads,
        sequences,
        longest,
        ..
    } = *padded;
    let rows = padded
        .pad(x)?
        .reshape((sequences, longest, heads.packed_width()))?;
    let part = |from: usize, count: usize| -> Result<Tensor> {
        rows.narrow(D::Minus1, from, count * heads.dim)?
            .contiguous()?
            .reshape((sequences, longest, count, heads.dim))?
            .transpose(1, 2)?
            .contiguous()
    };
    let rotated = |x: &Tensor, norm: &Tensor| {
        plain_rotate(
            &plain_rms_norm(x, norm, heads.eps)?,
            &padded.cos,
            &padded.sin,
        )
    };
    let q = rotated(&part(0, heads.query)?, q_norm)?;
    let k = rotated(&part(heads.key_column(0), heads.key_value)?, k_norm)?;
    let v = part(heads.value_column(0), heads.key_value)?;
    let out = plain_masked_attention(&q, &k, &v, &padded.mask, &heads)?
        .transpose(1, 2)?
        .contiguous()?
        .reshape((sequences * longest, heads.out_width()))?;
    padded.unpad(&out)
}

/// softmax(q kᵀ / sqrt(dim) + mask) v with grouped heads, in candle's operators: q `[batch, heads, rows, dim]`, k and v
/// `[batch, kv heads, positions, dim]`, mask `[batch or 1, 1, rows, positions]`. No row may be masked as a whole.
pub(crate) fn plain_masked_attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: &Tensor,
    heads: &Heads,
) -> Result<Tensor> {
    let (batch, query, rows, dim) = q.dims4()?;
    let (_, kv, positions, _) = k.dims4()?;
    // The query heads of a group are rows of one product, so keys and values are not repeated.
    let grouped = (batch, kv, heads.group() * rows, dim);
    let q = (q.reshape(grouped)? * f64::from(heads.scale()))?;
    let scores = q
        .matmul(&k.t()?)?
        .reshape((batch, query, rows, positions))?;
    masked_softmax(&scores, mask)?
        .reshape((batch, kv, heads.group() * rows, positions))?
        .matmul(v)?
        .reshape((batch, query, rows, dim))
}

/// softmax(scores + mask) over the last dimension, for scores `[batch, heads, rows, positions]`.
///
/// Its gradient needs the result p only: p (d - sum(p d)). The tape would keep every step.
fn masked_softmax(scores: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let (batch, heads, rows, positions) = scores.dims4()?;
    // Candle broadcasts fewer dimensions faster.
    let mask = mask.reshape((mask.dim(0)?, 1, rows * positions))?;
    let x = scores
        .detach()
        .reshape((batch, heads, rows * positions))?
        .broadcast_add(&mask)?
        .reshape((batch * heads * rows, positions))?;
    let x = x.broadcast_sub(&x.max_keepdim(D::Minus1)?)?.exp()?;
    let p = x.broadcast_div(&x.sum_keepdim(D::Minus1)?)?;
    by_hand(scores, p.reshape(scores.shape())?, |p, d| {
        let shape = p.shape();
        let (p, d) = (p.flatten_to(2)?, d.flatten_to(2)?);
        let pull = (&p * &d)?.sum_keepdim(D::Minus1)?;
        (p * d.broadcast_sub(&pull)?)?.reshape(shape)
    })
}
