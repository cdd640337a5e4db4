//! SFT, then RL, with a real policy of a few thousand parameters and rollouts of a game that needs no tools. A run
//! that is killed at any point and resumed equals one that was not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use candle_core::Device;
use rlf_dialogue::group::Group;
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::score::{Excluded, ExclusionCause, Score};
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::{CallToken, MaskedTokens, TrainingSequence, Trajectory};
use rlf_policy::{
    Decoder, Draw, DrawKey, Entry, Key, Model, PackedBatch, PassOptions, Purpose, Qwen3Config,
    Sampler, SamplingParams, Sequence,
};
use rlf_train::config::{
    AdaptiveKl, Algorithm, CheckpointConfig, CriticConfig, GuardsConfig, OptimizerConfig,
    ReplayBufferConfig, RlConfig, SftConfig,
};
use rlf_train::curriculum::{Curriculum, CurriculumConfig};
use rlf_train::loss::Aggregation;
use rlf_train::metrics::MetricsLine;
use rlf_train::observer::{NextStep, Observer, Seen, StepDone, Unobserved};
use rlf_train::phase::{Phase, PhaseEnd};
use rlf_train::rollouts::{BoxError, DemonstrationSource, Experience, Play, Rollouts};
use rlf_train::run::{Checkpoint, RunDirectory, RunSpec};
use rlf_train::{rl, sft};
use serde_json::{Value, json};

const VOCAB: usize = 32;
const SEED: u64 = 3;

fn tiny() -> Model {
    let config = Qwen3Config {
        vocab_size: VOCAB,
        hidden_size: 16,
        intermediate_size: 32,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 8,
        max_position_embeddings: 64,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        initializer_range: 0.05,
    };
    Model::init(&config, SEED, &Device::Cpu).unwrap()
}

fn ids(key: Key, n: usize) -> Vec<u32> {
    (0..n as u64)
        .map(|i| key.below(i, VOCAB as u64) as u32)
        .collect()
}

/// Demonstrations of counting.
struct Counting;

#[async_trait]
impl DemonstrationSource for Counting {
    async fn batch(&mut self, step: u64, size: usize) -> Result<Vec<MaskedTokens>, BoxError> {
        (0..size as u64)
            .map(|i| {
                let first = Key::new(SEED, Purpose::Test).at(step).at(i).below(0, 20) as u32;
                let sequence: TrainingSequence = serde_json::from_value(json!([
                    {"prompt": [first]},
                    {"model": {"demonstrated": {"ids": [first + 1, first + 2]}}},
                    {"observation": [0, 0]},
                    {"model": {"demonstrated": {"ids": [first + 3]}}},
                ]))?;
                Ok(sequence.masked()?)
            })
            .collect()
    }
}

/// The mean negative log-probability of the observations of [`Counting`]: two tokens 0 after three others.
fn loss_of_observations(model: &Model) -> f32 {
    let ids: Vec<u32> = vec![5, 6, 7, 0, 0, 8];
    let mask = [false, false, false, true, true, false];
    let sequence = Sequence {
        ids: &ids,
        mask: &mask,
    };
    let batch = PackedBatch::new(&[sequence]).unwrap();
    let tokens = model.log_probs(&[batch], &PassOptions::default()).unwrap();
    let log_probs = tokens[0].log_probs.to_vec1::<f32>().unwrap();
    -log_probs.iter().sum::<f32>() / 2.0
}

/// Two turns sampled from the policy with an observation between; even ids are rewarded.
#[derive(Clone)]
struct EvenGame {
    temperature: f32,
    groups: u64,
    samples: u64,
    /// Draws the tasks, if there is one.
    curriculum: Option<Curriculum>,
}

impl EvenGame {
    fn trajectory(&self, policy: &Model, step: u64, task: u64, sample: u64) -> Trajectory {
        let question = Key::new(SEED, Purpose::Test).at(step).at(task);
        let (prompt, observation) = (ids(question, 3), ids(question.at(sample), 2));
        let lengths = Key::new(SEED, Purpose::Test).at(task).at(sample);
        let params = SamplingParams {
            temperature: self.temperature,
            ..SamplingParams::default()
        };
        let sampler = Sampler::new(params, SEED, Purpose::Rollout).unwrap();
        let mut decoder = Decoder::new(policy, 64, 64, 1).unwrap();
        let (mut start, mut next) = (0, prompt.clone());
        let mut sample_turn = |append: &[u32], n: u64| -> (Vec<u32>, Vec<f32>) {
            next.extend_from_slice(append);
            let turn = (0..n).map(|_| {
                let entry = Entry {
                    sequence: 0,
                    start,
                    tokens: &next,
                };
                let position = (start + next.len()) as u64;
                let key = DrawKey {
                    step,
                    task,
                    sample,
                    position,
                };
                let draw = Some(Draw { sampler, key });
                let drawn = decoder.sample(policy, &[entry], &[draw]).unwrap();
                let drawn = drawn[0].unwrap();
                start += next.len();
                next = vec![drawn.id];
                (drawn.id, drawn.log_prob)
            });
            turn.unzip()
        };
        let (first, first_log_probs) = sample_turn(&[], 1 + lengths.below(0, 4));
        let (second, second_log_probs) = sample_turn(&observation, 1 + lengths.below(1, 3));
        serde_json::from_value(json!({
            "id": format!("{step}/{task}/{sample}"),
            "task": format!("task-{task}"),
            "tools": [],
            "events": [{"outcome": {
                "call-id": format!("{step}/{task}/{sample}/0/0"), "name": "lookup", "ended": "ok",
                "fault": "model", "observation": null, "wall-us": 5,
            }}],
            "sequences": [[
                {"prompt": prompt},
                {"model": {"sampled": {"ids": first, "log_probs": first_log_probs}}},
                {"observation": observation},
                {"model": {"sampled": {"ids": second, "log_probs": second_log_probs}}},
            ]],
            "answer": null,
            "finish": "answered",
            "excluded": null,
            "closed_turns": 0,
        }))
        .unwrap()
    }

    fn experience(&self, policy: &Model, step: u64) -> Experience {
        let drawn = match &self.curriculum {
            None => Vec::new(),
            Some(curriculum) => curriculum.draw(step, self.groups as usize),
        };
        let tasks: Vec<u64> = match &self.curriculum {
            None => (0..self.groups).collect(),
            Some(_) => drawn.iter().map(|draw| draw.task as u64).collect(),
        };
        let groups: Vec<Group> = tasks
            .into_iter()
            .map(|task| {
                let trajectories: Vec<Trajectory> = (0..self.samples)
                    .map(|sample| self.trajectory(policy, step, task, sample))
                    .collect();
                let scores = trajectories
                    .iter()
                    .enumerate()
                    .map(|(sample, trajectory)| {
                        if (task, sample) == (0, 1) {
                            return Err(Excluded {
                                reason: "the judge was unavailable".into(),
                                cause: ExclusionCause::Reward,
                            });
                        }
                        let tokens = trajectory.sequences[0].sampled().unwrap();
                        let seen = tokens
                            .ids
                            .iter()
                            .zip(tokens.mask.as_slice())
                            .filter(|(_, m)| **m);
                        let even = seen.filter(|(id, _)| **id % 2 == 0).count();
                        let reward = even as f64 / tokens.mask.count() as f64;
                        Ok(Score {
                            reward,
                            success: reward > 0.5,
                            terms: vec![("even.share".into(), reward)],
                            ..Score::default()
                        })
                    })
                    .collect();
                let task = Task {
                    id: format!("task-{task}"),
                    source: "random".into(),
                    prompt: vec![Message::text(Role::User, "?")],
                    tools: None,
                    reference: Value::Null,
                    environment: None,
                    setup: Value::Null,
                    extra: serde_json::Map::new(),
                };
                Group {
                    task: Arc::new(task),
                    trajectories,
                    scores,
                    baseline: Some(0.5),
                }
            })
            .collect();
        let mut metrics = vec![("tool_wait_share".into(), 0.25)];
        if let Some(curriculum) = &self.curriculum {
            metrics.extend(curriculum.metrics(step, &drawn, &groups));
        }
        Experience {
            groups,
            metrics,
            played: None,
        }
    }
}

