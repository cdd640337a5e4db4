//! Makes the parts of a run from a configuration: tokenizer, dialogue, plugins, tasks, policy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use rlf_agents::{Agents, AgentsError, ComponentAgent};
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::group::Group;
use rlf_dialogue::split::Split;
use rlf_dialogue::task::{NumberedTask, Task};
use rlf_dialogue::tokenizer::Tokenizer;
use rlf_environments::environments::Environments;
use rlf_mcp::Servers;
use rlf_models::Models;
use rlf_plugins::follower::Follower;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::plugin::Plugin;
use rlf_plugins::problem::{ProblemKind, described};
use rlf_plugins::registry::Registry;
use rlf_policy::{Model, PolicyError, Purpose, Sampler, SamplingParams};
use rlf_rewards::reward_stack::RewardStack;
use rlf_rollout::agent::{Agent, AgentPlayer};
use rlf_rollout::evaluate::{Evaluation, evaluate};
use rlf_rollout::generate::Generator;
use rlf_rollout::policy_generator::{PolicyGenerator, PolicyGeneratorConfig};
use rlf_rollout::user::{User, UsersMode};
use rlf_rollout::{
    EpisodeContext, Player, PolicyPlayer, RecordedOutcomes, RolloutEngine, RolloutError,
    RolloutSettings,
};
use rlf_tools::tool_manager::{Outside, ToolManager};
use rlf_tools::{NoPolicy, POLICY};
use rlf_train::run::RunDirectory;
use tokio::sync::Mutex;

use crate::config::{IN_RUN, RunConfig, of_mcp, of_remote};
use crate::demonstrations::DemonstrationSet;
use crate::error::{ConfigurationError, PluginsError, RunFailure};
use crate::external_engine::RunEngine;
use crate::folder::{data_path, outputs_path};
use crate::health::PluginHealth;
use crate::models::open_models_of_run;
use crate::own_weights::OwnWeights;
use crate::plan;
use crate::plugins::PluginSources;
use crate::reporter::RunReporter;
use crate::shown_tools;
use crate::tasks::{self, TaskSource};
use crate::text::{TextParts, warn_of_protocol};
use crate::user;

/// All parts of a run except its weights.
pub struct RunParts {
    /// The configuration from which the parts were made.
    pub config: RunConfig,
    /// Converts text to ids.
    pub tokenizer: Arc<Tokenizer>,
    /// Template, protocol and budgets.
    pub dialogue: Arc<Dialogue>,
    /// All loaded plugins.
    pub registry: Registry,
    /// Invokes tool calls.
    pub tools: ToolManager,
    /// Models that plugins may ask, and the one that plays users.
    pub models: Models,
    /// The models among these that have weights of the run.
    pub(crate) own_weights: OwnWeights,
    /// Opens environment sessions.
    pub environments: Environments,
    /// Grades trajectories.
    pub rewards: Arc<RewardStack>,
    /// The tasks of all splits.
    pub tasks: Arc<dyn TaskSource>,
    /// The demonstrations of SFT, if the configuration has it.
    demonstrations: Option<Arc<dyn DemonstrationSet>>,
    /// Plays users, if any task has one.
    user: Option<Arc<dyn User>>,
    /// Leads trajectories, if the configuration has an agent. One that is asked over HTTP is made for the first rollout.
    agent: OnceLock<Arc<dyn Agent>>,
    /// Outcomes that calls take instead of being made, in a replay.
    pub(crate) recorded: Option<Arc<RecordedOutcomes>>,
    /// The program that supervises agents.
    supervisor: Option<PathBuf>,
    /// Samples the policy's turns, if the configuration has one.
    external_engine: Option<RunEngine>,
    /// Tokens in the cache of an engine, once they are set or there was one.
    cache_tokens: OnceLock<usize>,
    /// Lock that lets one step or one evaluation play at a time. So counts of calls belong to one of them, models have
    /// the weights of one moment, and one cache or engine has the weights of one policy.
    pub(crate) turn: Mutex<()>,
    /// Loads new versions of plugins that are replaced on disk, for later calls.
    _follower: Option<Follower>,
}

