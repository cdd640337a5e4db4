//! Checks that two implementations of one model agree: another device and the CPU, or plain and fused operators.

use std::fmt;
use std::path::Path;

use candle_core::{DType, Device, Tensor, Var};

use rlf_policy::{
    Decoder, Draw, DrawKey, Entry, Gradients, Key, LoraConfig, Model, Operators, PAGE_TOKENS,
    PackedBatch, PassOptions, Precision, Purpose, Qwen3Config, Result, Sampler, SamplingParams,
    Sequence, ValueHead,
};

use crate::policy::Workload;

/// The largest differences between two models with the same weights.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parity {
    /// Difference of log-probabilities of the same tokens, in nats.
    pub(crate) forward: f64,
    /// Difference of the worst parameter's gradient, relative to that gradient's largest entry.
    pub(crate) backward: f64,
    /// The worst parameter.
    pub(crate) parameter: String,
    /// Difference of logits decoded step by step with a cache.
    pub(crate) decode: f64,
    /// Difference of the log-probabilities of tokens that the other model draws, several sequences in one step.
    pub(crate) sampling: f64,
    /// Differences below this come from rounding.
    pub(crate) tolerance: f64,
}

/// Sums of a few hundred terms in another order differ by about this much in f32, and rounding to bf16 changes results by
/// about the second number. A wrong operator differs by far more.
const TOLERANCE: [f64; 2] = [2e-3, 1e-1];

impl Parity {
    /// True if every difference is small enough to come from rounding.
    pub(crate) fn agrees(&self) -> bool {
        [self.forward, self.backward, self.decode, self.sampling]
            .iter()
            .all(|difference| *difference < self.tolerance)
    }
}

impl fmt::Display for Parity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "forward   log-probabilities differ by at most {:.1e} nats",
            self.forward
        )?;
        writeln!(
            f,
            "backward  gradients differ by at most {:.1e} of their scale ({})",
            self.backward, self.parameter
        )?;
        writeln!(f, "decode    logits differ by at most {:.1e}", self.decode)?;
        writeln!(
            f,
            "sampling  log-probabilities of drawn tokens differ by at most {:.1e} nats",
            self.sampling
        )?;
        let verdict = if self.agrees() {
            "agree"
        } else {
            "DO NOT AGREE"
        };
        writeln!(f, "they {verdict} (tolerance {:.0e})", self.tolerance)
    }
}

/// Compares a device with the CPU on the quickstart's shape, without adapters and with some, and on two layers that are as
/// wide as those of Qwen3-0.6B: its plain operators, its fused ones, and these in bf16. Returns the name of each comparison
/// with the differences.
pub(crate) fn with_cpu(device: &Device) -> Result<Vec<(String, Parity)>> {
    let wide = Qwen3Config {
        vocab_size: 4096,
        num_hidden_layers: 2,
        ..Workload::qwen3()[0].config
    };
    let small = Workload::quickstart().config;
    let shapes = [
        ("the quickstart's shape", &small, false),
        ("the quickstart's shape with adapters", &small, true),
        ("two layers as wide as Qwen3-0.6B's", &wide, false),
    ];
    let mut all = Vec::new();
    for (name, config, has_adapters) in shapes {
        let ours = model(config, has_adapters, &Device::Cpu)?;
        let mut theirs = model(config, has_adapters, device)?;
        for (operators, precision) in [
            (Operators::Plain, Precision::F32),
            (Operators::Fused, Precision::F32),
            (Operators::Fused, Precision::Bf16),
        ] {
            theirs.use_operators(operators)?;
            theirs.use_precision(precision)?;
            let name = format!("{name}, {operators:?} operators, {precision:?}");
            all.push((name, compare(&ours, &theirs)?));
        }
    }
    Ok(all)
}

/// A model with random weights, and with random adapters if it has some.
fn model(config: &Qwen3Config, has_adapters: bool, device: &Device) -> Result<Model> {
    let model = Model::init(config, 0, device)?;
    if !has_adapters {
        return Ok(model);
    }
    let mut model = model.with_lora(&LoraConfig::default(), 1, Path::new("not saved"))?;
    fill(model.parameters())?;
    // Products read these numbers from now on.
    model.use_precision(Precision::F32)?;
    Ok(model)
}

/// Replaces parameters by random numbers.
fn fill<'a>(parameters: impl Iterator<Item = (&'a str, &'a Var)>) -> candle_core::Result<()> {
    for ((_, parameter), index) in parameters.zip(0..) {
        let key = Key::new(2, Purpose::Test).at(index);
        let numbers = (0..parameter.elem_count() as u64).map(|i| 0.1 * key.normal(i) as f32);
        let numbers = Tensor::from_iter(numbers, parameter.device())?;
        parameter.set(&numbers.reshape(parameter.shape())?)?;
    }
    Ok(())
}