impl Rollouts for EvenGame {
    fn play(&mut self, step: u64, policy: Arc<Model>, _weights: u64) -> Play {
        // Later steps of the curriculum do not change what this step draws.
        let game = self.clone();
        Box::pin(async move { Ok(game.experience(&policy, step)) })
    }

    fn learn(&mut self, step: u64, experience: &mut Experience) -> Option<Value> {
        let curriculum = self.curriculum.as_mut()?;
        curriculum.learn(step, &experience.groups);
        Some(curriculum.state())
    }

    fn resume(&mut self, state: &Value) -> Result<(), BoxError> {
        if let Some(curriculum) = &mut self.curriculum {
            curriculum.resume(state)?;
        }
        Ok(())
    }
}

fn play() -> EvenGame {
    EvenGame {
        temperature: 1.0,
        groups: 3,
        samples: 4,
        curriculum: None,
    }
}

/// The game with a curriculum over ten tasks.
fn play_with_curriculum() -> EvenGame {
    let tasks = (0..10).map(|task| (format!("task-{task}"), format!("level {}", task % 2)));
    let curriculum = Curriculum::new(CurriculumConfig::default(), SEED, tasks);
    EvenGame {
        curriculum: Some(curriculum),
        ..play()
    }
}

fn sft_config() -> SftConfig {
    SftConfig {
        steps: 4,
        batch_size: 6,
        micro_batch_tokens: 16,
        workers: Some(2),
        optimizer: OptimizerConfig {
            learning_rate: 1e-2,
            warmup_steps: 2,
            ..OptimizerConfig::default()
        },
        ..SftConfig::default()
    }
}

fn rl_config() -> RlConfig {
    RlConfig {
        steps: 5,
        mini_batches: 2,
        epochs: 2,
        kl_coefficient: 0.01,
        micro_batch_tokens: 24,
        workers: Some(2),
        optimizer: OptimizerConfig {
            learning_rate: 5e-3,
            ..OptimizerConfig::default()
        },
        ..RlConfig::default()
    }
}

const KEEP: CheckpointConfig = CheckpointConfig {
    every: 2,
    keep_last: 2,
    trajectories_every: 1,
    keep_best: false,
};

/// Fails right after a step, like a kill: the step's metrics and trajectories are written, its checkpoint is not.
struct KillAfter(Phase, u64);

#[async_trait]
impl Observer for KillAfter {
    async fn after_step(&mut self, done: StepDone<'_>) -> Result<Seen, BoxError> {
        if (done.phase, done.step) == (self.0, self.1) {
            Err("killed".into())
        } else {
            Ok(Seen::default())
        }
    }
}

/// Runs both phases, from the beginning or from the run's last state.
fn run(folder: &Path, resume: bool, observer: &mut dyn Observer) -> Result<PhaseEnd, String> {
    run_with(folder, resume, &mut play(), observer)
}

/// As [`run`], with rollouts of the caller's.
fn run_with(
    folder: &Path,
    resume: bool,
    rollouts: &mut dyn Rollouts,
    observer: &mut dyn Observer,
) -> Result<PhaseEnd, String> {
    run_as(folder, resume, rollouts, observer, &rl_config(), &KEEP)
}

/// As [`run_with`], with settings of the caller's.
fn run_as(
    folder: &Path,
    resume: bool,
    rollouts: &mut dyn Rollouts,
    observer: &mut dyn Observer,
    rl: &RlConfig,
    keep: &CheckpointConfig,
) -> Result<PhaseEnd, String> {
    run_from(
        folder,
        resume.then_some(false),
        rollouts,
        observer,
        rl,
        keep,
    )
}

/// As [`run_as`]. A resumed run may allow changes.
fn run_from(
    folder: &Path,
    resume: Option<bool>,
    rollouts: &mut dyn Rollouts,
    observer: &mut dyn Observer,
    rl: &RlConfig,
    keep: &CheckpointConfig,
) -> Result<PhaseEnd, String> {
    let spec = RunSpec {
        config_toml: "seed = 3".into(),
        ..RunSpec::default()
    };
    let (mut run, checkpoint) = if let Some(allow_changes) = resume {
        let resumed = RunDirectory::resume(folder, &spec, keep.clone(), allow_changes).unwrap();
        (resumed.run, resumed.checkpoint)
    } else {
        (
            RunDirectory::create(folder, &spec, keep.clone()).unwrap(),
            None,
        )
    };
    let mut model = match &checkpoint {
        Some(checkpoint) => Model::load(&checkpoint.path, &Device::Cpu).unwrap(),
        None => tiny(),
    };
    let resumed = checkpoint.as_ref();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let end = sft::train(
            &sft_config(),
            SEED,
            &mut model,
            &mut Counting,
            &mut run,
            resumed,
            observer,
        )
        .await
        .map_err(|e| e.to_string())?;
        if end == PhaseEnd::Interrupted {
            return Ok(end);
        }
        rl::train(rl, SEED, &mut model, rollouts, &mut run, resumed, observer)
            .await
            .map_err(|e| e.to_string())
    })
}

/// Every file of the last checkpoint, every trajectory, and all metrics except times.
fn remains(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut remains = BTreeMap::new();
    let mut places: Vec<String> = ["checkpoints/latest", "trajectories", "reference"]
        .map(str::to_owned)
        .into();
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(folder.join(&place)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{place}/{}", path.file_name().unwrap().to_string_lossy());
            if path.is_dir() {
                places.push(name);
            } else if !name.ends_with("trainer.json") {
                remains.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    remains.insert(
        "metrics".into(),
        lines(folder)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
            .into(),
    );
    remains
}

fn lines(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    text.lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let fields = line.as_object_mut().unwrap();
            fields.retain(|name, _| !name.ends_with("_s"));
            line
        })
        .collect()
}

/// Makes a run in `folder/whole` that nothing kills, and one for each of these steps that is killed after it and then
/// resumed. All of them leave the same behind. Returns the folder of the first, and what it left.
fn killed_and_resumed(
    folder: &Path,
    steps: impl IntoIterator<Item = (Phase, u64)>,
    run: impl Fn(&Path, bool, &mut dyn Observer) -> Result<PhaseEnd, String>,
) -> (PathBuf, BTreeMap<String, Vec<u8>>) {
    let path = folder.join("whole");
    assert_eq!(run(&path, false, &mut Unobserved), Ok(PhaseEnd::Finished));
    let whole = remains(&path);
    for (phase, step) in steps {
        let killed = folder.join(format!("killed-{phase}-{step}"));
        let error = run(&killed, false, &mut KillAfter(phase, step)).unwrap_err();
        assert_eq!(error, format!("after {phase} step {step}: killed"));
        assert_eq!(run(&killed, true, &mut Unobserved), Ok(PhaseEnd::Finished));
        let resumed = remains(&killed);
        let names = whole.keys().chain(resumed.keys());
        let differs: BTreeSet<&String> = names
            .filter(|name| resumed.get(*name) != whole.get(*name))
            .collect();
        assert!(
            differs.is_empty(),
            "{differs:?} after a kill at {phase} step {step} in {}",
            folder.display()
        );
    }
    (path, whole)
}

