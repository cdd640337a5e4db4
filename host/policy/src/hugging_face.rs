//! Checkpoints in Hugging Face's format: `config.json` and safetensors, in one file or in shards with an index.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use candle_core::{Device, Var};
use serde_json::{Value, json};

use crate::config::Qwen3Config;
use crate::error::{PolicyError, Result};
use crate::lora::holds_adapters;
use crate::model::adapters::WeightDigest;
use crate::model::{Model, Precision};
use crate::tensor_file::{SavedTensor, StoredDtype, TensorFile, write_tensors};
use crate::weights::{HEAD, Parameter, Stored, head_index, parameters, variable};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Default of [`SaveOptions::max_shard_bytes`].
const MAX_SHARD_BYTES: u64 = 5_000_000_000;

/// The options of writing a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaveOptions {
    /// The type in which weights are stored. Default f32.
    pub dtype: StoredDtype,
    /// Maximum size of a file of weights, in bytes. Larger weights are cut into shards. Default 5 GB, as in
    /// transformers.
    pub max_shard_bytes: u64,
    /// True if an embedding that is the vocabulary head too is written a second time as the head, and config.json says that
    /// the two are apart. For programs that update weights one by one and would forget the head. Default false.
    pub untied: bool,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self {
            dtype: StoredDtype::F32,
            max_shard_bytes: MAX_SHARD_BYTES,
            untied: false,
        }
    }
}

impl Model {
    /// Reads a checkpoint's folder. Weights in f32, f16 or bf16 become f32.
    ///
    /// # Errors
    /// If a file is missing or damaged, or a tensor is missing, has another shape, is not expected, or holds numbers
    /// that are not finite; the message names the file, the tensor, and both shapes.
    pub fn load(folder: &Path, device: &Device) -> Result<Self> {
        let keep = |parameter: &Parameter, numbers| Ok(variable(parameter, numbers, device)?);
        Self::read(folder, device, keep)
    }

    /// As [`Self::load`], for weights that never change, such as those beside adapters. With bf16, matrices are held in bf16
    /// alone, as products read them: 2 bytes for a number, where a policy in training has 6.
    pub fn load_frozen(folder: &Path, device: &Device, precision: Precision) -> Result<Self> {
        if precision == Precision::F32 {
            return Self::load(folder, device);
        }
        let mut digest = WeightDigest::default();
        let model = Self::read(folder, device, |parameter, numbers| {
            digest.add(parameter, &numbers);
            if parameter.shape.len() < 2 {
                return Ok(variable(parameter, numbers, device)?);
            }
            let rounded: Vec<half::bf16> = numbers.into_iter().map(half::bf16::from_f32).collect();
            Ok(Var::from_vec(rounded, parameter.shape.clone(), device)?)
        })?;
        model.with_rounded(digest.finish())
    }

    /// Reads a checkpoint's folder, whose parameters `keep` puts on the device.
    fn read(
        folder: &Path,
        device: &Device,
        mut keep: impl FnMut(&Parameter, Vec<f32>) -> Result<Var>,
    ) -> Result<Self> {
        if holds_adapters(folder) {
            return Err(PolicyError::checkpoint(
                folder,
                "holds LoRA adapters and no whole model; `rlf-host export` writes one, `model.lora.adapter` trains the \
                 adapters further, and `models.NAME.policy.adapter` asks them",
            ));
        }
        let config = Qwen3Config::load(folder)?;
        let layout = parameters(&config);
        let files = weight_files(folder)?;
        let files = files.iter().map(|file| TensorFile::open(file));
        let mut files = files.collect::<Result<Vec<_>>>()?;
        let places = places(folder, &config, &layout, &files)?;
        let variables = layout
            .iter()
            .map(|parameter| {
                let mut numbers = vec![0.0; parameter.len()];
                for stored in &parameter.stored {
                    let file = &mut files[places[stored.name.as_str()]];
                    let values = file.read_finite(&stored.name)?;
                    parameter.copy_into(stored, &values, &mut numbers);
                }
                keep(parameter, numbers)
            })
            .collect::<Result<_>>()?;
        Ok(Self::from_variables(&config, variables, device))
    }

    /// Writes `config.json` and the weights as f32 into `folder`, which is created if necessary. Of a model with adapters,
    /// it writes those alone, as [`Self::save_adapter`] does. Other files in the folder (tokenizer, template) stay. Each
    /// file is written completely or not at all.
    pub fn save(&self, folder: &Path) -> Result<()> {
        if self.lora().is_some() {
            return self.save_adapter(folder);
        }
        self.save_with(folder, &SaveOptions::default())
    }

