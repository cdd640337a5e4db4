//! From a configuration to the parts of a run: tokenizer, dialogue, plugins, tasks, policy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use candle_core::Device;
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::group::Group;
use rlf_dialogue::protocol::Protocol;
use rlf_dialogue::split::Split;
use rlf_dialogue::template::ChatTemplate;
use rlf_dialogue::tokenizer::Tokenizer;
use rlf_environments::EnvironmentLoader;
use rlf_environments::environments::Environments;
use rlf_interpreters::InterpreterLoader;
use rlf_plugins::counters::{CallCounts, Unhealthy};
use rlf_plugins::follower::Follower;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::kind::Kinds;
use rlf_plugins::plugin::Plugin;
use rlf_plugins::registry::Registry;
use rlf_policy::{GenerationConfig, Model, Purpose, Sampler, SamplingParams};
use rlf_rewards::RewardLoader;
use rlf_rewards::reward_stack::RewardStack;
use rlf_rollout::evaluate::{Evaluation, evaluate};
use rlf_rollout::policy_generator::PolicyGenerator;
use rlf_rollout::user::{User, UsersMode};
use rlf_rollout::{EpisodeContext, RolloutEngine, RolloutSettings};
use rlf_sandbox::{Sandbox, SandboxConfig};
use rlf_tools::ToolLoader;
use rlf_tools::tool_manager::ToolManager;
use rlf_train::run::Checkpoint;

use crate::config::{Config, IN_RUN, SMALL_TEMPLATE};
use crate::progress::loading;
use crate::tasks::{DemonstrationSet, FACTS_TABLE, Numbered, TaskSource};
use crate::user;

/// The kinds of plugins that this program loads.
pub(crate) const KINDS: Kinds = &[
    &ToolLoader,
    &RewardLoader,
    &InterpreterLoader,
    &EnvironmentLoader,
];

/// Everything of a run but its weights.
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) dialogue: Arc<Dialogue>,
    pub(crate) registry: Registry,
    pub(crate) tools: ToolManager,
    pub(crate) environments: Environments,
    pub(crate) rewards: Arc<RewardStack>,
    pub(crate) tasks: Arc<TaskSource>,
    /// What SFT goes through, where there is one.
    demonstrations: Option<Arc<DemonstrationSet>>,
    /// Plays users, where some task wants that.
    user: Option<Arc<dyn User>>,
    /// Serves later calls from plugins that are replaced on disk.
    _follower: Option<Follower>,
}

/// Where compiled components are kept: the user's cache folder, if there is one.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(home)?;
    cache
        .is_absolute()
        .then(|| cache.join("rlf-host").join("components"))
}

/// The sandbox of this machine, with the user's cache folder where the configuration names none.
pub(crate) fn sandbox(config: &SandboxConfig) -> anyhow::Result<Sandbox> {
    let mut config = config.clone();
    config.cache = config.cache.or_else(cache_folder);
    config.prepare_elsewhere = true;
    Ok(Sandbox::new(&config)?)
}

/// What a run keeps of `user.prompt`, beside its data.
const USER_PROMPT: &str = "user-prompt.txt";

fn user_prompt(config: &mut Config) -> Option<&mut PathBuf> {
    config.user.as_mut()?.prompt.as_mut()
}

impl Parts {
    /// Makes all parts of a new run in `run` from its configuration. `plugins` is the plugin
    /// directory; what is wrong with plugins that the run does not need is only reported.
    pub(crate) fn new(mut config: Config, plugins: &Path, run: &Path) -> anyhow::Result<Self> {
        let tasks = TaskSource::open(&config.tasks, config.seed, config.eval.validation_tasks)?;
        if let TaskSource::Facts(world) = &tasks {
            let folder = data_folder(run);
            std::fs::create_dir_all(&folder)
                .and_then(|()| std::fs::write(folder.join(FACTS_TABLE), world.table().to_csv()))
                .with_context(|| format!("cannot write {}", folder.display()))?;
        }
        if let Some(prompt) = user_prompt(&mut config) {
            let kept = data_folder(run).join(USER_PROMPT);
            std::fs::create_dir_all(data_folder(run))
                .and_then(|()| std::fs::copy(&*prompt, &kept))
                .with_context(|| format!("user.prompt: cannot keep {}", prompt.display()))?;
            *prompt = kept;
        }
        let text = Text {
            tokenizer: open_tokenizer(&config, &tasks)?,
            template: open_template(&config)?,
            stop_ids: stop_ids(config.model.checkpoint.as_deref())?,
        };
        Self::assemble(config, plugins, run, tasks, text)
    }

