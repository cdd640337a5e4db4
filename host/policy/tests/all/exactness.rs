//! The promise of this crate: on the CPU, the values recorded at sampling equal those that training computes, bit for
//! bit, whatever else is in the batch.

use crate::support::{adapted, bits, cpu, ids, pack, quickstart, qwen3_06b_slice, small, train};
use rlf_policy::{
    AdamW, Decoder, DrawKey, Entry, LoraConfig, Model, OptimizerConfig, PAGE_TOKENS, PackedBatch,
    PassOptions, Precision, Projection, Purpose, Qwen3Config, Sampled, Sampler, SamplingParams,
    Sequence,
};

const TEMPERATURE: f32 = 0.7;

fn options(workers: usize) -> PassOptions {
    PassOptions {
        workers,
        temperature: TEMPERATURE,
        checkpointing: false,
    }
}

fn forward(model: &Model, sequences: &[Vec<u32>], workers: usize) -> Vec<f32> {
    let stats = model
        .log_probs(&[pack(sequences)], &options(workers))
        .unwrap();
    stats[0].log_probs.to_vec1().unwrap()
}

/// Each sequence's log-probabilities when it is alone in its batch.
fn alone(model: &Model, sequences: &[Vec<u32>]) -> Vec<Vec<f32>> {
    sequences
        .iter()
        .map(|ids| forward(model, std::slice::from_ref(ids), 1))
        .collect()
}

/// The log-probability of every token but the first. Each decoder step receives `piece` tokens of every sequence in
/// one batch.
fn decoded(model: &Model, sequences: &[Vec<u32>], piece: usize, workers: usize) -> Vec<Vec<f32>> {
    let sampler = Sampler::new(
        SamplingParams {
            temperature: TEMPERATURE,
            ..Default::default()
        },
        0,
        Purpose::Test,
    )
    .unwrap();
    let longest = sequences.iter().map(Vec::len).max().unwrap();
    let cache = sequences.len() * longest.next_multiple_of(PAGE_TOKENS);
    let mut decoder = Decoder::new(model, cache, longest, workers).unwrap();
    let mut out = vec![Vec::new(); sequences.len()];
    let mut at = vec![0usize; sequences.len()];
    loop {
        let mut entries = Vec::new();
        let mut of = Vec::new();
        for (index, ids) in sequences.iter().enumerate() {
            let left = ids.len() - 1 - at[index];
            if left > 0 {
                // Pieces of one are single tokens; longer pieces give only the last position's logits.
                let tokens = &ids[at[index]..at[index] + piece.min(left)];
                entries.push(Entry {
                    sequence: index as u64,
                    start: at[index],
                    tokens,
                });
                of.push(index);
            }
        }
        if entries.is_empty() {
            return out;
        }
        let nexts: Vec<u32> = entries
            .iter()
            .zip(&of)
            .map(|(entry, &index)| sequences[index][entry.start + entry.tokens.len()])
            .collect();
        let values = decoder
            .step_with(model, &entries, |entry, logits| {
                sampler.log_prob(logits, nexts[entry])
            })
            .unwrap();
        for ((value, index), entry) in values.into_iter().zip(of).zip(&entries) {
            out[index].push(value);
            at[index] += entry.tokens.len();
        }
    }
}

fn sequences(lengths: &[usize], vocabulary: usize) -> Vec<Vec<u32>> {
    lengths
        .iter()
        .enumerate()
        .map(|(index, &len)| ids(index as u64, len, vocabulary))
        .collect()
}

fn check(config: &Qwen3Config, lengths: &[usize]) {
    check_model(&cpu(config), lengths);
}

fn check_model(model: &Model, lengths: &[usize]) {
    let all = sequences(lengths, model.config().vocab_size);
    let expected: Vec<Vec<u32>> = alone(model, &all).iter().map(|row| bits(row)).collect();
    // Any packing, one and two threads.
    let packed = forward(model, &all, 2);
    assert_eq!(bits(&packed), expected.concat(), "packed together");
    let mut reversed = all.clone();
    reversed.reverse();
    let packed = forward(model, &reversed, 1);
    assert_eq!(
        bits(&packed),
        expected.iter().rev().flatten().copied().collect::<Vec<_>>(),
        "packed in another order"
    );
    // Decoded token by token, alone and together.
    for workers in [1, 2, 3] {
        let got = decoded(model, &all, 1, workers);
        for (got, expected) in got.iter().zip(&expected) {
            assert_eq!(&bits(got), expected, "decoded together, {workers} workers");
        }
    }
    let got = decoded(model, &all[1..2], 1, 1);
    assert_eq!(bits(&got[0]), expected[1], "decoded alone");
    // In pieces: each gives only its last position.
    for piece in [3, 16, 17, 64] {
        for (got, expected) in decoded(model, &all, piece, 2).iter().zip(&expected) {
            let count = expected.len();
            let at: Vec<usize> = (1..=count.div_ceil(piece))
                .map(|i| (i * piece).min(count) - 1)
                .collect();
            assert_eq!(
                bits(got),
                at.iter().map(|&i| expected[i]).collect::<Vec<_>>(),
                "pieces of {piece}"
            );
        }
    }
}

