//! The twin of [`attention`](super::attention) in candle's operators.

use candle_core::{D, Result, Tensor};

use super::attention::{Attention, Heads};
use super::norm::plain_rms_norm;
use super::rotary::plain_rotate;

/// The twin of [`attention_into`](super::attention::attention_into) in candle's operators: sequences padded to the longest.
pub(crate) fn plain_attention(
    x: &Tensor,
    q_norm: &Tensor,
    k_norm: &Tensor,
    attention: &Attention,
) -> Result<Tensor> {
    let Attention {
        heads,
        spans,
        table,
    } = attention;
    let device = x.device();
    let (batch, longest) = (
        spans.len(),
        spans.iter().map(|span| span.len).max().unwrap_or(0),
    );
    // Padding repeats the first row; it comes after every real position, so nothing real sees it.
    let mut padded = vec![0u32; batch * longest];
    let mut packed = Vec::new();
    for (sequence, span) in spans.iter().enumerate() {
        for position in 0..span.len {
            padded[sequence * longest + position] = (span.start + position) as u32;
            packed.push((sequence * longest + position) as u32);
        }
    }
    let padded = Tensor::from_slice(&padded, batch * longest, device)?;
    let rows = x
        .index_select(&padded, 0)?
        .reshape((batch, longest, heads.packed_width()))?;
    let part = |from: usize, count: usize| -> Result<Tensor> {
        rows.narrow(D::Minus1, from, count * heads.dim)?
            .contiguous()?
            .reshape((batch, longest, count, heads.dim))?
            .transpose(1, 2)?
            .contiguous()
    };
    let (cos, sin) = table.tensors(longest, device)?;
    let q = plain_rotate(
        &plain_rms_norm(&part(0, heads.query)?, q_norm, heads.eps)?,
        &cos,
        &sin,
    )?;
    let keys = part(heads.key_column(0), heads.key_value)?;
    let k = plain_rotate(&plain_rms_norm(&keys, k_norm, heads.eps)?, &cos, &sin)?;
    let v = part(heads.value_column(0), heads.key_value)?;
    let mask: Vec<f32> = (0..longest)
        .flat_map(|i| (0..longest).map(move |j| if j <= i { 0.0 } else { f32::NEG_INFINITY }))
        .collect();
    let mask = Tensor::from_vec(mask, (1, 1, longest, longest), device)?;
    let out = plain_masked_attention(&q, &k, &v, &mask, heads)?;
    let out = out
        .transpose(1, 2)?
        .contiguous()?
        .reshape((batch * longest, heads.out_width()))?;
    out.index_select(&Tensor::from_slice(&packed, packed.len(), device)?, 0)
}

/// softmax(q kᵀ / sqrt(dim) + mask) v with grouped heads, for q `[batch, heads, rows, dim]`, k and v `[batch, kv heads,
/// positions, dim]`, in candle's operators. No row may be masked as a whole.
pub(crate) fn plain_masked_attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: &Tensor,
    heads: &Heads,
) -> Result<Tensor> {
    let repeat = |t: &Tensor| -> Result<Tensor> {
        let (batch, kv, positions, dim) = t.dims4()?;
        let group = heads.group();
        t.unsqueeze(2)?
            .broadcast_as((batch, kv, group, positions, dim))?
            .contiguous()?
            .reshape((batch, kv * group, positions, dim))
    };
    let (k, v) = (repeat(k)?, repeat(v)?);
    let scores = (q.matmul(&k.transpose(2, 3)?.contiguous()?)? * f64::from(heads.scale()))?
        .broadcast_add(mask)?;
    let scores = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?.detach())?;
    let weights = scores.exp()?;
    weights
        .broadcast_div(&weights.sum_keepdim(D::Minus1)?)?
        .matmul(&v)
}
