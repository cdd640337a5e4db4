//! The value head: its values, its gradients and its file.

use crate::support::{bits, cpu, ids, pack, quickstart, small, tiny};
use candle_core::{Device, Tensor};
use rlf_policy::{
    Accumulated, AdamW, Gradients, Key, Model, Operators, OptimizerConfig, PackedBatch,
    PassOptions, Purpose, TokenStats, ValueHead,
};

/// A head with weights that are not 0.
fn head(model: &Model, trains_trunk: bool) -> ValueHead {
    let head = ValueHead::new(model, trains_trunk).unwrap();
    for (name, variable) in head.parameters() {
        let key = Key::new(4, Purpose::Test).named(name);
        let numbers: Vec<f32> = (0..variable.elem_count() as u64)
            .map(|i| 0.3 * key.normal(i) as f32)
            .collect();
        let tensor = Tensor::from_vec(numbers, variable.shape(), &Device::Cpu).unwrap();
        variable.set(&tensor).unwrap();
    }
    head
}

/// The squared distance of each value from 0.4.
fn of_values(values: &Tensor) -> candle_core::Result<Tensor> {
    ((values - 0.4)?.sqr()? * 0.1)?.sum_all()
}

fn value_loss(_: usize, tokens: &TokenStats) -> candle_core::Result<(Tensor, Vec<f32>)> {
    let values = tokens.values.as_ref().expect("the pass has a value head");
    Ok((of_values(values)?, values.to_vec1()?))
}

fn pass(model: &Model, head: &ValueHead, batches: &[PackedBatch]) -> Accumulated<Vec<f32>> {
    let options = PassOptions::default();
    model
        .accumulate_with_values(batches, &options, Some(head), value_loss)
        .unwrap()
}

fn numbers(gradients: &Gradients) -> Vec<f32> {
    let all = gradients.iter();
    all.flat_map(|(_, g)| g.flatten_all().unwrap().to_vec1::<f32>().unwrap())
        .collect()
}

#[test]
fn a_new_head_has_values_0_and_changes_nothing_in_the_policy() {
    let model = cpu(&tiny());
    let batches = [pack(&[ids(1, 9, 40), ids(2, 4, 40)])];
    let options = PassOptions::default();
    let likely = |_: usize, t: &TokenStats| -> candle_core::Result<(Tensor, bool)> {
        Ok((t.log_probs.sum_all()?, t.values.is_some()))
    };
    let without = model.accumulate(&batches, &options, likely).unwrap();
    assert!(without.value_head.is_none());
    assert_eq!(without.outputs, [false]);

    let head = ValueHead::new(&model, true).unwrap();
    let with = model
        .accumulate_with_values(&batches, &options, Some(&head), likely)
        .unwrap();
    assert_eq!(with.outputs, [true]);
    assert_eq!(
        bits(&numbers(&with.gradients)),
        bits(&numbers(&without.gradients))
    );
    assert_eq!(with.value_head.unwrap().norm().unwrap(), 0.0);
    let values = model.values(&batches, &options, &head).unwrap();
    assert_eq!(values[0].to_vec1::<f32>().unwrap(), [0.0; 11]);
}

#[test]
fn gradients_of_values_agree_with_numeric_ones() {
    let config = tiny();
    let batches = [pack(&[
        ids(1, 6, config.vocab_size),
        ids(2, 19, config.vocab_size),
    ])];
    for operators in [Operators::Fused, Operators::Plain] {
        let mut model = cpu(&config);
        model.use_operators(operators).unwrap();
        let head = head(&model, true);
        let done = pass(&model, &head, &batches);
        let of_head = done.value_head.unwrap();
        let value = || -> f64 {
            let values = model.values(&batches, &PassOptions::default(), &head);
            let loss = of_values(&values.unwrap()[0]).unwrap();
            f64::from(loss.to_scalar::<f32>().unwrap())
        };
        assert!((value() - done.loss).abs() < 1e-6);
        let policy = model.parameters().filter(|(name, _)| {
            // The vocabulary head has no part in values.
            *name != "lm_head.weight"
        });
        for (name, variable) in policy.chain(head.parameters()) {
            let gradient = done.gradients.get(name).or_else(|| of_head.get(name));
            let key = Key::new(1, Purpose::Test).named(name);
            let direction: Vec<f32> = (0..variable.elem_count() as u64)
                .map(|i| key.normal(i) as f32)
                .collect();
            let direction = Tensor::from_vec(direction, variable.shape(), &Device::Cpu).unwrap();
            let analytic = (gradient.unwrap() * &direction)
                .unwrap()
                .sum_all()
                .unwrap()
                .to_scalar::<f32>()
                .unwrap();
            let start = variable.as_detached_tensor().copy().unwrap();
            let at = |step: f64| {
                let moved = (&start + (&direction * step).unwrap()).unwrap();
                variable.set(&moved).unwrap();
                value()
            };
            // A fourth-order difference, so that the step can be large enough for f32.
            let h = 4e-3;
            let numeric = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
            variable.set(&start).unwrap();
            let error = (f64::from(analytic) - numeric).abs() / numeric.abs().max(1.0);
            assert!(
                error < 1e-2,
                "{operators:?} {name}: {analytic} against {numeric}"
            );
        }
    }
}

