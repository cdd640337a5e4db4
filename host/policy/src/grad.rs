//! Gradients over micro-batches: any number of workers, one result.
//!
//! A worker computes whole micro-batches, each with one thread. Gradients are added in the order of the micro-batches,
//! whichever is first: [`crate::gradient_sum`]. So 1, 2 and 3 workers give the same bits.
//!
//! A pass has three parts: the trunk (embedding and layers), the vocabulary head in chunks of rows, and between their
//! forward and backward passes the caller's loss. The loss sees only log-probabilities, entropies, and the values of a
//! value head if there is one. [`crate::qwen3`] is differentiated by hand; the plain network is differentiated by candle's
//! tape, layer by layer with checkpointing.

use candle_core::{DType, Tensor, Var};

use crate::batch::PackedBatch;
use crate::error::{PolicyError, Result};
use crate::gradient_sum::{self, GradientSum};
use crate::in_order::run_in_order;
use crate::lora::Adapters;
use crate::model::Model;
use crate::on_network::on_network;
use crate::ops::with_numbers;
use crate::pass::{PassOptions, TokenStats};
use crate::qwen3::{Backend, Network};
use crate::tape::Trunk;
use crate::value_head::ValueHead;
use crate::weights::Parameter;

/// A gradient for every trained parameter, in the order of [`Model::parameters`].
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
    /// The gradients of the value head, in a pass with one.
    pub value_head: Option<Gradients>,
    /// The sum of the micro-batches' losses, in the same order.
    pub loss: f64,
    /// The loss function's other outputs, by micro-batch.
    pub outputs: Vec<M>,
}

