//! Training with an external engine: a program beside the run samples its turns. Here it speaks SGLang's protocol or
//! vLLM's, and computes as the run does, with the weights that it was told to load.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rlf_policy::{DrawKey, LoraConfig, Model, Purpose, Sampler, SamplingParams, open_device};
use rlf_rollout::generate::{GenerateRequest, Generated, Generator, SequenceId};
use rlf_rollout::policy_generator::{PolicyGenerator, PolicyGeneratorConfig};
use rlf_tests::{ChatEndpoint, Experiment, Question, Reply};
use serde_json::{Value, json};

/// Rank of the adapters of a run that has them.
const RANK: usize = 4;
/// More than the context of the quickstart, which the run checks.
const CONTEXT: usize = 512;

/// The policy in the engine.
#[derive(Default)]
struct Policy {
    model: Option<Model>,
    /// Decodes with that model. Started with the first turn, which names the ids that end one.
    generator: Option<Arc<PolicyGenerator>>,
}

impl Policy {
    fn load(&mut self, model: Model) {
        (self.model, self.generator) = (Some(model), None);
    }

    fn generator(&mut self, stop_ids: &[u32]) -> Arc<PolicyGenerator> {
        let model = self.model.as_ref().expect("weights were loaded before");
        let start = || {
            let config = PolicyGeneratorConfig {
                slots: 64,
                ..PolicyGeneratorConfig::default()
            };
            PolicyGenerator::start(model.share(), stop_ids.to_vec(), CONTEXT, 1, config)
        };
        let generator = &mut self.generator;
        let started = generator.get_or_insert_with(|| Arc::new(start().expect("a thread starts")));
        Arc::clone(started)
    }
}

fn model(folder: &Path) -> Model {
    let device = open_device("cpu").expect("there is a CPU").device;
    Model::load(folder, &device).expect("the run has written a model")
}

fn numbers(ids: &Value) -> Vec<u32> {
    serde_json::from_value(ids.clone()).expect("ids")
}