#[test]
fn fused_operators_have_the_gradients_of_values_of_their_plain_twins() {
    let config = quickstart();
    let mut model = cpu(&config);
    let batches = [pack(&[
        ids(1, 33, config.vocab_size),
        ids(2, 5, config.vocab_size),
    ])];
    let head = head(&model, true);
    let fused = pass(&model, &head, &batches);
    model.use_operators(Operators::Plain).unwrap();
    let plain = pass(&model, &head, &batches);
    let pairs = [
        (&fused.gradients, &plain.gradients),
        (
            fused.value_head.as_ref().unwrap(),
            plain.value_head.as_ref().unwrap(),
        ),
    ];
    for (fused, plain) in pairs {
        let (fused, plain) = (numbers(fused), numbers(plain));
        let largest = plain.iter().fold(0f32, |most, g| most.max(g.abs()));
        assert!(largest > 0.0);
        for (a, b) in fused.iter().zip(&plain) {
            assert!((a - b).abs() < 1e-4 * largest, "{a} against {b}");
        }
    }
}

#[test]
fn without_trains_trunk_the_gradient_of_values_ends_at_the_head() {
    let model = cpu(&tiny());
    let batches = [pack(&[ids(1, 9, 40)])];
    let whole = pass(&model, &head(&model, true), &batches);
    let ended = pass(&model, &head(&model, false), &batches);
    assert!(whole.gradients.norm().unwrap() > 0.0);
    assert_eq!(ended.gradients.norm().unwrap(), 0.0);
    let of_head = |done: &Accumulated<Vec<f32>>| numbers(done.value_head.as_ref().unwrap());
    assert_eq!(bits(&of_head(&whole)), bits(&of_head(&ended)));
}

#[test]
fn a_value_has_the_same_bits_in_any_packing_with_any_workers_and_in_an_update() {
    let config = small();
    let model = cpu(&config);
    let head = head(&model, true);
    let sequences: Vec<Vec<u32>> = [5usize, 33, 2, 70]
        .iter()
        .enumerate()
        .map(|(i, len)| ids(i as u64, *len, config.vocab_size))
        .collect();
    let values = |batches: &[PackedBatch], workers: usize| -> Vec<f32> {
        let options = PassOptions {
            workers,
            ..PassOptions::default()
        };
        let values = model.values(batches, &options, &head).unwrap();
        let all = values.iter();
        all.flat_map(|values| values.to_vec1::<f32>().unwrap())
            .collect()
    };
    let alone: Vec<PackedBatch> = sequences
        .iter()
        .map(|ids| pack(std::slice::from_ref(ids)))
        .collect();
    let together = [pack(&sequences)];
    let expected = bits(&values(&together, 1));
    assert_eq!(bits(&values(&alone, 1)), expected);
    assert_eq!(bits(&values(&alone, 3)), expected);
    assert_eq!(bits(&pass(&model, &head, &together).outputs[0]), expected);
}

#[test]
fn a_head_and_its_optimiser_survive_saving_and_another_models_head_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (file, state) = (
        folder.path().join("value_head.safetensors"),
        folder.path().join("optimizer.safetensors"),
    );
    let model = cpu(&tiny());
    let batches = [pack(&[ids(1, 30, 40)])];
    let config = OptimizerConfig::default();
    let trained = |interrupted: bool| -> Vec<f32> {
        let mut head = ValueHead::new(&model, true).unwrap();
        let mut optimizer = AdamW::new(&head, config).unwrap();
        for step in 0..6 {
            if interrupted && step == 3 {
                head.save(&file).unwrap();
                optimizer.save(&state, &head).unwrap();
                head = ValueHead::load(&file, &model, true).unwrap();
                optimizer = AdamW::load(&state, &head, config).unwrap();
            }
            let done = pass(&model, &head, &batches);
            optimizer
                .step(&head, &done.value_head.unwrap(), 1e-2)
                .unwrap();
        }
        let all = head.parameters();
        all.flat_map(|(_, v)| v.flatten_all().unwrap().to_vec1::<f32>().unwrap())
            .collect()
    };
    let whole = trained(false);
    assert!(whole.iter().all(|w| *w != 0.0));
    assert_eq!(bits(&trained(true)), bits(&whole));

    let refused = |result: rlf_policy::Result<ValueHead>| result.err().unwrap().to_string();
    let other = refused(ValueHead::load(&file, &cpu(&small()), true));
    assert!(
        other.contains("value_head.safetensors") && other.contains("found [1, 16]"),
        "{other}"
    );
    model.save(folder.path()).unwrap();
    let weights = folder.path().join("model.safetensors");
    let other = refused(ValueHead::load(&weights, &model, true));
    assert!(other.contains("not a value head"), "{other}");
}