    /// Makes all parts of the run that lies in `run`: with the tokenizer, the template and the data
    /// it was begun with, whatever has become of what they were made from.
    pub(crate) fn existing(mut config: Config, plugins: &Path, run: &Path) -> anyhow::Result<Self> {
        let tasks = TaskSource::open(&config.tasks, config.seed, config.eval.validation_tasks)?;
        if let TaskSource::Facts(world) = &tasks {
            let file = data_folder(run).join(FACTS_TABLE);
            let kept = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            if kept != world.table().to_csv() {
                bail!(
                    "other facts follow from these settings than the run has in {}; go on with the seed and the [tasks.facts] \
                     that it was begun with, and the rlf-host that began it",
                    file.display()
                );
            }
        }
        if let Some(prompt) = user_prompt(&mut config) {
            *prompt = data_folder(run).join(USER_PROMPT);
        }
        let assets = rlf_train::run::assets_path(run);
        let text = Text {
            tokenizer: Tokenizer::load(&assets.join("tokenizer.json"))?,
            template: ChatTemplate::load(&assets)?,
            stop_ids: stop_ids(Some(&assets))?,
        };
        Self::assemble(config, plugins, run, tasks, text)
    }

    fn assemble(
        config: Config,
        plugins: &Path,
        run: &Path,
        tasks: TaskSource,
        text: Text,
    ) -> anyhow::Result<Self> {
        let Text {
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
        .context("[dialogue]")?;
        warn_of_protocol(&dialogue);
        let sandbox = sandbox(&config.sandbox)?;
        if !plugins.is_dir() {
            bail!(
                "there is no plugin directory {}; build the plugins with `cargo xtask plugins`, or name another with --plugins",
                plugins.display()
            );
        }
        let registry =
            loading(|| Registry::load(plugins, &bindings(&config.plugins, run), KINDS, &sandbox));
        let tools = ToolManager::new(&registry, &config.tools)
            .context("[tools]")?
            .keeping_outputs_in(&run.join("outputs"));
        let rewards = RewardStack::new(&registry, &config.rewards).context("[rewards]")?;
        let follower = (config.tools.reload)
            .then(|| Follower::start(&registry, &sandbox))
            .transpose()
            .context("cannot start a thread that looks after plugins")?;
        let environments = Environments::new(&registry, &sandbox, &config.environments);
        let user = user::open(
            config.user.as_ref(),
            config.seed,
            rows(&tasks).iter().map(|(_, task)| &**task),
        )?;
        let scene = EpisodeContext {
            dialogue: Arc::new(dialogue),
            tools: tools.clone(),
            environments: environments.clone(),
            shown: config.shown_tools.clone(),
            user: user.clone(),
        };
        tasks.check(&scene)?;
        let dialogue = scene.dialogue;
        let tasks = Arc::new(tasks);
        let demonstrations = if config.sft.is_some() {
            let set = tasks.demonstrations(&dialogue, &config.shown_tools)?;
            Some(Arc::new(set))
        } else {
            None
        };
        Ok(Self {
            config,
            tokenizer,
            dialogue,
            registry,
            rewards: Arc::new(rewards.with_tools(&tools)),
            tools,
            environments,
            user,
            _follower: follower,
            tasks,
            demonstrations,
        })
    }

    /// The parts of a run that is already there, and its newest checkpoint.
    pub(crate) fn of_run(
        run: &Path,
        plugins: &Path,
        device: Option<&str>,
    ) -> anyhow::Result<(Self, Checkpoint)> {
        let file = run.join("config.toml");
        if !file.exists() {
            bail!("{} is not a run: it has no config.toml", run.display());
        }
        let mut config = Config::load(&file, &[])?;
        if let Some(device) = device {
            device.clone_into(&mut config.device);
        }
        let checkpoint = Checkpoint::latest(run)?.with_context(|| {
            format!(
                "{} has no checkpoint yet; wait for its first, or train on",
                run.display()
            )
        })?;
        let parts = Self::existing(config, plugins, run)?;
        parts.report_problems();
        let changes = rlf_train::run::plugin_changes(run, &parts.plugin_hashes())?;
        for change in changes {
            warn(&format!("since the run was made, {change}"));
        }
        Ok((parts, checkpoint))
    }

    /// Tells what is wrong with the plugins that the run may need, on standard error. Others of the
    /// directory are not its business; `plugin list` tells of them.
    pub(crate) fn report_problems(&self) {
        let rewards = self.config.rewards.stack.iter().map(|entry| &entry.plugin);
        let environments = self.tasks.environments();
        let named = self.config.plugins.keys().chain(rewards);
        let named: BTreeSet<&String> = named.chain(&environments).collect();
        // Where tasks may use whatever is loaded, a tool that is not changes what the model is offered.
        let all = self.tasks.tools().is_none();
        for problem in self.registry.problems() {
            if all || named.contains(&problem.plugin) || problem.plugin == "*" {
                warn(&problem.to_string());
            }
        }
    }

    /// What a checkpoint needs beside its weights to be loadable anywhere.
    pub(crate) fn assets(&self) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
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

    /// Loads weights and fits them to the tokenizer; refuses those that cannot be.
    pub(crate) fn load_model(&self, folder: &Path, device: &Device) -> anyhow::Result<Model> {
        self.fitted(Model::load(folder, device)?)
    }

    /// Keeps the ids beyond the tokenizer from being sampled or trained. Refuses a model that
    /// cannot read what the tokenizer writes, or that cannot hold the context.
    pub(crate) fn fitted(&self, mut model: Model) -> anyhow::Result<Model> {
        model.limit_vocabulary(self.tokenizer.vocab_size())?;
        let (context, most) = (
            self.config.dialogue.context as usize,
            model.config().max_position_embeddings,
        );
        if context > most {
            bail!(
                "dialogue.context = {context} is more than the model's max_position_embeddings = {most}; lower it"
            );
        }
        Ok(model)
    }

    /// The hash of every component that takes part, by alias, and of the data bound to it, by
    /// `<alias> data`.
    pub(crate) fn plugin_hashes(&self) -> BTreeMap<String, String> {
        let tools = self.tasks.tools();
        let rewards: BTreeSet<&str> = self.rewards.plugins().collect();
        let environments = self.tasks.environments();
        let takes_part = |plugin: &Plugin| {
            rewards.contains(plugin.name())
                || environments.contains(plugin.name())
                || plugin.tools().iter().any(|tool| {
                    tools
                        .as_ref()
                        .is_none_or(|used| used.contains(&tool.definition.name))
                })
        };
        let mut hashes = BTreeMap::new();
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

    /// What SFT goes through.
    pub(crate) fn demonstrations(&self) -> anyhow::Result<Arc<DemonstrationSet>> {
        let set = self.demonstrations.clone();
        set.context("the configuration has no [sft], and so no demonstrations")
    }

    /// What episodes take place in.
    pub(crate) fn scene(&self) -> EpisodeContext {
        EpisodeContext {
            dialogue: self.dialogue.clone(),
            tools: self.tools.clone(),
            environments: self.environments.clone(),
            shown: self.config.shown_tools.clone(),
            user: self.user.clone(),
        }
    }

    /// Who plays the users of some tasks, of all by default; none where they live in no environment.
    pub(crate) fn users(&self, tasks: Option<&[Numbered]>) -> Option<UsersMode> {
        let all;
        let tasks = if let Some(tasks) = tasks {
            tasks
        } else {
            all = rows(&self.tasks);
            &all
        };
        let tasks = tasks.iter().map(|(_, task)| &**task);
        UsersMode::for_tasks(tasks, self.user.as_deref())
    }

    /// What trajectories are made with, the policy being `model` as it is now.
    pub(crate) fn workshop(
        &self,
        model: &Model,
    ) -> anyhow::Result<(Arc<RolloutEngine>, Arc<PolicyGenerator>)> {
        let engine = Arc::new(PolicyGenerator::start(
            model.share(),
            self.dialogue.stop_ids().to_vec(),
            self.config.dialogue.context as usize,
            self.config.workers(),
            self.config.engine,
        )?);
        let workshop = RolloutEngine {
            context: self.scene(),
            rewards: self.rewards.clone(),
            generator: engine.clone(),
        };
        Ok((Arc::new(workshop), engine))
    }

    /// How to sample on a split.
    pub(crate) fn settings(
        &self,
        params: SamplingParams,
        purpose: Purpose,
        split: Split,
        step: u64,
    ) -> anyhow::Result<RolloutSettings> {
        Ok(RolloutSettings {
            sampler: Sampler::new(params, self.config.seed, purpose)?,
            seed: self.config.seed,
            step,
            steps: self.config.rl.as_ref().map_or(0, |rl| rl.steps),
            split,
        })
    }

    /// Measures `model` on `tasks`: greedily, and `samples` times by `params`.
    pub(crate) async fn evaluate(
        &self,
        model: &Model,
        split: Split,
        tasks: &[Numbered],
        samples: usize,
        params: SamplingParams,
        step: u64,
    ) -> anyhow::Result<(Evaluation, Vec<Group>)> {
        let (workshop, _engine) = self.workshop(model)?;
        let greedy = self.settings(SamplingParams::greedy(), Purpose::Evaluation, split, step)?;
        let sampled = self.settings(params, Purpose::Evaluation, split, step)?;
        let health = self.health();
        let evaluated = evaluate(&workshop, tasks, samples, &greedy, &sampled).await?;
        health.check()?;
        Ok(evaluated)
    }

    /// Looks at how plugins do from now on.
    pub(crate) fn health(&self) -> Health<'_> {
        Health {
            parts: self,
            tools: self.tools.counts(),
            environments: self.environments.counts(),
            rewards: self.rewards.counts(),
        }
    }
}

/// How the calls of all plugins had ended at some moment.
pub(crate) struct Health<'a> {
    parts: &'a Parts,
    tools: BTreeMap<String, CallCounts>,
    environments: BTreeMap<String, CallCounts>,
    rewards: BTreeMap<String, CallCounts>,
}