/// The steps of RL in these runs.
fn rl_steps() -> impl Iterator<Item = (Phase, u64)> {
    (1..=5).map(|step| (Phase::Rl, step))
}

/// The error of resuming the run in `path`.
fn resuming_fails(path: &Path) -> String {
    let spec = RunSpec {
        config_toml: "seed = 3".into(),
        ..RunSpec::default()
    };
    let error = RunDirectory::resume(path, &spec, KEEP, false).unwrap_err();
    error.to_string()
}

#[test]
fn a_run_killed_at_any_step_and_resumed_is_the_one_that_was_not() {
    let folder = tempfile::tempdir().unwrap();
    let steps = (1..=4).map(|step| (Phase::Sft, step)).chain(rl_steps());
    let (_, whole) = killed_and_resumed(folder.path(), steps, run);
    assert!(
        whole.contains_key("checkpoints/latest/optimizer.safetensors"),
        "{:?}",
        whole.keys()
    );
    let trajectories = whole
        .keys()
        .filter(|name| name.starts_with("trajectories/"));
    assert_eq!(trajectories.count(), 5);
}

#[test]
fn a_run_with_a_curriculum_killed_at_any_step_and_resumed_is_the_one_that_was_not() {
    let folder = tempfile::tempdir().unwrap();
    let run = |path: &Path, resume: bool, observer: &mut dyn Observer| {
        run_with(path, resume, &mut play_with_curriculum(), observer)
    };
    let (path, whole) = killed_and_resumed(folder.path(), rl_steps(), run);
    assert!(whole.contains_key("checkpoints/latest/rollouts.json"));
    let drawn: Vec<Value> = lines(&path)
        .into_iter()
        .filter(|line| line["phase"] == "rl")
        .map(|line| line["curriculum/estimate"].clone())
        .collect();
    assert_eq!((drawn.len(), &drawn[0]), (5, &json!(0.5)));
    assert!(
        drawn[1..].iter().all(|estimate| *estimate != 0.5),
        "{drawn:?}"
    );
    // A state whose byte changed on the disk is noticed.
    let state = path.join("checkpoints/rl-000005/rollouts.json");
    let text = fs::read_to_string(&state).unwrap();
    fs::remove_file(&state).unwrap();
    fs::write(&state, text.replacen("\"step\":4", "\"step\":3", 1)).unwrap();
    let error = resuming_fails(&path);
    assert!(error.contains("rollouts.json"), "{error}");
}

/// [`rl_config`] with older weights that play, and the correction for them.
fn stale_config(staleness: u64) -> RlConfig {
    RlConfig {
        staleness,
        importance_cap: Some(2.0),
        ..rl_config()
    }
}

#[test]
fn a_run_with_staleness_killed_at_any_step_and_resumed_is_the_one_that_was_not() {
    let folder = tempfile::tempdir().unwrap();
    // Draws depend on what was learnt, so the state of earlier steps counts, too.
    let game = play_with_curriculum;
    for staleness in [1, 2] {
        let config = stale_config(staleness);
        let run = |path: &Path, resume: bool, observer: &mut dyn Observer| {
            run_as(path, resume, &mut game(), observer, &config, &KEEP)
        };
        let folder = folder.path().join(staleness.to_string());
        let (path, whole) = killed_and_resumed(&folder, rl_steps(), run);
        let older = whole.keys().filter(|name| name.contains("/older/"));
        let weights = older.filter(|name| name.ends_with("model.safetensors"));
        assert_eq!(weights.count() as u64, staleness);
        // A byte of older weights that changed on the disk is noticed.
        let older = path.join("checkpoints/rl-000005/older/000004/model.safetensors");
        let mut bytes = fs::read(&older).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&older, bytes).unwrap();
        let error = resuming_fails(&path);
        assert!(error.contains("older/000004/model.safetensors"), "{error}");
    }
}

#[test]
fn a_run_with_a_replay_buffer_killed_at_any_step_and_resumed_is_the_one_that_was_not() {
    let folder = tempfile::tempdir().unwrap();
    for staleness in [0, 1] {
        let config = RlConfig {
            replay_buffer: Some(ReplayBufferConfig {
                groups_per_step: 2,
                max_age: 3,
            }),
            staleness,
            importance_cap: (staleness > 0).then_some(2.0),
            ..rl_config()
        };
        let run = |path: &Path, resume: bool, observer: &mut dyn Observer| {
            run_as(path, resume, &mut play(), observer, &config, &KEEP)
        };
        let folder = folder.path().join(staleness.to_string());
        let (path, whole) = killed_and_resumed(&folder, rl_steps(), run);
        let rl = lines(&path)
            .into_iter()
            .filter(|line| line["phase"] == "rl");
        for (step, line) in rl.enumerate() {
            // The clipped ratio of replayed tokens is to the policy at the start of the step, too.
            assert_eq!(line["ratio_deviation"], 0.0, "{line}");
            if step == 0 {
                assert_eq!(line["replayed_groups"], 0, "{line}");
                assert!(line["replay_age"].is_null(), "{line}");
                continue;
            }
            assert_eq!(line["replayed_groups"], 2, "{line}");
            assert_eq!(line["replay_age"], 1.0, "{line}");
            assert!(line["replay_mismatch"].as_f64() > Some(1e-4), "{line}");
        }
        assert!(whole.contains_key("checkpoints/latest/replay.json"));
        // A byte that changed on the disk is noticed.
        let kept = path.join("checkpoints/rl-000005/replay.json");
        let changed = fs::read_to_string(&kept)
            .unwrap()
            .replacen("task-", "task_", 1);
        fs::write(&kept, changed).unwrap();
        let error = resuming_fails(&path);
        assert!(error.contains("rl-000005/replay.json"), "{error}");
    }
}

#[test]
fn a_resumed_run_without_the_policy_that_rl_began_with_is_refused_and_takes_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    run(&path, false, &mut KillAfter(Phase::Rl, 3)).unwrap_err();
    fs::remove_dir_all(path.join("reference")).unwrap();
    let error = run(&path, true, &mut Unobserved).unwrap_err();
    assert!(error.contains("reference is missing"), "{error}");
    assert!(!path.join("reference").exists());
}

#[test]
fn a_step_is_played_with_the_weights_of_earlier_steps_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let keep = CheckpointConfig {
        every: 1,
        keep_last: 100,
        ..KEEP
    };
    for staleness in [0, 1, 2] {
        let path = folder.path().join(staleness.to_string());
        let config = stale_config(staleness);
        let ended = run_as(&path, false, &mut play(), &mut Unobserved, &config, &keep);
        assert_eq!(ended, Ok(PhaseEnd::Finished));
        let after = |steps: u64| {
            let checkpoint = if steps == 0 {
                "sft-000004".to_owned()
            } else {
                format!("rl-{steps:06}")
            };
            Model::load(&path.join("checkpoints").join(checkpoint), &Device::Cpu).unwrap()
        };
        let lines = lines(&path);
        let lines = lines.iter().filter(|line| line["phase"] == "rl");
        for (step, line) in (0_u64..5).zip(lines) {
            let weights = step.saturating_sub(staleness);
            let played = trajectories(&path, step);
            assert!(has_log_probs_of(&played, &after(weights)), "step {step}");
            assert_eq!(
                has_log_probs_of(&played, &after(step)),
                weights == step,
                "step {step}"
            );
            let mismatch = line["importance_mismatch"].as_f64().unwrap();
            assert_eq!(mismatch > 0.0, weights < step, "{line}");
            // The ratio of the loss is to the policy at the start of the step.
            assert_eq!(line["ratio_deviation"], 0.0, "{line}");
            let metric = line.get("staleness").and_then(Value::as_f64);
            assert_eq!(metric, (staleness > 0).then_some((step - weights) as f64));
        }
    }
}

