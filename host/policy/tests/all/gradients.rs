//! Every parameter has a correct gradient, which does not depend on how it was computed.

use crate::support::{cpu, ids, pack, quickstart, tiny};
use candle_core::{DType, Device, Tensor};
use rlf_policy::{
    AdamW, Gradients, Key, Model, Operators, OptimizerConfig, PackedBatch, PassOptions, Precision,
    Processor, PublishedShape, Purpose, Qwen3Config, TokenStats, micro_batches,
};

const TEMPERATURE: f32 = 0.8;

/// A loss that uses everything: each token's log-probability with a separate weight, and entropy.
fn loss(index: usize, tokens: &TokenStats) -> candle_core::Result<(Tensor, ())> {
    let n = tokens.log_probs.elem_count();
    let key = Key::new(5, Purpose::Test).at(index as u64);
    let weights: Vec<f32> = (0..n as u64).map(|i| key.normal(i) as f32).collect();
    let weights = Tensor::from_vec(weights, n, tokens.log_probs.device())?;
    let of_log_probs = (&tokens.log_probs * &weights)?.sum_all()?;
    let of_entropy = (tokens.entropy.sqr()? * 0.3)?.sum_all()?;
    Ok(((of_log_probs + of_entropy)?, ()))
}

fn batches(config: &Qwen3Config) -> Vec<PackedBatch> {
    let lengths = [5usize, 20, 33, 2, 17, 70];
    let all: Vec<Vec<u32>> = lengths
        .iter()
        .enumerate()
        .map(|(i, &len)| ids(i as u64, len, config.vocab_size))
        .collect();
    micro_batches(&lengths, 60, Processor::Cpu)
        .into_iter()
        .map(|range| pack(&all[range]))
        .collect()
}

fn gradients(model: &Model, batches: &[PackedBatch], options: PassOptions) -> (f64, Gradients) {
    let done = model
        .accumulate(
            batches,
            &PassOptions {
                temperature: TEMPERATURE,
                ..options
            },
            loss,
        )
        .unwrap();
    (done.loss, done.gradients)
}

/// The largest difference, relative to the largest element.
fn difference(a: &Tensor, b: &Tensor) -> f32 {
    let largest = |t: &Tensor| {
        t.abs()
            .unwrap()
            .max_all()
            .unwrap()
            .to_scalar::<f32>()
            .unwrap()
    };
    largest(&(a - b).unwrap()) / largest(b)
}

fn bits(gradients: &Gradients) -> Vec<u32> {
    gradients
        .iter()
        .flat_map(|(_, g)| g.flatten_all().unwrap().to_vec1::<f32>().unwrap())
        .map(f32::to_bits)
        .collect()
}

#[test]
fn fused_operators_have_the_gradients_of_their_plain_twins() {
    for config in [tiny(), quickstart()] {
        let mut model = cpu(&config);
        model.limit_vocabulary(config.vocab_size - 3).unwrap();
        let lengths = [5usize, 20, 33, 2, 17, 70, 150];
        let all: Vec<Vec<u32>> = lengths
            .iter()
            .map(|&len| ids(len as u64, len, model.vocabulary()))
            .collect();
        let batches = [pack(&all[..4]), pack(&all[4..])];
        let (fused_loss, fused) = gradients(&model, &batches, PassOptions::default());
        model.use_operators(Operators::Plain).unwrap();
        let (plain_loss, plain) = gradients(&model, &batches, PassOptions::default());
        assert!(
            (fused_loss - plain_loss).abs() < 1e-4 * plain_loss.abs(),
            "{fused_loss} {plain_loss}"
        );
        assert_eq!(fused.iter().len(), model.parameters().len());
        for ((name, fused), (_, plain)) in fused.iter().zip(plain.iter()) {
            assert!(
                fused
                    .abs()
                    .unwrap()
                    .max_all()
                    .unwrap()
                    .to_scalar::<f32>()
                    .unwrap()
                    > 0.0,
                "{name} is all zero"
            );
            assert!(
                difference(fused, plain) < 1e-4,
                "{name}: {}",
                difference(fused, plain)
            );
        }
    }
}