/// Name of the run's own copy of `user.prompt`, beside its data.
const USER_PROMPT: &str = "user-prompt.txt";

fn user_prompt(config: &mut RunConfig) -> Option<&mut PathBuf> {
    config.user.as_mut()?.prompt.as_mut()
}

/// Reports problems of plugins that the run may need, except those that the error `refused` already tells.
/// `rlf-host plugin list` shows all problems.
fn report_problems(
    registry: &Registry,
    config: &RunConfig,
    tasks: &dyn TaskSource,
    refused: Option<&RunFailure>,
    reporter: &dyn RunReporter,
) {
    let error = refused.map(ToString::to_string).unwrap_or_default();
    let rewards = config.rewards.stack.iter().map(|entry| &entry.plugin);
    let environments = tasks.environments();
    let named = config.plugins.keys().chain(rewards);
    let named: BTreeSet<&str> = named.chain(&environments).map(String::as_str).collect();
    // If tasks may use all loaded tools, a missing tool changes what the model is offered.
    let all = tasks.tools().is_none();
    let needed = registry.problems().iter().filter(|problem| {
        // A directory that cannot be read may lack any plugin.
        let plugin = problem.plugin.as_deref();
        let needed = all || plugin.is_none_or(|plugin| named.contains(plugin));
        needed && !error.contains(&problem.to_string())
    });
    for line in described(needed, |plugin| named.contains(plugin)) {
        reporter.warn(&line);
    }
}

/// Refuses the settings of a plugin that does not exist if one with a similar name does: they would not limit that one.
fn refuse_misspelt(registry: &Registry) -> Result<(), ConfigurationError> {
    let mut problems = registry.problems().iter();
    let Some(problem) = problems.find(|problem| problem.kind == ProblemKind::Misspelt) else {
        return Ok(());
    };
    let key = format!("plugins.{}", problem.label());
    let text = format!(
        "[{key}]: {} ({}); {} Otherwise name its folder with --plugins DIR, or remove the table",
        problem.what,
        problem.path.display(),
        problem.mend
    );
    Err(ConfigurationError::value(key, text))
}

fn open_tasks(
    config: &RunConfig,
    reporter: &dyn RunReporter,
) -> Result<Arc<dyn TaskSource>, RunFailure> {
    let validation = config.eval.validation_tasks;
    tasks::open(&config.tasks, config.seed, validation, reporter)
}

impl RunParts {
    /// Makes all parts of a new run in the folder `run`. Warns about every plugin that the run may need and that did not
    /// load. Returns an error only if something that the run needs is missing.
    pub fn new(
        mut config: RunConfig,
        plugins: &PluginSources,
        run: &Path,
        reporter: &dyn RunReporter,
    ) -> Result<Self, RunFailure> {
        let tasks = open_tasks(&config, reporter)?;
        let data = data_path(run);
        tasks.write_data(&data)?;
        if let Some(prompt) = user_prompt(&mut config) {
            let kept = data.join(USER_PROMPT);
            std::fs::create_dir_all(&data)
                .and_then(|()| std::fs::copy(&*prompt, &kept))
                .map_err(RunFailure::io(format!(
                    "user.prompt: cannot keep {}",
                    prompt.display()
                )))?;
            *prompt = kept;
        }
        let text = TextParts::from_config(&config, || tasks.corpus())?;
        Self::assemble(config, plugins, run, tasks, text, true, reporter)
    }

    /// Makes all parts of the existing run in the folder `run`. Uses the tokenizer, the template, the prompt of users and
    /// the table of countries that the run started with, even if their source files have changed. Task files are read
    /// again: whoever opens a run compares their hashes with those that the run kept.
    pub fn from_run(
        mut config: RunConfig,
        plugins: &PluginSources,
        run: &Path,
        reporter: &dyn RunReporter,
    ) -> Result<Self, RunFailure> {
        let tasks = open_tasks(&config, reporter)?;
        tasks.check_data(&data_path(run))?;
        if let Some(prompt) = user_prompt(&mut config) {
            *prompt = data_path(run).join(USER_PROMPT);
        }
        let text = TextParts::from_run(run)?;
        Self::assemble(config, plugins, run, tasks, text, false, reporter)
    }

