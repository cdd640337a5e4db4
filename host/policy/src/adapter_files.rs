//! Adapters on disk, in the format of PEFT: `adapter_config.json` and `adapter_model.safetensors`.
//!
//! Beside these, `adapter_base.json` has the digest of the frozen weights. Adapters that were trained beside other weights
//! are refused. PEFT's own adapters have no such file, so nothing is known of the weights beside which they were trained.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{PolicyError, Result};
use crate::hugging_face::write;
use crate::lora::{ADAPTER_CONFIG, Adapters, LoraConfig, Projection, names};
use crate::model::Model;
use crate::tensor_file::{SavedTensor, StoredDtype, TensorFile, write_tensors};

const WEIGHTS: &str = "adapter_model.safetensors";
const BASE: &str = "adapter_base.json";

/// Keys of PEFT's `LoraConfig` that change what an adapter computes, or that it is trained with. Only values that change
/// nothing are read.
const UNSUPPORTED: [&str; 19] = [
    "alora_invocation_tokens",
    "alpha_pattern",
    "arrow_config",
    "bias",
    "exclude_modules",
    "fan_in_fan_out",
    "layer_replication",
    "layers_pattern",
    "layers_to_transform",
    "lora_bias",
    "lora_dropout",
    "megatron_config",
    "modules_to_save",
    "rank_pattern",
    "target_parameters",
    "trainable_token_indices",
    "use_dora",
    "use_qalora",
    "use_rslora",
];

/// Values of `init_lora_weights` in PEFT's `LoraConfig` with which the weights beside the adapter stay as they are, in
/// addition to true, false and null. `pissa`, `olora`, `corda` and `loftq` change them.
const KEEPS_WEIGHTS: [&str; 3] = ["gaussian", "eva", "orthogonal"];

/// `adapter_config.json`, as far as it matters here.
#[derive(Debug, Deserialize)]
struct AdapterConfig {
    peft_type: String,
    r: usize,
    lora_alpha: f64,
    target_modules: Value,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// `adapter_base.json`.
#[derive(Debug, Serialize, Deserialize)]
struct BaseDigest {
    /// The BLAKE3 digest of the frozen weights, in hexadecimal.
    blake3: String,
}

impl Model {
    /// Writes the adapters into `folder`, which is created if necessary, for [`Self::load_adapter`] and for PEFT.
    ///
    /// # Errors
    /// If the model has no adapters, or a file cannot be written.
    pub fn save_adapter(&self, folder: &Path) -> Result<()> {
        let adapters = self.some_adapters(folder)?;
        fs::create_dir_all(folder)
            .map_err(PolicyError::io(folder, "making the checkpoint's folder"))?;
        let parameters = adapters.parameters().iter().zip(adapters.variables());
        let tensors = parameters.flat_map(|(parameter, variable)| {
            let stored = parameter.stored.iter();
            stored.map(move |stored| SavedTensor::of(parameter, stored, variable))
        });
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        write_tensors(
            &folder.join(WEIGHTS),
            tensors.collect(),
            metadata,
            StoredDtype::F32,
        )?;
        let config = json!({
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": adapters.base.display().to_string(),
            "r": adapters.config.rank,
            "lora_alpha": adapters.config.alpha,
            "lora_dropout": 0.0,
            "bias": "none",
            "target_modules": adapters.config.sorted_targets(),
            "inference_mode": true,
        });
        write(
            &folder.join(ADAPTER_CONFIG),
            format!("{config:#}\n").as_bytes(),
        )?;
        let base = json!(BaseDigest {
            blake3: adapters.digest.clone(),
        });
        write(&folder.join(BASE), format!("{base:#}\n").as_bytes())
    }

