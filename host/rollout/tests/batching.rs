//! The samples of a sequence do not depend on the sequences decoded beside it, and training computes exactly the
//! log-probabilities that were recorded.

use std::sync::Arc;

use candle_core::Device;
use rlf_policy::{
    DrawKey, Model, PackedBatch, PassOptions, Purpose, Qwen3Config, Sampler, SamplingParams,
    Sequence,
};
use rlf_rollout::generate::{
    GenerateError, GenerateRequest, Generator, GeneratorTimes, SequenceId,
};
use rlf_rollout::policy_generator::{PolicyGenerator, PolicyGeneratorConfig};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const STOP: u32 = 7;
const CONTEXT: usize = 160;
const TURNS: u64 = 3;

fn model() -> Model {
    let config = Qwen3Config {
        vocab_size: 48,
        hidden_size: 32,
        intermediate_size: 64,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 8,
        max_position_embeddings: CONTEXT,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        initializer_range: 0.2,
    };
    Model::init(&config, 3, &Device::Cpu).unwrap()
}

/// A played sequence: all ids, a mark for each sampled one, and the log-probabilities.
#[derive(Debug, Clone, PartialEq)]
struct Played {
    ids: Vec<u32>,
    mask: Vec<bool>,
    log_prob_bits: Vec<u32>,
}

/// The prompt of a sequence. Four sequences share a prompt, as the members of a group.
fn prompt(number: u64) -> Vec<u32> {
    let task = number / 4;
    (0..9 + 5 * task as u32)
        .map(|i| (i * 11 + task as u32 * 5) % 48)
        .collect()
}

/// Plays one sequence of several turns; `pauses` decides how long its "tools" run. The first turn's tools wait for
/// those of the other sequences at the barrier.
async fn play(
    engine: Arc<PolicyGenerator>,
    number: u64,
    pauses: u64,
    barrier: Arc<Barrier>,
) -> Played {
    let sampler = Sampler::new(SamplingParams::default(), 11, Purpose::Rollout).unwrap();
    let sequence = SequenceId(number);
    let (mut played, mut sampled) = (
        Played {
            ids: vec![],
            mask: vec![],
            log_prob_bits: vec![],
        },
        0,
    );
    let mut append = prompt(number);
    for turn in 0..TURNS {
        played.ids.extend(&append);
        played.mask.resize(played.ids.len(), false);
        let generated = engine
            .generate(GenerateRequest {
                sequence,
                append: append.clone(),
                max_new_tokens: 12,
                sampler,
                key: DrawKey {
                    step: 1,
                    task: number / 4,
                    sample: number % 4,
                    position: sampled,
                },
            })
            .await
            .unwrap();
        sampled += generated.ids.len() as u64;
        played.ids.extend(&generated.ids);
        played.mask.resize(played.ids.len(), true);
        played
            .log_prob_bits
            .extend(generated.log_probs.iter().map(|x| x.to_bits()));
        append = vec![1, 2, 3 + turn as u32];
        if turn == 0 {
            barrier.wait().await;
        }
        for _ in 0..(number * 7 + turn * 13 + pauses * 5) % (1 + pauses) {
            tokio::task::yield_now().await;
        }
    }
    engine.close(sequence);
    played
}

fn play_all(count: u64, config: PolicyGeneratorConfig, workers: usize, pauses: u64) -> Vec<Played> {
    play_with_barrier(count, config, workers, pauses, 1).0
}

/// The same, with first turns that wait until so many of them have ended; and the engine's times and counts.
fn play_with_barrier(
    count: u64,
    config: PolicyGeneratorConfig,
    workers: usize,
    pauses: u64,
    first_turns: usize,
) -> (Vec<Played>, GeneratorTimes) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let engine =
        Arc::new(PolicyGenerator::start(model(), vec![STOP], CONTEXT, workers, config).unwrap());
    let barrier = Arc::new(Barrier::new(first_turns));
    runtime.block_on(async {
        let mut all = JoinSet::new();
        for place in 0..count {
            // A different order of arrival for every setting.
            let number = (place * (2 * pauses + 1)) % count;
            let (engine, barrier) = (engine.clone(), barrier.clone());
            all.spawn(async move { (number, play(engine, number, pauses, barrier).await) });
        }
        let mut done = all.join_all().await;
        done.sort_by_key(|(number, _)| *number);
        let played = done.into_iter().map(|(_, played)| played).collect();
        (played, engine.take_times().await)
    })
}