    fn assemble(
        config: RunConfig,
        plugins: &PluginSources,
        run: &Path,
        tasks: Arc<dyn TaskSource>,
        text: TextParts,
        is_new: bool,
        reporter: &dyn RunReporter,
    ) -> Result<Self, RunFailure> {
        let TextParts {
            tokenizer,
            template,
            stop_ids,
        } = text;
        let tokenizer = Arc::new(tokenizer);
        let dialogue = Dialogue::new(
            tokenizer.clone(),
            template,
            config.dialogue.clone(),
            &stop_ids,
        )
        .map_err(RunFailure::table("dialogue"))?;
        warn_of_protocol(&dialogue, reporter);
        let sandbox = (plugins.sandbox(&config.sandbox)).map_err(PluginsError::Sandbox)?;
        let mut directories = plugins.all().into_iter();
        if let Some(missing) = directories.find(|directory| !directory.is_dir()) {
            return Err(PluginsError::NoDirectory(missing).into());
        }
        let external_engine = RunEngine::open(&config, run)?;
        let leader = (config.agent.as_ref()).and_then(|agent| agent.plugin.clone());
        let registry = plugins.load(&bindings(&config, run), &sandbox, reporter);
        if is_new {
            refuse_misspelt(&registry)?;
        }
        let staleness = config.rl.as_ref().map_or(0, |rl| rl.staleness);
        let (models, own_weights) =
            open_models_of_run(&config.asked_models(), config.workers(), run, staleness)?;
        let servers = Servers::connect(&config.mcp, &|warning| reporter.warn(warning))
            .map_err(|error| of_mcp(&error))?;
        let mut outside = Outside {
            models: models.by_name(),
            servers: servers.tool_servers(),
            leader,
        };
        if outside.leader.is_some() {
            outside.models.insert(POLICY.to_owned(), Arc::new(NoPolicy));
        }
        let tools = ToolManager::with_outside(&registry, &config.tools, outside)
            .map_err(RunFailure::table("tools"))?
            .keeping_outputs_in(&outputs_path(run));
        let agent: OnceLock<Arc<dyn Agent>> = OnceLock::new();
        if let Some(component) = component_agent(&config, &registry, &tools)? {
            agent.get_or_init(|| Arc::new(component));
        }
        let rewards =
            RewardStack::new(&registry, &config.rewards).map_err(RunFailure::table("rewards"))?;
        let follower = (config.tools.reload)
            .then(|| Follower::start(&registry, &sandbox))
            .transpose()
            .map_err(RunFailure::io(
                "cannot start a thread that looks after plugins",
            ))?;
        let servers = rlf_remote::connect(config.remote()).map_err(|error| of_remote(&error))?;
        let environments =
            Environments::with_servers(&registry, &sandbox, &config.environments, servers);
        let user = user::open(
            config.user.as_ref(),
            &models,
            config.seed,
            tasks.all_tasks().iter().map(|task| &**task),
        )?;
        let context = EpisodeContext {
            dialogue: Arc::new(dialogue),
            tools: tools.clone(),
            environments: environments.clone(),
            shown: config.shown_tools.clone(),
            user: user.clone(),
            recorded: None,
        };
        let checked = tasks.check(&context);
        report_problems(
            &registry,
            &config,
            &*tasks,
            checked.as_ref().err(),
            reporter,
        );
        checked?;
        // The tools of environments are not known before one is opened.
        if tasks.environments().is_empty() {
            shown_tools::check(&config.shown_tools, &tools)?;
        }
        let dialogue = context.dialogue;
        let demonstrations = (config.sft.is_some())
            .then(|| tasks.demonstrations(&dialogue, &config.shown_tools))
            .transpose()?;
        Ok(Self {
            config,
            tokenizer,
            dialogue,
            registry,
            rewards: Arc::new(rewards.with_tools(&tools)),
            tools,
            models,
            own_weights,
            environments,
            user,
            agent,
            recorded: None,
            supervisor: plugins.preparer.clone(),
            external_engine,
            cache_tokens: OnceLock::new(),
            turn: Mutex::new(()),
            _follower: follower,
            tasks,
            demonstrations,
        })
    }

