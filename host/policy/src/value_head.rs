//! The value head of a critic: a linear map from the row that predicts a token to a number, the value.
//!
//! It shares the policy's trunk, as in TRL's `AutoModelForCausalLMWithValueHead`. The value of a token is what the
//! trajectory is expected to earn from that token on, before the token is known. The head reads the last normed hidden
//! state, which the vocabulary head reads too.
//!
//! It is computed in candle's operators on every device. A row's value is a sum over that row alone, in a fixed order. So on
//! the CPU its bits do not depend on the packing.

use std::collections::HashMap;
use std::path::Path;

use candle_core::{D, DType, Device, Result as TensorResult, Tensor, Var};

use crate::batch::PackedBatch;
use crate::error::Result;
use crate::in_order::run_in_order;
use crate::model::Model;
use crate::on_network::on_network;
use crate::pass::PassOptions;
use crate::qwen3::Backend;
use crate::tensor_file::{SavedTensor, StoredDtype, TensorFile, write_tensors};

const WEIGHT: &str = "value_head.weight";
const BIAS: &str = "value_head.bias";

/// A linear map from a hidden state to a value.
pub struct ValueHead {
    /// `[1, hidden]`, the layout of a linear layer in PyTorch.
    weight: Var,
    /// `[1]`.
    bias: Var,
    trains_trunk: bool,
}

impl ValueHead {
    /// A head for a model. All its numbers are 0, and so are its values. With `trains_trunk`, the gradient of a loss of
    /// values flows into the model, too. Without it, it ends at the head.
    pub fn new(model: &Model, trains_trunk: bool) -> Result<Self> {
        let hidden = model.config().hidden_size;
        Ok(Self {
            weight: Var::zeros((1, hidden), DType::F32, model.device())?,
            bias: Var::zeros(1, DType::F32, model.device())?,
            trains_trunk,
        })
    }

    /// Reads the head that [`Self::save`] wrote, for a model of the same width.
    ///
    /// # Errors
    /// If the file is missing or damaged, or is another model's.
    pub fn load(file: &Path, model: &Model, trains_trunk: bool) -> Result<Self> {
        let head = Self::new(model, trains_trunk)?;
        let mut tensors = TensorFile::open(file)?;
        for (name, variable) in head.parameters() {
            tensors.read_into(name, variable, "a value head")?;
        }
        Ok(head)
    }

    /// Writes the head to a safetensors file, completely or not at all.
    pub fn save(&self, file: &Path) -> Result<()> {
        let parameters = self.parameters();
        let tensors = parameters.map(|(name, variable)| SavedTensor::whole(name, variable));
        write_tensors(file, tensors.collect(), HashMap::new(), StoredDtype::F32)
    }

    /// Its weight and its bias, with their names.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &Var)> {
        [(WEIGHT, &self.weight), (BIAS, &self.bias)].into_iter()
    }

    /// The device of its weights.
    pub(crate) fn device(&self) -> &Device {
        self.weight.device()
    }

    /// True if the gradient of values flows into the rows that they are computed from.
    pub(crate) fn trains_trunk(&self) -> bool {
        self.trains_trunk
    }

    /// The values of rows `[rows, hidden]`, on a tape: `[rows]`.
    pub(crate) fn values(&self, rows: &Tensor) -> TensorResult<Tensor> {
        rows.broadcast_mul(self.weight.as_tensor())?
            .sum(D::Minus1)?
            .broadcast_add(self.bias.as_tensor())
    }
}

impl Model {
    /// The values of the batches' targets, without gradient, `[targets]` for each batch; `workers` threads share the batches.
    pub fn values(
        &self,
        batches: &[PackedBatch],
        options: &PassOptions,
        head: &ValueHead,
    ) -> Result<Vec<Tensor>> {
        self.check_pass(batches, options)?;
        let mut all = Vec::with_capacity(batches.len());
        run_in_order(
            batches.len(),
            self.workers(options),
            |index| self.values_of(&batches[index], head),
            |values| {
                all.push(values);
                Ok(())
            },
        )?;
        Ok(all)
    }

    fn values_of(&self, batch: &PackedBatch, head: &ValueHead) -> Result<Tensor> {
        if !self.fused() {
            let x = self.plain_trunk(self.frozen(), batch)?;
            let rows = self.plain_rows(self.frozen(), &x, batch)?;
            return Ok(head.values(&rows)?.detach());
        }
        on_network!(self, |network| {
            let batch = network.batch(batch)?;
            let rows = network.rows_only(&batch)?;
            let rows = network.backend.rows_tensor(&rows, network.widths.hidden)?;
            Ok(head.values(&rows)?.detach())
        })
    }
}