/// Two layers of Qwen3-0.6B with its whole vocabulary, and sequences of thousands of tokens.
#[test]
#[ignore = "long: `cargo xtask test --long` runs it"]
fn fused_operators_have_the_gradients_of_their_plain_twins_at_the_widths_of_qwen3_06b() {
    let config = Qwen3Config {
        num_hidden_layers: 2,
        max_position_embeddings: 4096,
        ..PublishedShape::Qwen3_0_6B.config()
    };
    let mut model = cpu(&config);
    let texts = [1500, 2600, 3].map(|len| ids(len as u64, len, 151_643));
    let batches = [pack(&texts)];
    let options = || PassOptions {
        workers: 2,
        ..PassOptions::default()
    };
    model.use_operators(Operators::Plain).unwrap();
    let (plain_loss, plain) = gradients(&model, &batches, options());
    for (precision, tolerance) in [(Precision::F32, 1e-3), (Precision::Bf16, 0.1)] {
        model.use_operators(Operators::Fused).unwrap();
        model.use_precision(precision).unwrap();
        let (loss, fused) = gradients(&model, &batches, options());
        let of_loss = (loss - plain_loss).abs() / plain_loss.abs();
        println!("{precision:?}: the losses differ by {of_loss:.1e}");
        assert!(of_loss < f64::from(tolerance), "{loss} {plain_loss}");
        for ((name, fused), (_, plain)) in fused.iter().zip(plain.iter()) {
            let difference = difference(fused, plain);
            println!("  {name} by {difference:.1e} of its scale");
            assert!(difference < tolerance, "{name}: {difference}");
        }
    }
}

#[test]
fn gradients_in_bf16_are_those_in_f32_but_for_rounding() {
    let config = quickstart();
    let mut model = cpu(&config);
    let batches = batches(&config);
    let (_, expected) = gradients(&model, &batches, PassOptions::default());
    model.use_precision(Precision::Bf16).unwrap();
    let (_, rounded) = gradients(&model, &batches, PassOptions::default());
    let mut worst = 0.0;
    for ((name, rounded), (_, expected)) in rounded.iter().zip(expected.iter()) {
        let difference = difference(rounded, expected);
        assert!(difference < 0.05, "{name}: {difference}");
        worst = f32::max(worst, difference);
    }
    // A number in bf16 has 8 bits.
    assert!(worst > 1e-3, "{worst}: products are still in f32");
}

#[test]
fn gradients_of_micro_batches_are_added_in_their_order_bit_for_bit() {
    let config = quickstart();
    let mut model = cpu(&config);
    let batches = batches(&config);
    assert_eq!(batches.len(), 3);
    for operators in [Operators::Fused, Operators::Plain] {
        model.use_operators(operators).unwrap();
        let options = PassOptions {
            temperature: TEMPERATURE,
            ..PassOptions::default()
        };
        let alone = |index: usize| {
            let batch = std::slice::from_ref(&batches[index]);
            let done = model.accumulate(batch, &options, |_, tokens| loss(index, tokens));
            done.unwrap().gradients
        };
        let first = alone(0);
        let mut sums: Vec<Tensor> = first.iter().map(|(_, sum)| sum.clone()).collect();
        for index in 1..batches.len() {
            for (sum, (_, gradient)) in sums.iter_mut().zip(alone(index).iter()) {
                *sum = (&*sum + gradient).unwrap();
            }
        }
        let expected: Vec<u32> = sums
            .iter()
            .flat_map(|sum| sum.flatten_all().unwrap().to_vec1::<f32>().unwrap())
            .map(f32::to_bits)
            .collect();
        let (_, together) = gradients(&model, &batches, PassOptions::default());
        assert!(bits(&together) == expected, "{operators:?}");
    }
}

#[test]
fn every_parameters_gradient_agrees_with_a_numeric_one() {
    let config = tiny();
    let model = cpu(&config);
    let sequences = [ids(1, 6, config.vocab_size), ids(2, 19, config.vocab_size)];
    let batches = [pack(&sequences)];
    let (_, gradients) = gradients(&model, &batches, PassOptions::default());
    let value = || -> f64 {
        let options = PassOptions {
            temperature: TEMPERATURE,
            ..PassOptions::default()
        };
        let stats = model.log_probs(&batches, &options).unwrap().remove(0);
        f64::from(loss(0, &stats).unwrap().0.to_scalar::<f32>().unwrap())
    };
    for (index, (name, variable)) in model.parameters().enumerate() {
        // The derivative along a random direction depends on every element.
        let key = Key::new(1, Purpose::Test).at(index as u64);
        let direction: Vec<f32> = (0..variable.elem_count() as u64)
            .map(|i| key.normal(i) as f32)
            .collect();
        let direction = Tensor::from_vec(direction, variable.shape(), &Device::Cpu).unwrap();
        let analytic = (gradients.get(name).unwrap() * &direction)
            .unwrap()
            .sum_all()
            .unwrap()
            .to_scalar::<f32>()
            .unwrap();
        let start = variable.as_detached_tensor().copy().unwrap();
        let at = |step: f64| {
            variable
                .set(&(&start + (&direction * step).unwrap()).unwrap())
                .unwrap();
            value()
        };
        // A fourth-order difference, so that the step can be large enough for f32.
        let h = 4e-3;
        let numeric = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
        variable.set(&start).unwrap();
        let error = (f64::from(analytic) - numeric).abs() / numeric.abs().max(1.0);
        assert!(error < 1e-2, "{name}: {analytic} against {numeric}");
    }
}

