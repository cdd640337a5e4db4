//! Adapters are trained instead of the weights, compute what the merged model computes, and survive saving.

use std::fs;
use std::path::Path;

use candle_core::{Device, Tensor};
use rlf_policy::{
    AdamW, Gradients, LoraConfig, Model, Operators, OptimizerConfig, PassOptions, Precision,
    Projection, TokenStats,
};
use serde_json::{Value, json};

use crate::support::{adapted, bits, cpu, ids, pack, quickstart, tiny, train};

/// All seven layers, and some of them, so that packed matrices are adapted as a whole, in part and not at all.
fn settings() -> [LoraConfig; 2] {
    [
        LoraConfig::default(),
        LoraConfig {
            rank: 3,
            alpha: 10.0,
            targets: vec![
                Projection::VProj,
                Projection::QProj,
                Projection::UpProj,
                Projection::DownProj,
            ],
            adapter: None,
        },
    ]
}

fn log_probs(model: &Model) -> Vec<f32> {
    let batch = pack(&[
        ids(1, 40, model.vocabulary()),
        ids(2, 9, model.vocabulary()),
    ]);
    let stats = model.log_probs(&[batch], &PassOptions::default()).unwrap();
    stats[0].log_probs.to_vec1().unwrap()
}

/// All trained numbers.
fn numbers(model: &Model) -> Vec<f32> {
    model
        .parameters()
        .flat_map(|(_, variable)| variable.flatten_all().unwrap().to_vec1::<f32>().unwrap())
        .collect()
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}

#[test]
fn new_adapters_change_nothing_and_trained_ones_compute_what_the_merged_model_computes() {
    for config in [tiny(), quickstart()] {
        for lora in settings() {
            let plain = log_probs(&cpu(&config));
            let fresh = cpu(&config).with_lora(&lora, 4, Path::new("base")).unwrap();
            assert_eq!(log_probs(&fresh), plain);
            let mut model = adapted(&config, &lora);
            let trained = log_probs(&model);
            assert!(largest_difference(&trained, &plain) > 0.02);
            let merged = model.merged().unwrap();
            assert!(merged.lora().is_none());
            assert_eq!(merged.parameters().len(), cpu(&config).parameters().len());
            let difference = largest_difference(&trained, &log_probs(&merged));
            assert!(difference < 1e-3, "{difference}");
            model.use_operators(Operators::Plain).unwrap();
            let difference = largest_difference(&trained, &log_probs(&model));
            assert!(difference < 1e-3, "plain operators: {difference}");
        }
    }
}

/// A loss of log-probabilities and entropies.
fn loss(_: usize, tokens: &TokenStats) -> candle_core::Result<(Tensor, ())> {
    let of_entropy = (tokens.entropy.sqr()? * 0.3)?.sum_all()?;
    Ok(((tokens.log_probs.sum_all()? + of_entropy)?, ()))
}

fn gradients(model: &Model, checkpointing: bool) -> Gradients {
    let batches = [
        pack(&[
            ids(1, 20, model.vocabulary()),
            ids(2, 33, model.vocabulary()),
        ]),
        pack(&[ids(3, 17, model.vocabulary())]),
    ];
    let options = PassOptions {
        checkpointing,
        ..PassOptions::default()
    };
    model
        .accumulate(&batches, &options, loss)
        .unwrap()
        .gradients
}

fn values(gradient: &Tensor) -> Vec<f32> {
    gradient.flatten_all().unwrap().to_vec1().unwrap()
}

#[test]
fn adapters_have_the_gradients_of_candles_tape_and_nothing_else_has_one() {
    for config in [tiny(), quickstart()] {
        for lora in settings() {
            let mut model = adapted(&config, &lora);
            let fused = gradients(&model, false);
            let names: Vec<&str> = model.parameters().map(|(name, _)| name).collect();
            assert!(
                names
                    .iter()
                    .all(|name| name.ends_with(".lora_A") || name.ends_with(".lora_B")),
                "{names:?}"
            );
            assert_eq!(
                fused.iter().map(|(name, _)| name).collect::<Vec<_>>(),
                names
            );
            for ((name, kept), (_, computed)) in fused.iter().zip(gradients(&model, true).iter()) {
                assert_eq!(bits(&values(kept)), bits(&values(computed)), "{name}");
            }
            model.use_operators(Operators::Plain).unwrap();
            for checkpointing in [false, true] {
                let plain = gradients(&model, checkpointing);
                for ((name, fused), (_, plain)) in fused.iter().zip(plain.iter()) {
                    let (fused, plain) = (values(fused), values(plain));
                    let largest = plain.iter().fold(0.0f32, |most, x| most.max(x.abs()));
                    assert!(largest > 0.0, "{name} has no gradient");
                    let error = largest_difference(&fused, &plain) / largest;
                    assert!(error < 1e-3, "{name}: {error}");
                }
            }
        }
    }
}

