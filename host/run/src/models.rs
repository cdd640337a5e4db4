//! `[models]` of a configuration: the language models that plugins may ask.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rlf_models::{FrozenPolicyConfig, ModelConfig, Models, Source};

use crate::error::{ConfigurationError, RunFailure};
use crate::folder::models_path;
use crate::frozen_engine::CheckpointEngines;
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
    let engines = CheckpointEngines::new(configs, workers);
    Models::open(configs, records, |name, config: &FrozenPolicyConfig| {
        if let Some(source) = own.source(name) {
            return Ok(source);
        }
        let Some(folder) = &config.checkpoint else {
            let key = format!("models.{name}.policy.checkpoint");
            let problem = format!("{key} is missing; write the folder of a checkpoint");
            return Err(ConfigurationError::value(key, problem).into());
        };
        let (engine, adapted) = engines.open(name, folder, config)?;
        let policy = FrozenPolicy::new(engine, adapted, config)?;
        Ok::<_, RunFailure>(Arc::new(policy) as Arc<dyn Source>)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use candle_core::{Device, Tensor};
    use rlf_dialogue::bpe::BpeOptions;
    use rlf_dialogue::template::small;
    use rlf_dialogue::tokenizer::Tokenizer;
    use rlf_endpoint::{ChatMessage, Sampling};
    use rlf_plugins::gates::ModelQuestion;
    use rlf_policy::{Key, LoraConfig, Model, Purpose, Qwen3Config};

    use super::*;
    use crate::frozen_engine::{FrozenEngine, sizes};

    /// Writes a small checkpoint, and adapters for it that change its answers.
    fn write(folder: &Path) {
        let base = folder.join("base");
        let corpus = ["a question and an answer"].map(String::from).into_iter();
        let tokenizer = Tokenizer::train_bpe(corpus, &BpeOptions::default()).unwrap();
        let shape = Qwen3Config {
            vocab_size: 512,
            hidden_size: 16,
            intermediate_size: 16,
            num_hidden_layers: 1,
            num_attention_heads: 2,
            num_key_value_heads: 1,
            head_dim: 8,
            max_position_embeddings: 128,
            rms_norm_eps: 1e-6,
            rope_theta: 1e4,
            tie_word_embeddings: true,
            initializer_range: 0.5,
        };
        let model = Model::init(&shape, 0, &Device::Cpu).unwrap();
        model.save(&base).unwrap();
        fs::write(base.join("tokenizer.json"), tokenizer.to_json().unwrap()).unwrap();
        fs::write(base.join("chat_template.jinja"), small::SOURCE).unwrap();
        let adapted = model.with_lora(&LoraConfig::default(), 1, &base).unwrap();
        for (index, (_, variable)) in adapted.parameters().enumerate() {
            let key = Key::new(1, Purpose::Test).at(index as u64);
            let numbers = (0..variable.elem_count() as u64).map(|i| 0.3 * key.normal(i) as f32);
            let numbers = Tensor::from_iter(numbers, &Device::Cpu).unwrap();
            let numbers = numbers.reshape(variable.shape()).unwrap();
            variable.set(&numbers).unwrap();
        }
        adapted.save(&folder.join("adapter")).unwrap();
    }

    fn models(folder: &Path, text: &str) -> BTreeMap<String, ModelConfig> {
        let mut models: BTreeMap<String, ModelConfig> = toml::from_str(text).unwrap();
        for model in models.values_mut() {
            model.resolve_paths(folder);
        }
        models
    }

    fn opened(
        engines: &CheckpointEngines,
        name: &str,
        model: &ModelConfig,
    ) -> (Arc<FrozenEngine>, FrozenPolicy) {
        let policy = model.policy.as_ref().unwrap();
        let folder = policy.checkpoint.as_deref().unwrap();
        let (engine, adapted) = engines.open(name, folder, policy).unwrap();
        let opened = FrozenPolicy::new(Arc::clone(&engine), adapted, policy).unwrap();
        (engine, opened)
    }

    async fn answer(policy: &FrozenPolicy) -> String {
        let messages = [ChatMessage::user("a question")];
        let question = ModelQuestion {
            messages: &messages,
            sampling: Sampling::default(),
            schema: None,
        };
        policy.answer(question).await.unwrap().text
    }

    const MODELS: &str = "
        plain.policy = {checkpoint = 'base', max_tokens = 12, context = 128, slots = 2}
        judge.policy = {checkpoint = './base', adapter = 'adapter', max_tokens = 12, context = 64, slots = 3}";

    #[tokio::test]
    async fn policies_of_one_checkpoint_share_an_engine_and_answer_as_they_would_alone() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path());
        let models = models(folder.path(), MODELS);
        let together = CheckpointEngines::new(&models, 1);
        let (mut answers, mut used) = (Vec::new(), Vec::new());
        for (name, model) in &models {
            let (engine, shared) = opened(&together, name, model);
            used.push(engine);
            let alone = BTreeMap::from([(name.clone(), model.clone())]);
            let alone = CheckpointEngines::new(&alone, 1);
            let (_, alone) = opened(&alone, name, model);
            let (said, alone) = (answer(&shared).await, answer(&alone).await);
            assert_eq!(said, alone, "{name}");
            answers.push(said);
        }
        assert_ne!(answers[0], answers[1]);
        assert!(Arc::ptr_eq(&used[0], &used[1]), "one engine for both");
        let sizes = sizes(models.values().filter_map(|model| model.policy.as_ref()));
        assert_eq!(
            (sizes.slots, sizes.cache_tokens),
            (5, Some(2 * 128 + 3 * 64))
        );
    }

    #[test]
    fn adapters_that_cannot_be_used_are_named_by_their_key() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path());
        fs::remove_file(folder.path().join("adapter/adapter_model.safetensors")).unwrap();
        let models = models(folder.path(), MODELS);
        let engines = CheckpointEngines::new(&models, 1);
        let policy = models["judge"].policy.as_ref().unwrap();
        let base = folder.path().join("base");
        let refused = engines.open("judge", &base, policy).err().unwrap();
        let refused = refused.to_string();
        assert!(
            refused.contains("models.judge.policy.adapter: "),
            "{refused}"
        );
        assert!(refused.contains("adapter_model.safetensors"), "{refused}");
    }
}