#[test]
fn quickstart_decodes_what_it_trains() {
    check(&quickstart(), &[2, 5, 16, 17, 18, 33, 64, 127, 150, 300]);
}

#[test]
fn a_policy_with_adapters_decodes_what_it_trains() {
    for (rank, targets) in [
        (1, Projection::ALL.to_vec()),
        (8, Projection::ALL.to_vec()),
        (16, vec![Projection::VProj, Projection::QProj]),
    ] {
        let lora = LoraConfig {
            rank,
            targets,
            ..LoraConfig::default()
        };
        check_model(&adapted(&quickstart(), &lora), &[2, 5, 16, 17, 33, 64, 150]);
    }
}

/// Also after a step of the optimiser, which changes the weights under the copies that products read.
#[test]
fn a_policy_in_bf16_decodes_what_it_trains() {
    let lora = LoraConfig::default();
    for mut model in [
        cpu(&quickstart()),
        cpu(&qwen3_06b_slice()),
        adapted(&quickstart(), &lora),
    ] {
        let lengths = [2, 5, 17, 33, 70];
        let in_f32 = alone(&model, &sequences(&lengths, model.vocabulary()));
        model.use_precision(Precision::Bf16).unwrap();
        check_model(&model, &lengths);
        let before = alone(&model, &sequences(&lengths, model.vocabulary()));
        assert!(before != in_f32, "products are still in f32");
        let mut optimizer = AdamW::new(&model, OptimizerConfig::default()).unwrap();
        train(&model, &mut optimizer, 0.02);
        let after = alone(&model, &sequences(&lengths, model.vocabulary()));
        assert!(after != before, "products still read the old weights");
        check_model(&model, &lengths);
    }
}

#[test]
fn the_next_size_decodes_what_it_trains() {
    check(&small(), &[3, 31, 32, 70, 129]);
}

#[test]
fn qwen3_06b_decodes_what_it_trains() {
    check(&qwen3_06b_slice(), &[9, 24, 41]);
}

#[test]
fn one_to_three_hundred_sequences_give_a_row_the_same_bits() {
    let model = cpu(&quickstart());
    let all = sequences(&[20; 300], 461);
    let prompts: Vec<Entry<'_>> = all
        .iter()
        .zip(0..)
        .map(|(ids, sequence)| Entry {
            sequence,
            start: 0,
            tokens: &ids[..19],
        })
        .collect();
    let mut decoder = Decoder::new(&model, 300 * 64, 64, 2).unwrap();
    decoder.step(&model, &prompts).unwrap();
    let last: Vec<Entry<'_>> = all
        .iter()
        .zip(0..)
        .map(|(ids, sequence)| Entry {
            sequence,
            start: 19,
            tokens: &ids[19..],
        })
        .collect();
    let together = decoder.step(&model, &last).unwrap();
    for count in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 31, 64, 100, 101, 255, 299] {
        let some = decoder.step(&model, &last[..count]).unwrap();
        assert!(
            some.iter().zip(&together).all(|(a, b)| bits(a) == bits(b)),
            "{count} sequences"
        );
    }
}