    /// The files besides the weights that make a checkpoint loadable elsewhere.
    pub fn assets(&self) -> Result<Vec<(String, Vec<u8>)>, RunFailure> {
        let template = self.dialogue.template();
        let mut config = serde_json::json!({
            "chat_template": template.source(),
            "tokenizer_class": "PreTrainedTokenizerFast",
        });
        for (name, token) in template.special_tokens() {
            config[name] = token.as_str().into();
        }
        let stop_ids = self.dialogue.stop_ids();
        let generation = serde_json::json!({"eos_token_id": stop_ids});
        Ok(vec![
            (
                "tokenizer.json".into(),
                self.tokenizer.to_json()?.into_bytes(),
            ),
            (
                "tokenizer_config.json".into(),
                config.to_string().into_bytes(),
            ),
            (
                "generation_config.json".into(),
                generation.to_string().into_bytes(),
            ),
        ])
    }

    /// Sets the configured precision, and prevents ids beyond the tokenizer's from being sampled or trained.
    ///
    /// # Errors
    /// If the device does not have this precision, if the model's vocabulary is
    /// smaller than the tokenizer's, or if the context is longer than the model's positions.
    pub fn fitted(&self, mut model: Model) -> Result<Model, RunFailure> {
        model.use_precision(self.config.precision)?;
        model.limit_vocabulary(self.tokenizer.vocab_size())?;
        let (context, most) = (
            self.config.dialogue.context,
            model.config().max_position_embeddings,
        );
        if context as usize > most {
            return Err(ConfigurationError::long_context(context, most).into());
        }
        Ok(model)
    }

    /// The hashes of everything that the run's plugins consist of: `<alias>` for the code, `<alias> files` for an
    /// environment in Python, `<alias> data` for the data bound to it, and `mcp.<name>`, `openenv.<name>` and
    /// `ors.<name>` for what servers say of their tools and environments.
    pub fn plugin_hashes(&self) -> BTreeMap<String, String> {
        let tools = self.tasks.tools();
        let rewards: BTreeSet<&str> = self.rewards.plugins().collect();
        let environments = self.tasks.environments();
        let leader = (self.config.agent.as_ref()).and_then(|agent| agent.plugin.as_deref());
        let takes_part = |plugin: &Plugin| {
            rewards.contains(plugin.name())
                || leader == Some(plugin.name())
                || environments.contains(plugin.name())
                || plugin.tools().iter().any(|tool| {
                    tools
                        .as_ref()
                        .is_none_or(|used| used.contains(&tool.definition.name))
                })
        };
        let servers = self.tools.servers().iter();
        let mut hashes: BTreeMap<String, String> = servers
            .map(|server| (format!("mcp.{}", server.name()), server.hash().to_owned()))
            .collect();
        for (name, hash) in self.environments.servers() {
            let of_ors = self.config.ors.get(name).is_some_and(|one| one.enabled);
            let table = if of_ors { "ors" } else { "openenv" };
            hashes.insert(format!("{table}.{name}"), hash.to_owned());
        }
        for plugin in self.registry.plugins() {
            if takes_part(plugin) {
                hashes.insert(plugin.name().to_owned(), plugin.hash().to_owned());
                if let Some(files) = plugin.environment_hash() {
                    hashes.insert(format!("{} files", plugin.name()), files.to_owned());
                }
                if let Some(data) = plugin.data_hash() {
                    hashes.insert(format!("{} data", plugin.name()), data);
                }
            }
        }
        hashes
    }

    /// The demonstrations of SFT.
    pub fn demonstrations(&self) -> Result<Arc<dyn DemonstrationSet>, ConfigurationError> {
        let set = self.demonstrations.clone();
        set.ok_or_else(|| {
            let problem = "the configuration has no [sft], and so no demonstrations";
            ConfigurationError::value("sft", problem)
        })
    }