/// Compares two models that should be equal. The other one's backward pass is made with all intermediate results, and with
/// checkpointing.
pub(crate) fn compare(reference: &Model, other: &Model) -> Result<Parity> {
    let vocabulary = reference.vocabulary().min(other.vocabulary()) as u64;
    let ids = |index: u64, length: u64| -> Vec<u32> {
        let key = Key::new(index, Purpose::Test);
        (0..length)
            .map(|position| key.below(position, vocabulary) as u32)
            .collect()
    };
    // The longest has more rows than attention takes at once.
    let longest = reference.config().max_position_embeddings.min(700) as u64;
    let texts: Vec<Vec<u32>> = [3, 40, longest]
        .into_iter()
        .zip(0..)
        .map(|(length, index)| ids(index, length))
        .collect();
    let masks: Vec<Vec<bool>> = texts
        .iter()
        .map(|text| {
            (0..text.len())
                .map(|position| position > 0 && position % 3 > 0)
                .collect()
        })
        .collect();
    let sequences: Vec<Sequence<'_>> = texts
        .iter()
        .zip(&masks)
        .map(|(ids, mask)| Sequence { ids, mask })
        .collect();
    let batches = [
        PackedBatch::new(&sequences[..2])?,
        PackedBatch::new(&sequences[2..])?,
    ];
    let pass = |model: &Model, checkpointing| {
        let head = ValueHead::new(model, true)?;
        fill(head.parameters())?;
        let options = PassOptions {
            temperature: 0.7,
            checkpointing,
            ..PassOptions::default()
        };
        model.accumulate_with_values(&batches, &options, Some(&head), |_, tokens| {
            let values = tokens.values.as_ref().expect("there is a head");
            let beside = (tokens.entropy.mean_all()? + values.mean_all()?)?;
            let loss = (tokens.log_probs.mean_all()? + 0.1 * beside)?;
            Ok((loss, numbers(&tokens.log_probs)?))
        })
    };
    let ours = pass(reference, false)?;
    let (mut forward, mut worst) = (0.0_f64, (0.0, String::new()));
    for checkpointing in [false, true] {
        let theirs = pass(other, checkpointing)?;
        for (ours, theirs) in ours.outputs.iter().zip(&theirs.outputs) {
            forward = forward.max(largest_difference(ours, theirs));
        }
        let of_heads = ours.value_head.iter().zip(&theirs.value_head);
        for (ours, theirs) in of_heads.chain([(&ours.gradients, &theirs.gradients)]) {
            let (difference, name) = worst_gradient(ours, theirs)?;
            if difference >= worst.0 {
                worst = (difference, name);
            }
        }
    }
    let decode = largest_difference(&decoded(reference, &texts)?, &decoded(other, &texts)?);
    Ok(Parity {
        forward,
        backward: worst.0,
        parameter: worst.1,
        decode,
        sampling: sampled(reference, other, &texts)?,
        tolerance: match other.precision() {
            Precision::F32 => TOLERANCE[0],
            Precision::Bf16 => TOLERANCE[1],
        },
    })
}

/// The largest difference of a parameter's gradient, relative to that gradient's largest entry, and the parameter.
fn worst_gradient(ours: &Gradients, theirs: &Gradients) -> Result<(f64, String)> {
    let mut worst = (0.0, String::new());
    for ((name, ours), (_, theirs)) in ours.iter().zip(theirs.iter()) {
        let (ours, theirs) = (numbers(ours)?, numbers(theirs)?);
        let scale = ours
            .iter()
            .fold(f64::MIN_POSITIVE, |scale, x| scale.max(f64::from(x.abs())));
        let difference = largest_difference(&ours, &theirs) / scale;
        // NaN counts as the worst difference, which `>=` would miss.
        if difference.is_nan() {
            worst = (f64::INFINITY, name.to_owned());
        } else if difference >= worst.0 {
            worst = (difference, name.to_owned());
        }
    }
    Ok(worst)
}

