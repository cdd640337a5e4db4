//! Gradients over micro-batches: any number of workers, one result.
//!
//! A worker computes whole micro-batches, each with one thread. Gradients are added in the order of the micro-batches,
//! whichever finishes first. So 1, 2 and 3 workers give the same bits.
//!
//! A pass has three parts: the trunk (embedding and layers), the vocabulary head in chunks of rows, and between their
//! forward and backward passes the caller's loss, which sees only log-probabilities and entropies. [`crate::qwen3`] is
//! differentiated by hand; the plain network is differentiated by candle's tape, layer by layer with checkpointing.

use candle_core::{DType, Tensor, Var};

use crate::batch::PackedBatch;
use crate::error::{PolicyError, Result};
use crate::in_order::run_in_order;
use crate::model::Model;
use crate::on_network::on_network;
use crate::ops::with_numbers;
use crate::pass::{PassOptions, TokenStats};
use crate::qwen3::{Backend, Network};
use crate::tape::Trunk;
use crate::weights::Parameter;

/// A gradient for every parameter, in the order of [`Model::parameters`].
#[derive(Debug)]
pub struct Gradients {
    named: Vec<(String, Tensor)>,
    /// True if they are of a model with fused operators.
    #[cfg(feature = "cuda")]
    fused: bool,
}

impl Gradients {
    /// Every parameter's name and gradient.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.named
            .iter()
            .map(|(name, gradient)| (name.as_str(), gradient))
    }

    /// One parameter's gradient.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.named
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, gradient)| gradient)
    }

    /// The Euclidean norm over all parameters, computed in f64 in a fixed order.
    pub fn norm(&self) -> Result<f64> {
        #[cfg(feature = "cuda")]
        if self.fused
            && self
                .named
                .iter()
                .all(|(_, gradient)| gradient.device().is_cuda())
        {
            let gradients = self.named.iter().map(|(_, gradient)| gradient);
            return Ok(crate::cuda::optimizer::sum_of_squares(gradients)?.sqrt());
        }
        let mut sum = 0.0;
        for (_, gradient) in &self.named {
            sum += if gradient.device().is_cpu() {
                with_numbers(gradient, sum_of_squares)?
            } else {
                f64::from(gradient.sqr()?.sum_all()?.to_scalar::<f32>()?)
            };
        }
        Ok(sum.sqrt())
    }
}

/// The sum of squares in eight chains, so that additions need not wait for each other.
fn sum_of_squares(numbers: &[f32]) -> f64 {
    let mut sums = [0.0f64; 8];
    let (chunks, rest) = numbers.as_chunks::<8>();
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += f64::from(*x) * f64::from(*x);
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum += f64::from(*x) * f64::from(*x);
    }
    sums.iter().sum()
}

/// The result of [`Model::accumulate`].
#[derive(Debug)]
pub struct Accumulated<M> {
    /// Summed over the micro-batches in index order.
    pub gradients: Gradients,
    /// The sum of the micro-batches' losses, in the same order.
    pub loss: f64,
    /// The loss function's other outputs, by micro-batch.
    pub outputs: Vec<M>,
}

/// The result of one micro-batch.
pub(crate) struct Part<M> {
    gradients: Vec<Tensor>,
    loss: f64,
    output: M,
}

impl Model {
    /// Forward and backward over micro-batches.
    ///
    /// `loss` gets a micro-batch's index and statistics. It returns the scalar that this micro-batch adds to the loss, and
    /// any other output. Divide by a count over all micro-batches, not by that of this one. It runs on worker threads, at
    /// any time and in any order.
    ///
    /// # Errors
    /// If a batch does not fit the model, an operation fails, or a parameter got no gradient.
    pub fn accumulate<M: Send>(
        &self,
        batches: &[PackedBatch],
        options: &PassOptions,
        loss: impl Fn(usize, &TokenStats) -> candle_core::Result<(Tensor, M)> + Sync,
    ) -> Result<Accumulated<M>> {
        self.check_pass(batches, options)?;
        if batches.is_empty() {
            return Err(PolicyError::Input(
                "no micro-batches to accumulate over".to_owned(),
            ));
        }
        let mut sum: Option<Vec<Tensor>> = None;
        let mut total = 0.0;
        let mut outputs = Vec::with_capacity(batches.len());
        run_in_order(
            batches.len(),
            self.workers(options),
            |index| self.pass(&batches[index], options, |stats| loss(index, stats)),
            |part: Part<M>| {
                total += part.loss;
                outputs.push(part.output);
                sum = Some(match sum.take() {
                    None => part.gradients,
                    Some(sum) => sum
                        .iter()
                        .zip(&part.gradients)
                        .map(|(sum, gradient)| sum + gradient)
                        .collect::<candle_core::Result<_>>()?,
                });
                Ok(())
            },
        )?;
        let names = self.layout().iter().map(|parameter| parameter.name.clone());
        Ok(Accumulated {
            gradients: Gradients {
                named: names.zip(sum.unwrap_or_default()).collect(),
                #[cfg(feature = "cuda")]
                fused: self.fused(),
            },
            loss: total,
            outputs,
        })
    }

