//! The vocabulary head, and the one definition of log-probability.
//!
//! log p(id) = (x(id) - max x) - ln sum exp(x - max x), where x are the logits times the inverse temperature, over the
//! ids that the tokenizer knows; ids beyond it have no logit at all. The sampler and the loss both come here.
//!
//! Training never holds the logits of all rows: it computes, uses and drops them a chunk of rows at a time, and
//! computes them again in the backward pass (at Qwen3's vocabulary a row is 0.6 MB).

#![allow(unsafe_code)] // Vector loads; lengths are asserted once per call.

use candle_core::{D, DType, Result, Tensor};

use super::linear::{input_gradient_into, linear_into, weight_gradient_into};
use super::weight::Weight;
use crate::simd::{self, Kernel, LANES, Lanes};

/// Number of logits computed at once: 16 MB.
const CHUNK: usize = 1 << 22;
/// Maximum number of rows computed at once; more gain nothing.
const CHUNK_ROWS: usize = 256;

/// Number of logits computed at once on a device with memory of its own: 1 GB. Its products need many rows.
const DEVICE_CHUNK: usize = 1 << 28;

fn chunk_rows(vocabulary: usize) -> usize {
    (CHUNK / vocabulary).clamp(16, CHUNK_ROWS)
}

/// Numbers that [`Head`] needs at once: the logits of a chunk of rows, and one row of exponentials.
pub(crate) fn scratch_lens(vocabulary: usize, targets: usize) -> [usize; 2] {
    let rows = chunk_rows(vocabulary).min(targets);
    [rows * vocabulary, vocabulary]
}

struct Exponentials<'a> {
    /// In: logits. Out: logits times the inverse temperature, minus the largest of them.
    logits: &'a mut [f32],
    exps: &'a mut [f32],
    inverse_temperature: f32,
}

impl Kernel for Exponentials<'_> {
    /// The sum of `exps`.
    type Output = f32;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> f32 {
        let n = self.logits.len();
        let (logits, exps) = (self.logits.as_mut_ptr(), self.exps.as_mut_ptr());
        let scale = l.splat(self.inverse_temperature);
        let whole = n / LANES * LANES;
        // SAFETY: both have `n` numbers.
        unsafe {
            let mut largest = l.splat(f32::NEG_INFINITY);
            for i in (0..whole).step_by(LANES) {
                let x = l.mul(l.load(logits.add(i)), scale);
                l.store(logits.add(i), x);
                largest = l.max(largest, x);
            }
            let mut top = l.largest(largest);
            for i in whole..n {
                let x = *logits.add(i) * self.inverse_temperature;
                *logits.add(i) = x;
                top = if top > x { top } else { x };
            }
            let top = l.splat(top);
            let mut sum = l.splat(0.0);
            for i in (0..whole).step_by(LANES) {
                let x = l.sub(l.load(logits.add(i)), top);
                l.store(logits.add(i), x);
                let e = l.exp(x);
                l.store(exps.add(i), e);
                sum = l.add(sum, e);
            }
            if whole < n {
                let x = l.sub(l.load_first(logits.add(whole), n - whole), top);
                l.store_first(logits.add(whole), n - whole, x);
                l.store_first(exps.add(whole), n - whole, l.exp(x));
                sum = l.add(sum, l.load_first(exps.add(whole), n - whole));
            }
            l.sum(sum)
        }
    }
}

/// The dot product of `a` and `b` in sixteen lanes.
struct Dot<'a> {
    a: &'a [f32],
    b: &'a [f32],
}

impl Kernel for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> f32 {
        let n = self.a.len();
        assert_eq!(n, self.b.len());
        let mut sum = l.splat(0.0);
        for i in (0..n).step_by(LANES) {
            let width = LANES.min(n - i);
            // SAFETY: `i + width <= n`.
            unsafe {
                let (a, b) = (
                    l.load_up_to(self.a.as_ptr().add(i), width),
                    l.load_up_to(self.b.as_ptr().add(i), width),
                );
                sum = l.fma(a, b, sum);
            }
        }
        l.sum(sum)
    }
}

/// The normalising constants of a row of logits.
#[derive(Debug, Clone, Copy)]
struct Normaliser {
    sum: f32,
    ln_sum: f32,
}

/// Replaces a row of logits by its distances from the largest, and computes their exponentials.
fn normalise(logits: &mut [f32], inverse_temperature: f32, exps: &mut [f32]) -> Normaliser {
    assert_eq!(logits.len(), exps.len());
    let sum = simd::run(Exponentials {
        logits,
        exps,
        inverse_temperature,
    });
    Normaliser {
        sum,
        ln_sum: sum.ln(),
    }
}

impl Normaliser {
    fn log_prob(self, shifted: f32) -> f32 {
        shifted - self.ln_sum
    }