#[test]
fn checkpointing_and_workers_change_no_bit() {
    let config = quickstart();
    let mut model = cpu(&config);
    let batches = batches(&config);
    assert!(batches.len() >= 3);
    for precision in [Precision::F32, Precision::Bf16] {
        model.use_precision(precision).unwrap();
        let (expected_loss, expected) = gradients(&model, &batches, PassOptions::default());
        let expected = bits(&expected);
        for workers in [1, 2, 3] {
            for checkpointing in [false, true] {
                let options = PassOptions {
                    workers,
                    checkpointing,
                    ..PassOptions::default()
                };
                let (loss, got) = gradients(&model, &batches, options);
                assert_eq!(loss.to_bits(), expected_loss.to_bits());
                assert_eq!(
                    bits(&got),
                    expected,
                    "{precision:?}, {workers} workers, checkpointing {checkpointing}"
                );
            }
        }
    }
}

#[test]
fn one_two_and_three_workers_train_the_same_weights() {
    let config = quickstart();
    let weights = |workers: usize| -> Vec<u32> {
        let model = cpu(&config);
        let mut optimizer = AdamW::new(
            &model,
            OptimizerConfig {
                weight_decay: 0.1,
                ..Default::default()
            },
        )
        .unwrap();
        let batches = batches(&config);
        for _ in 0..3 {
            let (_, gradients) = gradients(
                &model,
                &batches,
                PassOptions {
                    workers,
                    ..PassOptions::default()
                },
            );
            optimizer.step(&model, &gradients, 1e-2).unwrap();
        }
        model
            .parameters()
            .flat_map(|(_, v)| v.flatten_all().unwrap().to_vec1::<f32>().unwrap())
            .map(f32::to_bits)
            .collect()
    };
    let one = weights(1);
    assert_eq!(one, weights(2));
    assert_eq!(one, weights(3));
}

#[test]
fn cutting_into_micro_batches_changes_gradients_by_rounding_only() {
    let config = quickstart();
    let model = cpu(&config);
    let lengths = [12usize, 9, 30, 25, 14, 40, 8];
    let all: Vec<Vec<u32>> = lengths
        .iter()
        .map(|&len| ids(len as u64, len, config.vocab_size))
        .collect();
    let sum = |batches: &[PackedBatch]| {
        model
            .accumulate(batches, &PassOptions::default(), |_, t| {
                Ok(((t.log_probs.sum_all()? * -0.01)?, ()))
            })
            .unwrap()
    };
    let whole = sum(&[pack(&all)]);
    for cuts in [50, 1] {
        let parts: Vec<PackedBatch> = micro_batches(&lengths, cuts, Processor::Cpu)
            .into_iter()
            .map(|range| pack(&all[range]))
            .collect();
        assert!(parts.len() > 1);
        let parts = sum(&parts);
        assert!((parts.loss - whole.loss).abs() < 1e-5 * whole.loss.abs());
        for ((name, a), (_, b)) in parts.gradients.iter().zip(whole.gradients.iter()) {
            assert!(difference(a, b) < 1e-4, "{name}");
        }
    }
}

#[test]
fn ids_beyond_the_vocabulary_get_no_gradient_through_the_head() {
    let config = Qwen3Config {
        tie_word_embeddings: false,
        ..tiny()
    };
    let mut model = cpu(&config);
    model.limit_vocabulary(30).unwrap();
    let (_, gradients) = gradients(&model, &[pack(&[ids(1, 20, 30)])], PassOptions::default());
    let head = gradients.get("lm_head.weight").unwrap();
    let sum = |t: &Tensor| {
        t.abs()
            .unwrap()
            .sum_all()
            .unwrap()
            .to_scalar::<f32>()
            .unwrap()
    };
    assert_eq!(sum(&head.narrow(1, 30, 10).unwrap()), 0.0);
    assert!(sum(&head.narrow(1, 0, 30).unwrap()) > 0.0);
    let refused = model.log_probs(&[pack(&[vec![1, 2, 31]])], &PassOptions::default());
    assert!(refused.unwrap_err().to_string().contains("token id 31"));
    assert!(
        model
            .limit_vocabulary(41)
            .unwrap_err()
            .to_string()
            .contains("do not belong together")
    );
}

