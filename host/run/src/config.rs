//! The configuration of a run. Each table is a documented struct of the crate that uses it.

mod check;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rlf_agents::AgentConfig;
use rlf_config::ConfigError;
use rlf_dialogue::BpeOptions;
use rlf_dialogue::DialogueConfig;
use rlf_endpoint::EndpointConfig;
use rlf_environments::environments::EnvironmentConfig;
use rlf_forge::countries::CountriesConfig;
use rlf_mcp::{McpConfig, McpError, add_mcp_servers};
use rlf_plugins::grants::PluginGrants;
use rlf_policy::{LoraConfig, Precision, Qwen3Config};
use rlf_remote::{Protocol, RemoteConfig, RemoteError};
use rlf_rewards::rewards_config::RewardsConfig;
use rlf_rollout::external_engine::ExternalEngineConfig;
use rlf_rollout::policy_generator::PolicyGeneratorConfig;
use rlf_rollout::shown_tools::ShownTools;
use rlf_sandbox::SandboxConfig;
use rlf_tools::tool_manager::ToolManagerConfig;
use rlf_train::config::{CheckpointConfig, IMPORTANCE_CAP, RlConfig, SftConfig};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::error::ConfigurationError;
use crate::user::UserConfig;
use settings::{parse_with, with_place};

/// Prefix of a data binding that refers to the run's folder.
pub const IN_RUN: &str = "run:";

/// Name of the built-in chat template.
pub(crate) const SMALL_TEMPLATE: &str = "small";

/// True if a data binding refers to the run's folder instead of an operator's path.
fn is_in_run(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.starts_with(IN_RUN))
}

/// Removes the data bindings that refer to the run's folder from a plugin's grants, and returns them.
pub fn take_run_data(grants: &mut PluginGrants) -> BTreeMap<String, PathBuf> {
    let (in_run, elsewhere) = std::mem::take(&mut grants.data)
        .into_iter()
        .partition(|(_, path)| is_in_run(path));
    grants.data = elsewhere;
    in_run
}

