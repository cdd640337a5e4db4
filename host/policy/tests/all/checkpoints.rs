//! Checkpoints: a written checkpoint is read back unchanged, and damage is reported.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::support::{bits, cpu, ids, pack, tiny};
use candle_core::{DType, Device, Tensor};
use rlf_policy::{Model, PassOptions, Qwen3Config, SaveOptions, StoredDtype};

fn numbers(model: &Model) -> Vec<f32> {
    model
        .parameters()
        .flat_map(|(_, v)| v.flatten_all().unwrap().to_vec1::<f32>().unwrap())
        .collect()
}

fn refusal(folder: &Path) -> String {
    let message = Model::load(folder, &Device::Cpu).unwrap_err().to_string();
    println!("{message}");
    message
}

/// A saved checkpoint with its tensors changed.
fn changed(change: impl FnOnce(&mut HashMap<String, Tensor>)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    cpu(&tiny()).save(folder.path()).unwrap();
    let file = folder.path().join("model.safetensors");
    let mut tensors = candle_core::safetensors::load(&file, &Device::Cpu).unwrap();
    change(&mut tensors);
    candle_core::safetensors::save(&tensors, &file).unwrap();
    folder
}

#[test]
fn what_is_saved_is_loaded_bit_for_bit_in_one_file_or_in_shards() {
    for tie_word_embeddings in [true, false] {
        let config = Qwen3Config {
            tie_word_embeddings,
            ..tiny()
        };
        let model = cpu(&config);
        for (max_shard_bytes, files) in [(u64::MAX, 1), (4_000, 2)] {
            let folder = tempfile::tempdir().unwrap();
            let options = SaveOptions {
                max_shard_bytes,
                ..Default::default()
            };
            model.save_with(folder.path(), &options).unwrap();
            let written = fs::read_dir(folder.path())
                .unwrap()
                .map(|f| f.unwrap().file_name().into_string().unwrap());
            let written: Vec<String> = written.collect();
            assert!(written.iter().all(|name| !name.contains("partial")));
            assert!(
                written
                    .iter()
                    .filter(|name| name.ends_with(".safetensors"))
                    .count()
                    >= files,
                "{written:?}"
            );
            assert_eq!(
                written.contains(&"model.safetensors.index.json".to_owned()),
                files > 1
            );
            let loaded = Model::load(folder.path(), &Device::Cpu).unwrap();
            assert_eq!(loaded.config(), &config);
            assert_eq!(bits(&numbers(&loaded)), bits(&numbers(&model)));
        }
    }
}

#[test]
fn saving_again_replaces_the_weights_and_leaves_other_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    cpu(&tiny()).save(folder.path()).unwrap();
    let other = Model::init(&tiny(), 99, &Device::Cpu).unwrap();
    other.save(folder.path()).unwrap();
    assert_eq!(
        numbers(&Model::load(folder.path(), &Device::Cpu).unwrap()),
        numbers(&other)
    );
    assert!(folder.path().join("tokenizer.json").exists());
    let message = other
        .save_with(
            folder.path(),
            &SaveOptions {
                max_shard_bytes: 1,
                ..Default::default()
            },
        )
        .unwrap_err();
    assert!(message.to_string().contains("new folder"));
}

#[test]
fn tensors_have_the_names_and_layout_of_transformers() {
    let folder = tempfile::tempdir().unwrap();
    let model = cpu(&tiny());
    model.save(folder.path()).unwrap();
    let tensors =
        candle_core::safetensors::load(folder.path().join("model.safetensors"), &Device::Cpu)
            .unwrap();
    assert_eq!(
        tensors["model.layers.1.self_attn.k_proj.weight"].dims(),
        [8, 16]
    );
    assert_eq!(tensors["model.embed_tokens.weight"].dims(), [40, 16]);
    let (_, qkv) = model
        .parameters()
        .find(|(name, _)| name.ends_with("0.self_attn.qkv_proj.weight"))
        .unwrap();
    let k = qkv
        .narrow(1, 24, 8)
        .unwrap()
        .t()
        .unwrap()
        .contiguous()
        .unwrap();
    let stored = &tensors["model.layers.0.self_attn.k_proj.weight"];
    assert_eq!(
        k.to_vec2::<f32>().unwrap(),
        stored.to_vec2::<f32>().unwrap()
    );
}

#[test]
fn half_precision_checkpoints_become_f32_masters() {
    let model = cpu(&tiny());
    let folder = tempfile::tempdir().unwrap();
    model
        .save_with(
            folder.path(),
            &SaveOptions {
                dtype: StoredDtype::Bf16,
                ..Default::default()
            },
        )
        .unwrap();
    let loaded = Model::load(folder.path(), &Device::Cpu).unwrap();
    assert!(loaded.parameters().all(|(_, v)| v.dtype() == DType::F32));
    for (a, b) in numbers(&loaded).iter().zip(numbers(&model)) {
        assert_eq!(*a, half::bf16::from_f32(b).to_f32());
    }
    let folder = changed(|tensors| {
        for tensor in tensors.values_mut() {
            *tensor = tensor.to_dtype(DType::F16).unwrap();
        }
    });
    let loaded = Model::load(folder.path(), &Device::Cpu).unwrap();
    assert_eq!(
        numbers(&loaded)[7],
        half::f16::from_f32(numbers(&model)[7]).to_f32()
    );
}