/// Logits of every sequence's last token. The first half is read at once. Another sequence shares it, and reads the rest
/// token by token.
fn decoded(model: &Model, texts: &[Vec<u32>]) -> Result<Vec<f32>> {
    let longest = texts.iter().map(Vec::len).max().unwrap_or(1);
    let cache = texts.len() * (longest.next_multiple_of(PAGE_TOKENS) + PAGE_TOKENS);
    let mut decoder = Decoder::new(model, cache, longest, 1)?;
    let mut last = Vec::new();
    for (text, sequence) in texts.iter().zip(0..) {
        let half = text.len() / 2;
        let mut logits = decoder.step(
            model,
            &[Entry {
                sequence,
                start: 0,
                tokens: &text[..half],
            }],
        )?;
        let other = sequence + texts.len() as u64;
        decoder.share_prefix(sequence, other, half)?;
        for start in half..text.len() {
            logits = decoder.step(
                model,
                &[Entry {
                    sequence: other,
                    start,
                    tokens: &text[start..=start],
                }],
            )?;
        }
        last.extend(logits.into_iter().flatten());
    }
    Ok(last)
}

/// The difference of the log-probabilities of what `other` draws after every prefix of the texts, all texts together and
/// token by token.
fn sampled(reference: &Model, other: &Model, texts: &[Vec<u32>]) -> Result<f64> {
    let longest = texts.iter().map(Vec::len).max().unwrap_or(1);
    let tokens = texts.len() * longest.next_multiple_of(PAGE_TOKENS);
    let decoder = |model| Decoder::new(model, tokens, longest, 1);
    let (mut ours, mut theirs) = (decoder(reference)?, decoder(other)?);
    let sampler = Sampler::new(SamplingParams::default(), 0, Purpose::Test)?;
    let mut worst = 0.0_f64;
    for start in 0..longest {
        let (mut entries, mut draws) = (Vec::new(), Vec::new());
        for (sequence, text) in (0..).zip(texts) {
            let Some(token) = text.get(start..=start) else {
                continue;
            };
            entries.push(Entry {
                sequence,
                start,
                tokens: token,
            });
            let key = DrawKey {
                step: 0,
                task: sequence,
                sample: 0,
                position: start as u64,
            };
            draws.push(Some(Draw { sampler, key }));
        }
        let logits = ours.step(reference, &entries)?;
        let drawn = theirs.sample(other, &entries, &draws)?;
        for (logits, drawn) in logits.iter().zip(drawn.into_iter().flatten()) {
            let difference = (log_prob(logits, drawn.id) - f64::from(drawn.log_prob)).abs();
            worst = worst.max(if difference.is_nan() {
                f64::INFINITY
            } else {
                difference
            });
        }
    }
    Ok(worst)
}

fn log_prob(logits: &[f32], id: u32) -> f64 {
    let total: f64 = logits.iter().map(|logit| f64::from(*logit).exp()).sum();
    f64::from(logits[id as usize]) - total.ln()
}

fn numbers(tensor: &Tensor) -> candle_core::Result<Vec<f32>> {
    tensor
        .to_dtype(DType::F32)?
        .to_device(&Device::Cpu)?
        .flatten_all()?
        .to_vec1()
}

fn largest_difference(ours: &[f32], theirs: &[f32]) -> f64 {
    if ours.len() != theirs.len() {
        return f64::INFINITY;
    }
    ours.iter().zip(theirs).fold(0.0, |largest, (a, b)| {
        let difference = f64::from((a - b).abs());
        if difference.is_nan() {
            f64::INFINITY
        } else {
            largest.max(difference)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_twin_agrees_and_other_weights_do_not() {
        let config = Workload::quickstart().config;
        for has_adapters in [false, true] {
            let [ours, mut twin] =
                [0, 1].map(|_| model(&config, has_adapters, &Device::Cpu).unwrap());
            twin.use_operators(Operators::Plain).unwrap();
            let parity = compare(&ours, &twin).unwrap();
            assert!(parity.agrees() && parity.forward > 0.0, "{parity}");
            twin.use_operators(Operators::Fused).unwrap();
            twin.use_precision(Precision::Bf16).unwrap();
            let rounded = compare(&ours, &twin).unwrap();
            assert!(
                rounded.agrees() && rounded.forward > 10.0 * parity.forward,
                "{rounded}"
            );
        }
        let model = Model::init(&config, 0, &Device::Cpu).unwrap();
        let other = Model::init(&config, 1, &Device::Cpu).unwrap();
        assert!(!compare(&model, &other).unwrap().agrees());
    }

    #[test]
    fn what_is_no_number_never_agrees() {
        assert_eq!(
            largest_difference(&[1.0, f32::NAN], &[1.0, 2.0]),
            f64::INFINITY
        );
        assert_eq!(largest_difference(&[1.0], &[1.0, 2.0]), f64::INFINITY);
    }
}
