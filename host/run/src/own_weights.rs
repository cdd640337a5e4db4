//! The run's own weights as models: copies of the policy at moments that the configuration names.
//!
//! Which weights answer follows from the steps that the policy has done, and from nothing else. So a run that is
//! resumed, and an evaluation of one of its checkpoints, ask the same weights as a run that was never stopped. With
//! `rl.staleness`, the policy that plays a step has done fewer steps than the one that is evaluated, so the moments go
//! back and forth.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use candle_core::Device;
use rlf_endpoint::Completion;
use rlf_models::{FrozenPolicyConfig, ModelConfig, RunMoment, Source, SourceError};
use rlf_plugins::gates::ModelQuestion;
use rlf_policy::{Model, Precision, holds_adapters};
use rlf_sandbox::BoxFuture;
use rlf_train::phase::Phase;
use rlf_train::run::{Checkpoint, FrozenMoment, FrozenWeights, TrainerState, config_path};

use crate::checkpoint_model;
use crate::config::RunConfig;
use crate::error::{ConfigurationError, RunFailure, SavedRunError};
use crate::frozen_engine::{FrozenEngine, unreadable};
use crate::frozen_policy::FrozenPolicy;

/// Progress of a run, which a policy of it has made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Progress {
    /// No step is done.
    Start,
    /// SFT has done steps. True if it has done all of them.
    Sft { is_over: bool },
    /// RL has begun, and has done so many steps.
    Rl { steps: u64 },
}

impl Progress {
    /// The moment whose weights are those that the policy has now, if it is one that a model can name.
    fn moment(self) -> Option<FrozenMoment> {
        match self {
            Self::Start => Some(FrozenMoment::Start),
            Self::Sft { is_over } => is_over.then_some(FrozenMoment::Rl(0)),
            Self::Rl { steps } => Some(FrozenMoment::Rl(steps)),
        }
    }

    /// Progress of every policy that may play or be evaluated at the same time.
    fn nearby(self, staleness: u64) -> Vec<Self> {
        match self {
            Self::Rl { steps } => (steps.saturating_sub(staleness)..=steps + staleness)
                .map(|steps| Self::Rl { steps })
                .collect(),
            alone => vec![alone],
        }
    }
}

impl From<&TrainerState> for Progress {
    fn from(state: &TrainerState) -> Self {
        match state.phase {
            Phase::Sft => Self::Sft {
                is_over: state.finished,
            },
            Phase::Rl => Self::Rl { steps: state.step },
        }
    }
}

/// The moment whose weights a model has when the run has come so far.
fn moment(config: &FrozenPolicyConfig, progress: Progress) -> FrozenMoment {
    match (config.of_run, progress) {
        (Some(RunMoment::Rl), Progress::Rl { steps }) => {
            let since = steps.checked_rem(config.refresh_every);
            FrozenMoment::Rl(since.map_or(0, |since| steps - since))
        }
        (Some(RunMoment::Rl), Progress::Sft { is_over: true }) => FrozenMoment::Rl(0),
        _ => FrozenMoment::Start,
    }
}

/// The models of a configuration that have weights of the run.
pub(crate) struct OwnWeights {
    workers: usize,
    /// Steps by which the policies that play may be behind.
    staleness: u64,
    models: BTreeMap<String, Arc<OwnModel>>,
    /// The engine that all models share if the run trains adapters, once one of them has weights.
    shared: Mutex<Option<Arc<FrozenEngine>>>,
    /// Moments whose weights on disk are those of this attempt: they were written or found since it began.
    known: Mutex<BTreeSet<FrozenMoment>>,
}