#[test]
fn training_changes_adapters_in_their_blocks_and_no_weight_beside_them() {
    let config = quickstart();
    let base = cpu(&config);
    let frozen = base.share();
    let before = numbers(&frozen);
    let lora = LoraConfig {
        rank: 2,
        targets: vec![Projection::QProj, Projection::VProj],
        ..LoraConfig::default()
    };
    let model = base.with_lora(&lora, 4, Path::new("base")).unwrap();
    let settings = OptimizerConfig {
        weight_decay: 0.1,
        ..OptimizerConfig::default()
    };
    let mut optimizer = AdamW::new(&model, settings).unwrap();
    for _ in 0..5 {
        train(&model, &mut optimizer, 0.02);
    }
    assert_eq!(bits(&numbers(&frozen)), bits(&before));
    let mut checked = 0;
    for (name, variable) in model.parameters() {
        if !name.ends_with(".lora_B") {
            continue;
        }
        // Queries, keys and values have 96, 48 and 48 columns. The keys have no adapter.
        for (row, numbers) in variable.to_vec2::<f32>().unwrap().iter().enumerate() {
            for (column, number) in numbers.iter().enumerate() {
                let inside = match column {
                    0..96 => row < 2,
                    96..144 => false,
                    _ => row >= 2,
                };
                assert_eq!(*number != 0.0, inside, "{name} [{row}, {column}]");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 3 * 4 * 192);
}

#[test]
fn a_copy_keeps_its_adapters_while_the_policy_is_trained() {
    let model = adapted(&quickstart(), &LoraConfig::default());
    let reference = model.copy().unwrap();
    let decoding = model.share();
    let before = log_probs(&model);
    let mut optimizer = AdamW::new(&model, OptimizerConfig::default()).unwrap();
    train(&model, &mut optimizer, 0.02);
    let after = log_probs(&model);
    assert_ne!(bits(&after), bits(&before));
    assert_eq!(bits(&log_probs(&reference)), bits(&before));
    assert_eq!(bits(&log_probs(&decoding)), bits(&after));
}

#[test]
fn training_goes_on_from_saved_adapters_as_if_it_had_never_stopped() {
    let lora = &settings()[1];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("optimizer.safetensors");
    let run = |interrupted: bool| {
        let mut model = adapted(&quickstart(), lora);
        let mut optimizer = AdamW::new(&model, OptimizerConfig::default()).unwrap();
        for step in 0..4 {
            if interrupted && step == 2 {
                model.save(folder.path()).unwrap();
                optimizer.save(&file, &model).unwrap();
                model = cpu(&quickstart())
                    .with_lora(lora, 99, Path::new("base"))
                    .unwrap();
                model.load_adapter(folder.path()).unwrap();
                optimizer = AdamW::load(&file, &model, OptimizerConfig::default()).unwrap();
            }
            train(&model, &mut optimizer, 1e-2);
        }
        [numbers(&model), log_probs(&model)].concat()
    };
    assert_eq!(bits(&run(true)), bits(&run(false)));
    assert!(!folder.path().join("model.safetensors").exists());
    let whole = Model::load(folder.path(), &Device::Cpu)
        .unwrap_err()
        .to_string();
    assert!(whole.contains("rlf-host export"), "{whole}");
}

#[test]
fn a_reloaded_model_has_the_saved_adapters_and_shares_the_rest() {
    let model = adapted(&quickstart(), &LoraConfig::default());
    let folder = tempfile::tempdir().unwrap();
    model.save(folder.path()).unwrap();
    let before = log_probs(&model);
    let mut optimizer = AdamW::new(&model, OptimizerConfig::default()).unwrap();
    train(&model, &mut optimizer, 0.02);
    let reloaded = model.reload(folder.path()).unwrap();
    assert_eq!(bits(&log_probs(&reloaded)), bits(&before));
    assert_ne!(bits(&log_probs(&model)), bits(&before));
}

#[test]
fn adapters_that_cannot_all_be_read_change_none() {
    let model = adapted(&tiny(), &LoraConfig::default());
    let folder = tempfile::tempdir().unwrap();
    model.save(folder.path()).unwrap();
    let file = folder.path().join("adapter_model.safetensors");
    let mut tensors = candle_core::safetensors::load(&file, &Device::Cpu).unwrap();
    let stray = Tensor::new(&[1.0f32], &Device::Cpu).unwrap();
    tensors.insert("stray".to_owned(), stray);
    candle_core::safetensors::save(&tensors, &file).unwrap();
    let mut optimizer = AdamW::new(&model, OptimizerConfig::default()).unwrap();
    train(&model, &mut optimizer, 0.02);
    let before = bits(&numbers(&model));
    let error = model.load_adapter(folder.path()).unwrap_err().to_string();
    assert!(error.contains("tensor stray belongs to no"), "{error}");
    assert_eq!(bits(&numbers(&model)), before);
}

#[test]
fn adapters_of_other_weights_or_settings_are_refused_with_what_to_change() {
    let lora = LoraConfig::default();
    let folder = tempfile::tempdir().unwrap();
    adapted(&tiny(), &lora).save(folder.path()).unwrap();
    let into = |model: Model, lora: &LoraConfig| {
        let model = model.with_lora(lora, 0, Path::new("there")).unwrap();
        model
            .load_adapter(folder.path())
            .map_err(|error| error.to_string())
    };
    into(cpu(&tiny()), &lora).unwrap();
    let other = Model::init(&tiny(), 99, &Device::Cpu).unwrap();
    let error = into(other, &lora).unwrap_err();
    assert!(
        error.contains("beside other weights than those of"),
        "{error}"
    );
    for (changed, said) in [
        (
            LoraConfig {
                rank: 8,
                ..lora.clone()
            },
            "the adapter has r = 16, and `model.lora.rank` is 8",
        ),
        (
            LoraConfig {
                alpha: 8.0,
                ..lora.clone()
            },
            "the adapter has lora_alpha = 32, and `model.lora.alpha` is 8",
        ),
        (
            LoraConfig {
                targets: vec![Projection::OProj],
                ..lora.clone()
            },
            "and `model.lora.targets` is [o_proj]",
        ),
    ] {
        let error = into(cpu(&tiny()), &changed).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
    let file = folder.path().join("adapter_config.json");
    let written: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for (key, value, said) in [
        ("peft_type", json!("LOHA"), "peft_type is \"LOHA\""),
        ("use_rslora", json!(true), "use_rslora is true"),
        (
            "init_lora_weights",
            json!("pissa_niter_16"),
            "init_lora_weights is \"pissa_niter_16\", which changes the weights",
        ),
        (
            "init_lora_weights",
            json!("olora"),
            "`path_initial_model_for_weight_conversion`",
        ),
        (
            "modules_to_save",
            json!(["lm_head"]),
            "modules_to_save is [\"lm_head\"]",
        ),
        ("lora_dropout", json!(0.1), "lora_dropout is 0.1; write 0"),
        (
            "target_modules",
            json!("all-linear"),
            "write a list of q_proj, ",
        ),
    ] {
        let mut config = written.clone();
        config[key] = value;
        fs::write(&file, config.to_string()).unwrap();
        let error = into(cpu(&tiny()), &lora).unwrap_err();
        assert!(
            error.contains("adapter_config.json") && error.contains(said),
            "{error}"
        );
    }
    for init in [json!(true), json!(null), json!("gaussian")] {
        let mut config = written.clone();
        config["init_lora_weights"] = init;
        fs::write(&file, config.to_string()).unwrap();
        into(cpu(&tiny()), &lora).unwrap();
    }
    fs::write(&file, written.to_string()).unwrap();
    // As PEFT writes it: nothing is known of the frozen weights.
    fs::remove_file(folder.path().join("adapter_base.json")).unwrap();
    into(Model::init(&tiny(), 99, &Device::Cpu).unwrap(), &lora).unwrap();
}

#[test]
fn frozen_weights_in_bf16_alone_compute_and_train_the_same_bits_and_refuse_what_needs_more() {
    for config in [tiny(), quickstart()] {
        let folder = tempfile::tempdir().unwrap();
        let (base, adapters) = (folder.path().join("base"), folder.path().join("adapters"));
        cpu(&config).save(&base).unwrap();
        for lora in settings() {
            let before = Model::load(&base, &Device::Cpu).unwrap();
            let before = before.with_lora(&lora, 4, &base).unwrap();
            train(
                &before,
                &mut AdamW::new(&before, OptimizerConfig::default()).unwrap(),
                0.01,
            );
            before.save(&adapters).unwrap();

            let whole = Model::load(&base, &Device::Cpu).unwrap();
            let mut whole = whole.with_adapter(&adapters, &base).unwrap();
            whole.use_precision(Precision::Bf16).unwrap();
            let frozen = Model::load_frozen(&base, &Device::Cpu, Precision::Bf16).unwrap();
            // The digest of the weights beside adapters is that of the weights in f32.
            let mut frozen = frozen.with_adapter(&adapters, &base).unwrap();
            assert_eq!(frozen.precision(), Precision::Bf16);
            assert_eq!(bits(&log_probs(&frozen)), bits(&log_probs(&whole)));
            let pairs = gradients(&whole, false);
            let pairs: Vec<_> = pairs.iter().map(|(_, gradient)| values(gradient)).collect();
            for (wanted, (_, gradient)) in pairs.iter().zip(gradients(&frozen, false).iter()) {
                assert_eq!(bits(&values(gradient)), bits(wanted));
            }
            let copy = frozen.copy().unwrap();
            assert_eq!(bits(&log_probs(&copy)), bits(&log_probs(&whole)));
            for refused in [
                frozen.merged().err(),
                frozen.use_precision(Precision::F32).err(),
                frozen.use_operators(Operators::Plain).err(),
            ] {
                let refused = refused.expect("it needs f32").to_string();
                assert!(refused.contains("in bf16 alone"), "{refused}");
            }
        }

        // A reference policy without adapters.
        let mut policy = Model::load(&base, &Device::Cpu).unwrap();
        policy.use_precision(Precision::Bf16).unwrap();
        let reference = policy.reload_frozen(&base).unwrap();
        assert_eq!(bits(&log_probs(&reference)), bits(&log_probs(&policy)));
        let refused = reference.save(&folder.path().join("copy")).unwrap_err();
        assert!(refused.to_string().contains("in bf16 alone"), "{refused}");
    }
}