/// The trajectories of a step, counted from 0.
fn trajectories(run: &Path, step: u64) -> Vec<Trajectory> {
    let file = run.join(format!("trajectories/rl-{:06}.jsonl", step + 1));
    let text = fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            serde_json::from_value(record["trajectory"].take()).unwrap()
        })
        .collect()
}

/// True if the recorded log-probabilities are those of this policy, bit for bit.
fn has_log_probs_of(trajectories: &[Trajectory], policy: &Model) -> bool {
    trajectories.iter().all(|trajectory| {
        let tokens = trajectory.sequences[0].sampled().unwrap();
        let mask = tokens.mask.as_slice();
        let sequence = Sequence {
            ids: &tokens.ids,
            mask,
        };
        let batch = PackedBatch::new(&[sequence]).unwrap();
        let computed = policy.log_probs(&[batch], &PassOptions::default()).unwrap();
        let computed = computed[0].log_probs.to_vec1::<f32>().unwrap();
        let recorded = tokens.log_probs.iter().zip(mask);
        let recorded = recorded.filter_map(|(log_prob, seen)| seen.then_some(*log_prob));
        computed == recorded.collect::<Vec<f32>>()
    })
}

#[test]
fn the_first_step_is_the_same_with_any_staleness() {
    let folder = tempfile::tempdir().unwrap();
    let first_step = |staleness: u64, importance_cap: Option<f64>| {
        let path = folder.path().join(staleness.to_string());
        let config = RlConfig {
            steps: 1,
            staleness,
            importance_cap,
            ..rl_config()
        };
        let ended = run_as(&path, false, &mut play(), &mut Unobserved, &config, &KEEP);
        assert_eq!(ended, Ok(PhaseEnd::Finished));
        let mut line = lines(&path).pop().unwrap();
        let fields = line.as_object_mut().unwrap();
        let of_staleness = ["staleness", "importance_mismatch", "importance_capped"];
        let of_staleness = of_staleness.map(|name| fields.remove(name));
        let mut remains = remains(&path);
        remains.retain(|name, _| !name.contains("/older/") && !name.ends_with("BLAKE3SUMS"));
        remains.remove("metrics");
        (remains, line, of_staleness)
    };
    let (in_turn, line, none) = first_step(0, None);
    assert_eq!(none, [None, None, None]);
    for staleness in [1, 2] {
        let (ahead, same_line, of_staleness) = first_step(staleness, Some(2.0));
        assert!(ahead == in_turn, "with staleness {staleness}");
        assert_eq!(same_line, line);
        assert_eq!(of_staleness, [0.0, 0.0, 0.0].map(|x| Some(json!(x))));
    }
}

#[test]
fn an_abandoned_step_with_staleness_is_discarded_and_so_are_the_steps_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let config = stale_config(2);
    let run = |path: &Path, resume: bool, observer: &mut dyn Observer| {
        run_as(path, resume, &mut play(), observer, &config, &KEEP)
    };
    let whole = folder.path().join("whole");
    assert_eq!(run(&whole, false, &mut Unobserved), Ok(PhaseEnd::Finished));
    let whole = remains(&whole);
    // As without staleness, the weights before the step are saved while they are still there.
    for (most, newest) in [(0, "rl-000003"), (1, "rl-000003"), (2, "rl-000002")] {
        let stopped = folder.path().join(format!("stopped-{most}"));
        let mut observer = AbandonAt {
            steps: 0,
            asked: 0.into(),
            most,
        };
        let ended = run(&stopped, false, &mut observer);
        assert_eq!(ended, Ok(PhaseEnd::Interrupted));
        let latest = fs::read_link(stopped.join("checkpoints/latest")).unwrap();
        assert_eq!(latest, Path::new(newest), "{most}");
        assert_eq!(run(&stopped, true, &mut Unobserved), Ok(PhaseEnd::Finished));
        assert!(remains(&stopped) == whole, "{most}");
    }
}