/// The engine. With adapters, they belong to the frozen weights in `base`. It answers every turn whose number
/// `is_wrong` names without its last log-probability.
fn engine(base: PathBuf, is_wrong: fn(u64) -> bool) -> ChatEndpoint {
    let (policy, turns) = (Mutex::new(Policy::default()), AtomicU64::new(0));
    ChatEndpoint::start(move |question| {
        let body = &question.body;
        let folder = |key: &str| Path::new(body[key].as_str().expect("a path"));
        let lock = || policy.lock().unwrap_or_else(PoisonError::into_inner);
        match path(question) {
            "/update_weights_from_disk" => {
                lock().load(model(folder("model_path")));
                Reply::Is(r#"{"success": true, "message": "done"}"#)
            }
            "/v1/load_lora_adapter" => {
                let config = LoraConfig {
                    rank: RANK,
                    ..LoraConfig::default()
                };
                let adapted = model(&base).with_lora(&config, 0, &base);
                let adapted = adapted.expect("the weights can have adapters");
                let loaded = adapted.load_adapter(folder("lora_path"));
                loaded.expect("the adapters belong to these weights");
                lock().load(adapted);
                Reply::Is("Success")
            }
            "/v1/unload_lora_adapter" => Reply::Is("Success"),
            turn => {
                let is_sglang = turn == "/generate";
                let (ids, sampling, [most, seed]) = if is_sglang {
                    let keys = ["max_new_tokens", "sampling_seed"];
                    (&body["input_ids"], &body["sampling_params"], keys)
                } else {
                    (&body["prompt"], body, ["max_tokens", "seed"])
                };
                let stop_ids = numbers(&sampling["stop_token_ids"]);
                let number = turns.fetch_add(1, Ordering::Relaxed);
                let generator = lock().generator(&stop_ids);
                let number_of = |key: &str| sampling[key].as_u64().expect("a number");
                let params = SamplingParams {
                    temperature: sampling["temperature"].as_f64().expect("a number") as f32,
                    ..SamplingParams::default()
                };
                let sampler = Sampler::new(params, number_of(seed), Purpose::Test);
                let generated = sample(
                    &generator,
                    GenerateRequest {
                        sequence: SequenceId(number),
                        append: numbers(ids),
                        max_new_tokens: number_of(most) as usize,
                        sampler: sampler.expect("the temperature is valid"),
                        key: DrawKey {
                            step: 0,
                            task: 0,
                            sample: 0,
                            position: 0,
                        },
                    },
                );
                answer(is_sglang, generated, &stop_ids, is_wrong(number))
            }
        }
    })
}

fn path(question: &Question) -> &str {
    question.line.split(' ').nth(1).expect("a path")
}

fn sample(generator: &PolicyGenerator, request: GenerateRequest) -> Generated {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let sequence = request.sequence;
    let generated = (runtime.expect("a runtime")).block_on(generator.generate(request));
    generator.close(sequence);
    generated.expect("the sequence fits")
}

fn answer(is_sglang: bool, generated: Generated, stop_ids: &[u32], is_wrong: bool) -> Reply {
    let Generated { ids, mut log_probs } = generated;
    let is_stopped = ids.last().is_some_and(|id| stop_ids.contains(id));
    let finish = if is_stopped { "stop" } else { "length" };
    if is_wrong {
        log_probs.pop();
    }
    let body = if is_sglang {
        let tokens = log_probs.iter().zip(&ids);
        let tokens: Vec<Value> = tokens.map(|(p, id)| json!([p, id, null])).collect();
        let info = json!({"finish_reason": {"type": finish}, "output_token_logprobs": tokens});
        json!({"output_ids": ids, "meta_info": info})
    } else {
        let logprobs = json!({"token_logprobs": log_probs});
        let choice = json!({"token_ids": ids, "logprobs": logprobs, "finish_reason": finish});
        json!({"choices": [choice]})
    };
    Reply::is(body.to_string())
}

fn never(_: u64) -> bool {
    false
}

/// Fails unless the steps were sampled with the log-probabilities of training.
fn assert_equal_arithmetic(steps: &[Value]) {
    assert!(!steps.is_empty());
    for line in steps {
        for key in [
            "importance_mismatch",
            "importance_capped",
            "ratio_deviation",
            "excluded",
        ] {
            assert_eq!(line[key], 0.0, "{key}: {line}");
        }
        assert!(line["decode_tokens_per_s"].as_f64() > Some(0.0), "{line}");
    }
    let norms = steps.iter().filter_map(|line| line["grad_norm"].as_f64());
    assert!(norms.sum::<f64>() > 0.0, "the weights never moved");
}

#[test]
fn an_engine_that_computes_as_training_does_samples_a_run_that_needs_no_correction() {
    let engine = engine(PathBuf::new(), never);
    let experiment = Experiment::tiny().with("external_engine.url", engine.url());
    let run = experiment.train("run", &[]);
    assert_equal_arithmetic(&run.steps("rl"));
    let weights = |folder: &Path| fs::read(folder.join("model.safetensors")).expect("weights");
    let folder = run.path().join("engine");
    assert!(weights(&folder) == weights(&run.checkpoint("rl-000004")));
    assert!(folder.join("tokenizer.json").is_file());
    let config = fs::read_to_string(run.path().join("config.toml")).expect("is there");
    assert!(config.contains("importance_cap = 2.0"), "{config}");
    for question in engine.take_questions() {
        if path(&question) == "/update_weights_from_disk" {
            let told = question.body["model_path"].as_str().expect("a path");
            assert_eq!(fs::canonicalize(told).ok(), fs::canonicalize(&folder).ok());
        }
    }

    let plugins = experiment.host().plugins().to_str().expect("a plain path");
    let eval = ["eval", run.as_str(), "--plugins", plugins, "--json"];
    let measured = experiment.host().run(eval).succeeded().json();
    let metrics = run.metrics();
    let last = metrics.last().expect("there is a line");
    assert_eq!(measured["greedy"]["mean"], last["eval/greedy"]);
    let asked = engine.take_questions();
    assert!(asked.iter().any(|question| path(question) == "/generate"));
}

#[test]
fn with_staleness_an_engine_has_the_weights_that_play_each_step() {
    let engine = engine(PathBuf::new(), never);
    let experiment = Experiment::tiny()
        .with("rl.staleness", 1)
        .with("external_engine.url", engine.url());
    let steps = experiment.train("run", &[]).steps("rl");
    assert_eq!(steps.len(), 4);
    // The weights of the first step are those that it trains. Later steps are played by weights that have changed
    // since.
    let mut has_moved = false;
    for line in &steps {
        let mismatch = line["importance_mismatch"].as_f64();
        assert_eq!(mismatch > Some(0.0), has_moved, "{line}");
        assert_eq!(line["excluded"], 0.0, "{line}");
        has_moved = line["updates"].as_u64() > Some(0);
    }
    assert!(
        steps[..3]
            .iter()
            .any(|line| line["updates"].as_u64() > Some(0))
    );
}

#[test]
fn adapters_reach_vllm_by_name_and_each_turn_names_the_newest() {
    let experiment = Experiment::tiny()
        .with("model.lora.rank", RANK as i64)
        .with("rl.steps", 2);
    let engine = engine(experiment.path("run").join("base"), never);
    let experiment = experiment
        .with("external_engine.kind", "vllm")
        .with("external_engine.url", engine.url());
    let run = experiment.train("run", &[]);
    assert_equal_arithmetic(&run.steps("rl"));
    let (mut newest, mut turns) = (Value::Null, 0);
    for question in engine.take_questions() {
        match path(&question) {
            "/v1/load_lora_adapter" => {
                assert_ne!(question.body["lora_name"], newest);
                newest = question.body["lora_name"].clone();
            }
            "/v1/completions" => {
                assert_eq!(question.body["model"], newest);
                turns += 1;
            }
            _ => {}
        }
    }
    assert!(turns > 0);
}

#[test]
fn a_turn_that_the_engine_answers_wrongly_excludes_its_trajectory() {
    let engine = engine(PathBuf::new(), |turn| turn.is_multiple_of(5));
    let experiment = Experiment::tiny()
        .without("sft")
        .with("rl.steps", 2)
        .with("rl.max_dropped_share", 1.0)
        .with("rl.guards.max_excluded_share", 1.0)
        .with("external_engine.url", engine.url());
    let run = experiment.train("run", &[]);
    for line in run.steps("rl") {
        let reasons = line["excluded_reasons"].as_object().expect("reasons");
        assert!(!reasons.is_empty());
        for reason in reasons.keys() {
            assert!(reason.contains("log-probabilities"), "{reason}");
        }
    }
    let records = run.trajectories().into_values().flatten();
    let lost: Vec<Value> = records
        .filter(|record| record["trajectory"]["finish"] == "aborted")
        .collect();
    assert!(!lost.is_empty());
    for record in lost {
        assert_eq!(record["score"], Value::Null, "{record}");
    }
}

#[test]
fn an_engine_that_refuses_the_weights_ends_the_run_with_its_reason() {
    let refuses = |_: &Question| Reply::Is(r#"{"success": false, "message": "no such folder"}"#);
    let engine = ChatEndpoint::start(refuses);
    Experiment::tiny()
        .without("sft")
        .with("external_engine.url", engine.url())
        .try_train("run", &[])
        .refused_with(&["the external engine has no weights", "no such folder"]);
}
