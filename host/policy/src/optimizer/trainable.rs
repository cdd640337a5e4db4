//! What an optimiser can change: the weights of a model, or those of a value head.

use candle_core::{Device, Result, Var};

use crate::model::Model;
use crate::value_head::ValueHead;

/// Weights that an optimiser changes in place.
pub trait Trainable {
    /// Every parameter with its name, in the order of the gradients.
    fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &Var)>;

    /// The device of the weights.
    fn device(&self) -> &Device;

    /// True if the optimiser's fused operators make the update.
    fn fused(&self) -> bool;

    /// Ends a step, in which all weights have changed.
    fn weights_changed(&self) -> Result<()>;
}

impl Trainable for Model {
    fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &Var)> {
        Self::parameters(self)
    }

    fn device(&self) -> &Device {
        Self::device(self)
    }

    fn fused(&self) -> bool {
        Self::fused(self)
    }

    fn weights_changed(&self) -> Result<()> {
        Self::weights_changed(self)
    }
}

impl Trainable for ValueHead {
    fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &Var)> {
        Self::parameters(self)
    }

    fn device(&self) -> &Device {
        Self::device(self)
    }

    /// It is too small to gain from them.
    fn fused(&self) -> bool {
        false
    }

    fn weights_changed(&self) -> Result<()> {
        // Other threads, with other streams, may read them next.
        Self::device(self).synchronize()
    }
}