#[test]
fn a_play_ahead_that_fails_ends_its_own_step() {
    struct FailAt(u64);
    impl Rollouts for FailAt {
        fn play(&mut self, step: u64, policy: Arc<Model>, weights: u64) -> Play {
            if step == self.0 {
                let broken: Result<Experience, BoxError> = Err("the game is broken".into());
                return Box::pin(std::future::ready(broken));
            }
            play().play(step, policy, weights)
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let error = run_as(
        &path,
        false,
        &mut FailAt(3),
        &mut Unobserved,
        &stale_config(2),
        &KEEP,
    );
    let said = "rollouts of RL step 4: the game is broken";
    assert_eq!(error, Err(said.to_owned()));
    // The steps before it are done.
    assert_eq!(lines(&path).last().unwrap()["step"], 3);
}

#[test]
fn a_loss_that_is_no_number_stops_the_run_and_its_last_checkpoint_is_good() {
    /// Breaks a weight after it has played a step.
    struct Breaking(u64);
    impl Rollouts for Breaking {
        fn play(&mut self, step: u64, policy: Arc<Model>, weights: u64) -> Play {
            let played = play().play(step, policy.clone(), weights);
            let breaks = step == self.0;
            Box::pin(async move {
                let experience = played.await?;
                if let Some((_, weights)) = policy.parameters().next().filter(|_| breaks) {
                    weights.set(&(weights.as_tensor() * f64::NAN)?)?;
                }
                Ok(experience)
            })
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let [whole, broken] = ["whole", "broken"].map(|name| folder.path().join(name));
    run(&whole, false, &mut Unobserved).unwrap();
    let error = run_with(&broken, false, &mut Breaking(3), &mut Unobserved).unwrap_err();
    assert!(
        error.starts_with("rl step 4: the loss is NaN; lower `rl.optimizer.learning_rate`"),
        "{error}"
    );
    let latest = fs::read_link(broken.join("checkpoints/latest")).unwrap();
    assert_eq!(latest, Path::new("rl-000002"));
    assert_eq!(run(&broken, true, &mut Unobserved), Ok(PhaseEnd::Finished));
    assert!(remains(&broken) == remains(&whole));
}

/// The game, but all of a group's trajectories have the same reward: 1 in the first group, 0 in the others if they differ.
/// So has the greedy trajectory.
struct AllAlike {
    groups_differ: bool,
}

impl Rollouts for AllAlike {
    fn play(&mut self, step: u64, policy: Arc<Model>, weights: u64) -> Play {
        let played = play().play(step, policy, weights);
        let last = if self.groups_differ { 0.0 } else { 1.0 };
        Box::pin(async move {
            let mut experience = played.await?;
            for (index, group) in experience.groups.iter_mut().enumerate() {
                let reward = if index == 0 { 1.0 } else { last };
                for score in group.scores.iter_mut().flatten() {
                    score.reward = reward;
                }
                group.baseline = Some(reward);
            }
            Ok(experience)
        })
    }
}

#[test]
fn rewards_that_tell_nothing_apart_stop_every_algorithm_whatever_else_its_loss_has() {
    let plain = RlConfig {
        kl_coefficient: 0.0,
        guards: GuardsConfig {
            max_idle_steps: 2,
            ..GuardsConfig::default()
        },
        ..rl_config()
    };
    let with_algorithm = |algorithm| RlConfig {
        algorithm,
        ..plain.clone()
    };
    let with_kl = |config: RlConfig| RlConfig {
        kl_coefficient: 0.01,
        ..config
    };
    let with_entropy = RlConfig {
        entropy_coefficient: 0.01,
        ..plain.clone()
    };
    let cases = [
        ("grpo", plain.clone(), true),
        ("grpo with KL", with_kl(plain.clone()), true),
        ("grpo with entropy", with_entropy, true),
        ("dr-grpo", with_kl(with_algorithm(Algorithm::DrGrpo)), true),
        ("mt-grpo", with_kl(with_algorithm(Algorithm::MtGrpo)), true),
        ("rloo", with_kl(with_algorithm(Algorithm::Rloo)), true),
        ("remax", with_kl(with_algorithm(Algorithm::ReMax)), true),
        (
            "reinforce++-baseline",
            with_kl(with_algorithm(Algorithm::ReinforcePlusPlusBaseline)),
            true,
        ),
        (
            "reinforce++",
            with_kl(with_algorithm(Algorithm::ReinforcePlusPlus)),
            false,
        ),
        ("ppo", with_kl(with_algorithm(Algorithm::Ppo)), false),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, config, compares_groups) in cases {
        let path = folder.path().join(name);
        let played = |resume, groups_differ| {
            let mut alike = AllAlike { groups_differ };
            run_from(&path, resume, &mut alike, &mut Unobserved, &config, &KEEP)
        };
        for resume in [None, Some(false)] {
            let stopped = played(resume, compares_groups).unwrap_err();
            let said = "step 2 is number 2 in a row that teaches nothing";
            assert!(stopped.starts_with(said), "{name}: {stopped}");
        }
        // A run that is told to go on has as many steps again.
        let stopped = played(Some(true), compares_groups).unwrap_err();
        assert!(
            stopped.starts_with("step 4 is number 4"),
            "{name}: {stopped}"
        );
        if !compares_groups {
            // Groups with other rewards teach it something.
            assert_eq!(played(Some(true), true), Ok(PhaseEnd::Finished), "{name}");
        }
    }
}

/// PPO with everything that has a state: a critic, and a weight of the KL that changes.
fn ppo_config() -> RlConfig {
    RlConfig {
        algorithm: Algorithm::Ppo,
        gae_lambda: 0.95,
        adaptive_kl: Some(AdaptiveKl {
            target: 0.001,
            horizon: 100.0,
        }),
        critic: CriticConfig {
            learning_rate: 5e-3,
            ..CriticConfig::default()
        },
        ..rl_config()
    }
}

#[test]
fn a_run_of_ppo_killed_at_any_step_and_resumed_is_the_one_that_was_not() {
    let folder = tempfile::tempdir().unwrap();
    let config = ppo_config();
    let run = |path: &Path, resume: bool, observer: &mut dyn Observer| {
        run_as(path, resume, &mut play(), observer, &config, &KEEP)
    };
    let (path, whole) = killed_and_resumed(folder.path(), rl_steps(), run);
    for file in ["value_head", "value_head_optimizer"] {
        let name = format!("checkpoints/latest/{file}.safetensors");
        assert!(whole.contains_key(&name), "{:?}", whole.keys());
    }
    // Another program loads the checkpoint without its head.
    Model::load(&path.join("checkpoints/latest"), &Device::Cpu).unwrap();
}

#[test]
fn the_critic_of_ppo_learns_and_an_adaptive_weight_of_the_kl_follows_the_kl() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &RunSpec::default(), KEEP).unwrap();
    let config = RlConfig {
        steps: 20,
        ..ppo_config()
    };
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(rl::train(
            &config,
            SEED,
            &mut tiny(),
            &mut play(),
            &mut run,
            None,
            &mut Unobserved,
        ))
        .unwrap();
    let lines = lines(folder.path());
    let number = |step: usize, name: &str| lines[step][name].as_f64().unwrap();
    // The head begins with the value 0, which explains nothing.
    assert!(number(0, "explained_variance").abs() < 1e-6);
    let mean = |steps: std::ops::Range<usize>, name: &str| {
        let count = steps.len() as f64;
        steps.map(|step| number(step, name)).sum::<f64>() / count
    };
    let (before, after) = (mean(0..2, "value_loss"), mean(17..20, "value_loss"));
    assert!(after < before / 2.0, "{before} to {after}");
    for line in &lines {
        assert_eq!(line["ratio_deviation"], 0.0, "{line}");
    }
    assert_eq!(number(0, "kl_coefficient"), 0.01);
    let adaptive = config.adaptive_kl.unwrap();
    for step in 0..19 {
        let wanted = adaptive.next_coefficient(
            number(step, "kl_coefficient"),
            number(step, "kl_sampled"),
            12,
        );
        assert_eq!(number(step + 1, "kl_coefficient"), wanted);
    }
}

#[test]
fn an_interrupted_run_saves_and_goes_on_where_it_stopped() {
    struct StopAt(u64);
    #[async_trait]
    impl Observer for StopAt {
        async fn after_step(&mut self, done: StepDone<'_>) -> Result<Seen, BoxError> {
            let stop = (done.phase, done.step) == (Phase::Rl, self.0);
            Ok(if stop {
                NextStep::Interrupt.into()
            } else {
                Seen::default()
            })
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (whole, stopped) = (folder.path().join("whole"), folder.path().join("stopped"));
    assert_eq!(run(&whole, false, &mut Unobserved), Ok(PhaseEnd::Finished));
    // Step 3 has no regular checkpoint.
    assert_eq!(
        run(&stopped, false, &mut StopAt(3)),
        Ok(PhaseEnd::Interrupted)
    );
    assert!(stopped.join("checkpoints/rl-000003").is_dir());
    assert_eq!(run(&stopped, true, &mut Unobserved), Ok(PhaseEnd::Finished));
    assert!(remains(&whole) == remains(&stopped));
    // A finished run has nothing left to do.
    assert_eq!(
        run(&stopped, true, &mut Unobserved),
        Ok(PhaseEnd::AlreadyDone)
    );
}

/// Abandons RL's step 3 (counted from 0) before the update with a number from 0, or when its trajectories are played.
struct AbandonAt {
    steps: u64,
    /// Questions to be answered with no, of which each step has one more than updates.
    asked: std::sync::atomic::AtomicU64,
    most: u64,
}

#[async_trait]
impl Observer for AbandonAt {
    async fn after_step(&mut self, done: StepDone<'_>) -> Result<Seen, BoxError> {
        if done.phase == Phase::Rl {
            self.steps = done.step;
        }
        Ok(Seen::default())
    }

    async fn step_abandoned(&self) {
        let asked = |all: &std::sync::atomic::AtomicU64| {
            all.fetch_add(1, std::sync::atomic::Ordering::SeqCst)
        };
        if self.steps != 3 || asked(&self.asked) != self.most {
            std::future::pending::<()>().await;
        }
    }
}

#[test]
fn an_abandoned_step_is_discarded_and_repeated_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    assert_eq!(run(&whole, false, &mut Unobserved), Ok(PhaseEnd::Finished));
    let whole = remains(&whole);
    // Two epochs of two mini-batches: questions 0 and 1 come before the first update.
    for most in 0..=4 {
        let stopped = folder.path().join(format!("stopped-{most}"));
        let mut observer = AbandonAt {
            steps: 0,
            asked: 0.into(),
            most,
        };
        assert_eq!(
            run(&stopped, false, &mut observer),
            Ok(PhaseEnd::Interrupted)
        );
        // Step 3 has no regular checkpoint. It is saved while its weights are still there, and else step 2 is kept.
        let newest = fs::read_link(stopped.join("checkpoints/latest")).unwrap();
        let expected = if most <= 1 { "rl-000003" } else { "rl-000002" };
        assert_eq!(newest, Path::new(expected), "{most}");
        assert_eq!(run(&stopped, true, &mut Unobserved), Ok(PhaseEnd::Finished));
        assert!(remains(&stopped) == whole, "{most}");
    }
}

/// A game in which a step never ends.
struct EndlessAt(u64);

impl Rollouts for EndlessAt {
    fn play(&mut self, step: u64, policy: Arc<Model>, weights: u64) -> Play {
        if step == self.0 {
            return Box::pin(std::future::pending());
        }
        play().play(step, policy, weights)
    }
}

#[test]
fn an_abandoned_rollout_is_broken_off_and_its_step_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    assert_eq!(run(&whole, false, &mut Unobserved), Ok(PhaseEnd::Finished));
    let stopped = folder.path().join("stopped");
    let mut observer = AbandonAt {
        steps: 0,
        asked: 0.into(),
        most: 0,
    };
    assert_eq!(
        run_with(&stopped, false, &mut EndlessAt(3), &mut observer),
        Ok(PhaseEnd::Interrupted)
    );
    // Step 3 has no regular checkpoint.
    assert!(stopped.join("checkpoints/rl-000003").is_dir());
    assert_eq!(run(&stopped, true, &mut Unobserved), Ok(PhaseEnd::Finished));
    assert!(remains(&stopped) == remains(&whole));
}

/// The game, with a count of its plays: each has a clone of `under_way` until it is over.
struct CountedPlays {
    game: EvenGame,
    under_way: Arc<()>,
}

impl Rollouts for CountedPlays {
    fn play(&mut self, step: u64, policy: Arc<Model>, weights: u64) -> Play {
        let under_way = Arc::clone(&self.under_way);
        let play = self.game.play(step, policy, weights);
        Box::pin(async move {
            let played = play.await;
            drop(under_way);
            played
        })
    }
}

/// Counts the plays under way at every step of RL that it is shown. Every validation has the same success.
struct CountPlays {
    under_way: Arc<()>,
    /// The run is to stop in the step after this one.
    stopped_after: u64,
    stops: bool,
    /// The step, and the number of plays.
    seen: Vec<(u64, usize)>,
}

#[async_trait]
impl Observer for CountPlays {
    async fn after_step(&mut self, done: StepDone<'_>) -> Result<Seen, BoxError> {
        if done.phase != Phase::Rl {
            return Ok(Seen::default());
        }
        // The game has one, and so has this.
        let plays = Arc::strong_count(&self.under_way) - 2;
        self.seen.push((done.step, plays));
        self.stops = done.step >= self.stopped_after;
        Ok(Seen {
            next: NextStep::Continue,
            validated: done.line.map(|_| 0.5),
        })
    }

    fn stops_run(&self) -> bool {
        self.stops
    }
}

#[test]
fn steps_ahead_are_broken_off_before_the_last_evaluations() {
    let folder = tempfile::tempdir().unwrap();
    let counted = |name: &str, patience: u64, stopped_after: u64| {
        let path = folder.path().join(name);
        let under_way = Arc::new(());
        let mut plays = CountedPlays {
            game: play(),
            under_way: Arc::clone(&under_way),
        };
        let mut observer = CountPlays {
            under_way,
            stopped_after,
            stops: false,
            seen: Vec::new(),
        };
        let config = RlConfig {
            patience,
            ..stale_config(2)
        };
        let end = run_as(&path, false, &mut plays, &mut observer, &config, &KEEP);
        (end, observer.seen)
    };
    // A request to stop comes in step 3. With staleness 2, two steps are under way before.
    let (end, seen) = counted("stopped", 0, 2);
    assert_eq!(end, Ok(PhaseEnd::Interrupted));
    assert_eq!(seen, [(1, 2), (2, 2), (3, 0)]);
    // The validation after step 2 is no better. So the step is the last one, and is shown again.
    let (end, seen) = counted("patience", 1, u64::MAX);
    assert_eq!(end, Ok(PhaseEnd::Finished));
    assert_eq!(seen, [(1, 2), (2, 2), (2, 0)]);

    // The run that was stopped goes on as if it had not been.
    let (stopped, whole) = (folder.path().join("stopped"), folder.path().join("whole"));
    let run = |path: &Path, resume: bool| {
        let config = stale_config(2);
        run_as(path, resume, &mut play(), &mut Unobserved, &config, &KEEP)
    };
    assert_eq!(run(&whole, false), Ok(PhaseEnd::Finished));
    assert_eq!(run(&stopped, true), Ok(PhaseEnd::Finished));
    assert!(remains(&stopped) == remains(&whole));
}

/// Writes two lines after every step, and abandons one step between them.
struct EvaluateTwice(Option<(Phase, u64)>);

#[async_trait]
impl Observer for EvaluateTwice {
    async fn after_step(&mut self, done: StepDone<'_>) -> Result<Seen, BoxError> {
        let line =
            |split: &str| MetricsLine::new(done.phase, done.step).value("split", split.into());
        done.metrics.write(&line("validation"))?;
        if self.0 == Some((done.phase, done.step)) {
            return Ok(NextStep::Abandon.into());
        }
        done.metrics.write(&line("test"))?;
        Ok(Seen::default())
    }
}

#[test]
fn a_step_whose_evaluation_was_broken_off_is_kept_and_evaluated_again() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    assert_eq!(
        run(&whole, false, &mut EvaluateTwice(None)),
        Ok(PhaseEnd::Finished)
    );
    let whole = remains(&whole);
    // Between two regular checkpoints, at one, and at the end of each phase.
    for (phase, step) in [
        (Phase::Sft, 1),
        (Phase::Sft, 4),
        (Phase::Rl, 2),
        (Phase::Rl, 3),
        (Phase::Rl, 5),
    ] {
        let stopped = folder.path().join(format!("stopped-{phase}-{step}"));
        let mut observer = EvaluateTwice(Some((phase, step)));
        let newest = format!("{phase}-{step:06}");
        for resume in [false, true] {
            assert_eq!(
                run(&stopped, resume, &mut observer),
                Ok(PhaseEnd::Interrupted)
            );
            let latest = fs::read_link(stopped.join("checkpoints/latest")).unwrap();
            assert_eq!(latest, Path::new(&newest));
        }
        assert_eq!(
            run(&stopped, true, &mut EvaluateTwice(None)),
            Ok(PhaseEnd::Finished)
        );
        assert!(remains(&stopped) == whole, "{newest}");
        assert_eq!(
            run(&stopped, true, &mut EvaluateTwice(None)),
            Ok(PhaseEnd::AlreadyDone)
        );
    }
}

#[test]
fn the_first_ratio_of_every_step_is_exactly_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    run(&path, false, &mut Unobserved).unwrap();
    let rl: Vec<Value> = lines(&path)
        .into_iter()
        .filter(|line| line["phase"] == "rl")
        .collect();
    assert_eq!(rl.len(), 5);
    for line in &rl {
        assert_eq!(line["ratio_deviation"], 0.0, "{line}");
        // Two epochs of two mini-batches: later updates are off-policy, and the metrics show it.
        assert_eq!(line["updates"], 4);
        assert!(line["kl"].as_f64().unwrap() > 0.0);
    }
    // Before the first update the policy equals its reference.
    assert!(rl[4]["kl_reference"].as_f64().unwrap() > rl[0]["kl_reference"].as_f64().unwrap());
}

