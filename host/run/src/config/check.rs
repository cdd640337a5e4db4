//! Checks the values of a configuration: each by its range, and some against each other.

use rlf_agents::InvalidAgent;
use rlf_dialogue::{InvalidDialogue, TokenizerError};
use rlf_endpoint::EndpointConfigError;
use rlf_forge::countries::CountriesConfigError;
use rlf_remote::Protocol;
use rlf_rollout::policy_generator::InvalidSize;
use rlf_sandbox::SandboxError;
use rlf_tools::POLICY;
use rlf_tools::tool_manager::ToolError;
use rlf_train::config::{Algorithm, InvalidSetting, RlConfig};

use super::{RunConfig, of_mcp, of_remote};
use crate::error::ConfigurationError;

/// Stands for the tokenizer's vocabulary, which is not known before the tasks are read, in the check of a model's shape.
const STAND_IN_VOCABULARY: usize = 512;

/// Fails with the error of the value of `key`, or of the lack of one.
fn wrong(key: &str, problem: &str) -> Result<(), ConfigurationError> {
    Err(ConfigurationError::value(key, problem))
}

impl RunConfig {
    /// Refuses values out of their range, and values that contradict each other. It reads no other file.
    pub(crate) fn check(&self) -> Result<(), ConfigurationError> {
        match (&self.model.checkpoint, &self.model.init) {
            (Some(_), Some(_)) => {
                return wrong(
                    "model",
                    "[model] has both `checkpoint` and `init`; keep one",
                );
            }
            (None, None) => {
                return wrong(
                    "model",
                    "[model] needs `checkpoint = \"DIR\"` or a table [model.init]",
                );
            }
            (None, Some(_)) if self.tokenizer.file.is_none() && self.tokenizer.train.is_none() => {
                return wrong(
                    "model.init",
                    "a model made from nothing has no tokenizer; set `tokenizer.file` or [tokenizer.train]",
                );
            }
            _ => {}
        }
        if self.tokenizer.file.is_some() && self.tokenizer.train.is_some() {
            return wrong(
                "tokenizer",
                "[tokenizer] has both `file` and `train`; keep one",
            );
        }
        match (&self.tasks.facts, &self.tasks.train) {
            (Some(_), Some(_)) => {
                return wrong("tasks", "[tasks] has both `facts` and `train`; keep one");
            }
            (None, None) => {
                return wrong(
                    "tasks",
                    "[tasks] needs `train = \"FILE\"` or a table [tasks.facts]",
                );
            }
            _ => {}
        }
        if self.tasks.facts.is_some() && self.rl.as_ref().is_some_and(|rl| rl.curriculum.is_some())
        {
            return wrong(
                "rl.curriculum",
                "[rl.curriculum] cannot estimate the success on tasks that never come again, as those of [tasks.facts]; \
                 remove it, or use a file: `tasks.train`",
            );
        }
        let grades_turns = self
            .rewards
            .stack
            .iter()
            .any(|entry| !entry.turns.is_empty());
        let needs_turns = |rl: &RlConfig| rl.algorithm == Algorithm::MtGrpo;
        if self.rl.as_ref().is_some_and(needs_turns) && !grades_turns {
            return wrong(
                "rl.algorithm",
                "\"mt-grpo\" needs rewards of turns: weigh a per-event term with `turns = { TERM = 1.0 }` in an entry of \
                 [[rewards.stack]], or use `algorithm = \"grpo\"`",
            );
        }
        let reads_turns =
            |rl: &RlConfig| matches!(rl.algorithm, Algorithm::MtGrpo | Algorithm::Ppo);
        if self.rl.as_ref().is_some_and(|rl| !reads_turns(rl)) && grades_turns {
            return wrong(
                "rewards.stack",
                "`turns` in [[rewards.stack]] is for `rl.algorithm = \"mt-grpo\"` and `\"ppo\"` only; use one of them, or \
                 remove `turns`",
            );
        }
        if self.sft.is_none() && self.rl.is_none() {
            return wrong("", "there is nothing to do: add [sft], [rl] or both");
        }
        for (key, value, least, most) in [
            ("eval.tasks", self.eval.tasks, 1, 1_000_000),
            ("eval.samples", self.eval.samples, 1, 10_000),
            (
                "eval.validation_tasks",
                self.eval.validation_tasks,
                1,
                1_000_000,
            ),
            ("workers", self.workers(), 1, 1024),
        ] {
            if !(least..=most).contains(&value) {
                return wrong(key, &format!("{key} = {value}: write {least} to {most}"));
            }
        }
        let patience = self.rl.as_ref().is_some_and(|rl| rl.patience > 0);
        for (key, is_set) in [
            ("rl.patience", patience),
            ("checkpoint.keep_best", self.checkpoint.keep_best),
        ] {
            if is_set && self.eval.every == 0 {
                return wrong(
                    key,
                    &format!(
                        "{key} needs validations, and `eval.every = 0` makes none; write 10, for example"
                    ),
                );
            }
        }
        self.check_tables()
    }

