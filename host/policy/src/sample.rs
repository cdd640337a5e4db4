//! From logits to a token and its log-probability.
//!
//! There is one definition of log-probability, [`crate::ops::head`]'s: the log-softmax of the logits divided by the
//! temperature, over the ids that the tokenizer knows. The sampler draws from that distribution and reports that
//! number; training computes the same number for the same token. Truncation (top-k, top-p) changes the draw but not
//! the reported number, so it is for evaluation only.

use serde::{Deserialize, Serialize};

use crate::error::{PolicyError, Result};
use crate::ops::head;
use rlf_random::{Key, Purpose};

/// The parameters of sampling.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingParams {
    /// Logits are divided by this. 0 takes the most probable token (greedy), and log-probabilities are then those at
    /// temperature 1. Default 1.
    pub temperature: f32,
    /// Keeps the smallest set of most probable tokens whose probability reaches this. 1, the default, keeps all.
    pub top_p: f32,
    /// Keeps this many most probable tokens. 0, the default, keeps all.
    pub top_k: usize,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_p: 1.0,
            top_k: 0,
        }
    }
}

impl SamplingParams {
    /// Parameters that always take the most probable token.
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            ..Self::default()
        }
    }

    /// True if the most probable token is always taken.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// True if some tokens can never be drawn, so that the reported log-probability is not that of the draw.
    pub fn truncates(&self) -> bool {
        self.top_p < 1.0 || self.top_k > 0
    }

    /// The temperature of the reported log-probability: training must use this one.
    pub fn log_prob_temperature(&self) -> f32 {
        if self.is_greedy() {
            1.0
        } else {
            self.temperature
        }
    }

    fn check(&self) -> Result<()> {
        if !(self.temperature.is_finite() && self.temperature >= 0.0) {
            return Err(PolicyError::Input(format!(
                "temperature is {}; it must be 0 (greedy) or a positive number",
                self.temperature
            )));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return Err(PolicyError::Input(format!(
                "top_p is {}; it must be above 0 and at most 1",
                self.top_p
            )));
        }
        Ok(())
    }
}

/// The key of a draw. It decides the token together with the sampler's seed and purpose, and nothing else does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DrawKey {
    /// Optimisation step, or evaluation round.
    pub step: u64,
    /// Task, by number or by a hash of its id.
    pub task: u64,
    /// Sample of that task within its group.
    pub sample: u64,
    /// Position of the drawn token in its sequence.
    pub position: u64,
}

/// A drawn token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampled {
    /// The token.
    pub id: u32,
    /// Natural logarithm of its probability before truncation.
    pub log_prob: f32,
}

/// A draw to make from a row of logits.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// How to draw.
    pub sampler: Sampler,
    /// The key of the draw.
    pub key: DrawKey,
}

#[cfg(any(test, feature = "cuda"))]
impl Draw {
    /// The factor of logits and the number in 0..1 that decide a draw on a device. The number is below 0 if the most
    /// probable token is wanted, and also without a draw: then nobody reads the token.
    pub(crate) fn scale_and_uniform(draw: Option<&Self>) -> (f32, f64) {
        let Some(Self { sampler, key }) = draw else {
            return (1.0, -1.0);
        };
        let scale = 1.0 / sampler.params.log_prob_temperature();
        let greedy = sampler.params.is_greedy();
        (scale, if greedy { -1.0 } else { sampler.uniform(*key) })
    }
}

/// Draws tokens. Stateless: the same logits and key give the same token.
#[derive(Debug, Clone, Copy)]
pub struct Sampler {
    params: SamplingParams,
    root: Key,
}

impl Sampler {
    /// A sampler whose draws are keyed by `seed` and `purpose`.
    pub fn new(params: SamplingParams, seed: u64, purpose: Purpose) -> Result<Self> {
        params.check()?;
        Ok(Self {
            params,
            root: Key::new(seed, purpose),
        })
    }

    /// The parameters of this sampler.
    pub fn params(&self) -> SamplingParams {
        self.params
    }

