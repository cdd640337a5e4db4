//! The external engine of a run: the engine that samples the policy's turns, if the configuration has one, and the
//! folder in which it finds the policy's weights.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rlf_endpoint::EndpointConfigError;
use rlf_policy::{Model, SaveOptions};
use rlf_rollout::external_engine::{
    BoxError, EngineKind, ExternalEngine, ExternalGenerator, SavedWeights, SequenceLimits,
};

use crate::config::RunConfig;
use crate::error::{ConfigurationError, RunFailure};
use crate::folder::engine_path;

/// A file that makes weights loadable elsewhere, such as the tokenizer: its name and its content.
type Asset = (String, Vec<u8>);

/// The external engine of a run.
pub(crate) struct RunEngine {
    engine: Arc<ExternalEngine>,
    /// The folder of the weights. Its path is absolute, because the engine was started elsewhere.
    folder: PathBuf,
    /// True for vLLM. If it serves a model whose head is the embedding, the head keeps its old weights in an update.
    untied: bool,
}

impl RunEngine {
    /// The engine of the run in the folder `run`, if the configuration has one. Nothing is sent.
    pub(crate) fn open(config: &RunConfig, run: &Path) -> Result<Option<Self>, RunFailure> {
        let Some(settings) = &config.external_engine else {
            return Ok(None);
        };
        let engine = ExternalEngine::open(settings.clone(), config.model.lora.is_some());
        let engine = engine.map_err(ConfigurationError::in_table(
            "external_engine",
            |e: &EndpointConfigError| e.key,
        ))?;
        let folder = std::path::absolute(engine_path(run)).map_err(RunFailure::io(format!(
            "cannot find the place of {}",
            run.display()
        )))?;
        Ok(Some(Self {
            engine: Arc::new(engine),
            folder,
            untied: settings.kind == EngineKind::Vllm,
        }))
    }

    /// The generator of turns with the weights of `model`, which must not change while it is used.
    pub(crate) fn generator(
        &self,
        model: &Model,
        stop_ids: &[u32],
        context: usize,
        assets: Vec<Asset>,
    ) -> ExternalGenerator {
        let limits = SequenceLimits {
            stop_ids: stop_ids.to_vec(),
            context,
            vocabulary: model.vocabulary(),
        };
        let (model, folder) = (model.share(), self.folder.clone());
        let options = SaveOptions {
            untied: self.untied,
            ..SaveOptions::default()
        };
        let save = move || save(&model, &options, &assets, &folder);
        ExternalGenerator::new(self.engine.clone(), limits, Arc::new(save))
    }
}

/// Saves the model, or its adapters alone, into `folder`, in place of what is there.
fn save(
    model: &Model,
    options: &SaveOptions,
    assets: &[Asset],
    folder: &Path,
) -> Result<SavedWeights, BoxError> {
    // New files, because the engine may still read the old ones.
    if folder.exists() {
        fs::remove_dir_all(folder)
            .map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    }
    if model.lora().is_some() {
        model.save(folder)?;
        return Ok(SavedWeights::Adapter(folder.to_owned()));
    }
    model.save_with(folder, options)?;
    for (name, content) in assets {
        let file = folder.join(name);
        fs::write(&file, content)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    Ok(SavedWeights::Model(folder.to_owned()))
}
