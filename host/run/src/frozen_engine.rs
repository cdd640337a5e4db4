//! Engines of frozen policies: policies with the same weights share one. Each may have adapters of its own beside them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::Device;
use rlf_dialogue::DialogueConfig;
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::template::ChatTemplate;
use rlf_dialogue::tokenizer::Tokenizer;
use rlf_models::{FrozenPolicyConfig, ModelConfig};
use rlf_policy::{GenerationConfig, Model, PAGE_TOKENS};
use rlf_rollout::generate::{
    GenerateError, GenerateRequest, Generated, Generator as _, SequenceId,
};
use rlf_rollout::policy_generator::{PolicyGenerator, PolicyGeneratorConfig};
use rlf_train::run::verify_weights;

use crate::error::{ConfigurationError, RunFailure};

/// The name of a model, and its policy.
pub(crate) type NamedPolicy<'a> = (&'a str, &'a FrozenPolicyConfig);

/// Weights on the CPU with their tokenizer and template, and a decoder that all policies with these weights share.
pub(crate) struct FrozenEngine {
    /// Adapters are put beside these weights. It may have some itself.
    model: Model,
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    stop_ids: Vec<u32>,
    generator: PolicyGenerator,
    next: AtomicU64,
}

impl FrozenEngine {
    /// Starts the engine that `policies` share, by their names. One of them is asked for first: errors name it. `folder` has
    /// the tokenizer and the template. `workers` is the number of decoding threads.
    pub(crate) fn start(
        mut model: Model,
        folder: &Path,
        asked: NamedPolicy<'_>,
        policies: &[NamedPolicy<'_>],
        workers: usize,
    ) -> Result<Self, RunFailure> {
        let (name, policy) = asked;
        let tokenizer = Tokenizer::load(&folder.join("tokenizer.json"));
        let tokenizer = Arc::new(tokenizer.map_err(|error| unreadable(name, policy, &error))?);
        model.limit_vocabulary(tokenizer.vocab_size())?;
        let most = model.config().max_position_embeddings;
        let long = policies.iter().find(|(_, one)| one.context as usize > most);
        if let Some((name, long)) = long {
            let problem = format!(
                "models.{name}.policy.context = {} is more than the {most} positions of {}; lower it",
                long.context,
                folder.display()
            );
            return Err(ConfigurationError::value(format!("models.{name}"), problem).into());
        }
        let stop_ids = GenerationConfig::load(folder)?.map(|config| config.stop_ids());
        let (template, stop_ids) = (ChatTemplate::load(folder)?, stop_ids.unwrap_or_default());
        let dialogue = dialogue(&tokenizer, &template, &stop_ids, policy)?;
        let contexts = policies.iter().map(|(_, one)| one.context as usize);
        let generator = PolicyGenerator::start(
            model.share(),
            dialogue.stop_ids().to_vec(),
            contexts.max().unwrap_or_default(),
            workers,
            sizes(policies.iter().map(|(_, one)| *one)),
        )
        .map_err(RunFailure::table("models"))?;
        Ok(Self {
            model,
            tokenizer,
            template,
            stop_ids,
            generator,
            next: AtomicU64::new(0),
        })
    }

    /// The weights.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// The conversations of a policy.
    pub(crate) fn dialogue(&self, policy: &FrozenPolicyConfig) -> Result<Dialogue, RunFailure> {
        dialogue(&self.tokenizer, &self.template, &self.stop_ids, policy)
    }

    /// The number of a new question.
    pub(crate) fn next(&self) -> SequenceId {
        SequenceId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Answers one question, with `model` if it is given. It must have these weights, and may have adapters of its own.
    pub(crate) async fn answer(
        &self,
        request: GenerateRequest,
        model: Option<Arc<Model>>,
    ) -> Result<Generated, GenerateError> {
        // Closes the sequence also if nobody waits for the answer any more.
        let _open = OpenSequence(&self.generator, request.sequence);
        self.generator.generate_with(request, model).await
    }
}

/// The error of a model whose files cannot be read.
pub(crate) fn unreadable(
    name: &str,
    config: &FrozenPolicyConfig,
    error: &dyn fmt::Display,
) -> ConfigurationError {
    let source = match config.of_run {
        Some(_) => "of_run",
        None => "checkpoint",
    };
    let key = format!("models.{name}.policy.{source}");
    let problem = format!("{key}: {error}");
    ConfigurationError::value(key, problem)
}

/// Closes a sequence when it is dropped.
struct OpenSequence<'a>(&'a PolicyGenerator, SequenceId);

impl Drop for OpenSequence<'_> {
    fn drop(&mut self) {
        self.0.close(self.1);
    }
}

