//! All models of a process.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rlf_endpoint::{Endpoint, EndpointConfigError, Spent};
use rlf_plugins::gates::{LanguageModel, LanguageModels};
use rlf_plugins::manifest::is_valid_name;

use crate::config::{FrozenPolicyConfig, ModelConfig, ModelConfigError};
use crate::model::{Counts, Model};
use crate::record::Record;
use crate::source::{EndpointSource, Source};

/// The models that plugins may ask, by name.
#[derive(Debug, Clone, Default)]
pub struct Models(BTreeMap<String, Arc<Model>>);

/// A model that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// Its name cannot be that of a file.
    #[error("[models.{0:?}]: a name has 1 to 64 of a-z A-Z 0-9 _ -")]
    Name(String),
    /// Its table is wrong.
    #[error("[models.{name}] {error}")]
    Config {
        /// The model.
        name: String,
        /// The mistake.
        error: ModelConfigError,
    },
    /// Its file of recorded answers cannot be used.
    #[error("[models.{name}] {}: {source}", path.display())]
    Record {
        /// The model.
        name: String,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// The spending on each model at one moment, to be compared with a later one.
#[derive(Debug, Clone, Default)]
pub struct Spending(BTreeMap<String, (Spent, Counts)>);

impl Models {
    /// Opens the models of a configuration. Answers are recorded in a folder, if one is named: `NAME.jsonl` for each model.
    /// `policy` opens a policy.
    pub fn open<E: From<ModelsError>>(
        configs: &BTreeMap<String, ModelConfig>,
        records: Option<&Path>,
        policy: impl Fn(&str, &FrozenPolicyConfig) -> Result<Arc<dyn Source>, E>,
    ) -> Result<Self, E> {
        let mut models = BTreeMap::new();
        for (name, config) in configs {
            let wrong = |error| ModelsError::Config {
                name: name.clone(),
                error,
            };
            if !is_valid_name(name) {
                return Err(ModelsError::Name(name.clone()).into());
            }
            config.check().map_err(wrong)?;
            let source = match &config.endpoint {
                Some(endpoint) => {
                    let opened = Endpoint::open(endpoint.clone());
                    let opened = opened.map_err(|error| wrong(of_endpoint(&error)))?;
                    let source = EndpointSource::new(opened, config.structured);
                    Some(Arc::new(source) as Arc<dyn Source>)
                }
                None => match &config.policy {
                    Some(config) => Some(policy(name, config)?),
                    None => None,
                },
            };
            let record = record(name, config, records)?;
            let model = Model::new(name, config.clone(), source, record);
            models.insert(name.clone(), Arc::new(model));
        }
        Ok(Self(models))
    }

    /// The model with this name.
    pub fn get(&self, name: &str) -> Option<Arc<Model>> {
        self.0.get(name).cloned()
    }

    /// The models as plugins ask them.
    pub fn by_name(&self) -> LanguageModels {
        let models = self.0.iter();
        models
            .map(|(name, model)| (name.clone(), Arc::clone(model) as Arc<dyn LanguageModel>))
            .collect()
    }

    /// The spending so far, to be compared with a later moment.
    pub fn spending(&self) -> Spending {
        let models = self.0.iter();
        Spending(
            models
                .map(|(name, model)| (name.clone(), (model.spent(), model.counts())))
                .collect(),
        )
    }

    /// The metrics of what was spent since an earlier moment: `model/NAME/..`.
    pub fn metrics_since(&self, earlier: &Spending) -> Vec<(String, f64)> {
        let mut metrics = Vec::new();
        for (name, model) in &self.0 {
            let (before, counts_before) = earlier.0.get(name).copied().unwrap_or_default();
            let (spent, counts) = (model.spent().since(&before), model.counts());
            let mut add = |what: &str, value: f64| {
                metrics.push((format!("model/{name}/{what}"), value));
            };
            add("questions", spent.answers as f64);
            add("prompt_tokens", spent.prompt_tokens as f64);
            add("completion_tokens", spent.answer_tokens as f64);
            add("answer_s", spent.seconds);
            if let Some(price) = model.config().price {
                add("cost", price.cost(spent.prompt_tokens, spent.answer_tokens));
            }
            // Records of earlier versions lack this metric, so it is left out where there is nothing to say.
            let unfit = counts.unfit - counts_before.unfit;
            if unfit > 0 {
                add("unfit", unfit as f64);
            }
            for (what, now, then) in [
                ("recorded", counts.recorded, counts_before.recorded),
                ("unanswered", counts.unanswered, counts_before.unanswered),
                ("over_budget", counts.over_budget, counts_before.over_budget),
            ] {
                add(what, (now - then) as f64);
            }
        }
        metrics
    }
}

fn of_endpoint(error: &EndpointConfigError) -> ModelConfigError {
    ModelConfigError {
        key: format!("endpoint.{}", error.key),
        reason: error.reason.clone(),
    }
}

fn record(
    name: &str,
    config: &ModelConfig,
    records: Option<&Path>,
) -> Result<Option<Record>, ModelsError> {
    let (path, opened) = match (&config.replay, records) {
        (Some(path), _) => (path.clone(), Record::open_to_read(path)),
        (None, Some(folder)) => {
            let path = folder.join(format!("{name}.jsonl"));
            let opened = Record::open(&path);
            (path, opened)
        }
        (None, None) => return Ok(None),
    };
    let opened = opened.map_err(|source| ModelsError::Record {
        name: name.to_owned(),
        path,
        source,
    })?;
    Ok(Some(opened))
}
