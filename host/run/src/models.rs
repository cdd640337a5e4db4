//! `[models]` of a configuration: the language models that plugins may ask.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rlf_models::{FrozenPolicyConfig, ModelConfig, Models, Source};

use crate::error::{ConfigurationError, RunFailure};
use crate::folder::models_path;
use crate::frozen_policy::FrozenPolicy;
use crate::own_weights::OwnWeights;

/// Opens models for plugins that are called outside of a run. A policy among them decodes with so many threads. Those with
/// weights of a run have the ones of its newest checkpoint; `run` is the folder of that run. Nothing is recorded.
pub fn open_models(
    configs: &BTreeMap<String, ModelConfig>,
    workers: usize,
    run: Option<&Path>,
) -> Result<Models, RunFailure> {
    let own = OwnWeights::new(configs, workers, 0);
    own.advance_to_newest(run)?;
    open(configs, workers, None, &own)
}

/// Opens the models of the run in the folder `run`, which records their answers. Those with weights of the run have none
/// until [`OwnWeights`] advances. `staleness` is that of the run's RL.
pub(crate) fn open_models_of_run(
    configs: &BTreeMap<String, ModelConfig>,
    workers: usize,
    run: &Path,
    staleness: u64,
) -> Result<(Models, OwnWeights), RunFailure> {
    let own = OwnWeights::new(configs, workers, staleness);
    let models = open(configs, workers, Some(&models_path(run)), &own)?;
    Ok((models, own))
}

fn open(
    configs: &BTreeMap<String, ModelConfig>,
    workers: usize,
    records: Option<&Path>,
    own: &OwnWeights,
) -> Result<Models, RunFailure> {
    Models::open(configs, records, |name, config: &FrozenPolicyConfig| {
        if let Some(source) = own.source(name) {
            return Ok(source);
        }
        let Some(folder) = &config.checkpoint else {
            let key = format!("models.{name}.policy.checkpoint");
            let problem = format!("{key} is missing; write the folder of a checkpoint");
            return Err(ConfigurationError::value(key, problem).into());
        };
        let policy = FrozenPolicy::open(name, folder, config, workers)?;
        Ok::<_, RunFailure>(Arc::new(policy) as Arc<dyn Source>)
    })
}