#[test]
fn a_step_of_rl_tells_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    run(&path, false, &mut Unobserved).unwrap();
    let line = lines(&path)
        .into_iter()
        .find(|line| line["phase"] == "rl")
        .unwrap();
    assert_eq!(line["calls"], json!({"lookup": {"ok": 12}}));
    assert_eq!(line["finish"], json!({"answered": 12}));
    assert_eq!(
        line["excluded_reasons"],
        json!({"the judge was unavailable": 1})
    );
    assert!((line["excluded"].as_f64().unwrap() - 1.0 / 12.0).abs() < 1e-12);
    assert_eq!(line["observation_tokens"], 2.0);
    assert_eq!(line["tool_wait_share"], 0.25);
    assert_eq!(line["reward"], line["reward/even.share"]);
    for name in [
        "success",
        "entropy",
        "clip_fraction",
        "grad_norm",
        "learning_rate",
        "loss",
    ] {
        assert!(line[name].is_number(), "{name} is missing: {line}");
    }
    assert!(line["success_by_kind"]["random"].is_number());
    let records = fs::read_to_string(path.join("trajectories/rl-000001.jsonl")).unwrap();
    let records: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 12);
    assert_eq!(records[1]["excluded"], "the judge was unavailable");
    assert_eq!(
        records[0]["trajectory"]["events"][0]["outcome"]["ended"],
        "ok"
    );
}