    /// Reads adapters into those of this model, which must have the same settings. No adapter changes unless all can be
    /// read.
    ///
    /// # Errors
    /// If the model has no adapters; if a file is missing or damaged; if the settings differ, or are not supported; if the
    /// adapters were trained beside other weights; or if a tensor is missing, not expected, of another shape or not finite.
    pub fn load_adapter(&self, folder: &Path) -> Result<()> {
        let adapters = self.some_adapters(folder)?;
        check_config(&folder.join(ADAPTER_CONFIG), &adapters.config)?;
        check_base(&folder.join(BASE), adapters)?;
        let file = folder.join(WEIGHTS);
        let refused = |message: String| PolicyError::checkpoint(&file, message);
        let mut tensors = TensorFile::open(&file)?;
        let names = tensors.shapes().map(|(name, _)| name.to_owned());
        let mut others: BTreeSet<String> = names.collect();
        let mut read = Vec::new();
        for (parameter, variable) in adapters.parameters().iter().zip(adapters.variables()) {
            let mut numbers = vec![0.0; parameter.len()];
            for stored in &parameter.stored {
                let name = &stored.name;
                let shape = tensors
                    .shape(name)
                    .ok_or_else(|| refused(format!("tensor {name} is missing")))?;
                if shape != stored.shape {
                    let expected = &stored.shape;
                    return Err(refused(format!(
                        "tensor {name}: expected shape {expected:?}, found {shape:?}"
                    )));
                }
                let values = tensors.read_finite(name)?;
                others.remove(name);
                parameter.copy_into(stored, &values, &mut numbers);
            }
            let numbers = Tensor::from_vec(numbers, parameter.shape.clone(), self.device())?;
            read.push((variable, numbers));
        }
        if let Some(name) = others.first() {
            return Err(refused(format!(
                "tensor {name} belongs to no adapter of this model"
            )));
        }
        for (variable, numbers) in read {
            variable.set(&numbers)?;
        }
        self.weights_changed()?;
        Ok(())
    }

    /// A model of the same kind, with the weights that [`Self::save`] wrote into `folder`. If they are those of adapters, it
    /// shares the frozen weights of this model.
    pub fn reload(&self, folder: &Path) -> Result<Self> {
        self.reload_as(folder, Self::load)
    }

    /// As [`Self::reload`], for a model that never changes, such as a reference policy ([`Self::load_frozen`]).
    pub fn reload_frozen(&self, folder: &Path) -> Result<Self> {
        self.reload_as(folder, |folder, device| {
            Self::load_frozen(folder, device, self.precision())
        })
    }

    fn reload_as(
        &self,
        folder: &Path,
        load: impl FnOnce(&Path, &Device) -> Result<Self>,
    ) -> Result<Self> {
        if self.lora().is_some() {
            let model = self.copy()?;
            model.load_adapter(folder)?;
            return Ok(model);
        }
        let mut model = load(folder, self.device())?;
        model.limit_vocabulary(self.vocabulary())?;
        model.use_operators(self.operators())?;
        model.use_precision(self.precision())?;
        Ok(model)
    }

    /// Freezes the weights, which are those in the folder `base`, and puts the adapters in `folder` beside them, with the
    /// settings that they were saved with.
    ///
    /// # Errors
    /// As [`Self::load_adapter`], and if the model has adapters already.
    pub fn with_adapter(self, folder: &Path, base: &Path) -> Result<Self> {
        let config = LoraConfig::of_adapter(folder)?;
        let model = self.with_lora(&config, 0, base)?;
        model.load_adapter(folder)?;
        Ok(model)
    }

