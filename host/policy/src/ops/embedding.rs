//! Rows of the residual stream from token ids.
//!
//! The embedding is stored as the vocabulary head needs it, `[hidden, vocabulary]`, so that tied weights are one
//! parameter with one layout and no copy that could be stale. A token's row is then a column here.

use candle_core::{Result, Tensor};

/// Computes `out[ids, hidden]`: column `id` of `w[hidden, vocabulary]` for each id. Ids are below `vocabulary`.
pub(crate) fn embed_into<T: Copy + Into<f32>>(
    w: &[T],
    vocabulary: usize,
    ids: &[u32],
    out: &mut [f32],
) {
    let hidden = w.len() / vocabulary;
    for (id, row) in ids.iter().zip(out.chunks_exact_mut(hidden)) {
        let column = &w[*id as usize..];
        for (x, w) in row.iter_mut().zip(column.iter().step_by(vocabulary)) {
            *x = (*w).into();
        }
    }
}

/// Adds `g[ids, hidden]` to the columns of `dw[hidden, vocabulary]`, in the order of ids.
pub(crate) fn embed_backward_into(g: &[f32], vocabulary: usize, ids: &[u32], dw: &mut [f32]) {
    let hidden = dw.len() / vocabulary;
    for (id, row) in ids.iter().zip(g.chunks_exact(hidden)) {
        let column = dw[*id as usize..].iter_mut().step_by(vocabulary);
        for (dw, g) in column.zip(row) {
            *dw += g;
        }
    }
}

/// The twin of [`embed_into`] in candle's operators, for w `[hidden, vocabulary]`.
pub(crate) fn plain_embedding(w: &Tensor, ids: &[u32]) -> Result<Tensor> {
    let ids = Tensor::from_slice(ids, ids.len(), w.device())?;
    w.index_select(&ids, 1)?.t()?.contiguous()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::twin;

    #[test]
    fn it_and_its_gradient_are_those_of_its_twin() {
        let (hidden, vocabulary, ids) = (16, 10, [3u32, 9, 3, 0]);
        let (w, g) = (
            twin::random(1, hidden * vocabulary),
            twin::random(2, ids.len() * hidden),
        );
        let mut out = vec![0.0; g.len()];
        embed_into(&w, vocabulary, &ids, &mut out);
        let mut dw = vec![0.0; w.len()];
        embed_backward_into(&g, vocabulary, &ids, &mut dw);
        twin::check(&[(&w, &[hidden, vocabulary])], (&g, &out, &[&dw]), |of| {
            plain_embedding(&of[0], &ids)
        });
    }
}