fn dialogue(
    tokenizer: &Arc<Tokenizer>,
    template: &ChatTemplate,
    stop_ids: &[u32],
    policy: &FrozenPolicyConfig,
) -> Result<Dialogue, RunFailure> {
    let config = DialogueConfig {
        context: policy.context,
        max_tokens_per_turn: policy.max_tokens,
        ..DialogueConfig::default()
    };
    Dialogue::new(Arc::clone(tokenizer), template.clone(), config, stop_ids)
        .map_err(RunFailure::table("models"))
}

/// Tokens in the cache of a policy's slots.
pub(crate) fn cache_tokens(policy: &FrozenPolicyConfig) -> usize {
    policy.slots * (policy.context as usize).next_multiple_of(PAGE_TOKENS)
}

/// Sizes of the engine that these policies share: each brings its slots, and the cache for them.
pub(crate) fn sizes<'a>(
    policies: impl Iterator<Item = &'a FrozenPolicyConfig> + Clone,
) -> PolicyGeneratorConfig {
    PolicyGeneratorConfig {
        slots: policies.clone().map(|policy| policy.slots).sum(),
        cache_tokens: Some(policies.map(cache_tokens).sum()),
        ..PolicyGeneratorConfig::default()
    }
}

/// The engines of the checkpoints that a configuration names. Each starts with its first policy.
pub(crate) struct CheckpointEngines {
    policies: BTreeMap<PathBuf, Vec<(String, FrozenPolicyConfig)>>,
    started: Mutex<BTreeMap<PathBuf, Arc<FrozenEngine>>>,
    workers: usize,
}

impl CheckpointEngines {
    /// Those of these models. They decode with so many threads.
    pub(crate) fn new(models: &BTreeMap<String, ModelConfig>, workers: usize) -> Self {
        let mut policies: BTreeMap<PathBuf, Vec<_>> = BTreeMap::new();
        for (name, model) in models {
            if let Some(policy) = &model.policy
                && let Some(folder) = &policy.checkpoint
            {
                let of_folder = policies.entry(same_path(folder)).or_default();
                of_folder.push((name.clone(), policy.clone()));
            }
        }
        Self {
            policies,
            started: Mutex::default(),
            workers,
        }
    }

    /// The engine of the model `name`, whose weights are in `folder`, and its weights with its adapters if it has some.
    pub(crate) fn open(
        &self,
        name: &str,
        folder: &Path,
        policy: &FrozenPolicyConfig,
    ) -> Result<(Arc<FrozenEngine>, Option<Arc<Model>>), RunFailure> {
        let engine = self.engine(name, folder, policy)?;
        let adapted = match &policy.adapter {
            None => None,
            Some(adapter) => {
                verify_weights(adapter)?;
                let model = engine.model().share().with_adapter(adapter, folder);
                let key = format!("models.{name}.policy.adapter");
                let wrong = |error| ConfigurationError::value(&*key, format!("{key}: {error}"));
                Some(Arc::new(model.map_err(wrong)?))
            }
        };
        Ok((engine, adapted))
    }

    fn engine(
        &self,
        name: &str,
        folder: &Path,
        policy: &FrozenPolicyConfig,
    ) -> Result<Arc<FrozenEngine>, RunFailure> {
        let path = same_path(folder);
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = started.get(&path) {
            return Ok(Arc::clone(engine));
        }
        verify_weights(folder)?;
        let model = Model::load(folder, &Device::Cpu);
        let model = model.map_err(|error| unreadable(name, policy, &error))?;
        let policies = self.policies.get(&path).into_iter().flatten();
        let policies: Vec<NamedPolicy<'_>> = policies
            .map(|(name, policy)| (name.as_str(), policy))
            .collect();
        let engine = FrozenEngine::start(model, folder, (name, policy), &policies, self.workers)?;
        let engine = Arc::new(engine);
        started.insert(path, Arc::clone(&engine));
        Ok(engine)
    }
}

/// One path for all paths of a folder.
pub(crate) fn same_path(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}
