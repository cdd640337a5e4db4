//! The network is Qwen3: its logits are compared with recorded logits of transformers. With the feature
//! `reference-parity` they are also compared with those of candle-transformers, in the same run.

use std::path::{Path, PathBuf};

use crate::support::{cpu, ids, pack, quickstart, tiny};
use candle_core::{DType, Device};
use rlf_policy::{Decoder, Entry, Model, Operators, PassOptions};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/qwen3-tiny")
}

/// Logits at every position, one token at a time.
fn decoded(model: &Model, ids: &[u32]) -> Vec<Vec<f32>> {
    let mut decoder = Decoder::new(model, ids.len(), ids.len(), 1).unwrap();
    (0..ids.len())
        .map(|start| {
            let entry = Entry {
                sequence: 0,
                start,
                tokens: &ids[start..=start],
            };
            decoder.step(model, &[entry]).unwrap().remove(0)
        })
        .collect()
}

fn log_softmax(logits: &[f32], id: u32) -> f64 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|x| f64::from(x - largest).exp()).sum();
    f64::from(logits[id as usize] - largest) - sum.ln()
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}

/// `make_qwen3_tiny.py` made `qwen3-tiny`; `expected.json` names the versions of torch and transformers.
#[test]
fn logits_are_those_of_transformers() {
    let mut model = Model::load(&fixture(), &Device::Cpu).unwrap();
    assert_eq!(model.config().rope_theta, 1e6);
    let expected =
        candle_core::safetensors::load(fixture().join("expected.safetensors"), &Device::Cpu)
            .unwrap();
    let longs = |name: &str| -> Vec<u32> {
        expected[name]
            .to_dtype(DType::U32)
            .unwrap()
            .to_vec1::<u32>()
            .unwrap()
    };
    for operators in [Operators::Fused, Operators::Plain] {
        model.use_operators(operators).unwrap();
        for index in 0..4 {
            let ids = longs(&format!("ids.{index}"));
            let logits = expected[&format!("logits.{index}")]
                .to_vec2::<f32>()
                .unwrap();
            let ours = decoded(&model, &ids);
            let stats = (ids.len() > 1).then(|| {
                let stats = model
                    .log_probs(&[pack(std::slice::from_ref(&ids))], &PassOptions::default())
                    .unwrap();
                stats[0].log_probs.to_vec1::<f32>().unwrap()
            });
            for (position, theirs) in longs(&format!("positions.{index}"))
                .into_iter()
                .zip(&logits)
            {
                let position = position as usize;
                // Logits reach about 10 here.
                assert!(
                    worst(&ours[position], theirs) < 2e-4,
                    "{operators:?} {index} {position}"
                );
                if let (Some(stats), Some(next)) = (&stats, ids.get(position + 1)) {
                    assert!((f64::from(stats[position]) - log_softmax(theirs, *next)).abs() < 2e-4);
                }
            }
        }
    }
}

/// Run it with `cargo test -p rlf-policy --features reference-parity`.
#[cfg(feature = "reference-parity")]
#[test]
fn logits_are_those_of_candle_transformers() {
    use std::collections::HashMap;

    use candle_core::Tensor;
    use candle_transformers::models::qwen3;
    use rlf_policy::Qwen3Config;

    for config in [
        quickstart(),
        Qwen3Config {
            num_attention_heads: 4,
            num_key_value_heads: 2,
            ..tiny()
        },
    ] {
        let model = cpu(&config);
        let folder = tempfile::tempdir().unwrap();
        model.save(folder.path()).unwrap();
        let weights =
            candle_core::safetensors::load(folder.path().join("model.safetensors"), &Device::Cpu)
                .unwrap();
        let theirs = qwen3::Config {
            vocab_size: config.vocab_size,
            hidden_size: config.hidden_size,
            intermediate_size: config.intermediate_size,
            num_hidden_layers: config.num_hidden_layers,
            num_attention_heads: config.num_attention_heads,
            head_dim: config.head_dim,
            attention_bias: false,
            num_key_value_heads: config.num_key_value_heads,
            max_position_embeddings: config.max_position_embeddings,
            sliding_window: None,
            max_window_layers: 0,
            tie_word_embeddings: config.tie_word_embeddings,
            rope_theta: config.rope_theta,
            rms_norm_eps: config.rms_norm_eps,
            use_sliding_window: false,
            hidden_act: candle_nn::Activation::Silu,
        };
        let builder = candle_nn::VarBuilder::from_tensors(
            HashMap::from_iter(weights),
            DType::F32,
            &Device::Cpu,
        );
        let mut theirs = qwen3::ModelForCausalLM::new(&theirs, builder).unwrap();
        let ids = ids(4, 50, config.vocab_size);
        let ours = decoded(&model, &ids);
        for (position, id) in ids.iter().enumerate() {
            let input = Tensor::new(&[[*id]], &Device::Cpu).unwrap();
            let logits = theirs
                .forward(&input, position)
                .unwrap()
                .flatten_all()
                .unwrap()
                .to_vec1::<f32>()
                .unwrap();
            assert!(
                worst(&ours[position], &logits) < 1e-4,
                "{position}: {}",
                worst(&ours[position], &logits)
            );
        }
    }
}