    fn pass<M>(
        &self,
        batch: &PackedBatch,
        options: &PassOptions,
        loss: impl FnOnce(&TokenStats) -> candle_core::Result<(Tensor, M)>,
    ) -> Result<Part<M>> {
        if self.fused() {
            let parameters = (self.layout(), self.head_index());
            on_network!(self, |network| network_pass(
                &network, parameters, batch, options, loss
            ))
        } else {
            self.plain_pass(batch, options, loss)
        }
    }

    fn plain_pass<M>(
        &self,
        batch: &PackedBatch,
        options: &PassOptions,
        loss: impl FnOnce(&TokenStats) -> candle_core::Result<(Tensor, M)>,
    ) -> Result<Part<M>> {
        let trunk = if options.checkpointing {
            Trunk::checkpointed(self, batch)?
        } else {
            Trunk::taped(self, batch)?
        };
        let head = self.plain_head(options.temperature);
        let rows = trunk.rows.detach();
        let (log_probs, entropy) = head.forward(&rows, &batch.targets)?;
        let leaves = Leaves::new(&log_probs, &entropy)?;
        let (loss, output) = loss(&leaves.stats())?;
        let (d_log_probs, d_entropy) = leaves.gradients(&loss)?;
        let (d_rows, d_head) =
            head.backward(&rows, &batch.targets, &d_log_probs, d_entropy.as_ref())?;
        let of_trunk = trunk.backward(self, batch, &d_rows)?;
        let mut gradients = Vec::with_capacity(of_trunk.len());
        for (index, of_trunk) in of_trunk.into_iter().enumerate() {
            let gradient = match of_trunk {
                Some(gradient) if index == self.head_index() => (gradient + &d_head)?,
                Some(gradient) => gradient,
                None if index == self.head_index() => d_head.clone(),
                None => {
                    return Err(PolicyError::Gradient {
                        parameter: self.layout()[index].name.clone(),
                        message: "none was computed; an operator dropped it".to_owned(),
                    });
                }
            };
            gradients.push(gradient.detach().contiguous()?);
        }
        Ok(Part {
            gradients,
            loss: value(&loss)?,
            output,
        })
    }
}

/// Forward and backward over one micro-batch. `parameters` are those of the network, and the index of the vocabulary
/// head among them. [`crate::memory`] counts what this allocates.
pub(crate) fn network_pass<B: Backend, M>(
    network: &Network<B>,
    (layout, head_index): (&[Parameter], usize),
    batch: &PackedBatch,
    options: &PassOptions,
    loss: impl FnOnce(&TokenStats) -> candle_core::Result<(Tensor, M)>,
) -> Result<Part<M>> {
    let (b, head, temperature) = (&network.backend, network.head, options.temperature);
    let batch = network.batch(batch)?;
    let tape = network.forward(&batch, options.checkpointing)?;
    let rows = network.rows(&tape, &batch)?;
    let (log_probs, entropy) = b.log_probs(&rows, head, &batch.places, temperature)?;
    let leaves = Leaves::new(&log_probs, &entropy)?;
    let (loss, output) = loss(&leaves.stats())?;
    let (d_log_probs, d_entropy) = leaves.gradients(&loss)?;
    let (d_rows, d_head) = b.log_probs_backward(
        &rows,
        head,
        &batch.places,
        temperature,
        &d_log_probs,
        d_entropy.as_ref(),
    )?;
    let lengths = layout.iter().map(Parameter::len);
    let mut gradients = network.backward(tape, &batch, &d_rows, lengths)?;
    b.add(&mut gradients[head_index], &d_head)?;
    let gradients = layout
        .iter()
        .zip(gradients)
        .map(|(parameter, gradient)| b.tensor(gradient, &parameter.shape))
        .collect::<candle_core::Result<_>>()?;
    Ok(Part {
        gradients,
        loss: value(&loss)?,
        output,
    })
}

/// The leaves of the loss's own tape: the loss is differentiated down to them and no further.
struct Leaves {
    log_probs: Var,
    entropy: Var,
}

impl Leaves {
    fn new(log_probs: &Tensor, entropy: &Tensor) -> Result<Self> {
        Ok(Self {
            log_probs: Var::from_tensor(log_probs)?,
            entropy: Var::from_tensor(entropy)?,
        })
    }

    fn stats(&self) -> TokenStats {
        TokenStats {
            log_probs: self.log_probs.as_tensor().clone(),
            entropy: self.entropy.as_tensor().clone(),
        }
    }

    /// The gradients of the log-probabilities (zeros if the loss does not use them) and of the entropies (`None` if it
    /// does not use them).
    fn gradients(&self, loss: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
        let mut store = loss.backward()?;
        let d_log_probs = match store.remove(&self.log_probs) {
            Some(gradient) => gradient,
            None => self.log_probs.zeros_like()?,
        };
        Ok((d_log_probs, store.remove(&self.entropy)))
    }
}

fn value(loss: &Tensor) -> Result<f64> {
    let loss = loss.detach().to_dtype(DType::F32)?;
    Ok(f64::from(loss.to_scalar::<f32>()?))
}