#[test]
fn supervised_training_learns_what_was_demonstrated() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunDirectory::create(folder.path(), &RunSpec::default(), KEEP).unwrap();
    let config = SftConfig {
        steps: 60,
        batch_size: 16,
        ..sft_config()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime
        .block_on(sft::train(
            &config,
            SEED,
            &mut tiny(),
            &mut Counting,
            &mut run,
            None,
            &mut Unobserved,
        ))
        .unwrap();
    let losses: Vec<f64> = lines(folder.path())
        .iter()
        .map(|l| l["loss"].as_f64().unwrap())
        .collect();
    // ln 32 = 3.47 is the loss of a policy that knows nothing.
    assert!(
        losses[0] > 3.0 && losses[59] < 1.5,
        "{} {}",
        losses[0],
        losses[59]
    );
}

/// [`Counting`], whose first model token is the name of a tool, and the next one its arguments.
struct CountingCalls;

#[async_trait]
impl DemonstrationSource for CountingCalls {
    async fn batch(&mut self, step: u64, size: usize) -> Result<Vec<MaskedTokens>, BoxError> {
        let mut batch = Counting.batch(step, size).await?;
        for tokens in &mut batch {
            tokens.calls = vec![CallToken::Outside; tokens.ids.len()];
            tokens.calls[1] = CallToken::Name;
            tokens.calls[2] = CallToken::Arguments;
        }
        Ok(batch)
    }
}

#[test]
fn the_loss_of_sft_is_a_mean_by_the_weights_of_names_and_arguments() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for (name, arguments) in [(1.0, 1.0), (3.0, 1.0), (2.5, 0.5), (0.0, 0.0)] {
        let folder = tempfile::tempdir().unwrap();
        let mut run = RunDirectory::create(folder.path(), &RunSpec::default(), KEEP).unwrap();
        let config = SftConfig {
            steps: 1,
            tool_name_weight: name,
            arguments_weight: arguments,
            ..sft_config()
        };
        let model = tiny();
        let batch = runtime
            .block_on(CountingCalls.batch(0, config.batch_size))
            .unwrap();
        let (mut sum, mut total) = (0.0, 0.0);
        for tokens in &batch {
            let sequence = Sequence {
                ids: &tokens.ids,
                mask: tokens.mask.as_slice(),
            };
            let packed = PackedBatch::new(&[sequence]).unwrap();
            let log_probs = model.log_probs(&[packed], &PassOptions::default()).unwrap();
            let log_probs = log_probs[0].log_probs.to_vec1::<f32>().unwrap();
            for (log_prob, weight) in log_probs.iter().zip([name, arguments, 1.0]) {
                sum -= weight * f64::from(*log_prob);
                total += weight;
            }
        }
        let mut model = tiny();
        let ended = runtime.block_on(sft::train(
            &config,
            SEED,
            &mut model,
            &mut CountingCalls,
            &mut run,
            None,
            &mut Unobserved,
        ));
        assert_eq!(ended.unwrap(), PhaseEnd::Finished);
        let loss = lines(folder.path())[0]["loss"].as_f64().unwrap();
        assert!(
            (loss - sum / total).abs() < 1e-5,
            "{name} {arguments}: {loss}"
        );
    }
}

#[test]
fn tokens_that_are_read_are_learned_only_when_they_weigh_something() {
    let losses = |prompt_loss_weight: f64| {
        let folder = tempfile::tempdir().unwrap();
        let mut run = RunDirectory::create(folder.path(), &RunSpec::default(), KEEP).unwrap();
        let config = SftConfig {
            steps: 30,
            prompt_loss_weight,
            ..sft_config()
        };
        let mut model = tiny();
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(sft::train(
                &config,
                SEED,
                &mut model,
                &mut Counting,
                &mut run,
                None,
                &mut Unobserved,
            ))
            .unwrap();
        let lines = lines(folder.path());
        let tokens: Vec<_> = lines
            .iter()
            .map(|line| line["trained_tokens"].clone())
            .collect();
        (loss_of_observations(&model), tokens)
    };
    let (without, tokens) = losses(0.0);
    let (with, same_tokens) = losses(1.0);
    assert!(with < without - 0.5, "{with} against {without}");
    assert_eq!(tokens, same_tokens, "only model tokens are counted");
}