    /// Draws from one row of logits, as [`crate::Decoder`] gives them.
    ///
    /// # Errors
    /// If a logit is not a number: the weights are broken, and any draw would be arbitrary.
    pub fn sample(&self, logits: &[f32], key: DrawKey) -> Result<Sampled> {
        let row = head::LogSoftmax::new(logits, self.params.log_prob_temperature());
        if !row.is_finite() {
            return Err(diverged(key));
        }
        let id = if self.params.is_greedy() {
            argmax(logits)
        } else {
            let uniform = self.uniform(key);
            if self.params.truncates() {
                self.draw_truncated(row.weights(), uniform)
            } else {
                draw(row.weights(), uniform)
            }
        };
        Ok(Sampled {
            id: id as u32,
            log_prob: row.log_prob(id),
        })
    }

    /// The number in 0..1 that decides the draw.
    pub(crate) fn uniform(&self, key: DrawKey) -> f64 {
        self.draw_key(key).uniform(0)
    }

    /// A seed for an engine that draws the tokens of a whole turn itself, from the key of the turn's first draw.
    pub fn seed(&self, key: DrawKey) -> u64 {
        self.draw_key(key).value()
    }

    fn draw_key(&self, key: DrawKey) -> Key {
        let draws = self.root.at(key.step).at(key.task).at(key.sample);
        draws.at(key.position)
    }

    /// The log-probability that [`Self::sample`] would report for `id`, given its row of logits.
    pub fn log_prob(&self, logits: &[f32], id: u32) -> f32 {
        head::LogSoftmax::new(logits, self.params.log_prob_temperature()).log_prob(id as usize)
    }

    fn draw_truncated(&self, weights: &[f32], uniform: f64) -> usize {
        let mut order: Vec<usize> = (0..weights.len()).collect();
        // Ties go to the lower id, so that the order is total.
        order.sort_unstable_by(|&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));
        if self.params.top_k > 0 {
            order.truncate(self.params.top_k);
        }
        if self.params.top_p < 1.0 {
            // Over the tokens that top-k kept, renormalised, as in transformers.
            let total: f64 = order.iter().map(|&id| f64::from(weights[id])).sum();
            let mut reached = 0.0;
            let keep = order
                .iter()
                .position(|&id| {
                    reached += f64::from(weights[id]);
                    reached >= f64::from(self.params.top_p) * total
                })
                .map_or(order.len(), |last| last + 1);
            order.truncate(keep);
        }
        let kept: Vec<f32> = order.iter().map(|&id| weights[id]).collect();
        order[draw(&kept, uniform)]
    }
}

/// The error for logits that are not numbers.
pub(crate) fn diverged(key: DrawKey) -> PolicyError {
    PolicyError::Input(format!(
        "the policy's logits are not finite (task {}, sample {}, position {}): its weights have diverged; \
         restart from an earlier checkpoint with a smaller learning rate",
        key.task, key.sample, key.position
    ))
}

/// The first largest entry.
fn argmax(values: &[f32]) -> usize {
    let mut best = 0;
    for (index, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = index;
        }
    }
    best
}