    /// The parts that all episodes share.
    pub fn episode_context(&self) -> EpisodeContext {
        EpisodeContext {
            dialogue: self.dialogue.clone(),
            tools: self.tools.clone(),
            environments: self.environments.clone(),
            shown: self.config.shown_tools.clone(),
            user: self.user.clone(),
            recorded: self.recorded.clone(),
        }
    }

    /// Says who plays the users of these tasks. None if they run in no environment.
    pub fn users<'t>(&self, tasks: impl IntoIterator<Item = &'t Task>) -> Option<UsersMode> {
        UsersMode::for_tasks(tasks, self.user.as_deref())
    }

    /// Adds who plays users to every line of the metrics, because numbers with different users cannot be compared.
    pub(crate) fn label_users(&self, run: &mut RunDirectory) {
        let tasks = self.tasks.all_tasks();
        if let Some(users) = self.users(tasks.iter().map(|task| &**task)) {
            run.metrics().label("users", serde_json::json!(users));
        }
    }

    /// The generator of turns with the current weights of `model`.
    pub fn generator(&self, model: &Model) -> Result<Arc<dyn Generator>, RunFailure> {
        let stop_ids = self.dialogue.stop_ids();
        let context = self.config.dialogue.context as usize;
        if let Some(engine) = &self.external_engine {
            let generator = engine.generator(model, stop_ids, context, self.assets()?);
            return Ok(Arc::new(generator));
        }
        let generator = PolicyGenerator::start(
            model.share(),
            stop_ids.to_vec(),
            context,
            self.config.workers(),
            PolicyGeneratorConfig {
                cache_tokens: Some(self.cache_tokens(model)?),
                ..self.config.engine
            },
        );
        Ok(Arc::new(generator.map_err(RolloutError::from)?))
    }

    /// Sets the tokens in the cache of engines. Without, there is room for as many as if nothing were trained.
    pub(crate) fn set_cache_tokens(&self, tokens: usize) {
        self.cache_tokens.get_or_init(|| tokens);
    }

    /// Tokens in the cache of an engine for `model`. All policies of a run have one shape and one device.
    fn cache_tokens(&self, model: &Model) -> Result<usize, RunFailure> {
        if let Some(tokens) = self.cache_tokens.get() {
            return Ok(*tokens);
        }
        let tokens =
            plan::cache_tokens_without_training(&self.config, model.config(), model.device())?;
        Ok(*self.cache_tokens.get_or_init(|| tokens))
    }

    /// The engine that makes trajectories with the current weights of `model`.
    pub fn rollout_engine(
        &self,
        model: &Model,
    ) -> Result<(Arc<RolloutEngine>, Arc<dyn Generator>), RunFailure> {
        let generator = self.generator(model)?;
        let player: Arc<dyn Player> = match self.agent()? {
            None => Arc::new(PolicyPlayer::new(generator.clone())),
            Some(agent) => Arc::new(AgentPlayer::new(agent, generator.clone())),
        };
        Ok((self.engine(player), generator))
    }

    /// The engine in which `player` plays the trajectories.
    pub fn engine(&self, player: Arc<dyn Player>) -> Arc<RolloutEngine> {
        Arc::new(RolloutEngine {
            context: self.episode_context(),
            rewards: self.rewards.clone(),
            player,
        })
    }

    /// The agent that leads trajectories, if the configuration has one.
    fn agent(&self) -> Result<Option<Arc<dyn Agent>>, ConfigurationError> {
        let Some(config) = &self.config.agent else {
            return Ok(None);
        };
        if let Some(agent) = self.agent.get() {
            return Ok(Some(agent.clone()));
        }
        let temperature = temperature(&self.config);
        let agents = Agents::new(config.clone(), temperature, self.supervisor.clone());
        let agents = agents.map_err(|error| of_agents(&error))?;
        Ok(Some(self.agent.get_or_init(|| Arc::new(agents)).clone()))
    }

    /// The rollout settings for a split.
    pub fn settings(
        &self,
        params: SamplingParams,
        purpose: Purpose,
        split: Split,
        step: u64,
    ) -> Result<RolloutSettings, PolicyError> {
        Ok(RolloutSettings {
            sampler: Sampler::new(params, self.config.seed, purpose)?,
            seed: self.config.seed,
            step,
            steps: self.config.rl.as_ref().map_or(0, |rl| rl.steps),
            split,
        })
    }

    /// Evaluates `model` on `tasks`: greedily, and with `samples` samples drawn with `params`.
    pub fn evaluate<'a>(
        &'a self,
        model: &'a Model,
        split: Split,
        tasks: &'a [NumberedTask],
        samples: usize,
        params: SamplingParams,
        step: u64,
    ) -> BoxFuture<'a, Result<(Evaluation, Vec<Group>), RunFailure>> {
        Box::pin(async move {
            let (engine, _generator) = self.rollout_engine(model)?;
            self.evaluate_with(&engine, split, tasks, samples, params, step)
                .await
        })
    }

    /// Like [`RunParts::evaluate`], with the player of `engine`.
    pub fn evaluate_with<'a>(
        &'a self,
        engine: &'a Arc<RolloutEngine>,
        split: Split,
        tasks: &'a [NumberedTask],
        samples: usize,
        params: SamplingParams,
        step: u64,
    ) -> BoxFuture<'a, Result<(Evaluation, Vec<Group>), RunFailure>> {
        Box::pin(async move {
            let greedy =
                self.settings(SamplingParams::greedy(), Purpose::Evaluation, split, step)?;
            let sampled = self.settings(params, Purpose::Evaluation, split, step)?;
            let health = self.health();
            let evaluated = evaluate(engine, tasks, samples, &greedy, &sampled).await?;
            health.check().map_err(PluginsError::Unhealthy)?;
            Ok(evaluated)
        })
    }

    /// Starts counting how calls of plugins end.
    pub fn health(&self) -> PluginHealth {
        PluginHealth::new(
            &self.tools,
            &self.environments,
            &self.rewards,
            self.config.tools.max_trap_share,
        )
    }
}