    /// Entropy of a row, in nats: `H = ln sum e - (sum e x) / sum e`.
    fn entropy(self, shifted: &[f32], exps: &[f32]) -> f32 {
        self.ln_sum
            - simd::run(Dot {
                a: shifted,
                b: exps,
            }) / self.sum
    }
}

/// One row's distribution, for the sampler.
#[derive(Debug, Clone)]
pub(crate) struct LogSoftmax {
    shifted: Vec<f32>,
    exps: Vec<f32>,
    normaliser: Normaliser,
}

impl LogSoftmax {
    /// The distribution of a row of logits at a temperature.
    pub(crate) fn new(logits: &[f32], temperature: f32) -> Self {
        let mut shifted = logits.to_vec();
        let mut exps = vec![0.0; logits.len()];
        let normaliser = normalise(&mut shifted, 1.0 / temperature, &mut exps);
        Self {
            shifted,
            exps,
            normaliser,
        }
    }

    /// Numbers proportional to the probabilities.
    pub(crate) fn weights(&self) -> &[f32] {
        &self.exps
    }

    pub(crate) fn log_prob(&self, id: usize) -> f32 {
        self.normaliser.log_prob(self.shifted[id])
    }

    /// True if every logit was a number.
    pub(crate) fn is_finite(&self) -> bool {
        self.normaliser.sum.is_finite() && self.normaliser.sum >= 1.0
    }
}

/// The vocabulary head on the CPU.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    /// `[hidden, vocabulary]`, the columns that have logits.
    pub(crate) w: Weight<'a>,
    pub(crate) temperature: f32,
}

impl Head<'_> {
    fn inverse_temperature(&self) -> f32 {
        1.0 / self.temperature
    }

    /// Log-probabilities and entropies `[rows]` of `targets` at x `[rows, hidden]`.
    pub(crate) fn forward(&self, x: &[f32], targets: &[u32]) -> (Vec<f32>, Vec<f32>) {
        let (mut log_probs, mut entropies) = (Vec::new(), Vec::new());
        self.in_chunks(x, targets, |x, targets, logits, exps| {
            linear_into(x, self.w, logits, false);
            for (logits, target) in logits.chunks_exact_mut(self.w.n).zip(targets) {
                let normaliser = normalise(logits, self.inverse_temperature(), exps);
                log_probs.push(normaliser.log_prob(logits[*target as usize]));
                entropies.push(normaliser.entropy(logits, exps));
            }
        });
        (log_probs, entropies)
    }

    /// Gradients of x and, unless it is frozen, of the whole weight `[hidden, columns]`, given those of the
    /// log-probabilities and entropies.
    pub(crate) fn backward(
        &self,
        frozen: bool,
        x: &[f32],
        targets: &[u32],
        d_log_probs: &[f32],
        d_entropy: Option<&[f32]>,
    ) -> (Vec<f32>, Option<Vec<f32>>) {
        let mut dx = vec![0.0; x.len()];
        let mut dw = (!frozen).then(|| vec![0.0; self.w.k * self.w.stride]);
        let mut first = 0;
        self.in_chunks(x, targets, |x, targets, logits, exps| {
            linear_into(x, self.w, logits, false);
            for (row, (logits, target)) in
                logits.chunks_exact_mut(self.w.n).zip(targets).enumerate()
            {
                let of_entropy = d_entropy.map_or(0.0, |d| d[first + row]);
                self.logit_gradients(logits, exps, *target, d_log_probs[first + row], of_entropy);
            }
            let dx = &mut dx[first * self.w.k..][..x.len()];
            input_gradient_into(logits, self.w, dx, false);
            if let Some(dw) = &mut dw {
                weight_gradient_into(x, logits, self.w, dw, true);
            }
            first += targets.len();
        });
        (dx, dw)
    }

    /// Hands `each` some rows at a time, with room for their logits and for one row of exponentials.
    fn in_chunks(
        &self,
        x: &[f32],
        targets: &[u32],
        mut each: impl FnMut(&[f32], &[u32], &mut [f32], &mut [f32]),
    ) {
        let (hidden, vocabulary) = (self.w.k, self.w.n);
        assert_eq!(x.len(), targets.len() * hidden);
        let at_once = chunk_rows(vocabulary);
        let [logits, exps] = scratch_lens(vocabulary, targets.len());
        let (mut logits, mut exps) = (vec![0.0; logits], vec![0.0; exps]);
        for (x, targets) in x.chunks(at_once * hidden).zip(targets.chunks(at_once)) {
            each(
                x,
                targets,
                &mut logits[..targets.len() * vocabulary],
                &mut exps,
            );
        }
    }

    /// Logits to their gradients, in place: with p the softmax, t the temperature and H the entropy,
    /// `d = (g_logp (1[target] - p) - g_entropy p (ln p + H)) / t`.
    fn logit_gradients(
        &self,
        logits: &mut [f32],
        exps: &mut [f32],
        target: u32,
        g_log_prob: f32,
        g_entropy: f32,
    ) {
        let inverse_temperature = self.inverse_temperature();
        let normaliser = normalise(logits, inverse_temperature, exps);
        let (g, to_p) = (g_log_prob * inverse_temperature, 1.0 / normaliser.sum);
        if g_entropy == 0.0 {
            let factor = -g * to_p;
            for (d, e) in logits.iter_mut().zip(exps) {
                *d = *e * factor;
            }
        } else {
            let h = g_entropy * inverse_temperature;
            let entropy = normaliser.entropy(logits, exps);
            for (d, e) in logits.iter_mut().zip(exps) {
                let (p, ln_p) = (*e * to_p, *d - normaliser.ln_sum);
                *d = -g * p - h * p * (ln_p + entropy);
            }
        }
        logits[target as usize] += g;
    }
}