/// The result of one micro-batch, besides the gradients of parameters.
pub(crate) struct Part<M> {
    /// Gradients of the value head; empty without one.
    value_head: Vec<Tensor>,
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
        self.accumulate_with_values(batches, options, None, loss)
    }

    /// Like [`Self::accumulate`]. With a value head, the statistics have its values, and the head gets gradients too:
    /// [`Accumulated::value_head`].
    pub fn accumulate_with_values<M: Send>(
        &self,
        batches: &[PackedBatch],
        options: &PassOptions,
        value_head: Option<&ValueHead>,
        loss: impl Fn(usize, &TokenStats) -> candle_core::Result<(Tensor, M)> + Sync,
    ) -> Result<Accumulated<M>> {
        self.check_pass(batches, options)?;
        if batches.is_empty() {
            return Err(PolicyError::Input(
                "no micro-batches to accumulate over".to_owned(),
            ));
        }
        let sizes: Vec<usize> = self.layout().iter().map(Parameter::len).collect();
        let sum = GradientSum::new(&sizes);
        let mut of_head: Vec<Tensor> = Vec::new();
        let mut total = 0.0;
        let mut outputs = Vec::with_capacity(batches.len());
        run_in_order(
            batches.len(),
            self.workers(options),
            |index| {
                let contribution = sum.contribution(index);
                let part = self.pass(
                    &batches[index],
                    options,
                    value_head,
                    |stats| loss(index, stats),
                    |parameter, gradient| contribution.add(parameter, gradient),
                )?;
                contribution.end();
                Ok(part)
            },
            |part: Part<M>| {
                total += part.loss;
                outputs.push(part.output);
                if of_head.is_empty() {
                    of_head = part.value_head;
                } else {
                    for (sum, gradient) in of_head.iter_mut().zip(part.value_head) {
                        gradient_sum::add(sum, gradient)?;
                    }
                }
                Ok(())
            },
        )?;
        let names = self.layout().iter().map(|parameter| parameter.name.clone());
        Ok(Accumulated {
            gradients: Gradients {
                named: names.zip(sum.finish()?).collect(),
                #[cfg(feature = "cuda")]
                fused: self.fused(),
            },
            value_head: value_head.map(|head| Gradients {
                named: head
                    .parameters()
                    .map(|(name, _)| name.to_owned())
                    .zip(of_head)
                    .collect(),
                #[cfg(feature = "cuda")]
                fused: false,
            }),
            loss: total,
            outputs,
        })
    }

    fn pass<M>(
        &self,
        batch: &PackedBatch,
        options: &PassOptions,
        value_head: Option<&ValueHead>,
        loss: impl FnOnce(&TokenStats) -> candle_core::Result<(Tensor, M)>,
        keep: impl FnMut(usize, Tensor) -> Result<()>,
    ) -> Result<Part<M>> {
        if self.fused() {
            let adapters = self.adapters();
            let trained = TrainedParameters {
                layout: self.layout(),
                head: self.head_index(),
                factors: adapters.map_or(&[], Adapters::factors),
            };
            on_network!(self, |network| network_pass(
                &network, &trained, batch, options, value_head, loss, keep
            ))
        } else {
            self.plain_pass(batch, options, value_head, loss, keep)
        }
    }

    fn plain_pass<M>(
        &self,
        batch: &PackedBatch,
        options: &PassOptions,
        value_head: Option<&ValueHead>,
        loss: impl FnOnce(&TokenStats) -> candle_core::Result<(Tensor, M)>,
        mut keep: impl FnMut(usize, Tensor) -> Result<()>,
    ) -> Result<Part<M>> {
        let trunk = if options.checkpointing {
            Trunk::checkpointed(self, batch)?
        } else {
            Trunk::taped(self, batch)?
        };
        let head = self.plain_head(options.temperature);
        let rows = trunk.rows.detach();
        let (log_probs, entropy) = head.forward(&rows, &batch.targets)?;
        let valued = value_head.map(|value_head| (rows.clone(), value_head));
        let leaves = Leaves::new(&log_probs, &entropy, valued)?;
        let (loss, output) = loss(&leaves.stats()?)?;
        let d = leaves.gradients(&loss)?;
        let loss_value = value(&loss)?;
        // Their memory is free before the backward pass through the trunk.
        drop((loss, leaves));
        let (d_rows, d_head) =
            head.backward(&rows, &batch.targets, &d.log_probs, d.entropy.as_ref())?;
        let d_rows = match d.rows {
            Some(part) => (d_rows + part)?,
            None => d_rows,
        };
        let of_trunk = trunk.backward(self, batch, &d_rows)?;
        for (index, of_trunk) in of_trunk.into_iter().enumerate() {
            let is_head = self.adapters().is_none() && index == self.head_index();
            let gradient = match of_trunk {
                Some(gradient) if is_head => (gradient + &d_head)?,
                Some(gradient) => gradient,
                None if is_head => d_head.clone(),
                None => {
                    return Err(PolicyError::Gradient {
                        parameter: self.layout()[index].name.clone(),
                        message: "none was computed; an operator dropped it".to_owned(),
                    });
                }
            };
            keep(index, gradient.detach().contiguous()?)?;
        }
        Ok(Part {
            value_head: d.value_head,
            loss: loss_value,
            output,
        })
    }
}

/// The parameters that a pass gives gradients of.
pub(crate) struct TrainedParameters<'a> {
    /// Their names and shapes.
    pub(crate) layout: &'a [Parameter],
    /// The index of the vocabulary head among them, unless it is frozen.
    pub(crate) head: usize,
    /// The factors by which products read them; none for whole models.
    pub(crate) factors: &'a [Option<Tensor>],
}

