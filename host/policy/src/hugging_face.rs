//! Checkpoints in Hugging Face's format: `config.json` and safetensors, in one file or in shards with an index.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use candle_core::Device;
use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::{Value, json};

use crate::config::Qwen3Config;
use crate::error::{PolicyError, Result};
use crate::lora::ADAPTER_CONFIG;
use crate::model::Model;
use crate::weights::{Parameter, Stored, parameters, variable};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Copies of a file's tensors that exist while the file is written: their numbers, their bytes, and the whole file.
pub(crate) const COPIES_TO_WRITE: u64 = 3;
/// Default of [`SaveOptions::max_shard_bytes`].
pub(crate) const MAX_SHARD_BYTES: u64 = 5_000_000_000;

/// The type of the weights on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredDtype {
    /// The weights unchanged: training can continue from them as if it had never stopped.
    F32,
    /// Rounded weights at half the size, for publishing.
    Bf16,
}

/// The options of writing a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaveOptions {
    /// The type in which weights are stored. Default f32.
    pub dtype: StoredDtype,
    /// Maximum size of a file of weights, in bytes. Larger weights are cut into shards. Default 5 GB, as in
    /// transformers.
    pub max_shard_bytes: u64,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self {
            dtype: StoredDtype::F32,
            max_shard_bytes: MAX_SHARD_BYTES,
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
        if folder.join(ADAPTER_CONFIG).exists() && !folder.join("config.json").exists() {
            return Err(PolicyError::checkpoint(
                folder,
                "holds LoRA adapters and no whole model; `rlf-host merge` writes one, and `model.lora.adapter` trains \
                 the adapters further",
            ));
        }
        let config = Qwen3Config::load(folder)?;
        let layout = parameters(&config);
        let mut numbers: Vec<Vec<f32>> = layout
            .iter()
            .map(|parameter| vec![0.0; parameter.len()])
            .collect();
        let mut places: HashMap<&str, (usize, &Stored)> = HashMap::new();
        for (index, parameter) in layout.iter().enumerate() {
            for stored in &parameter.stored {
                places.insert(&stored.name, (index, stored));
            }
        }
        let mut missing: HashSet<&str> = places.keys().copied().collect();
        for file in weight_files(folder)? {
            let bytes = read(&file)?;
            let tensors = parse(&file, &bytes)?;
            for (name, view) in tensors.iter() {
                let Some((index, stored)) = places.get(name) else {
                    // Some programs write the tied embedding a second time, or tables that can be computed.
                    if (config.tie_word_embeddings && name == "lm_head.weight")
                        || name.ends_with("rotary_emb.inv_freq")
                    {
                        continue;
                    }
                    return Err(PolicyError::checkpoint(
                        &file,
                        format!(
                            "tensor {name} is not part of the model that config.json describes"
                        ),
                    ));
                };
                if view.shape() != stored.shape {
                    return Err(PolicyError::checkpoint(
                        &file,
                        format!(
                            "tensor {name}: expected shape {:?} (from config.json), found {:?}",
                            stored.shape,
                            view.shape()
                        ),
                    ));
                }
                let values = to_f32(&file, name, &view)?;
                if let Some(place) = values.iter().position(|x| !x.is_finite()) {
                    return Err(PolicyError::checkpoint(
                        &file,
                        format!(
                            "tensor {name}: element {place} is {}; the checkpoint is damaged or training diverged",
                            values[place]
                        ),
                    ));
                }
                layout[*index].copy_into(stored, &values, &mut numbers[*index]);
                missing.remove(name);
            }
        }
        if !missing.is_empty() {
            let count = missing.len();
            let first = missing.into_iter().min().unwrap_or_default();
            let shape = &places[first].1.shape;
            return Err(PolicyError::checkpoint(
                folder,
                format!(
                    "{count} tensors are missing, the first of them {first} (expected shape {shape:?})"
                ),
            ));
        }
        let variables = layout
            .iter()
            .zip(numbers)
            .map(|(parameter, numbers)| variable(parameter, numbers, device))
            .collect::<candle_core::Result<_>>()?;
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
    /// If the model has adapters: [`Self::merged`] has none. If `folder` already holds weights cut into shards: replacing those file by file could leave a mixture.
    pub fn save_with(&self, folder: &Path, options: &SaveOptions) -> Result<()> {
        if self.lora().is_some() {
            return Err(PolicyError::checkpoint(
                folder,
                "a model with adapters is no whole model; merge it first",
            ));
        }
        fs::create_dir_all(folder)
            .map_err(PolicyError::io(folder, "making the checkpoint's folder"))?;
        if folder.join(INDEX).exists() {
            return Err(PolicyError::checkpoint(
                folder,
                "already holds a sharded checkpoint; save into a new folder",
            ));
        }
        let bytes_each = match options.dtype {
            StoredDtype::F32 => 4,
            StoredDtype::Bf16 => 2,
        };
        let mut shards: Vec<Vec<(&Parameter, usize, &Stored)>> = vec![Vec::new()];
        let (mut in_shard, mut total) = (0, 0);
        for (index, parameter) in self.layout().iter().enumerate() {
            for stored in &parameter.stored {
                let bytes = stored.shape.iter().product::<usize>() as u64 * bytes_each;
                if in_shard > 0 && in_shard + bytes > options.max_shard_bytes {
                    shards.push(Vec::new());
                    in_shard = 0;
                }
                in_shard += bytes;
                total += bytes;
                if let Some(shard) = shards.last_mut() {
                    shard.push((parameter, index, stored));
                }
            }
        }
        if shards.len() > 1 && folder.join(SINGLE).exists() {
            return Err(PolicyError::checkpoint(
                folder,
                "already holds a checkpoint in one file; save into a new folder",
            ));
        }
        write(
            &folder.join("config.json"),
            self.config().to_json().as_bytes(),
        )?;
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        let count = shards.len();
        let mut weight_map = BTreeMap::new();
        for (number, shard) in shards.iter().enumerate() {
            let name = if count == 1 {
                SINGLE.to_owned()
            } else {
                format!("model-{:05}-of-{count:05}.safetensors", number + 1)
            };
            let mut tensors = Vec::with_capacity(shard.len());
            for (parameter, index, stored) in shard {
                let all = self.variables()[*index]
                    .as_detached_tensor()
                    .flatten_all()?
                    .to_vec1::<f32>()?;
                tensors.push((
                    stored.name.clone(),
                    stored.shape.clone(),
                    parameter.take(stored, &all),
                ));
                weight_map.insert(stored.name.clone(), name.clone());
            }
            write_tensors_as(
                &folder.join(&name),
                &tensors,
                Some(metadata.clone()),
                options.dtype,
            )?;
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

fn read(file: &Path) -> Result<Vec<u8>> {
    // Weights may have any size, but they are a regular file.
    let bytes =
        rlf_files::read(file, u64::MAX).map_err(PolicyError::io(file, "reading weights"))?;
    if bytes.starts_with(b"version https://git-lfs") {
        return Err(PolicyError::checkpoint(
            file,
            "is a git-lfs pointer, not the weights; fetch them with `git lfs pull`",
        ));
    }
    Ok(bytes)
}

fn parse<'a>(file: &Path, bytes: &'a [u8]) -> Result<SafeTensors<'a>> {
    SafeTensors::deserialize(bytes).map_err(|error| {
        PolicyError::checkpoint(
            file,
            format!("not a whole safetensors file of {} bytes ({error}); it was cut short or damaged, copy it again", bytes.len()),
        )
    })
}

fn to_f32(file: &Path, name: &str, view: &TensorView<'_>) -> Result<Vec<f32>> {
    let data = view.data();
    Ok(match view.dtype() {
        Dtype::F32 => data
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect(),
        Dtype::BF16 => data
            .as_chunks()
            .0
            .iter()
            .map(|bytes| bf16::from_le_bytes(*bytes).to_f32())
            .collect(),
        Dtype::F16 => data
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f16::from_le_bytes(*bytes).to_f32())
            .collect(),
        other => {
            return Err(PolicyError::checkpoint(
                file,
                format!("tensor {name} is {other:?}; f32, f16 and bf16 are supported"),
            ));
        }
    })
}