/// A whole configuration file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// Seed of all randomness. Default 0.
    #[serde(default)]
    pub seed: u64,
    /// `cpu` (default), `cuda`, `cuda:N`, or `auto`: CUDA where it works, else the CPU.
    #[serde(default = "cpu")]
    pub device: String,
    /// Numbers that matrix products read: `f32` (default), or `bf16`, which is faster on CUDA and on CPUs with
    /// AVX512-BF16. Sums and the optimiser's weights are f32 in any case.
    #[serde(default)]
    pub precision: Precision,
    /// Threads that train and decode; one per core by default. Changes speed, never results.
    #[serde(default)]
    pub workers: Option<usize>,
    /// Directory of the run, relative to the directory in which `rlf-host` is started.
    pub output: PathBuf,
    /// The policy's weights.
    pub model: ModelConfig,
    /// The tokenizer; the checkpoint's own by default.
    #[serde(default)]
    pub tokenizer: TokenizerConfig,
    /// Chat template: `small` (built in) or a Jinja file; the checkpoint's own by default.
    #[serde(default)]
    pub template: Option<String>,
    /// Protocol, answers and budgets of an episode.
    #[serde(default)]
    pub dialogue: DialogueConfig,
    /// The tasks of training, validation and test.
    pub tasks: TasksConfig,
    /// Pools, threads and cache of the sandbox.
    #[serde(default)]
    pub sandbox: SandboxConfig,
    /// Settings of tool calls.
    #[serde(default)]
    pub tools: ToolManagerConfig,
    /// Sessions of environments.
    #[serde(default)]
    pub environments: EnvironmentConfig,
    /// Replacements of tools' names and descriptions, by split.
    #[serde(default)]
    pub shown_tools: ShownTools,
    /// The agent that leads trajectories instead of our own loop; see docs/agents.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentConfig>,
    /// The model that plays users of tasks that want one; see docs/simulated-users.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserConfig>,
    /// Settings of `rlf-host serve`, which can use the same file. A run does not read them.
    #[serde(default, skip_serializing)]
    pub serve: IgnoredAny,
    /// The model that `rlf-host forge env new` asks, which can use the same file. A run does not read it.
    #[serde(default, skip_serializing)]
    pub writer: IgnoredAny,
    /// The model that `rlf-host forge graph --embeddings` asks, which can use the same file. A run does not read it.
    #[serde(default, skip_serializing)]
    pub embeddings: IgnoredAny,
    /// The model that `rlf-host eval --endpoint` measures, which can use the same file. A run does not ask it.
    #[serde(default, skip_serializing)]
    pub endpoint: EndpointConfig,
    /// The variants of `rlf-host ablate`, which can use the same file. A run does not read them.
    #[serde(default, skip_serializing)]
    pub ablate: IgnoredAny,
    /// The operator's grants and limits for each plugin, by alias.
    #[serde(default)]
    pub plugins: BTreeMap<String, PluginGrants>,
    /// The language models that plugins may ask through the gate `model`, and that `[user]` may name, by name.
    #[serde(default)]
    pub models: BTreeMap<String, rlf_models::ModelConfig>,
    /// MCP servers whose tools the policy may call, by name.
    #[serde(default)]
    pub mcp: BTreeMap<String, McpConfig>,
    /// More of them: an `mcpServers` block of another host, or the path of a file with one. Reading a configuration moves
    /// them to `mcp`.
    #[serde(default, skip_serializing)]
    pub mcp_servers: Option<String>,
    /// Environments behind a URL that speak OpenEnv, by the name that tasks give; see docs/openenv.md.
    #[serde(default)]
    pub openenv: BTreeMap<String, RemoteConfig>,
    /// Environments behind a URL that speak the Open Reward Standard, by the name that tasks give; see docs/openenv.md.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ors: BTreeMap<String, RemoteConfig>,
    /// Rewards and the condition of success.
    pub rewards: RewardsConfig,
    /// Sizes of the decoding engine.
    #[serde(default)]
    pub engine: PolicyGeneratorConfig,
    /// An engine beside this program that samples the policy's turns; see docs/external-engines.md. None by default:
    /// this program samples them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_engine: Option<ExternalEngineConfig>,
    /// Supervised fine-tuning on demonstrations, before RL; none if absent.
    #[serde(default)]
    pub sft: Option<SftConfig>,
    /// Reinforcement learning; none if absent.
    #[serde(default)]
    pub rl: Option<RlConfig>,
    /// Times and sizes of evaluations.
    #[serde(default)]
    pub eval: EvalConfig,
    /// Checkpoints and trajectories that the run keeps on disk.
    #[serde(default)]
    pub checkpoint: CheckpointConfig,
}

/// Refuses keys of `[model.init]` that the shape does not have. A checkpoint's config.json may have others.
fn refuse_unknown_keys(init: &toml::Table, shape: &Qwen3Config) -> Result<(), ConfigurationError> {
    let known = toml::Table::try_from(shape)?;
    let Some(unknown) = init.keys().find(|key| !known.contains_key(*key)) else {
        return Ok(());
    };
    let mend = match rlf_config::nearest(unknown, known.keys().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "there are: {}",
            known.keys().cloned().collect::<Vec<_>>().join(", ")
        ),
    };
    let problem = format!("[model.init]: unknown key `{unknown}`; {mend}");
    Err(ConfigurationError::value(
        format!("model.init.{unknown}"),
        problem,
    ))
}

pub(crate) fn of_mcp(error: &McpError) -> ConfigurationError {
    ConfigurationError::value(error.key(), error.to_string())
}

pub(crate) fn of_remote(error: &RemoteError) -> ConfigurationError {
    ConfigurationError::value(error.key(), error.to_string())
}

fn cpu() -> String {
    "cpu".into()
}