/// Forward and backward over one micro-batch. `keep` gets the gradient of each parameter, with the parameter's index, as
/// soon as it is there. [`crate::memory`] counts what this allocates.
pub(crate) fn network_pass<B: Backend, M>(
    network: &Network<B>,
    trained: &TrainedParameters<'_>,
    batch: &PackedBatch,
    options: &PassOptions,
    value_head: Option<&ValueHead>,
    loss: impl FnOnce(&TokenStats) -> candle_core::Result<(Tensor, M)>,
    mut keep: impl FnMut(usize, Tensor) -> Result<()>,
) -> Result<Part<M>> {
    let (b, head, temperature) = (&network.backend, network.head, options.temperature);
    let batch = network.batch(batch)?;
    let tape = network.forward(&batch, options.checkpointing)?;
    let rows = network.rows(&tape, &batch)?;
    let (log_probs, entropy) = b.log_probs(&rows, head, &batch.places, temperature)?;
    let valued = match value_head {
        Some(value_head) => Some((b.rows_tensor(&rows, network.widths.hidden)?, value_head)),
        None => None,
    };
    let leaves = Leaves::new(&log_probs, &entropy, valued)?;
    let (loss, output) = loss(&leaves.stats()?)?;
    let d = leaves.gradients(&loss)?;
    let loss_value = value(&loss)?;
    // Their memory is free before the backward pass through the network.
    drop((loss, leaves));
    let (mut d_rows, mut d_head) = b.log_probs_backward(
        &rows,
        head,
        network.frozen,
        &batch.places,
        temperature,
        &d.log_probs,
        d.entropy.as_ref(),
    )?;
    if let Some(part) = d.rows {
        b.add_to_rows(&mut d_rows, &part)?;
    }
    network.backward(tape, &batch, &d_rows, |index, mut gradient| {
        if index == trained.head
            && let Some(part) = d_head.take()
        {
            b.add(&mut gradient, &part)?;
        }
        let gradient = b.tensor(gradient, &trained.layout[index].shape)?;
        // Products read adapters times their factors.
        match trained.factors.get(index) {
            Some(Some(factor)) => keep(index, gradient.broadcast_mul(factor)?),
            _ => keep(index, gradient),
        }
    })?;
    Ok(Part {
        value_head: d.value_head,
        loss: loss_value,
        output,
    })
}

/// The leaves of the loss's own tape: the loss is differentiated down to them and no further.
struct Leaves<'a> {
    log_probs: Var,
    entropy: Var,
    /// The rows that values are computed from, `[targets, hidden]`, and the head that computes them.
    valued: Option<(Var, &'a ValueHead)>,
}

/// The gradients of [`Leaves`].
struct LeafGradients {
    /// Zeros if the loss does not use log-probabilities.
    log_probs: Tensor,
    /// `None` if the loss does not use entropies.
    entropy: Option<Tensor>,
    /// Gradient of the rows, through their values; `None` if nothing flows through them.
    rows: Option<Tensor>,
    /// Gradients of the value head's parameters; empty without one.
    value_head: Vec<Tensor>,
}

impl<'a> Leaves<'a> {
    fn new(
        log_probs: &Tensor,
        entropy: &Tensor,
        valued: Option<(Tensor, &'a ValueHead)>,
    ) -> Result<Self> {
        Ok(Self {
            log_probs: Var::from_tensor(log_probs)?,
            entropy: Var::from_tensor(entropy)?,
            valued: match valued {
                Some((rows, head)) => Some((Var::from_tensor(&rows)?, head)),
                None => None,
            },
        })
    }

    fn stats(&self) -> Result<TokenStats> {
        let values = match &self.valued {
            Some((rows, head)) if head.trains_trunk() => Some(head.values(rows.as_tensor())?),
            Some((rows, head)) => Some(head.values(&rows.as_detached_tensor())?),
            None => None,
        };
        Ok(TokenStats {
            log_probs: self.log_probs.as_tensor().clone(),
            entropy: self.entropy.as_tensor().clone(),
            values,
        })
    }

    fn gradients(&self, loss: &Tensor) -> Result<LeafGradients> {
        let mut store = loss.backward()?;
        let mut of = |leaf: &Var| store.remove(leaf).map(|gradient| gradient.detach());
        let (mut rows, mut value_head) = (None, Vec::new());
        if let Some((own_rows, head)) = &self.valued {
            rows = of(own_rows);
            for (_, variable) in head.parameters() {
                value_head.push(match of(variable) {
                    Some(gradient) => gradient.contiguous()?,
                    None => variable.zeros_like()?,
                });
            }
        }
        Ok(LeafGradients {
            log_probs: match of(&self.log_probs) {
                Some(gradient) => gradient,
                None => self.log_probs.zeros_like()?,
            },
            entropy: of(&self.entropy),
            rows,
            value_head,
        })
    }
}

fn value(loss: &Tensor) -> Result<f64> {
    let loss = loss.detach().to_dtype(DType::F32)?;
    Ok(f64::from(loss.to_scalar::<f32>()?))
}