/// Inverts the cumulative sum of `weights` at `uniform`.
fn draw(weights: &[f32], uniform: f64) -> usize {
    let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
    let mut left = uniform * total;
    let mut last = 0;
    for (index, &weight) in weights.iter().enumerate() {
        if weight > 0.0 {
            last = index;
            left -= f64::from(weight);
            if left < 0.0 {
                break;
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: DrawKey = DrawKey {
        step: 0,
        task: 0,
        sample: 0,
        position: 0,
    };

    fn frequencies(params: SamplingParams, logits: &[f32], draws: u64) -> Vec<f64> {
        let sampler = Sampler::new(params, 1, Purpose::Test).unwrap();
        let mut counts = vec![0.0; logits.len()];
        for position in 0..draws {
            let drawn = sampler.sample(logits, DrawKey { position, ..KEY }).unwrap();
            counts[drawn.id as usize] += 1.0 / draws as f64;
        }
        counts
    }

    #[test]
    fn tokens_are_drawn_as_often_as_their_reported_probability_says() {
        let logits = [0.3f32, -1.0, 2.0, 0.0, 1.5];
        for temperature in [0.5, 1.0, 1.7] {
            let params = SamplingParams {
                temperature,
                ..Default::default()
            };
            let seen = frequencies(params, &logits, 40_000);
            let row = head::LogSoftmax::new(&logits, temperature);
            for (id, seen) in seen.iter().enumerate() {
                let expected = f64::from(row.log_prob(id).exp());
                let error = (expected * (1.0 - expected) / 40_000.0).sqrt();
                assert!(
                    (seen - expected).abs() < 4.5 * error,
                    "{temperature} {id}: {seen} {expected}"
                );
            }
        }
    }

    #[test]
    fn truncation_limits_what_is_drawn_and_not_what_is_reported() {
        let logits = [0.3f32, -1.0, 2.0, 0.0, 1.5];
        let top_k = SamplingParams {
            top_k: 2,
            ..Default::default()
        };
        let seen = frequencies(top_k, &logits, 4_000);
        assert_eq!((seen[0], seen[1], seen[3]), (0.0, 0.0, 0.0));
        assert!((seen[2] - 0.6225).abs() < 0.04); // 1 / (1 + exp(-0.5))
        let top_p = SamplingParams {
            top_p: 0.5,
            ..Default::default()
        };
        let seen = frequencies(top_p, &logits, 4_000);
        assert!(seen[2] > 0.0 && seen[1] == 0.0 && seen[3] == 0.0);
        let sampler = Sampler::new(top_k, 1, Purpose::Test).unwrap();
        let drawn = sampler.sample(&logits, KEY).unwrap();
        assert_eq!(
            drawn.log_prob,
            head::LogSoftmax::new(&logits, 1.0).log_prob(drawn.id as usize)
        );
        assert!(top_k.truncates() && top_p.truncates() && !SamplingParams::default().truncates());
    }

    #[test]
    fn greedy_takes_the_first_best_and_reports_temperature_one() {
        let logits = [0.0f32, 3.0, 3.0, 1.0];
        let sampler = Sampler::new(SamplingParams::greedy(), 1, Purpose::Test).unwrap();
        let drawn = sampler.sample(&logits, KEY).unwrap();
        assert_eq!(drawn.id, 1);
        assert_eq!(
            drawn.log_prob,
            head::LogSoftmax::new(&logits, 1.0).log_prob(1)
        );
    }

    #[test]
    fn a_draw_depends_on_its_key_alone() {
        let logits = vec![0.0f32; 64];
        let sampler = Sampler::new(SamplingParams::default(), 5, Purpose::Test).unwrap();
        let keys = [
            KEY,
            DrawKey { step: 1, ..KEY },
            DrawKey { task: 1, ..KEY },
            DrawKey { sample: 1, ..KEY },
            DrawKey { position: 1, ..KEY },
        ];
        let forwards: Vec<_> = keys
            .iter()
            .map(|&key| sampler.sample(&logits, key).unwrap().id)
            .collect();
        let mut backwards: Vec<_> = keys
            .iter()
            .rev()
            .map(|&key| sampler.sample(&logits, key).unwrap().id)
            .collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        assert!(forwards[1..].iter().any(|id| *id != forwards[0]));
    }

    #[test]
    fn broken_logits_and_senseless_parameters_are_refused() {
        let sampler = Sampler::new(SamplingParams::default(), 5, Purpose::Test).unwrap();
        assert!(
            sampler
                .sample(&[0.0, f32::NAN, 1.0], KEY)
                .unwrap_err()
                .to_string()
                .contains("not finite")
        );
        assert!(sampler.sample(&[0.0, f32::INFINITY], KEY).is_err());
        for params in [
            SamplingParams {
                temperature: -1.0,
                ..Default::default()
            },
            SamplingParams {
                temperature: f32::NAN,
                ..Default::default()
            },
            SamplingParams {
                top_p: 0.0,
                ..Default::default()
            },
        ] {
            assert!(Sampler::new(params, 0, Purpose::Test).is_err());
        }
    }
}