    /// Writes `config.json` and the weights of the whole model, with a choice of type and shard size.
    ///
    /// # Errors
    /// If the model has adapters; save [`Self::merged`] instead. If `folder` already holds weights cut into shards, because
    /// replacing those file by file could leave a mixture.
    pub fn save_with(&self, folder: &Path, options: &SaveOptions) -> Result<()> {
        if self.lora().is_some() {
            return Err(PolicyError::checkpoint(
                folder,
                "a model with adapters is no whole model; merge it first",
            ));
        }
        self.needs_f32("be saved")?;
        fs::create_dir_all(folder)
            .map_err(PolicyError::io(folder, "making the checkpoint's folder"))?;
        if folder.join(INDEX).exists() {
            return Err(PolicyError::checkpoint(
                folder,
                "already holds a sharded checkpoint; save into a new folder",
            ));
        }
        let mut shards: Vec<Vec<SavedTensor<'_>>> = vec![Vec::new()];
        let (mut in_shard, mut total) = (0, 0u64);
        let untied = options.untied && self.config().tie_word_embeddings;
        let embedding = &self.layout()[head_index(self.config())];
        let head = Stored {
            name: HEAD.to_owned(),
            ..embedding.stored[0].clone()
        };
        let second = untied.then_some((embedding, &head, &self.variables()[0]));
        let all = self.layout().iter().zip(self.variables());
        let all = all.flat_map(|(parameter, variable)| {
            let stored = parameter.stored.iter();
            stored.map(move |stored| (parameter, stored, variable))
        });
        for (parameter, stored, variable) in all.chain(second) {
            let tensor = SavedTensor::of(parameter, stored, variable);
            let bytes = tensor.bytes(options.dtype) as u64;
            if in_shard > 0 && in_shard + bytes > options.max_shard_bytes {
                shards.push(Vec::new());
                in_shard = 0;
            }
            in_shard += bytes;
            total += bytes;
            if let Some(shard) = shards.last_mut() {
                shard.push(tensor);
            }
        }
        if shards.len() > 1 && folder.join(SINGLE).exists() {
            return Err(PolicyError::checkpoint(
                folder,
                "already holds a checkpoint in one file; save into a new folder",
            ));
        }
        let mut config = self.config().clone();
        config.tie_word_embeddings &= !untied;
        write(
            &folder.join("config.json"),
            config.to_json(options.dtype.in_torch()).as_bytes(),
        )?;
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        let count = shards.len();
        let mut weight_map = BTreeMap::new();
        for (number, shard) in shards.into_iter().enumerate() {
            let name = if count == 1 {
                SINGLE.to_owned()
            } else {
                format!("model-{:05}-of-{count:05}.safetensors", number + 1)
            };
            for tensor in &shard {
                weight_map.insert(tensor.name(), name.clone());
            }
            write_tensors(&folder.join(&name), shard, metadata.clone(), options.dtype)?;
        }
        if count > 1 {
            let index = json!({ "metadata": { "total_size": total }, "weight_map": weight_map });
            write(&folder.join(INDEX), format!("{index:#}\n").as_bytes())?;
        }
        Ok(())
    }
}

/// The files of a checkpoint that hold weights, each once.
fn weight_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let index = folder.join(INDEX);
    let text = match rlf_files::read_text(&index, rlf_files::MAX_TEXT_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let single = folder.join(SINGLE);
            if single.exists() {
                return Ok(vec![single]);
            }
            return Err(PolicyError::checkpoint(
                folder,
                format!(
                    "neither {SINGLE} nor {INDEX} is here; a checkpoint in Hugging Face's safetensors format has one of them"
                ),
            ));
        }
        Err(error) => {
            return Err(PolicyError::io(&index, "reading the index of shards")(
                error,
            ));
        }
    };
    let bad = |what: &str| PolicyError::checkpoint(&index, what);
    let json: Value =
        serde_json::from_str(&text).map_err(|error| bad(&format!("not JSON: {error}")))?;
    let map = json
        .get("weight_map")
        .and_then(Value::as_object)
        .ok_or_else(|| bad("has no weight_map"))?;
    let mut files = Vec::new();
    for file in map.values() {
        let name = file
            .as_str()
            .ok_or_else(|| bad("weight_map names something that is not a file"))?;
        if name.contains(['/', '\\']) || name == ".." {
            return Err(bad(&format!(
                "weight_map names \"{name}\", which is not a file of this folder"
            )));
        }
        let path = folder.join(name);
        if !files.contains(&path) {
            files.push(path);
        }
    }
    Ok(files)
}

/// The index of the file that holds each stored tensor.
///
/// # Errors
/// If a tensor is not part of the model, has another shape, or is missing.
fn places<'a>(
    folder: &Path,
    config: &Qwen3Config,
    layout: &'a [Parameter],
    files: &[TensorFile],
) -> Result<HashMap<&'a str, usize>> {
    let stored = layout.iter().flat_map(|parameter| &parameter.stored);
    let expected: BTreeMap<&str, &Stored> = stored
        .map(|stored| (stored.name.as_str(), stored))
        .collect();
    let mut missing = expected.clone();
    let mut places = HashMap::new();
    for (index, file) in files.iter().enumerate() {
        for (name, shape) in file.shapes() {
            let Some(stored) = expected.get(name) else {
                // Some programs write the tied embedding a second time, or tables that can be computed.
                if (config.tie_word_embeddings && name == HEAD)
                    || name.ends_with("rotary_emb.inv_freq")
                {
                    continue;
                }
                return Err(file.refused(format!(
                    "tensor {name} is not part of the model that config.json describes"
                )));
            };
            if shape != stored.shape {
                let expected = &stored.shape;
                return Err(file.refused(format!(
                    "tensor {name}: expected shape {expected:?} (from config.json), found {shape:?}"
                )));
            }
            places.insert(stored.name.as_str(), index);
            missing.remove(name);
        }
    }
    if let Some((first, stored)) = missing.first_key_value() {
        let (count, shape) = (missing.len(), &stored.shape);
        return Err(PolicyError::checkpoint(
            folder,
            format!(
                "{count} tensors are missing, the first of them {first} (expected shape {shape:?})"
            ),
        ));
    }
    Ok(places)
}

/// Writes `bytes` to `file`, completely or not at all.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    rlf_files::write(file, bytes).map_err(PolicyError::writing(file))
}