/// Source of the weights, exactly one of `checkpoint` and `init`; and what of them is trained.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// A Hugging Face Qwen3 checkpoint: a directory with config.json and safetensors.
    #[serde(default)]
    pub checkpoint: Option<PathBuf>,
    /// A model with random weights: the keys of a Hugging Face config.json. `vocab_size` may be left out; the default
    /// is the tokenizer's.
    #[serde(default)]
    pub init: Option<toml::Table>,
    /// Adapters of low rank, which are trained instead of the weights: see docs/training.md. None by default: all weights
    /// are trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora: Option<LoraConfig>,
}

/// Source of the tokenizer: at most one of the two.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerConfig {
    /// A Hugging Face tokenizer.json.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Train a byte-level BPE on the tasks' own text.
    #[serde(default)]
    pub train: Option<BpeOptions>,
}

/// Source of the tasks: the generator of questions about countries, or files.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TasksConfig {
    /// Questions over a table of facts, with demonstrations.
    #[serde(default)]
    pub facts: Option<CountriesConfig>,
    /// Training tasks: JSON lines (see docs/configuration.md).
    #[serde(default)]
    pub train: Option<PathBuf>,
    /// Validation tasks; if absent, the first `eval.validation_tasks` of the training file, at most a fifth of it.
    #[serde(default)]
    pub validation: Option<PathBuf>,
    /// Test tasks; the validation tasks if absent.
    #[serde(default)]
    pub test: Option<PathBuf>,
    /// Conversations to imitate in SFT: this project's demonstrations, or another format that `rlf-host data import`
    /// reads for SFT. If absent, SFT uses the gold calls of the training tasks that have them.
    #[serde(default)]
    pub demonstrations: Option<PathBuf>,
    /// System message put before every task from a file that has no system message.
    #[serde(default)]
    pub system: Option<String>,
}

/// Times and sizes of evaluations.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvalConfig {
    /// Test tasks. Default 200.
    pub tasks: usize,
    /// Samples per test task, in addition to the greedy one. Default 4.
    pub samples: usize,
    /// Validation tasks during training, with one sample each. Default 100.
    pub validation_tasks: usize,
    /// RL steps between validations, in addition to those at the end of each phase. 0 means no validation at all.
    /// Default 10.
    pub every: u64,
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self {
            tasks: 200,
            samples: 4,
            validation_tasks: 100,
            every: 10,
        }
    }
}

impl RunConfig {
    /// Reads and checks a configuration, after the settings `key.path=value`, which replace values of the file.
    /// Relative paths in it start at its folder; `output` starts where the program is started.
    pub fn load(path: &Path, settings: &[String]) -> Result<Self, ConfigurationError> {
        let origin = path.display().to_string();
        let text = rlf_config::read(path)?;
        let mut config = parse_with(settings, &text, &origin)?;
        // The parent of a bare file name is empty, and an empty path cannot be used.
        let base = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let base = std::path::absolute(base).unwrap_or_else(|_| base.to_owned());
        if let Some(block) = config.mcp_servers.take() {
            add_mcp_servers(&mut config.mcp, &block, &base)
                .map_err(|error| with_place(of_mcp(&error), origin.clone(), &text, settings))?;
        }
        config.resolve_paths(&base);
        config.set_importance_cap();
        config.fill_remote();
        (config.check()).map_err(|error| with_place(error, origin, &text, settings))?;
        Ok(config)
    }

    /// The models that a plugin may ask, and the one that plays users. A run opens no others.
    pub(crate) fn asked_models(&self) -> BTreeMap<String, rlf_models::ModelConfig> {
        let granted = self.plugins.values().flat_map(|grants| &grants.models);
        let granted = granted.map(String::as_str);
        let user = self.user.as_ref().and_then(UserConfig::named_model);
        let asked: BTreeSet<&str> = granted.chain(user).collect();
        let mut models = self.models.clone();
        models.retain(|name, _| asked.contains(name.as_str()));
        models
    }

    /// Sets the cap of importance weights, unless it is set: the log-probabilities of another engine or of older
    /// weights are not those of training.
    fn set_importance_cap(&mut self) {
        let is_external = self.external_engine.is_some();
        if let Some(rl) = &mut self.rl
            && (is_external || rl.staleness > 0)
        {
            rl.importance_cap.get_or_insert(IMPORTANCE_CAP);
        }
    }