type Named = (String, Vec<usize>, Vec<f32>);
type ByName = HashMap<String, (Vec<usize>, Vec<f32>)>;

/// Every f32 tensor of a file by name, and the file's metadata.
pub(crate) fn read_tensors(file: &Path) -> Result<(ByName, HashMap<String, String>)> {
    let bytes = read(file)?;
    let tensors = parse(file, &bytes)?;
    let (_, header) = SafeTensors::read_metadata(&bytes)
        .map_err(|error| PolicyError::checkpoint(file, format!("unreadable header: {error}")))?;
    let metadata = header.metadata().clone().unwrap_or_default();
    let tensors = tensors
        .iter()
        .map(|(name, view)| {
            Ok((
                name.to_owned(),
                (view.shape().to_vec(), to_f32(file, name, &view)?),
            ))
        })
        .collect::<Result<_>>()?;
    Ok((tensors, metadata))
}

/// Writes f32 tensors, atomically.
pub(crate) fn write_tensors(
    file: &Path,
    tensors: &[Named],
    metadata: HashMap<String, String>,
) -> Result<()> {
    write_tensors_as(file, tensors, Some(metadata), StoredDtype::F32)
}

fn write_tensors_as(
    file: &Path,
    tensors: &[Named],
    metadata: Option<HashMap<String, String>>,
    dtype: StoredDtype,
) -> Result<()> {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, _, numbers)| match dtype {
            StoredDtype::F32 => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
            StoredDtype::Bf16 => numbers
                .iter()
                .flat_map(|x| bf16::from_f32(*x).to_le_bytes())
                .collect(),
        })
        .collect();
    let of = match dtype {
        StoredDtype::F32 => Dtype::F32,
        StoredDtype::Bf16 => Dtype::BF16,
    };
    let broken = |error: safetensors::SafeTensorError| {
        PolicyError::checkpoint(file, format!("cannot be written: {error}"))
    };
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, shape, _), bytes)| {
            Ok((
                name.as_str(),
                TensorView::new(of, shape.clone(), bytes).map_err(broken)?,
            ))
        })
        .collect::<Result<Vec<_>>>()?;
    write(
        file,
        &safetensors::serialize(views, metadata).map_err(broken)?,
    )
}

/// Writes `bytes` to `file`, completely or not at all.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    rlf_files::write(file, bytes).map_err(PolicyError::io(file, "writing (is the disk full?)"))
}