/// The temperature at which training and its evaluations sample.
pub(crate) fn temperature(config: &RunConfig) -> f32 {
    (config.rl.as_ref()).map_or(1.0, |rl| rl.temperature as f32)
}

/// The agent that leads trajectories in the sandbox, if the configuration names its plugin.
fn component_agent(
    config: &RunConfig,
    registry: &Registry,
    tools: &ToolManager,
) -> Result<Option<ComponentAgent>, ConfigurationError> {
    let Some(agent) = config.agent.as_ref().filter(|agent| agent.plugin.is_some()) else {
        return Ok(None);
    };
    let component = ComponentAgent::new(agent, temperature(config), registry, tools);
    component.map(Some).map_err(|error| of_agents(&error))
}

/// The grants of all plugins, with `run:` bindings resolved to the run's folder. A plugin that leads trajectories has the
/// time of a trajectory.
fn bindings(config: &RunConfig, run: &Path) -> BTreeMap<String, PluginGrants> {
    let mut grants_by_name = config.plugins.clone();
    if let Some(agent) = &config.agent
        && let Some(leader) = &agent.plugin
        && let Some(grants) = grants_by_name.get_mut(leader)
    {
        grants.limits.wall = agent.wall;
    }
    for path in grants_by_name
        .values_mut()
        .flat_map(|grants| grants.data.values_mut())
    {
        if let Some(name) = path.to_str().and_then(|text| text.strip_prefix(IN_RUN)) {
            *path = data_path(run).join(name);
        }
    }
    grants_by_name
}

fn of_agents(error: &AgentsError) -> ConfigurationError {
    let key = match error {
        AgentsError::Config(invalid) => format!("agent.{}", invalid.key),
        AgentsError::Listen { .. } => "agent.listen".to_owned(),
    };
    ConfigurationError::value(key, error.to_string())
}