/// The twin of [`Head`] in candle's operators.
#[derive(Clone, Copy)]
pub(crate) struct PlainHead<'a> {
    /// `[hidden, columns]`.
    pub(crate) w: &'a Tensor,
    /// Ids below this have logits.
    pub(crate) vocabulary: usize,
    pub(crate) temperature: f32,
}

impl PlainHead<'_> {
    fn inverse_temperature(&self) -> f32 {
        1.0 / self.temperature
    }

    /// The columns that have logits, `[hidden, vocabulary]`.
    fn columns(&self) -> Result<Tensor> {
        self.w.narrow(1, 0, self.vocabulary)?.contiguous()
    }

    /// Number of rows computed at once.
    fn chunk_rows(&self) -> usize {
        if self.w.device().is_cpu() {
            chunk_rows(self.vocabulary)
        } else {
            (DEVICE_CHUNK / self.vocabulary).max(1)
        }
    }

    /// ln p `[rows, vocabulary]` of rows `x`, with the weight's `columns`.
    fn log_softmax(&self, x: &Tensor, columns: &Tensor) -> Result<Tensor> {
        let logits = (x.matmul(columns)? * f64::from(self.inverse_temperature()))?;
        let shifted = logits.broadcast_sub(&logits.max_keepdim(D::Minus1)?.detach())?;
        shifted.broadcast_sub(&shifted.exp()?.sum_keepdim(D::Minus1)?.log()?)
    }

    /// Log-probabilities and entropies, `[rows]`; on the tape if x or w is.
    pub(crate) fn forward(&self, x: &Tensor, targets: &[u32]) -> Result<(Tensor, Tensor)> {
        let rows = x.dim(0)?;
        let (mut log_probs, mut entropies) = (Vec::new(), Vec::new());
        let (w, at_once) = (self.columns()?, self.chunk_rows());
        for first in (0..rows).step_by(at_once) {
            let count = at_once.min(rows - first);
            let ln_p = self.log_softmax(&x.narrow(0, first, count)?, &w)?;
            let ids = Tensor::from_slice(&targets[first..first + count], (count, 1), x.device())?;
            log_probs.push(ln_p.gather(&ids, 1)?.squeeze(1)?);
            entropies.push((ln_p.exp()? * &ln_p)?.sum(D::Minus1)?.neg()?);
        }
        Ok((Tensor::cat(&log_probs, 0)?, Tensor::cat(&entropies, 0)?))
    }

    /// As [`Head::backward`], in the same chunks, so that no logits are kept on a tape.
    pub(crate) fn backward(
        &self,
        x: &Tensor,
        targets: &[u32],
        d_log_probs: &Tensor,
        d_entropy: Option<&Tensor>,
    ) -> Result<(Tensor, Tensor)> {
        let (rows, columns) = (x.dim(0)?, self.w.dim(1)?);
        let (w, at_once) = (self.columns()?, self.chunk_rows());
        let scale = f64::from(self.inverse_temperature());
        let mut dx = Vec::new();
        let mut dw: Option<Tensor> = None;
        for first in (0..rows).step_by(at_once) {
            let count = at_once.min(rows - first);
            let x = x.narrow(0, first, count)?;
            let ln_p = self.log_softmax(&x, &w)?;
            let p = ln_p.exp()?;
            let ids = Tensor::from_slice(&targets[first..first + count], (count, 1), x.device())?;
            let g = d_log_probs.narrow(0, first, count)?.unsqueeze(1)?;
            // One-hot of the target, made by comparison: candle's scatter has no trustworthy gradient, and needs none here.
            let all = Tensor::arange(0u32, self.vocabulary as u32, x.device())?.unsqueeze(0)?;
            let hot = all.broadcast_eq(&ids)?.to_dtype(DType::F32)?;
            let mut d = (hot - &p)?.broadcast_mul(&g)?;
            if let Some(d_entropy) = d_entropy {
                let h = d_entropy.narrow(0, first, count)?.unsqueeze(1)?;
                let entropy = (&p * &ln_p)?.sum_keepdim(D::Minus1)?.neg()?;
                d = (d - (&p * ln_p.broadcast_add(&entropy)?)?.broadcast_mul(&h)?)?;
            }
            let d = (d * scale)?;
            dx.push(d.matmul(&w.t()?)?);
            let part = x.t()?.matmul(&d)?;
            dw = Some(match dw {
                Some(sum) => (sum + part)?,
                None => part,
            });
        }
        let dw = match dw {
            Some(dw) => dw.pad_with_zeros(1, 0, columns - self.vocabulary)?,
            None => self.w.zeros_like()?,
        };
        Ok((Tensor::cat(&dx, 0)?, dw))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::ops::twin;

    #[test]
    fn it_and_its_gradient_are_those_of_its_twin() {
        // Several chunks; columns beyond the vocabulary.
        let (rows, hidden, columns, vocabulary, temperature) = (600, 16, 50, 41, 0.7);
        let (x, w) = (
            twin::random(1, rows * hidden),
            twin::random(2, hidden * columns),
        );
        let (g_log_prob, g_entropy) = (twin::random(3, rows), twin::random(4, rows));
        let targets: Vec<u32> = (0..rows as u32)
            .map(|row| row * 7 % vocabulary as u32)
            .collect();
        let head = Head {
            w: Weight::f32(&w, hidden, columns).first_columns(vocabulary),
            temperature,
        };
        let tensor = |numbers: &[f32], shape: &[usize]| {
            Tensor::from_slice(numbers, shape, &Device::Cpu).unwrap()
        };
        for entropy in [false, true] {
            let g_entropy = if entropy {
                g_entropy.clone()
            } else {
                vec![0.0; rows]
            };
            let (log_probs, entropies) = head.forward(&x, &targets);
            let g_of_entropy = entropy.then_some(&g_entropy[..]);
            let (dx, dw) = head.backward(false, &x, &targets, &g_log_prob, g_of_entropy);
            let dw = dw.unwrap();
            let (alone, none) = head.backward(true, &x, &targets, &g_log_prob, g_of_entropy);
            assert_eq!((&alone, none), (&dx, None), "a frozen head");
            let (both, g) = (
                [log_probs, entropies].concat(),
                [g_log_prob.clone(), g_entropy.clone()].concat(),
            );
            let plain = |of: &[Tensor]| {
                let plain = PlainHead {
                    w: &of[1],
                    vocabulary,
                    temperature,
                };
                let (log_probs, entropies) = plain.forward(&of[0], &targets)?;
                Tensor::cat(&[log_probs, entropies], 0)
            };
            twin::check(
                &[(&x, &[rows, hidden]), (&w, &[hidden, columns])],
                (&g, &both, &[&dx, &dw]),
                plain,
            );
            // And the twin's backward by hand, which devices use.
            let w = Var::from_tensor(&tensor(&w, &[hidden, columns])).unwrap();
            let by_hand = PlainHead {
                w: &w.as_detached_tensor(),
                vocabulary,
                temperature,
            };
            let of_entropy = entropy.then(|| tensor(&g_entropy, &[rows]));
            let (plain_dx, plain_dw) = by_hand
                .backward(
                    &tensor(&x, &[rows, hidden]),
                    &targets,
                    &tensor(&g_log_prob, &[rows]),
                    of_entropy.as_ref(),
                )
                .unwrap();
            for (ours, theirs) in [(&dx, plain_dx), (&dw, plain_dw)] {
                let theirs = theirs.flatten_all().unwrap().to_vec1::<f32>().unwrap();
                assert!(ours.iter().zip(&theirs).all(|(a, b)| (a - b).abs() < 1e-3));
            }
        }
    }

    #[test]
    fn training_and_sampling_have_one_log_probability() {
        let (hidden, vocabulary) = (8, 37);
        let (x, w) = (
            twin::random(1, 2 * hidden),
            twin::random(2, hidden * vocabulary),
        );
        let w = Weight::f32(&w, hidden, vocabulary);
        let mut logits = vec![0.0; 2 * vocabulary];
        linear_into(&x, w, &mut logits, false);
        for temperature in [0.6, 1.0, 1.3] {
            let (log_probs, _) = Head { w, temperature }.forward(&x, &[5, 36]);
            let sampled = LogSoftmax::new(&logits[vocabulary..], temperature).log_prob(36);
            assert_eq!(log_probs[1].to_bits(), sampled.to_bits());
        }
    }
}