#[test]
fn sequences_are_the_same_alone_and_in_any_company() {
    let count = 16;
    let alone = play_all(
        count,
        PolicyGeneratorConfig {
            slots: 1,
            step_tokens: 1,
            ..PolicyGeneratorConfig::default()
        },
        1,
        0,
    );
    assert!(
        alone
            .iter()
            .any(|played| played.ids.len() != alone[0].ids.len()),
        "all alike"
    );
    for (slots, step_tokens, workers, pauses) in [
        (16, 8192, 1, 0),
        (16, 8192, 2, 3),
        (5, 16, 2, 40),
        (3, 4, 1, 7),
    ] {
        let together = play_all(
            count,
            PolicyGeneratorConfig {
                slots,
                step_tokens,
                ..PolicyGeneratorConfig::default()
            },
            workers,
            pauses,
        );
        assert_eq!(
            alone, together,
            "{slots} slots, {step_tokens} tokens a pass, {workers} workers"
        );
    }
}

#[test]
fn a_small_cache_gives_the_same_sequences_as_a_large_one() {
    // After their first turns, all sequences have tokens at once: more than the small cache has room for.
    let count = 16;
    let play = |cache_tokens, slots, step_tokens, workers| {
        let config = PolicyGeneratorConfig {
            slots,
            cache_tokens,
            step_tokens,
        };
        play_with_barrier(count, config, workers, 3, count as usize)
    };
    let (expected, times) = play(None, 16, 8192, 2);
    assert_eq!(
        (times.evicted, times.preempted, times.read_again),
        (0, 0, 0)
    );
    for (cache_tokens, slots, step_tokens, workers) in [
        (CONTEXT, 16, 8192, 2),
        (CONTEXT, 3, 4, 1),
        (2 * CONTEXT, 16, 16, 2),
    ] {
        let (played, times) = play(Some(cache_tokens), slots, step_tokens, workers);
        assert_eq!(
            played, expected,
            "{cache_tokens} tokens, {slots} slots, {step_tokens} tokens a pass, {workers} workers"
        );
        assert!(times.evicted > 0 && times.read_again > 0, "{times:?}");
    }
}

#[test]
fn training_computes_the_recorded_log_probabilities_bit_for_bit() {
    let played = play_all(8, PolicyGeneratorConfig::default(), 2, 2);
    let sequences: Vec<Sequence<'_>> = played
        .iter()
        .map(|p| Sequence {
            ids: &p.ids,
            mask: &p.mask,
        })
        .collect();
    let batch = PackedBatch::new(&sequences).unwrap();
    let stats = model()
        .log_probs(&[batch], &PassOptions::default())
        .unwrap();
    let computed: Vec<u32> = stats[0]
        .log_probs
        .to_vec1::<f32>()
        .unwrap()
        .iter()
        .map(|x| x.to_bits())
        .collect();
    let recorded: Vec<u32> = played
        .iter()
        .flat_map(|p| p.log_prob_bits.clone())
        .collect();
    assert_eq!(recorded, computed);
}

#[test]
fn a_sequence_that_does_not_fit_is_refused_and_others_go_on() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let config = PolicyGeneratorConfig {
        slots: 2,
        step_tokens: 64,
        ..PolicyGeneratorConfig::default()
    };
    let engine = Arc::new(PolicyGenerator::start(model(), vec![STOP], CONTEXT, 1, config).unwrap());
    let sampler = Sampler::new(SamplingParams::default(), 0, Purpose::Test).unwrap();
    let request = |sequence, append: Vec<u32>| GenerateRequest {
        sequence: SequenceId(sequence),
        append,
        max_new_tokens: 4,
        sampler,
        key: DrawKey {
            step: 0,
            task: 0,
            sample: sequence,
            position: 0,
        },
    };
    runtime.block_on(async {
        let refused = engine.generate(request(0, vec![1; CONTEXT])).await;
        assert!(matches!(
            refused,
            Err(GenerateError::TooLong {
                capacity: CONTEXT,
                ..
            })
        ));
        engine.close(SequenceId(0));
        assert!(engine.generate(request(1, vec![4, 5])).await.is_ok());
    });
}