#[test]
fn a_loss_without_gradient_gives_zeros_and_a_broken_one_changes_nothing() {
    let config = tiny();
    let model = cpu(&config);
    let batches = [pack(&[ids(1, 9, 40)])];
    let none = model
        .accumulate(&batches, &PassOptions::default(), |_, t| {
            Ok((Tensor::new(0f32, t.log_probs.device())?, ()))
        })
        .unwrap();
    assert_eq!(none.gradients.norm().unwrap(), 0.0);
    let broken = model
        .accumulate(&batches, &PassOptions::default(), |_, t| {
            Ok(((t.log_probs.sum_all()? * f64::NAN)?, ()))
        })
        .unwrap();
    let before: Vec<Vec<f32>> = model
        .parameters()
        .map(|(_, v)| v.flatten_all().unwrap().to_vec1().unwrap())
        .collect();
    let error = AdamW::new(&model, OptimizerConfig::default())
        .unwrap()
        .step(&model, &broken.gradients, 1.0)
        .unwrap_err();
    assert!(error.to_string().contains("not finite"), "{error}");
    let after: Vec<Vec<f32>> = model
        .parameters()
        .map(|(_, v)| v.flatten_all().unwrap().to_vec1().unwrap())
        .collect();
    assert_eq!(before, after);
}

#[test]
fn adamw_does_what_its_formula_says() {
    let config = tiny();
    let model = cpu(&config);
    let settings = OptimizerConfig {
        beta1: 0.9,
        beta2: 0.95,
        epsilon: 1e-8,
        weight_decay: 0.1,
        max_grad_norm: 0.5,
        ..OptimizerConfig::default()
    };
    let mut optimizer = AdamW::new(&model, settings).unwrap();
    let batches = [pack(&[ids(1, 30, 40)])];
    let read = |name: &str| -> Vec<f32> {
        let (_, variable) = model.parameters().find(|(own, _)| *own == name).unwrap();
        variable.flatten_all().unwrap().to_vec1().unwrap()
    };
    for name in ["model.layers.0.mlp.down_proj.weight", "model.norm.weight"] {
        let mut optimizer = AdamW::new(&model, settings).unwrap();
        let (mut w, n) = (
            read(name).iter().map(|x| f64::from(*x)).collect::<Vec<_>>(),
            read(name).len(),
        );
        let (mut m, mut v) = (vec![0.0; n], vec![0.0; n]);
        let decay = if name.contains("norm") { 0.0 } else { 0.1 };
        for step in 1..=3 {
            let (_, gradients) = gradients(&model, &batches, PassOptions::default());
            let g: Vec<f32> = gradients
                .get(name)
                .unwrap()
                .flatten_all()
                .unwrap()
                .to_vec1()
                .unwrap();
            let norm = gradients.norm().unwrap();
            let report = optimizer.step(&model, &gradients, 1e-2).unwrap();
            assert!(report.clipped && report.grad_norm == norm && norm > 0.5);
            for i in 0..n {
                let g = f64::from(g[i]) * 0.5 / norm;
                m[i] = 0.9 * m[i] + 0.1 * g;
                v[i] = 0.95 * v[i] + 0.05 * g * g;
                let (mh, vh) = (
                    m[i] / (1.0 - 0.9f64.powi(step)),
                    v[i] / (1.0 - 0.95f64.powi(step)),
                );
                w[i] = w[i] * (1.0 - 1e-2 * decay) - 1e-2 * mh / (vh.sqrt() + 1e-8);
            }
        }
        let worst = read(name)
            .iter()
            .zip(&w)
            .map(|(a, b)| (f64::from(*a) - b).abs())
            .fold(0.0, f64::max);
        assert!(worst < 1e-5, "{name}: {worst}");
    }
    // Gradients without clipping, used on a model that they do not belong to.
    let (_, gradients) = gradients(&model, &batches, PassOptions::default());
    let other = cpu(&quickstart());
    assert!(
        optimizer
            .step(&other, &gradients, 1e-2)
            .unwrap_err()
            .to_string()
            .contains("another model")
    );
}