impl Health<'_> {
    /// An error if a plugin has trapped too often since.
    pub(crate) fn check(&self) -> Result<(), Unhealthy> {
        let most = self.parts.config.tools.max_trap_share;
        self.parts.tools.check_health(&self.tools, most)?;
        let environments = &self.parts.environments;
        environments.check_health(&self.environments, most)?;
        self.parts.rewards.check_health(&self.rewards, most)
    }
}

/// The rows of all splits, where tasks are rows.
fn rows(tasks: &TaskSource) -> Vec<Numbered> {
    use Split::{Test, Train, Validation};
    match tasks {
        TaskSource::Facts(_) => Vec::new(),
        TaskSource::Files(_) => [Train, Validation, Test]
            .into_iter()
            .flat_map(|split| tasks.first(split, usize::MAX))
            .collect(),
    }
}

/// Where data that belongs to a run lies.
pub(crate) fn data_folder(run: &Path) -> PathBuf {
    run.join("data")
}

/// The policies with `run:` bindings pointing into the run.
fn bindings(
    policies: &BTreeMap<String, PluginGrants>,
    run: &Path,
) -> BTreeMap<String, PluginGrants> {
    let mut policies = policies.clone();
    for path in policies
        .values_mut()
        .flat_map(|policy| policy.data.values_mut())
    {
        if let Some(name) = path.to_str().and_then(|text| text.strip_prefix(IN_RUN)) {
            *path = data_folder(run).join(name);
        }
    }
    policies
}