impl OwnWeights {
    /// The models among `configs` that have weights of the run. They decode with so many threads, and have no weights yet.
    pub(crate) fn new(
        configs: &BTreeMap<String, ModelConfig>,
        workers: usize,
        staleness: u64,
    ) -> Self {
        let own = configs.iter().filter_map(|(name, config)| {
            let config = config.policy.clone()?;
            config.of_run?;
            let current = RwLock::new(None);
            Some((name.clone(), Arc::new(OwnModel { config, current })))
        });
        Self {
            workers,
            staleness,
            models: own.collect(),
            shared: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// The model with this name, if it has weights of the run.
    pub(crate) fn source(&self, name: &str) -> Option<Arc<dyn Source>> {
        let model = self.models.get(name)?;
        Some(Arc::clone(model) as Arc<dyn Source>)
    }

    /// True if a model answers with the weights that the policy has now.
    pub(crate) fn needs_weights_of(&self, progress: Progress) -> bool {
        let mut models = self.models.values();
        models.any(|model| progress.moment() == Some(moment(&model.config, progress)))
    }

    /// Gives each model the weights that it has when the run in the folder `run` has come so far. `policy` is the policy
    /// in training, whose weights are kept on disk if a model names this moment. It is None outside of training.
    ///
    /// Weights that are kept stay on disk when a policy with them plays once more. A later checkpoint may need them, and
    /// could not be resumed after a kill while they are written again. But those that an earlier attempt kept, beyond the
    /// checkpoint that this one went on from, are replaced.
    pub(crate) fn advance(
        &self,
        run: &Path,
        progress: Progress,
        policy: Option<&Model>,
    ) -> Result<(), RunFailure> {
        let frozen = FrozenWeights::of(run);
        let mut is_kept = false;
        for (name, model) in &self.models {
            let moment = moment(&model.config, progress);
            if model.has(moment) {
                continue;
            }
            let in_training = policy.filter(|_| progress.moment() == Some(moment));
            let found = if in_training.is_none() || self.known().contains(&moment) {
                frozen.find(moment)?
            } else {
                None
            };
            let folder = match (found, in_training) {
                (Some(folder), _) => folder,
                (None, Some(policy)) => {
                    is_kept = true;
                    keep(&frozen, moment, policy)?
                }
                (None, None) => return Err(missing(name, moment, run).into()),
            };
            self.known().insert(moment);
            model.set(
                moment,
                self.open(name, &model.config, &folder, run, policy)?,
            );
        }
        if is_kept && matches!(progress, Progress::Rl { .. }) {
            self.forget_others(&frozen, progress, run)?;
        }
        Ok(())
    }

    /// Gives each model the weights that it has at the newest checkpoint of the run in the folder `run`.
    pub(crate) fn advance_to_newest(&self, run: Option<&Path>) -> Result<(), RunFailure> {
        let Some(name) = self.models.keys().next() else {
            return Ok(());
        };
        let Some(run) = run.filter(|run| config_path(run).exists()) else {
            let place = run.map_or_else(String::new, |run| format!(" in {}", run.display()));
            let key = format!("models.{name}.policy.of_run");
            let problem = format!(
                "{key} names weights of a run, and there is no run{place}; train first, or use a configuration whose \
                 `output` is the folder of a run"
            );
            return Err(ConfigurationError::value(key, problem).into());
        };
        let newest = Checkpoint::latest(run)?;
        let newest = newest.ok_or_else(|| SavedRunError::NoCheckpoint(run.to_owned()))?;
        self.advance(run, Progress::from(&newest.state), None)
    }

    /// The policy of the model `name` with the weights in `folder`, which are kept weights of the run in the folder `run`,
    /// or those of one of its checkpoints. Adapters are put beside the frozen weights of `trained`, the policy in training,
    /// if these are in f32 on the CPU.
    fn open(
        &self,
        name: &str,
        config: &FrozenPolicyConfig,
        folder: &Path,
        run: &Path,
        trained: Option<&Model>,
    ) -> Result<FrozenPolicy, RunFailure> {
        if !holds_adapters(folder) {
            let model = Model::load(folder, &Device::Cpu);
            let model = model.map_err(|error| unreadable(name, config, &error))?;
            let asked = (name, config);
            let engine = FrozenEngine::start(model, folder, asked, &[asked], self.workers)?;
            return FrozenPolicy::new(Arc::new(engine), None, config);
        }
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = if let Some(engine) = &*shared {
            Arc::clone(engine)
        } else {
            let model = if let Some(trained) = trained.filter(|model| has_f32_on_cpu(model)) {
                trained.copy()?
            } else {
                let config = RunConfig::load(&config_path(run), &[])?;
                checkpoint_model::open(&config, run, folder, &Device::Cpu, Precision::F32)?
            };
            let policies = self.models.iter();
            let policies: Vec<_> = policies
                .map(|(name, own)| (name.as_str(), &own.config))
                .collect();
            let asked = (name, config);
            let engine = FrozenEngine::start(model, folder, asked, &policies, self.workers)?;
            Arc::clone(shared.insert(Arc::new(engine)))
        };
        let adapted = Arc::new(engine.model().reload(folder)?);
        FrozenPolicy::new(engine, Some(adapted), config)
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<FrozenMoment>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes weights that neither the run needs now nor one of its checkpoints.
    fn forget_others(
        &self,
        frozen: &FrozenWeights,
        progress: Progress,
        run: &Path,
    ) -> Result<(), RunFailure> {
        let checkpoints = Checkpoint::all(run)?;
        let places = checkpoints.iter().map(|one| Progress::from(&one.state));
        let places = places.chain([progress]);
        let places: Vec<Progress> = places
            .flat_map(|place| place.nearby(self.staleness))
            .collect();
        let mut needed = BTreeSet::new();
        for model in self.models.values() {
            needed.extend(places.iter().map(|place| moment(&model.config, *place)));
        }
        Ok(frozen.forget_except(&needed)?)
    }
}

fn has_f32_on_cpu(model: &Model) -> bool {
    model.device().is_cpu() && model.precision() == Precision::F32
}

/// Keeps the weights that the policy has at a moment. Returns their folder.
fn keep(
    frozen: &FrozenWeights,
    moment: FrozenMoment,
    policy: &Model,
) -> Result<PathBuf, RunFailure> {
    // With adapters, these alone are written: the weights beside them do not change.
    frozen.keep(moment, |folder| Ok(policy.save(folder)?))
}

fn missing(name: &str, moment: FrozenMoment, run: &Path) -> ConfigurationError {
    let key = format!("models.{name}.policy.of_run");
    let problem = format!(
        "{key}: {} has no weights `{moment}`, neither in `frozen` nor as a checkpoint; put them back from a copy, or begin a \
         new run with this model",
        run.display()
    );
    ConfigurationError::value(key, problem)
}

/// A model with weights of the run.
struct OwnModel {
    config: FrozenPolicyConfig,
    /// The weights that answer now.
    current: RwLock<Option<(FrozenMoment, Arc<FrozenPolicy>)>>,
}

impl OwnModel {
    fn current(&self) -> Option<(FrozenMoment, Arc<FrozenPolicy>)> {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn has(&self, moment: FrozenMoment) -> bool {
        self.current().is_some_and(|(current, _)| current == moment)
    }

    fn set(&self, moment: FrozenMoment, policy: FrozenPolicy) {
        let current = self.current.write();
        *current.unwrap_or_else(PoisonError::into_inner) = Some((moment, Arc::new(policy)));
    }
}

impl Source for OwnModel {
    fn max_tokens(&self) -> u32 {
        self.config.max_tokens
    }

    fn context_tokens(&self) -> u32 {
        self.config.context
    }

    fn version(&self) -> Option<String> {
        let (moment, _) = self.current()?;
        (moment != FrozenMoment::Start).then(|| moment.to_string())
    }

    fn answer<'a>(
        &'a self,
        question: ModelQuestion<'a>,
    ) -> BoxFuture<'a, Result<Completion, SourceError>> {
        Box::pin(async move {
            let Some((_, policy)) = self.current() else {
                let what = "it has no weights, because no run is trained here".to_owned();
                return Err(SourceError::Unavailable(what));
            };
            policy.answer(question).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rlf_dialogue::bpe::BpeOptions;
    use rlf_dialogue::template::small;
    use rlf_dialogue::tokenizer::Tokenizer;
    use rlf_policy::Qwen3Config;
    use rlf_train::config::CheckpointConfig;
    use rlf_train::run::{RunDirectory, RunSpec, frozen_path};

    use super::*;
    use FrozenMoment::{Rl, Start};

    #[test]
    fn the_weights_of_a_model_follow_from_the_steps_that_are_done() {
        let config = |text: &str| -> FrozenPolicyConfig { toml::from_str(text).unwrap() };
        let start = config("of_run = \"start\"");
        let rl = config("of_run = \"rl\"");
        let refreshed = config("of_run = \"rl\"\nrefresh_every = 20");
        let sft = |is_over| Progress::Sft { is_over };
        let rl_step = |steps| Progress::Rl { steps };
        for (progress, moments) in [
            (Progress::Start, [Start, Start, Start]),
            (sft(false), [Start, Start, Start]),
            (sft(true), [Start, Rl(0), Rl(0)]),
            (rl_step(0), [Start, Rl(0), Rl(0)]),
            (rl_step(19), [Start, Rl(0), Rl(0)]),
            (rl_step(20), [Start, Rl(0), Rl(20)]),
            (rl_step(45), [Start, Rl(0), Rl(40)]),
        ] {
            let found = [&start, &rl, &refreshed].map(|config| moment(config, progress));
            assert_eq!(found, moments, "{progress:?}");
        }
    }

    #[test]
    fn kept_weights_stay_on_disk_unless_the_run_goes_back_to_before_their_moment() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        let corpus = ["a question and an answer"].map(String::from).into_iter();
        let tokenizer = Tokenizer::train_bpe(corpus, &BpeOptions::default()).unwrap();
        let tokenizer = tokenizer.to_json().unwrap().into_bytes();
        let spec = RunSpec {
            assets: vec![
                ("tokenizer.json".into(), tokenizer),
                ("chat_template.jinja".into(), small::SOURCE.into()),
            ],
            ..RunSpec::default()
        };
        let _lock = RunDirectory::create(run, &spec, CheckpointConfig::default()).unwrap();
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
            initializer_range: 0.1,
        };
        let policy = Model::init(&shape, 0, &Device::Cpu).unwrap();
        let models =
            "opponent.policy = {of_run = 'rl', refresh_every = 20, max_tokens = 12, context = 128}";
        let models: BTreeMap<String, ModelConfig> = toml::from_str(models).unwrap();
        let attempt = || OwnWeights::new(&models, 1, 3);
        let advance = |own: &OwnWeights, steps: u64| {
            let progress = Progress::Rl { steps };
            own.advance(run, progress, Some(&policy)).unwrap();
        };
        // A folder that is written again does not have this file.
        let mark = frozen_path(run).join("rl-000020").join("mark");

        let own = attempt();
        advance(&own, 0);
        advance(&own, 20);
        fs::write(&mark, "").unwrap();
        // With staleness 3, older policies play after step 20 is evaluated, and the one after step 20 plays later.
        for steps in [18, 19, 20] {
            advance(&own, steps);
        }
        assert!(mark.exists());
        // A run that goes on from the checkpoint of step 21 plays them again.
        let own = attempt();
        for steps in [21, 18, 19, 20] {
            advance(&own, steps);
        }
        assert!(mark.exists());
        // One that goes on from step 19 has other weights at step 20.
        let own = attempt();
        for steps in [19, 20] {
            advance(&own, steps);
        }
        assert!(!mark.exists());
    }
}