#[test]
fn the_plain_optimiser_makes_the_same_steps() {
    let config = tiny();
    let batches = [pack(&[ids(1, 30, 40)])];
    let settings = OptimizerConfig {
        weight_decay: 0.1,
        max_grad_norm: 0.5,
        ..Default::default()
    };
    let trained = |operators: Operators| -> Vec<f32> {
        let mut model = cpu(&config);
        let mut optimizer = AdamW::new(&model, settings).unwrap();
        for _ in 0..3 {
            let (_, gradients) = gradients(&model, &batches, PassOptions::default());
            model.use_operators(operators).unwrap();
            optimizer.step(&model, &gradients, 1e-2).unwrap();
            model.use_operators(Operators::Fused).unwrap();
        }
        model
            .parameters()
            .flat_map(|(_, v)| v.flatten_all().unwrap().to_vec1::<f32>().unwrap())
            .collect()
    };
    let (fused, plain) = (trained(Operators::Fused), trained(Operators::Plain));
    let worst = fused
        .iter()
        .zip(&plain)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max);
    assert!(worst < 1e-4, "{worst}");
}

#[test]
fn a_few_steps_learn_a_sequence_by_heart() {
    let config = tiny();
    let model = Model::init(&config, 1, &Device::Cpu).unwrap();
    let batches = [pack(&[ids(1, 12, 40), ids(2, 12, 40)])];
    let mut optimizer = AdamW::new(&model, OptimizerConfig::default()).unwrap();
    let mut losses = Vec::new();
    for _ in 0..60 {
        let done = model
            .accumulate(&batches, &PassOptions::default(), |_, t| {
                Ok((t.log_probs.mean_all()?.neg()?, ()))
            })
            .unwrap();
        losses.push(done.loss);
        optimizer.step(&model, &done.gradients, 1e-2).unwrap();
    }
    assert!(
        losses[0] > 2.0 && losses[59] < 0.1,
        "{} to {}",
        losses[0],
        losses[59]
    );
}

#[test]
fn the_state_of_the_optimiser_survives_saving() {
    let config = tiny();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("optimizer.safetensors");
    let batches = [pack(&[ids(1, 30, 40)])];
    let run = |interrupted: bool| -> Vec<f32> {
        let mut model = cpu(&config);
        let mut optimizer = AdamW::new(&model, OptimizerConfig::default()).unwrap();
        for step in 0..6 {
            if interrupted && step == 3 {
                model.save(folder.path()).unwrap();
                optimizer.save(&file, &model).unwrap();
                model = Model::load(folder.path(), &Device::Cpu).unwrap();
                optimizer = AdamW::load(&file, &model, OptimizerConfig::default()).unwrap();
                assert_eq!(optimizer.steps(), 3);
            }
            let (_, gradients) = gradients(&model, &batches, PassOptions::default());
            optimizer.step(&model, &gradients, 1e-2).unwrap();
        }
        model
            .parameters()
            .flat_map(|(_, v)| v.flatten_all().unwrap().to_vec1::<f32>().unwrap())
            .collect()
    };
    assert_eq!(
        crate::support::bits(&run(true)),
        crate::support::bits(&run(false))
    );
    let other = cpu(&quickstart());
    let error = AdamW::load(&file, &other, OptimizerConfig::default())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("optimizer.safetensors") && error.contains("model.embed_tokens.weight"),
        "{error}"
    );
    assert!(
        AdamW::new(
            &other,
            OptimizerConfig {
                beta1: 1.0,
                ..Default::default()
            }
        )
        .is_err()
    );
}

#[test]
fn losses_see_detached_dtype_f32_tensors_of_the_targets() {
    let model = cpu(&tiny());
    let batch = pack(&[ids(1, 9, 40), ids(2, 4, 40)]);
    let n = batch.targets().len();
    assert_eq!(n, 11);
    model
        .accumulate(&[batch], &PassOptions::default(), |index, t| {
            assert_eq!(
                (index, t.log_probs.dims(), t.entropy.dims()),
                (0, &[n][..], &[n][..])
            );
            assert_eq!(t.log_probs.dtype(), DType::F32);
            assert!(
                t.entropy
                    .to_vec1::<f32>()?
                    .iter()
                    .all(|h| *h > 0.0 && *h < 40f32.ln() + 1e-4)
            );
            Ok((t.log_probs.sum_all()?, ()))
        })
        .unwrap();
}