#[test]
fn a_redundant_head_of_a_tied_model_is_ignored() {
    let config = Qwen3Config {
        tie_word_embeddings: true,
        ..tiny()
    };
    let folder = tempfile::tempdir().unwrap();
    cpu(&config).save(folder.path()).unwrap();
    let file = folder.path().join("model.safetensors");
    let mut tensors = candle_core::safetensors::load(&file, &Device::Cpu).unwrap();
    tensors.insert(
        "lm_head.weight".to_owned(),
        tensors["model.embed_tokens.weight"].clone(),
    );
    candle_core::safetensors::save(&tensors, &file).unwrap();
    assert!(Model::load(folder.path(), &Device::Cpu).is_ok());
}

#[test]
fn an_untied_copy_computes_the_same_and_has_a_head_of_its_own() {
    let config = Qwen3Config {
        tie_word_embeddings: true,
        ..tiny()
    };
    let model = cpu(&config);
    let folder = tempfile::tempdir().unwrap();
    let options = SaveOptions {
        untied: true,
        ..Default::default()
    };
    model.save_with(folder.path(), &options).unwrap();
    let untied = Model::load(folder.path(), &Device::Cpu).unwrap();
    assert!(!untied.config().tie_word_embeddings);
    let batch = [pack(&[ids(3, 12, config.vocab_size)])];
    let log_probs = |model: &Model| {
        let stats = model.log_probs(&batch, &PassOptions::default()).unwrap();
        bits(&stats[0].log_probs.to_vec1::<f32>().unwrap())
    };
    assert_eq!(log_probs(&untied), log_probs(&model));
}

#[test]
fn damage_is_reported_with_file_tensor_and_shapes() {
    let name = "model.layers.1.mlp.up_proj.weight";
    let folder = changed(|tensors| {
        tensors.remove(name);
    });
    let message = refusal(folder.path());
    assert!(message.contains(name) && message.contains("missing") && message.contains("[24, 16]"));

    let folder = changed(|tensors| {
        let turned = tensors[name].t().unwrap().contiguous().unwrap();
        tensors.insert(name.to_owned(), turned);
    });
    let message = refusal(folder.path());
    assert!(message.contains("model.safetensors") && message.contains(name));
    assert!(message.contains("expected shape [24, 16]") && message.contains("found [16, 24]"));

    let folder = changed(|tensors| {
        let extra = tensors[name].clone();
        tensors.insert("model.layers.2.mlp.up_proj.weight".to_owned(), extra);
    });
    assert!(
        refusal(folder.path())
            .contains("model.layers.2.mlp.up_proj.weight is not part of the model")
    );

    let folder = changed(|tensors| {
        let broken = (&tensors[name] * f64::NAN).unwrap();
        tensors.insert(name.to_owned(), broken);
    });
    assert!(refusal(folder.path()).contains("NaN"));

    let folder = changed(|tensors| {
        let integers = tensors[name].to_dtype(DType::U8).unwrap();
        tensors.insert(name.to_owned(), integers);
    });
    assert!(refusal(folder.path()).contains("U8"));
}

#[test]
fn files_that_are_missing_or_cut_short_are_named() {
    let folder = tempfile::tempdir().unwrap();
    assert!(refusal(folder.path()).contains("config.json"));
    cpu(&tiny()).save(folder.path()).unwrap();
    let file = folder.path().join("model.safetensors");
    let bytes = fs::read(&file).unwrap();
    for cut in [0, 4, 100, bytes.len() - 1] {
        fs::write(&file, &bytes[..cut]).unwrap();
        assert!(refusal(folder.path()).contains("cut short or damaged"));
    }
    fs::write(
        &file,
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
    )
    .unwrap();
    assert!(refusal(folder.path()).contains("git lfs pull"));
    fs::remove_file(&file).unwrap();
    assert!(refusal(folder.path()).contains("neither model.safetensors nor"));
    let index = folder.path().join("model.safetensors.index.json");
    fs::write(
        &index,
        r#"{"weight_map":{"a":"model-00001-of-00002.safetensors"}}"#,
    )
    .unwrap();
    assert!(refusal(folder.path()).contains("model-00001-of-00002.safetensors"));
    fs::write(&index, r#"{"weight_map":{"a":"../../secret"}}"#).unwrap();
    assert!(refusal(folder.path()).contains("not a file of this folder"));
}

#[test]
fn a_write_that_fails_names_its_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("model.safetensors")).unwrap();
    let error = cpu(&tiny()).save(folder.path()).unwrap_err().to_string();
    assert!(error.contains("model.safetensors"), "{error}");
}

#[test]
fn a_copy_does_not_follow_its_original() {
    let model = cpu(&tiny());
    let copy = model.copy().unwrap();
    let before = numbers(&copy);
    for (_, variable) in model.parameters() {
        variable
            .set(&(variable.as_tensor() + 1.0).unwrap())
            .unwrap();
    }
    assert_eq!(numbers(&copy), before);
    let batch = [pack(&[ids(1, 9, 40)])];
    let of = |m: &Model| {
        m.log_probs(&batch, &PassOptions::default()).unwrap()[0]
            .log_probs
            .to_vec1::<f32>()
            .unwrap()
    };
    assert_ne!(of(&model), of(&copy));
}