/// What turns messages into ids.
struct Text {
    tokenizer: Tokenizer,
    template: ChatTemplate,
    stop_ids: Vec<u32>,
}

/// The ids that end a turn by a folder's generation_config.json, if there is one.
fn stop_ids(folder: Option<&Path>) -> anyhow::Result<Vec<u32>> {
    let config = folder.map(GenerationConfig::load).transpose()?.flatten();
    Ok(config.map_or_else(Vec::new, |config| config.stop_ids()))
}

/// On standard error, for people.
pub(crate) fn warn(what: &str) {
    eprintln!(
        "{} {what}",
        console::style("warning:").yellow().bold().for_stderr()
    );
}

pub(crate) fn open_tokenizer(config: &Config, tasks: &TaskSource) -> anyhow::Result<Tokenizer> {
    if let Some(options) = &config.tokenizer.train {
        return Tokenizer::train_bpe(tasks.corpus(), options).context("[tokenizer.train]");
    }
    let file = match (&config.tokenizer.file, &config.model.checkpoint) {
        (Some(file), _) => file.clone(),
        (None, Some(checkpoint)) => checkpoint.join("tokenizer.json"),
        (None, None) => bail!("no tokenizer is configured; set `tokenizer.file`"),
    };
    Ok(Tokenizer::load(&file)?)
}

/// A model that reads calls in one way and is to write them in another learns neither.
fn warn_of_protocol(dialogue: &Dialogue) {
    let template = dialogue.template();
    let (used, written) = (dialogue.protocol(), Protocol::detect(template.source()));
    if let Some(written) = written.filter(|written| *written != used) {
        warn(&format!(
            "dialogue.protocol is {}, but the chat template {} writes calls as {}; leave dialogue.protocol out, or name \
             another `template`",
            used.as_str(),
            template.origin(),
            written.as_str()
        ));
    }
}

/// The chat template: `small`, a file, or the checkpoint's own.
fn open_template(config: &Config) -> anyhow::Result<ChatTemplate> {
    Ok(
        match (config.template.as_deref(), &config.model.checkpoint) {
            (Some(SMALL_TEMPLATE), _) | (None, None) => ChatTemplate::small(),
            (Some(path), _) => ChatTemplate::load(Path::new(path))?,
            (None, Some(checkpoint)) => ChatTemplate::load(checkpoint)?,
        },
    )
}