#[test]
fn plain_decoding_agrees_with_fused_decoding_in_every_kind_of_step() {
    let config = quickstart();
    let fused = cpu(&config);
    let mut plain = fused.copy().unwrap();
    plain.use_operators(Operators::Plain).unwrap();
    let (a, b, c) = (ids(1, 40, 461), ids(2, 40, 461), ids(3, 40, 461));
    let run = |model: &Model| -> Vec<f32> {
        let mut decoder = Decoder::new(model, 4 * 64, 64, 2).unwrap();
        let mut all = Vec::new();
        let mut step = |decoder: &mut Decoder, entries: &[Entry<'_>]| {
            all.extend(decoder.step(model, entries).unwrap().concat());
        };
        step(
            &mut decoder,
            &[
                Entry {
                    sequence: 3,
                    start: 0,
                    tokens: &a[..20],
                },
                Entry {
                    sequence: 1,
                    start: 0,
                    tokens: &b[..3],
                },
            ],
        );
        step(
            &mut decoder,
            &[Entry {
                sequence: 1,
                start: 3,
                tokens: &b[3..4],
            }],
        );
        decoder.share_prefix(3, 0, 11).unwrap();
        step(
            &mut decoder,
            &[
                Entry {
                    sequence: 0,
                    start: 11,
                    tokens: &c[11..30],
                },
                Entry {
                    sequence: 1,
                    start: 4,
                    tokens: &b[4..5],
                },
                Entry {
                    sequence: 3,
                    start: 20,
                    tokens: &a[20..40],
                },
            ],
        );
        step(
            &mut decoder,
            &[Entry {
                sequence: 3,
                start: 10,
                tokens: &c[..2],
            }],
        );
        assert_eq!(
            (decoder.len(3), decoder.len(0), decoder.len(2)),
            (12, 30, 0)
        );
        all
    };
    assert!(worst(&run(&fused), &run(&plain)) < 1e-4);
}

#[test]
fn a_step_that_does_not_fit_is_refused_and_changes_nothing() {
    let model = cpu(&tiny());
    for operators in [Operators::Fused, Operators::Plain] {
        let mut model = model.copy().unwrap();
        model.use_operators(operators).unwrap();
        // One page.
        let mut decoder = Decoder::new(&model, 8, 8, 1).unwrap();
        decoder
            .step(
                &model,
                &[Entry {
                    sequence: 0,
                    start: 0,
                    tokens: &[1, 2, 3],
                }],
            )
            .unwrap();
        for (entry, says) in [
            (
                Entry {
                    sequence: 2,
                    start: 0,
                    tokens: &[1],
                },
                "takes 1 pages of 32 tokens, and 0 are free",
            ),
            (
                Entry {
                    sequence: 0,
                    start: 4,
                    tokens: &[1],
                },
                "holds 3",
            ),
            (
                Entry {
                    sequence: 0,
                    start: 3,
                    tokens: &[1; 6],
                },
                "context of 8",
            ),
            (
                Entry {
                    sequence: 0,
                    start: 3,
                    tokens: &[],
                },
                "no tokens",
            ),
            (
                Entry {
                    sequence: 0,
                    start: 3,
                    tokens: &[40],
                },
                "token id 40",
            ),
        ] {
            let error = decoder.step(&model, &[entry]).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let twice = [
            Entry {
                sequence: 0,
                start: 3,
                tokens: &[1],
            },
            Entry {
                sequence: 0,
                start: 3,
                tokens: &[2],
            },
        ];
        assert!(
            decoder
                .step(&model, &twice)
                .unwrap_err()
                .to_string()
                .contains("twice")
        );
        assert_eq!(decoder.len(0), 3);
        for (from, len, says) in [(0, 4, "which holds 3"), (5, 1, "which holds 0")] {
            let error = decoder.share_prefix(from, 1, len).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(
            decoder
                .step(
                    &cpu(&quickstart()),
                    &[Entry {
                        sequence: 0,
                        start: 3,
                        tokens: &[1]
                    }]
                )
                .is_err()
        );
        assert!(decoder.step(&model, &[]).unwrap().is_empty());
    }
    assert!(
        Decoder::new(&model, 5_000, 5_000, 1)
            .err()
            .unwrap()
            .to_string()
            .contains("max_position_embeddings")
    );
    assert!(
        Decoder::new(&model, 7, 8, 1)
            .err()
            .unwrap()
            .to_string()
            .contains("no room for one sequence of 8")
    );
}