    /// Writes out the defaults that depend on the protocol of an environment behind a URL.
    fn fill_remote(&mut self) {
        for environment in self.openenv.values_mut() {
            environment.fill(Protocol::OpenEnv);
        }
        for environment in self.ors.values_mut() {
            environment.fill(Protocol::Ors);
        }
    }

    /// The environments behind a URL, by protocol.
    pub(crate) fn remote(&self) -> [(Protocol, &BTreeMap<String, RemoteConfig>); 2] {
        [
            (Protocol::OpenEnv, &self.openenv),
            (Protocol::Ors, &self.ors),
        ]
    }

    fn resolve_paths(&mut self, base: &Path) {
        let tasks = &mut self.tasks;
        let lora = self.model.lora.as_mut();
        let paths = [
            &mut tasks.train,
            &mut tasks.validation,
            &mut tasks.test,
            &mut tasks.demonstrations,
        ]
        .into_iter()
        .chain([&mut self.model.checkpoint, &mut self.tokenizer.file])
        .chain(lora.map(|lora| &mut lora.adapter))
        .flatten();
        for path in paths {
            if path.is_relative() {
                *path = base.join(&*path);
            }
        }
        for grants in self.plugins.values_mut() {
            let in_run = take_run_data(grants);
            grants.resolve_paths(base);
            grants.data.extend(in_run);
        }
        for model in self.models.values_mut() {
            model.resolve_paths(base);
        }
        for server in self.mcp.values_mut() {
            server.resolve_paths(base);
        }
        if let Some(user) = &mut self.user {
            user.resolve_paths(base);
        }
        if let Some(engine) = &mut self.external_engine {
            engine.resolve_paths(base);
        }
        if let Some(key_file) = &mut self.endpoint.key_file {
            *key_file = base.join(&*key_file);
        }
        if let Some(template) = &mut self.template
            && template != SMALL_TEMPLATE
        {
            *template = base.join(&*template).display().to_string();
        }
    }

    /// The configuration with every default written out.
    pub fn to_toml(&self) -> Result<String, ConfigurationError> {
        // Converted through a table, because TOML wants plain values before tables, in any order of fields.
        Ok(toml::to_string(&toml::Table::try_from(self)?)?)
    }

    /// The model's shape, for a tokenizer with `vocab_size` ids. None if the weights come from a checkpoint.
    pub(crate) fn shape(
        &self,
        vocab_size: usize,
    ) -> Result<Option<Qwen3Config>, ConfigurationError> {
        let Some(init) = &self.model.init else {
            return Ok(None);
        };
        let mut table = init.clone();
        table
            .entry("vocab_size")
            .or_insert_with(|| toml::Value::Integer(vocab_size as i64));
        let shape: Qwen3Config =
            rlf_config::parse(&table.to_string(), "[model.init]").map_err(|error| match error {
                // The error's line number would not be that of any file.
                ConfigError::Invalid { message, .. } => {
                    ConfigurationError::value("model.init", format!("[model.init]: {message}"))
                }
                other @ ConfigError::Read { .. } => other.into(),
            })?;
        refuse_unknown_keys(&table, &shape)?;
        (shape.validate()).map_err(ConfigurationError::table("model.init"))?;
        Ok(Some(shape))
    }

    /// Sets the number of threads of both phases.
    pub(crate) fn share_workers(&mut self) {
        let workers = Some(self.workers());
        if let Some(sft) = &mut self.sft {
            sft.workers = workers;
        }
        if let Some(rl) = &mut self.rl {
            rl.workers = workers;
        }
    }

    /// Tokens in the engine's cache of keys and values.
    pub fn cache_tokens(&self) -> usize {
        self.engine.cache_tokens(self.dialogue.context as usize)
    }

    /// Number of threads to work with.
    pub fn workers(&self) -> usize {
        self.workers.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
        })
    }
}
