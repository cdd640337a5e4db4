//! AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019) with clipping by global norm.
//!
//! Parameters and moments are f32. The update works element by element, so its result depends on its inputs only.

mod config;
mod trainable;

use std::collections::HashMap;
use std::path::Path;

use candle_core::{CpuStorage, DType, InplaceOp2, Layout, Tensor, Var};
use rayon::prelude::*;

use crate::error::{PolicyError, Result};
use crate::grad::Gradients;
use crate::ops::{numbers, numbers_mut};
use crate::tensor_file::{SavedTensor, StoredDtype, TensorFile, write_tensors};

pub use config::{OptimizerConfig, Schedule};
pub use trainable::Trainable;

/// The report of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepReport {
    /// Global norm of the gradient before clipping.
    pub grad_norm: f64,
    /// True if it was clipped.
    pub clipped: bool,
}

/// Numbers of state for each number of a parameter: its first and second moment.
pub(crate) const MOMENTS: usize = 2;

/// The optimiser and its state.
pub struct AdamW {
    config: OptimizerConfig,
    steps: u64,
    /// First and second moments of every parameter, flat, `[2, numbers]`.
    moments: Vec<Var>,
}

impl AdamW {
    /// A new optimiser, with all moments 0.
    pub fn new(model: &impl Trainable, config: OptimizerConfig) -> Result<Self> {
        config.validate()?;
        let moments = model
            .parameters()
            .map(|(_, variable)| {
                let shape = (MOMENTS, variable.elem_count());
                Var::zeros(shape, DType::F32, model.device())
            })
            .collect::<candle_core::Result<_>>()?;
        Ok(Self {
            config,
            steps: 0,
            moments,
        })
    }

    /// Steps made so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Updates the weights in place, at this learning rate (see [`OptimizerConfig::rate_at`]).
    ///
    /// # Errors
    /// If the gradient is not finite. Then nothing is changed.
    pub fn step(
        &mut self,
        model: &impl Trainable,
        gradients: &Gradients,
        learning_rate: f64,
    ) -> Result<StepReport> {
        let grad_norm = gradients.norm()?;
        if !grad_norm.is_finite() {
            let broken = gradients.iter().find(|(_, g)| {
                g.abs()
                    .and_then(|g| g.sum_all())
                    .and_then(|sum| sum.to_scalar::<f32>())
                    .is_ok_and(|sum| !sum.is_finite())
            });
            return Err(PolicyError::Gradient {
                parameter: broken.map_or("global norm", |(name, _)| name).to_owned(),
                message: "is not finite. A lower learning rate or a longer warm-up usually helps"
                    .into(),
            });
        }
        let max = self.config.max_grad_norm;
        let clipped = max > 0.0 && grad_norm > max;
        self.steps += 1;
        let steps = self.steps as f64;
        let update = Update {
            beta1: self.config.beta1,
            beta2: self.config.beta2,
            epsilon: self.config.epsilon,
            learning_rate,
            scale: if clipped { max / grad_norm } else { 1.0 },
            correction1: 1.0 - self.config.beta1.powf(steps),
            correction2: 1.0 - self.config.beta2.powf(steps),
            weight_decay: 0.0,
        };
        for (((name, parameter), moments), (of, gradient)) in
            model.parameters().zip(&self.moments).zip(gradients.iter())
        {
            if name != of || gradient.elem_count() != parameter.elem_count() {
                return Err(PolicyError::Gradient {
                    parameter: name.to_owned(),
                    message: format!("these gradients belong to another model ({of})"),
                });
            }
            let decays = parameter.rank() > 1;
            let update = Update {
                weight_decay: if decays {
                    self.config.weight_decay
                } else {
                    0.0
                },
                ..update
            };
            update.apply(model.fused(), parameter, moments, gradient)?;
        }
        model.weights_changed()?;
        Ok(StepReport { grad_norm, clipped })
    }

    /// Writes the state to a safetensors file, atomically. `model` gives the names.
    pub fn save(&self, file: &Path, model: &impl Trainable) -> Result<()> {
        let parameters = model.parameters().zip(&self.moments);
        let tensors = parameters.map(|((name, _), moments)| SavedTensor::whole(name, moments));
        let metadata = HashMap::from([("steps".to_owned(), self.steps.to_string())]);
        write_tensors(file, tensors.collect(), metadata, StoredDtype::F32)
    }

    /// Reads the state that [`Self::save`] wrote, for a model of the same shape.
    pub fn load(file: &Path, model: &impl Trainable, config: OptimizerConfig) -> Result<Self> {
        let mut state = Self::new(model, config)?;
        let mut tensors = TensorFile::open(file)?;
        state.steps = tensors
            .metadata("steps")
            .and_then(|steps| steps.parse().ok())
            .ok_or_else(|| {
                PolicyError::checkpoint(
                    file,
                    "no step count: not an optimiser state of this program",
                )
            })?;
        for ((name, _), moments) in model.parameters().zip(&state.moments) {
            tensors.read_into(name, moments, "an optimiser's state")?;
        }
        Ok(state)
    }
}

