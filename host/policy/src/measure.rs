//! Decoding of a made-up batch and matrix products, for programs that measure or estimate how fast a machine is.

use std::time::{Duration, Instant};

use half::bf16;

use crate::config::Qwen3Config;
use crate::decode::{Decoder, Entry};
use crate::error::Result;
use crate::model::{Model, Precision};
use crate::ops::linear::linear_into;
use crate::ops::weight::{Numbers, Weight};
use crate::sample::{Draw, DrawKey, Sampler};

/// The shape of the quickstart's policy.
pub fn quickstart_shape() -> Qwen3Config {
    Qwen3Config {
        vocab_size: 421,
        hidden_size: 96,
        intermediate_size: 256,
        num_hidden_layers: 3,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 24,
        max_position_embeddings: 1024,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        tie_word_embeddings: true,
        initializer_range: 0.036,
    }
}

/// Decodes `new_tokens` tokens after each prompt, all prompts together. The prompts have one length. The decoder needs
/// room for all of them.
pub fn decode_together(
    model: &Model,
    decoder: &mut Decoder,
    sampler: &Sampler,
    prompts: &[Vec<u32>],
    new_tokens: usize,
) -> Result<()> {
    let mut last = prompts.to_vec();
    let mut start = 0;
    for _ in 0..new_tokens {
        let entries: Vec<Entry<'_>> = last
            .iter()
            .zip(0..)
            .map(|(tokens, sequence)| Entry {
                sequence,
                start,
                tokens,
            })
            .collect();
        start += last.first().map_or(0, Vec::len);
        let draws: Vec<Option<Draw>> = (0..entries.len() as u64)
            .map(|task| {
                let (step, sample, position) = (0, 0, start as u64);
                let key = DrawKey {
                    step,
                    task,
                    sample,
                    position,
                };
                Some(Draw {
                    sampler: *sampler,
                    key,
                })
            })
            .collect();
        let drawn = decoder.sample(model, &entries, &draws)?;
        for (last, drawn) in last.iter_mut().zip(drawn.into_iter().flatten()) {
            *last = vec![drawn.id];
        }
    }
    Ok(())
}

/// Rows, inputs and outputs of the product that [`product_rate`] computes. Its operands stay in the cache of a core.
const PRODUCT: [usize; 3] = [128, 512, 256];

/// Floating-point operations per second of matrix products on the CPU: `workers` threads compute some for `time`, each its
/// own.
pub fn product_rate(precision: Precision, workers: usize, time: Duration) -> f64 {
    let [rows, inputs, outputs] = PRODUCT;
    let work = || {
        let (x, w) = (vec![1.0; rows * inputs], vec![1.0; inputs * outputs]);
        let half = vec![bf16::ONE; w.len()];
        let numbers = match precision {
            Precision::F32 => Numbers::F32(&w),
            Precision::Bf16 => Numbers::Bf16(&half),
        };
        let w = Weight::new(numbers, inputs, outputs);
        let mut out = vec![0.0; rows * outputs];
        let (began, mut products) = (Instant::now(), 0_u64);
        while began.elapsed() < time {
            linear_into(&x, w, &mut out, false);
            products += 1;
        }
        products as f64 / began.elapsed().as_secs_f64()
    };
    let per_second: f64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers.max(1)).map(|_| scope.spawn(work)).collect();
        // A thread that panicked computed nothing.
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(0.0))
            .sum()
    });
    per_second * 2.0 * PRODUCT.iter().product::<usize>() as f64
}
