//! The backward pass of the plain network, on candle's tape.

use candle_core::backprop::GradStore;
use candle_core::{Tensor, Var};

use crate::batch::PackedBatch;
use crate::error::{PolicyError, Result};
use crate::model::Model;
use crate::ops::embedding::plain_embedding;

/// The plain network up to the vocabulary head, after its forward pass and ready for its backward pass.
pub(crate) struct Trunk {
    /// The input of the vocabulary head, `[targets, hidden]`, on a tape.
    pub(crate) rows: Tensor,
    /// Every layer's input, and the last layer's output as the leaf of the tape. Only with checkpointing.
    saved: Option<(Vec<Tensor>, Var)>,
}

impl Trunk {
    pub(crate) fn taped(model: &Model, batch: &PackedBatch) -> Result<Self> {
        let x = model.plain_trunk(model.tracked(), batch)?;
        Ok(Self {
            rows: model.plain_rows(model.tracked(), &x, batch)?,
            saved: None,
        })
    }

    pub(crate) fn checkpointed(model: &Model, batch: &PackedBatch) -> Result<Self> {
        let padded = model.padded(batch)?;
        let weights = model.frozen();
        let mut inputs = Vec::with_capacity(weights.layers.len());
        let mut x = plain_embedding(&weights.embedding, &batch.ids)?;
        for layer in &weights.layers {
            let y = model.plain_layer(layer, &x, &padded)?;
            inputs.push(std::mem::replace(&mut x, y));
        }
        let top = Var::from_tensor(&x)?;
        Ok(Self {
            rows: model.plain_rows(model.tracked(), top.as_tensor(), batch)?,
            saved: Some((inputs, top)),
        })
    }

    /// Gradients of all trained parameters except the head's own part, given that of `rows`; `None` for an unused parameter.
    pub(crate) fn backward(
        mut self,
        model: &Model,
        batch: &PackedBatch,
        d_rows: &Tensor,
    ) -> Result<Vec<Option<Tensor>>> {
        let mut all = vec![None; model.variables().len()];
        // Other gradients in a store, such as those of constants, are dropped with it. A gradient is on a tape as well:
        // without `detach`, it would keep all intermediate results of its layer.
        let mut keep = |store: &mut GradStore| {
            for (gradient, variable) in all.iter_mut().zip(model.variables()) {
                if let Some(found) = store.remove(variable) {
                    *gradient = Some(found.detach());
                }
            }
        };
        let mut store = product_backward(&self.rows, d_rows)?;
        keep(&mut store);
        let Some((mut inputs, top)) = self.saved.take() else {
            return Ok(all);
        };
        let padded = model.padded(batch)?;
        let mut d = leaf_gradient(&mut store, &top)?;
        drop(top);
        for layer in model.tracked().layers.iter().rev() {
            let Some(input) = inputs.pop() else { break };
            let input = Var::from_tensor(&input)?;
            let mut store =
                product_backward(&model.plain_layer(layer, input.as_tensor(), &padded)?, &d)?;
            d = leaf_gradient(&mut store, &input)?;
            keep(&mut store);
        }
        if model.adapters().is_none() {
            let embedded = plain_embedding(&model.tracked().embedding, &batch.ids)?;
            keep(&mut product_backward(&embedded, &d)?);
        }
        Ok(all)
    }
}

/// The backward pass from the gradient `d` of `y`. Candle has none, but that of sum(y * d) is the same.
fn product_backward(y: &Tensor, d: &Tensor) -> candle_core::Result<GradStore> {
    (y * d)?.sum_all()?.backward()
}

fn leaf_gradient(store: &mut GradStore, leaf: &Var) -> Result<Tensor> {
    store
        .remove(leaf)
        .map(|gradient| gradient.detach())
        .ok_or_else(|| PolicyError::Gradient {
            parameter: "a layer's input".to_owned(),
            message: "none was computed; an operator dropped it".to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::batch::Sequence;
    use crate::measure::quickstart_shape;
    use crate::model::Operators;

    #[test]
    fn gradients_keep_no_tape_and_so_no_layer() {
        let mut model = Model::init(&quickstart_shape(), 0, &Device::Cpu).unwrap();
        model.use_operators(Operators::Plain).unwrap();
        let (ids, mask) = ([5, 6, 7, 8], [false, true, true, true]);
        let sequence = Sequence {
            ids: &ids,
            mask: &mask,
        };
        let batch = PackedBatch::new(&[sequence]).unwrap();
        for trunk in [Trunk::taped, Trunk::checkpointed] {
            let trunk = trunk(&model, &batch).unwrap();
            let d = trunk.rows.ones_like().unwrap();
            let gradients = trunk.backward(&model, &batch, &d).unwrap();
            assert!(gradients.iter().flatten().count() > 10);
            assert!(gradients.iter().flatten().all(|one| !one.track_op()));
        }
    }
}