#[derive(Debug, Clone, Copy)]
struct Update {
    beta1: f64,
    beta2: f64,
    epsilon: f64,
    learning_rate: f64,
    /// Factor of the gradient, for clipping.
    scale: f64,
    correction1: f64,
    correction2: f64,
    weight_decay: f64,
}

impl Update {
    /// The factor of the old weights, the rate, and what belongs to the root of the second moment: its correction and
    /// the number added to it.
    fn factors(&self) -> [f32; 4] {
        let keep = 1.0 - self.learning_rate * self.weight_decay;
        let rate = self.learning_rate / self.correction1;
        [keep, rate, 1.0 / self.correction2, self.epsilon].map(|x| x as f32)
    }

    /// Factors of the moments, and that of the gradient.
    fn decays(&self) -> [f32; 3] {
        [self.beta1, self.beta2, self.scale].map(|x| x as f32)
    }

    /// Makes the update, with the fused operators of the weights' device or with candle's.
    fn apply(
        &self,
        fused: bool,
        parameter: &Var,
        moments: &Var,
        gradient: &Tensor,
    ) -> candle_core::Result<()> {
        if !fused {
            return self.plain(parameter, moments, gradient);
        }
        #[cfg(feature = "cuda")]
        if parameter.device().is_cuda() {
            let (decays, factors) = (self.decays(), self.factors());
            return crate::cuda::optimizer::step(parameter, moments, gradient, decays, factors);
        }
        moments.inplace_op2(gradient, &Moments(*self))?;
        parameter.inplace_op2(moments, &Apply(*self))
    }

    /// Makes the update in candle's operators.
    fn plain(&self, parameter: &Var, moments: &Var, gradient: &Tensor) -> candle_core::Result<()> {
        let g = (gradient.flatten_all()? * self.scale)?;
        let old = moments.as_detached_tensor();
        let m = ((old.get(0)? * self.beta1)? + (&g * (1.0 - self.beta1))?)?;
        let v = ((old.get(1)? * self.beta2)? + (g.sqr()? * (1.0 - self.beta2))?)?;
        let step = ((&m / self.correction1)? / ((&v / self.correction2)?.sqrt()? + self.epsilon)?)?;
        let weights = parameter.as_detached_tensor();
        let kept = (&weights * (1.0 - self.learning_rate * self.weight_decay))?;
        let new = (kept - (step.reshape(weights.shape())? * self.learning_rate)?)?;
        moments.set(&Tensor::stack(&[m, v], 0)?)?;
        parameter.set(&new)
    }
}

/// Elements per task of the thread pool. It changes the speed only.
const CHUNK: usize = 1 << 15;

struct Moments(Update);

impl InplaceOp2 for Moments {
    fn name(&self) -> &'static str {
        "adamw-moments"
    }

    fn cpu_fwd(
        &self,
        moments: &mut CpuStorage,
        lm: &Layout,
        g: &CpuStorage,
        lg: &Layout,
    ) -> candle_core::Result<()> {
        let g = numbers(g, lg)?;
        let moments = numbers_mut(moments, lm)?;
        let (m, v) = moments.split_at_mut(g.len());
        let [beta1, beta2, scale] = self.0.decays();
        m.par_chunks_mut(CHUNK)
            .zip(v.par_chunks_mut(CHUNK))
            .zip(g.par_chunks(CHUNK))
            .for_each(|((m, v), g)| {
                for ((m, v), g) in m.iter_mut().zip(v).zip(g) {
                    let g = g * scale;
                    *m = beta1 * *m + (1.0 - beta1) * g;
                    *v = beta2 * *v + (1.0 - beta2) * g * g;
                }
            });
        Ok(())
    }
}

struct Apply(Update);

impl InplaceOp2 for Apply {
    fn name(&self) -> &'static str {
        "adamw-apply"
    }

    fn cpu_fwd(
        &self,
        w: &mut CpuStorage,
        lw: &Layout,
        moments: &CpuStorage,
        lm: &Layout,
    ) -> candle_core::Result<()> {
        let w = numbers_mut(w, lw)?;
        let (m, v) = numbers(moments, lm)?.split_at(w.len());
        let [keep, rate, correction2, epsilon] = self.0.factors();
        w.par_chunks_mut(CHUNK)
            .zip(m.par_chunks(CHUNK))
            .zip(v.par_chunks(CHUNK))
            .for_each(|((w, m), v)| {
                for ((w, m), v) in w.iter_mut().zip(m).zip(v) {
                    *w = *w * keep - rate * m / ((v * correction2).sqrt() + epsilon);
                }
            });
        Ok(())
    }
}