    /// Checks each table by the rules of the crate that uses it.
    fn check_tables(&self) -> Result<(), ConfigurationError> {
        self.shape(STAND_IN_VOCABULARY)?;
        if let Some(lora) = &self.model.lora {
            (lora.validate()).map_err(ConfigurationError::in_table(
                "model",
                |e: &InvalidSetting| e.key,
            ))?;
        }
        if let Some(options) = &self.tokenizer.train {
            (options.validate()).map_err(ConfigurationError::in_table(
                "tokenizer.train",
                |e: &TokenizerError| match e {
                    TokenizerError::Option { key, .. } => key,
                    _ => "",
                },
            ))?;
        }
        (self.dialogue.validate()).map_err(ConfigurationError::in_table(
            "dialogue",
            |e: &InvalidDialogue| e.key,
        ))?;
        if let Some(facts) = &self.tasks.facts {
            (facts.validate()).map_err(ConfigurationError::in_table(
                "tasks.facts",
                |e: &CountriesConfigError| e.key(),
            ))?;
        }
        if let Some(agent) = &self.agent {
            (agent.check())
                .map_err(ConfigurationError::in_table("agent", |e: &InvalidAgent| {
                    e.key
                }))?;
            if agent.plugin.is_some() && self.models.contains_key(POLICY) {
                return wrong(
                    "models.policy",
                    "with `agent.plugin`, `policy` is the policy that is being trained; give the model of [models.policy] \
                     another name",
                );
            }
        }
        (self.sandbox.validate()).map_err(ConfigurationError::in_table(
            "sandbox",
            |e: &SandboxError| e.key(),
        ))?;
        (self.tools.validate())
            .map_err(ConfigurationError::in_table("tools", |e: &ToolError| {
                e.key()
            }))?;
        for (name, model) in &self.models {
            model.check().map_err(|error| {
                let key = format!("models.{name}.{}", error.key);
                let problem = format!("{key}: {}", error.reason);
                ConfigurationError::value(key, problem)
            })?;
        }
        for (name, server) in &self.mcp {
            server.check(name).map_err(|error| of_mcp(&error))?;
        }
        for (protocol, environments) in self.remote() {
            for (name, environment) in environments {
                (environment.check(protocol, name)).map_err(|error| of_remote(&error))?;
                if !environment.enabled {
                    continue;
                }
                let of_openenv = self.openenv.get(name).is_some_and(|one| one.enabled);
                let other = if self.plugins.contains_key(name) {
                    "plugins"
                } else if protocol == Protocol::Ors && of_openenv {
                    "openenv"
                } else {
                    continue;
                };
                let key = format!("{}.{name}", protocol.table());
                let problem =
                    format!("[{key}] and [{other}.{name}] have the same name; rename one");
                return Err(ConfigurationError::value(key, problem));
            }
        }
        if let Some(user) = &self.user {
            user.check()?;
            user.check_model(&self.models)?;
        }
        (self.engine.validate(self.dialogue.context as usize)).map_err(
            ConfigurationError::in_table("engine", |e: &InvalidSize| e.key),
        )?;
        if let Some(engine) = &self.external_engine {
            (engine.check(self.model.lora.is_some())).map_err(ConfigurationError::in_table(
                "external_engine",
                |e: &EndpointConfigError| e.key,
            ))?;
        }
        (self.checkpoint.validate()).map_err(ConfigurationError::in_table(
            "checkpoint",
            |e: &InvalidSetting| e.key,
        ))?;
        if let Some(sft) = &self.sft {
            (sft.validate())
                .map_err(ConfigurationError::in_table("sft", |e: &InvalidSetting| {
                    e.key
                }))?;
        }
        if let Some(rl) = &self.rl {
            (rl.validate()).map_err(ConfigurationError::in_table("rl", |e: &InvalidSetting| {
                e.key
            }))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::RunConfig;

    const CONFIG: &str = r#"output = "runs/x"

[model]
checkpoint = "weights"

[tasks]
train = "tasks.jsonl"

[rewards]
success = "exact-match.em >= 1"
stack = []

[rl]
steps = 3
"#;

    /// The error of a configuration with more text at its end, and with settings. The file is named by its last part.
    fn error(more: &str, settings: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        std::fs::write(&file, format!("{CONFIG}{more}")).unwrap();
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let error = RunConfig::load(&file, &settings).unwrap_err().to_string();
        let folder = format!("{}/", folder.path().display());
        error.replace(&folder, "")
    }

    #[test]
    fn a_value_out_of_its_range_is_named_with_file_line_and_key() {
        for (more, said) in [
            ("group_size = 1\n", "c.toml:15: [rl]: `rl.group_size = 1`"),
            (
                "\n[rl.optimizer]\nlearning_rate = 0.0\n",
                "c.toml:17: [rl]: `optimizer.learning_rate = 0`",
            ),
            ("[engine]\nslots = 0\n", "c.toml:16: [engine]: slots = 0"),
            (
                "[engine]\ncache_tokens = 4095\n",
                "c.toml:16: [engine]: cache_tokens = 4095: write 4096 to",
            ),
            (
                "[external_engine]\nkind = \"vllm\"\nurl = \"http://a:1\"\nmodel = \"\"\n",
                "c.toml:18: [external_engine]: model: vLLM is asked",
            ),
            ("[eval]\n\nsamples = 0\n", "c.toml:17: eval.samples = 0"),
            (
                "[model.lora]\nalpha = 8\nrank = 0\n",
                "c.toml:17: [model]: `model.lora.rank = 0`",
            ),
            (
                "patience = 3\n[eval]\nevery = 0\n",
                "c.toml:15: rl.patience needs validations",
            ),
            (
                "[checkpoint]\nkeep_best = true\n[eval]\nevery = 0\n",
                "c.toml:16: checkpoint.keep_best needs validations",
            ),
            (
                "[checkpoint]\nkeep_last = 0\n",
                "c.toml:16: [checkpoint]: `checkpoint.keep_last = 0`",
            ),
            (
                "[dialogue]\nmax_turns = 0\n",
                "c.toml:16: [dialogue]: dialogue.max_turns",
            ),
            (
                "[sandbox]\ninstances = 0\n",
                "c.toml:16: [sandbox]: sandbox.instances = 0",
            ),
            (
                "[tools]\nmax_trap_share = 2.0\n",
                "c.toml:16: [tools]: `tools.max_trap_share`",
            ),
            (
                "[user]\nurl = \"http://a/v1\"\nmodel = \"m\"\ntemperature = 3.0\n",
                "c.toml:18: user.temperature: 3",
            ),
            (
                "\n[rl.curriculum]\nprior_weight = 2.0\nfloor = 0.0\n",
                "c.toml:18: [rl]: `rl.curriculum.floor = 0`",
            ),
            ("top_k = 3\n", "c.toml:15: `rl.top_k = 3`"),
            // The value is the default, so the table is named.
            (
                "group_size = 100_000\n",
                "c.toml:13: [rl]: `rl.prompts_per_step = 64`",
            ),
        ] {
            let error = error(more, &[]);
            assert!(error.starts_with(said), "{more}: {error}");
        }
    }

    #[test]
    fn tables_that_contradict_each_other_are_named_by_their_line() {
        let said = error("[tasks.facts]\n", &[]);
        assert!(said.starts_with("c.toml:6: [tasks] has both"), "{said}");
        let facts = &["tasks={ facts = {} }"];
        let said = error("[rl.curriculum]\n", facts);
        assert!(
            said.starts_with("c.toml:15: [rl.curriculum] cannot estimate"),
            "{said}"
        );
        let said = error("[tokenizer]\nfile = \"t\"\ntrain = {}\n", &[]);
        assert!(
            said.starts_with("c.toml:15: [tokenizer] has both"),
            "{said}"
        );
    }

    #[test]
    fn rewards_of_turns_are_refused_where_nothing_reads_them() {
        let turns = "rewards.stack=[{plugin=\"a\", turns={step=1.0}}]";
        for algorithm in ["grpo", "rloo"] {
            let algorithm = format!("rl.algorithm={algorithm}");
            let said = error("", &[turns, &algorithm]);
            assert!(
                said.contains("`turns` in [[rewards.stack]] is for `rl.algorithm = \"mt-grpo\"` and `\"ppo\"` only"),
                "{said}"
            );
        }
        let said = error("", &["rl.algorithm=mt-grpo"]);
        assert!(
            said.contains("\"mt-grpo\" needs rewards of turns"),
            "{said}"
        );
    }

    #[test]
    fn tables_for_what_is_made_from_nothing_are_checked_before_anything_is_made() {
        let without = |settings: &[&str], table: &str| {
            let mut text = CONFIG.replace("checkpoint = \"weights\"", "");
            text = text.replace("train = \"tasks.jsonl\"", "");
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), format!("{text}{table}")).unwrap();
            let settings: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
            let error = RunConfig::load(file.path(), &settings)
                .unwrap_err()
                .to_string();
            error.replace(&file.path().display().to_string(), "c.toml")
        };
        let table = "[model.init]\nhidden_size = 16\nnum_hidden_layers = 1\nnum_attention_heads = 2\n\
                     num_key_value_heads = 1\nhead_dim = 8\nmax_position_embeddings = 64\nintermediate_size = 16\n\
                     [tokenizer.train]\nvocab_size = 9\n[tasks.facts]\ngenerated = 3\n";
        for (text, setting, said) in [
            (
                table.replace("head_dim = 8", "head_dim = 9"),
                None,
                "c.toml:15: [model.init]: model configuration: head_dim is 9",
            ),
            (
                table.replace("head_dim = 8", "head_dim = 8\nheads = 2"),
                None,
                "c.toml:21: [model.init]: unknown key `heads`",
            ),
            (
                table.to_owned(),
                None,
                "c.toml:24: [tokenizer.train]: cannot train the tokenizer: `vocab_size`",
            ),
            (
                table.to_owned(),
                Some("tokenizer.train.vocab_size=400"),
                "c.toml:26: [tasks.facts]: `generated` = 3",
            ),
        ] {
            let error = without(setting.as_slice(), &text);
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn importance_weights_have_a_cap_where_others_than_the_trained_weights_sample() {
        let cap = |setting: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), CONFIG).unwrap();
            let config = RunConfig::load(file.path(), &[setting.to_owned()]).unwrap();
            config.rl.unwrap().importance_cap
        };
        for (setting, wanted) in [
            ("rl.staleness=0", None),
            ("rl.staleness=1", Some(2.0)),
            ("rl={steps=3, staleness=1, importance_cap=5.0}", Some(5.0)),
            ("external_engine.url=http://127.0.0.1:1", Some(2.0)),
        ] {
            assert_eq!(cap(setting), wanted, "{setting}");
        }
    }

    #[test]
    fn a_value_that_a_setting_set_is_named_with_the_setting() {
        let said = error("group_size = 4\n", &["rl.steps=5", "rl.group_size=1"]);
        assert!(
            said.starts_with("rl.group_size=1: [rl]: `rl.group_size = 1`"),
            "{said}"
        );
        let said = error("group_size = 1\n", &["rl.steps=5"]);
        assert!(said.starts_with("c.toml:15: "), "{said}");
        let missing = RunConfig::load(Path::new("/dev/zero"), &[])
            .unwrap_err()
            .to_string();
        assert!(
            missing.starts_with("cannot read /dev/zero: it is a device"),
            "{missing}"
        );
    }
}