    fn some_adapters(&self, folder: &Path) -> Result<&Adapters> {
        self.adapters().ok_or_else(|| {
            PolicyError::checkpoint(folder, "is for LoRA adapters, and the model has none")
        })
    }
}

impl LoraConfig {
    /// The settings of the adapters in a folder, in PEFT's format.
    ///
    /// # Errors
    /// If they cannot be read, or are not of a kind that is supported.
    pub fn of_adapter(folder: &Path) -> Result<Self> {
        read_config(&folder.join(ADAPTER_CONFIG))
    }
}

fn read_config(file: &Path) -> Result<LoraConfig> {
    let text = rlf_files::read_text(file, rlf_files::MAX_TEXT_BYTES)
        .map_err(PolicyError::io(file, "reading the adapter's configuration"))?;
    let refused = |message: String| PolicyError::checkpoint(file, message);
    let found: AdapterConfig =
        serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
    if found.peft_type != "LORA" {
        let kind = &found.peft_type;
        return Err(refused(format!(
            "peft_type is \"{kind}\"; only \"LORA\" is supported"
        )));
    }
    for key in UNSUPPORTED {
        let value = found.others.get(key).unwrap_or(&Value::Null);
        if !changes_nothing(value) {
            let mend = if key == "lora_dropout" {
                "write 0: dropout would make training compute other probabilities than sampling"
            } else {
                "adapters with it are not supported"
            };
            return Err(refused(format!("{key} is {value}; {mend}")));
        }
    }
    let init = found.others.get("init_lora_weights");
    if let Some(init) = init.filter(|init| !keeps_weights(init)) {
        return Err(refused(format!(
            "init_lora_weights is {init}, which changes the weights beside the adapter; convert it with \
             `path_initial_model_for_weight_conversion` of PEFT's `save_pretrained`"
        )));
    }
    let mut targets: Vec<Projection> = serde_json::from_value(found.target_modules.clone())
        .map_err(|_| {
            refused(format!(
                "target_modules is {}; write a list of {}",
                found.target_modules,
                names(&Projection::ALL)
            ))
        })?;
    targets.sort_unstable();
    let config = LoraConfig {
        rank: found.r,
        alpha: found.lora_alpha,
        targets,
        adapter: None,
    };
    if config.validate().is_err() {
        let (rank, alpha) = (config.rank, config.alpha);
        let targets = names(&config.targets);
        return Err(refused(format!(
            "r = {rank}, lora_alpha = {alpha}, target_modules = [{targets}]: r is from 1 to 4096, lora_alpha is above 0, and \
             target_modules names layers, each once"
        )));
    }
    Ok(config)
}

/// Refuses an adapter that is not of the kind that `expected` describes.
fn check_config(file: &Path, expected: &LoraConfig) -> Result<()> {
    let found = read_config(file)?;
    let refused = |message: String| PolicyError::checkpoint(file, message);
    let differs = |key: &str, theirs: String, ours: String| {
        Err(refused(format!(
            "the adapter has {theirs}, and `model.lora.{key}` is {ours}; make them equal"
        )))
    };
    if found.rank != expected.rank {
        let ours = expected.rank.to_string();
        return differs("rank", format!("r = {}", found.rank), ours);
    }
    if found.alpha != expected.alpha {
        let theirs = format!("lora_alpha = {}", found.alpha);
        return differs("alpha", theirs, expected.alpha.to_string());
    }
    let ours = expected.sorted_targets();
    if found.targets != ours {
        let theirs = format!("target_modules = [{}]", names(&found.targets));
        return differs("targets", theirs, format!("[{}]", names(&ours)));
    }
    Ok(())
}

/// True if a value of [`UNSUPPORTED`] is the one that PEFT writes where the key is not used.
fn changes_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text == "none",
        Value::Array(list) => list.is_empty(),
        Value::Object(table) => table.is_empty(),
    }
}

/// True if an adapter that began with this `init_lora_weights` is beside the weights of its base model.
fn keeps_weights(init: &Value) -> bool {
    match init {
        Value::Null | Value::Bool(_) => true,
        Value::String(name) => KEEPS_WEIGHTS.contains(&name.as_str()),
        _ => false,
    }
}

/// Refuses an adapter that was trained beside other weights, if that is known.
fn check_base(file: &Path, adapters: &Adapters) -> Result<()> {
    let text = match rlf_files::read_text(file, rlf_files::MAX_TEXT_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        text => text.map_err(PolicyError::io(file, "reading the digest of weights"))?,
    };
    let base: BaseDigest = serde_json::from_str(&text)
        .map_err(|error| PolicyError::checkpoint(file, error.to_string()))?;
    if base.blake3 == adapters.digest {
        return Ok(());
    }
    Err(PolicyError::checkpoint(
        file,
        format!(
            "the adapters were trained beside other weights than those of {}: their BLAKE3 digest is {}, and it was {}; \
             use the weights that the adapters began with",
            adapters.base.display(),
            adapters.digest,
            base.blake3
        ),
    ))
}