#[test]
fn reinforcement_learning_raises_the_reward_of_what_it_samples() {
    for (algorithm, aggregation, staleness) in [
        (Algorithm::Grpo, Aggregation::TokenMean, 0),
        (Algorithm::Grpo, Aggregation::TokenMean, 1),
        (Algorithm::Grpo, Aggregation::TokenMean, 2),
        (Algorithm::Grpo, Aggregation::SequenceMean, 0),
        (Algorithm::ReinforcePlusPlus, Aggregation::TokenMean, 0),
        (Algorithm::ReinforcePlusPlus, Aggregation::SequenceMean, 0),
        (
            Algorithm::ReinforcePlusPlusBaseline,
            Aggregation::TokenMean,
            0,
        ),
        (Algorithm::DrGrpo, Aggregation::TokenMean, 0),
        (Algorithm::Rloo, Aggregation::TokenMean, 0),
        (Algorithm::ReMax, Aggregation::TokenMean, 0),
        (Algorithm::Ppo, Aggregation::TokenMean, 0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut run = RunDirectory::create(folder.path(), &RunSpec::default(), KEEP).unwrap();
        let config = RlConfig {
            algorithm,
            aggregation,
            staleness,
            importance_cap: (staleness > 0).then_some(2.0),
            steps: 20,
            mini_batches: 1,
            epochs: 1,
            ..rl_config()
        };
        let mut source = EvenGame {
            temperature: 1.0,
            groups: 8,
            samples: 8,
            curriculum: None,
        };
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(rl::train(
                &config,
                SEED,
                &mut tiny(),
                &mut source,
                &mut run,
                None,
                &mut Unobserved,
            ))
            .unwrap();
        let rewards: Vec<f64> = lines(folder.path())
            .iter()
            .map(|line| line["reward"].as_f64().unwrap())
            .collect();
        let mean = |rewards: &[f64]| rewards.iter().sum::<f64>() / rewards.len() as f64;
        let (before, after) = (mean(&rewards[..3]), mean(&rewards[17..]));
        assert!(
            after > before + 0.15,
            "{algorithm:?} {aggregation:?} {staleness}: {rewards:?}"
        );
    }
}

#[test]
fn workers_change_no_bit() {
    let weights = |workers: usize| {
        let folder = tempfile::tempdir().unwrap();
        let mut run = RunDirectory::create(folder.path(), &RunSpec::default(), KEEP).unwrap();
        let config = RlConfig {
            steps: 2,
            workers: Some(workers),
            ..rl_config()
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime
            .block_on(rl::train(
                &config,
                SEED,
                &mut tiny(),
                &mut play(),
                &mut run,
                None,
                &mut Unobserved,
            ))
            .unwrap();
        fs::read(folder.path().join("checkpoints/latest/model.safetensors")).unwrap()
    };
    let one = weights(1);
    assert!(one == weights(2) && one == weights(3));
}

#[test]
fn the_temperature_of_sampling_is_that_of_the_ratio() {
    let ratio = |sampling: f32, training: f64| -> f64 {
        let folder = tempfile::tempdir().unwrap();
        let mut run = RunDirectory::create(folder.path(), &RunSpec::default(), KEEP).unwrap();
        let config = RlConfig {
            steps: 1,
            temperature: training,
            ..rl_config()
        };
        let mut source = EvenGame {
            temperature: sampling,
            groups: 2,
            samples: 4,
            curriculum: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime
            .block_on(rl::train(
                &config,
                SEED,
                &mut tiny(),
                &mut source,
                &mut run,
                None,
                &mut Unobserved,
            ))
            .unwrap();
        lines(folder.path())[0]["ratio_deviation"].as_f64().unwrap()
    };
    assert_eq!(ratio(0.7, 0.7), 0.0);
    assert!(ratio(1.0, 0.7) > 0.0);
}

#[test]
fn importance_weights_correct_what_the_engine_computed_otherwise_and_nothing_else() {
    let train = |sampling: f32, importance_cap: Option<f64>| -> (Vec<u8>, Value) {
        let folder = tempfile::tempdir().unwrap();
        let mut run = RunDirectory::create(folder.path(), &RunSpec::default(), KEEP).unwrap();
        let config = RlConfig {
            steps: 1,
            temperature: 0.7,
            importance_cap,
            ..rl_config()
        };
        let mut source = EvenGame {
            temperature: sampling,
            groups: 2,
            samples: 4,
            curriculum: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime
            .block_on(rl::train(
                &config,
                SEED,
                &mut tiny(),
                &mut source,
                &mut run,
                None,
                &mut Unobserved,
            ))
            .unwrap();
        let weights = folder.path().join("checkpoints/latest/model.safetensors");
        let line = lines(folder.path()).remove(0);
        (fs::read(weights).unwrap(), line)
    };
    let (plain, line) = train(0.7, None);
    assert_eq!(line.get("importance_mismatch"), None);
    let (corrected, line) = train(0.7, Some(2.0));
    assert!(plain == corrected, "weights of 1 change the training");
    assert_eq!(line["importance_mismatch"], 0.0);
    assert_eq!(line["importance_capped"], 0.0);

    // The samples are those of another temperature than training has, as if another engine had computed them.
    let (uncorrected, line) = train(1.0, None);
    assert!(line["ratio_deviation"].as_f64().unwrap() > 0.0);
    let (corrected, line) = train(1.0, Some(2.0));
    assert!(uncorrected != corrected, "the weights have no effect");
    assert_eq!(line["ratio_deviation"], 0.0);
    assert!(line["importance_mismatch"].as_f64().unwrap() > 0.0);
}

/// The steps of RL that an observer was shown, each as one of how many.
type Shown = Vec<(u64, u64)>;

/// Measures these successes after the steps of RL, and is killed once after one of them.
struct Validate {
    successes: [f64; 5],
    killed_after: Option<u64>,
    /// The step after which the run is asked to stop.
    stopped_after: Option<u64>,
    shown: Shown,
}

#[async_trait]
impl Observer for Validate {
    async fn after_step(&mut self, done: StepDone<'_>) -> Result<Seen, BoxError> {
        if done.phase != Phase::Rl {
            return Ok(Seen::default());
        }
        if self.killed_after == Some(done.step) {
            self.killed_after = None;
            return Err("killed".into());
        }
        self.shown.push((done.step, done.steps));
        let next = if self.stopped_after == Some(done.step) {
            NextStep::Interrupt
        } else {
            NextStep::Continue
        };
        Ok(Seen {
            validated: done.line.map(|_| self.successes[done.step as usize - 1]),
            next,
        })
    }
}

/// A run that is validated. Returns its checkpoints, which of them is the best, and what the observer was shown.
fn validated(
    successes: [f64; 5],
    patience: u64,
    killed_after: Option<u64>,
    stopped_after: Option<u64>,
) -> (Vec<(Phase, u64)>, String, Shown) {
    let folder = tempfile::tempdir().unwrap();
    let mut observer = Validate {
        successes,
        killed_after,
        stopped_after,
        shown: Vec::new(),
    };
    let rl = RlConfig {
        patience,
        ..rl_config()
    };
    let keep = CheckpointConfig {
        keep_best: true,
        ..KEEP
    };
    let mut go = |resume| {
        run_as(
            folder.path(),
            resume,
            &mut play(),
            &mut observer,
            &rl,
            &keep,
        )
    };
    if killed_after.is_some() {
        go(false).unwrap_err();
    }
    let mut end = go(killed_after.is_some());
    if stopped_after.is_some_and(|step| step < 4) {
        assert_eq!(end, Ok(PhaseEnd::Interrupted));
        end = go(true);
    }
    let wanted = match stopped_after {
        // As at the regular end.
        Some(4) => PhaseEnd::Interrupted,
        _ => PhaseEnd::Finished,
    };
    assert_eq!(end, Ok(wanted));
    assert_eq!(go(true), Ok(PhaseEnd::AlreadyDone));
    let all = Checkpoint::all(folder.path()).unwrap();
    let all = all.iter().map(|one| (one.state.phase, one.state.step));
    let best = fs::read_link(folder.path().join("checkpoints/best")).unwrap();
    let best = best.to_string_lossy().into_owned();
    let (run, chosen) = Checkpoint::run_of(&folder.path().join("checkpoints/best")).unwrap();
    assert_eq!(run, fs::canonicalize(folder.path()).unwrap());
    assert!(chosen.ends_with(&best), "{}", chosen.display());
    assert_eq!(Checkpoint::run_of(folder.path()), None);
    (all.collect(), best, observer.shown)
}

#[test]
fn the_best_checkpoint_by_validation_is_kept() {
    let (kept, best, shown) = validated([0.9, 0.1, 0.2, 0.3, 0.9], 0, None, None);
    assert_eq!(best, "rl-000001");
    let end = [(Phase::Rl, 1), (Phase::Rl, 4), (Phase::Rl, 5)];
    assert_eq!((kept[0], &kept[1..]), ((Phase::Sft, 4), &end[..]));
    assert_eq!(shown, [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]);
}

#[test]
fn a_phase_whose_validations_become_no_better_ends_early_killed_or_not() {
    let successes = [0.2, 0.6, 0.5, 0.6, 0.9];
    let (kept, best, shown) = validated(successes, 2, None, None);
    assert_eq!(best, "rl-000002");
    assert_eq!(kept, [(Phase::Sft, 4), (Phase::Rl, 2), (Phase::Rl, 4)]);
    // It is shown the last step again as such.
    assert_eq!(shown, [(1, 5), (2, 5), (3, 5), (4, 5), (4, 4)]);
    for killed_after in 1..=4 {
        let resumed = validated(successes, 2, Some(killed_after), None);
        assert_eq!((&resumed.0, &resumed.1), (&kept, &best));
        assert_eq!(resumed.2.last(), Some(&(4, 4)));
        let stopped = validated(successes, 2, None, Some(killed_after));
        assert_eq!((&stopped.1, stopped.2.last()), (&best, Some(&(4, 4))));
    }
}