#[test]
fn a_shared_prompt_is_as_good_as_one_of_its_own() {
    for prompt in [1, 15, 31, 32, 33, 40, 64] {
        let model = cpu(&quickstart());
        let ids = ids(5, prompt + 20, 461);
        let mut decoder = Decoder::new(&model, 3 * 128, 128, 1).unwrap();
        // A sequence that held something longer before, and a donor that has continued and goes on.
        decoder
            .step(
                &model,
                &[Entry {
                    sequence: 2,
                    start: 0,
                    tokens: &crate::support::ids(9, 100, 461),
                }],
            )
            .unwrap();
        decoder
            .step(
                &model,
                &[Entry {
                    sequence: 0,
                    start: 0,
                    tokens: &ids[..prompt + 10],
                }],
            )
            .unwrap();
        decoder.share_prefix(0, 2, prompt).unwrap();
        let (start, more) = (prompt + 10, [7, 8, 9]);
        let goes_on = Entry {
            sequence: 0,
            start,
            tokens: &more,
        };
        let donor = decoder.step(&model, &[goes_on]).unwrap();
        let shared = decoder
            .step(
                &model,
                &[Entry {
                    sequence: 2,
                    start: prompt,
                    tokens: &ids[prompt..],
                }],
            )
            .unwrap();
        let own = decoder
            .step(
                &model,
                &[Entry {
                    sequence: 1,
                    start: 0,
                    tokens: &ids,
                }],
            )
            .unwrap();
        assert_eq!(bits(&shared[0]), bits(&own[0]), "prompt of {prompt}");
        let again = decoder.step(&model, &[goes_on]).unwrap();
        assert_eq!(bits(&again[0]), bits(&donor[0]), "donor of {prompt}");
        // Going back and decoding the same tokens again changes nothing.
        let again = decoder
            .step(
                &model,
                &[Entry {
                    sequence: 1,
                    start: prompt,
                    tokens: &ids[prompt..],
                }],
            )
            .unwrap();
        assert_eq!(bits(&again[0]), bits(&own[0]));
    }
}

#[test]
fn the_importance_ratio_of_the_first_update_is_exactly_one() {
    let mut model = cpu(&quickstart());
    model.limit_vocabulary(455).unwrap();
    let params = SamplingParams {
        temperature: TEMPERATURE,
        ..Default::default()
    };
    let sampler = Sampler::new(params, 3, Purpose::Rollout).unwrap();
    let prompts = sequences(&[7, 12, 30, 30], 455);
    let mut trajectories = prompts.clone();
    let mut recorded: Vec<Vec<f32>> = vec![Vec::new(); prompts.len()];
    let mut decoder = Decoder::new(&model, 4 * 128, 128, 2).unwrap();
    for step in 0..40 {
        let entries: Vec<Entry<'_>> = trajectories
            .iter()
            .enumerate()
            // Some sequences pause now and then, as if their tools were running.
            .filter(|(index, _)| (step + index) % 5 != 0)
            .map(|(index, ids)| {
                let (sequence, start) = (index as u64, decoder.len(index as u64));
                let tokens = &ids[start..];
                Entry {
                    sequence,
                    start,
                    tokens,
                }
            })
            .collect();
        let drawn: Vec<(usize, Sampled)> = decoder
            .step_with(&model, &entries, |entry, logits| {
                let sequence = entries[entry].sequence;
                let position = (entries[entry].start + entries[entry].tokens.len()) as u64;
                let key = DrawKey {
                    step: 0,
                    task: sequence,
                    sample: 0,
                    position,
                };
                (sequence as usize, sampler.sample(logits, key).unwrap())
            })
            .unwrap();
        for (index, drawn) in drawn {
            assert!(drawn.id < 455);
            trajectories[index].push(drawn.id);
            recorded[index].push(drawn.log_prob);
        }
    }
    let masks: Vec<Vec<bool>> = trajectories
        .iter()
        .zip(&prompts)
        .map(|(ids, prompt)| (0..ids.len()).map(|i| i >= prompt.len()).collect())
        .collect();
    let batch: Vec<Sequence<'_>> = trajectories
        .iter()
        .zip(&masks)
        .map(|(ids, mask)| Sequence { ids, mask })
        .collect();
    let batches = [
        PackedBatch::new(&batch[..1]).unwrap(),
        PackedBatch::new(&batch[1..]).unwrap(),
    ];
    let recorded = recorded.concat();
    for checkpointing in [false, true] {
        let done = model
            .accumulate(
                &batches,
                &PassOptions {
                    workers: 2,
                    temperature: TEMPERATURE,
                    checkpointing,
                },
                |_, tokens| {
                    Ok((
                        tokens.log_probs.sum_all()?,
                        tokens.log_probs.to_vec1::<f32>()?,
                    ))
                },
            )
            .unwrap();
        let trained = done.outputs.concat();
        assert_eq!(bits(&trained), bits(&recorded));
        assert!(
            trained
                .iter()
                .zip(&recorded)
                .all(|(new, old)| (new - old).exp() == 1.0)
        );
    }
}
