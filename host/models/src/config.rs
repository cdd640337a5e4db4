//! Configuration of a model that plugins may ask.

use std::path::{Path, PathBuf};

use rlf_endpoint::{Budget, EndpointConfig, Price};
use serde::{Deserialize, Serialize};

/// Tokens that are reserved for an answer whose length nothing limits.
pub(crate) const UNLIMITED_ANSWER: u64 = 4_096;

/// Maximum of `schema_retries`.
pub(crate) const MAX_SCHEMA_RETRIES: u32 = 10;

/// A model that plugins may ask: exactly one of `endpoint`, `policy` and `replay`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// An OpenAI-compatible endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointConfig>,
    /// Weights that decode in this process: a checkpoint, or the run's own at a moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<FrozenPolicyConfig>,
    /// A file of recorded answers: `models/NAME.jsonl` of a run. Nobody is asked. A question without a recorded answer
    /// ends its call as unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<PathBuf>,
    /// Prices of a million tokens, for the metrics. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The form in which the endpoint gets the JSON Schema of a question that has one. Default `"none"`. The host checks the
    /// answer in every case.
    #[serde(skip_serializing_if = "is_default")]
    pub structured: Structured,
    /// Number of times that a question is asked again because its answer does not fit its JSON Schema. Each time counts in
    /// the budgets. A replay asks again where its record did, whatever this key says. Default 0.
    #[serde(skip_serializing_if = "is_default")]
    pub schema_retries: u32,
    /// The budget of one call of a plugin, with all calls that it makes. The grading of a group has as many of these budgets
    /// as it has trajectories. Default: 32 questions, 200,000 tokens.
    pub call: Budget,
    /// The budget of one trajectory, which counts likewise. Default: 100 questions, 400,000 tokens.
    pub trajectory: Budget,
    /// The budget of a run, or of another process. Default: 20,000,000 tokens.
    pub run: Budget,
}

/// The way in which an endpoint is told the JSON Schema of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Structured {
    /// Not at all. Every server takes such a question.
    #[default]
    None,
    /// `response_format` asks for a JSON object.
    JsonObject,
    /// `response_format` has the schema.
    JsonSchema,
}

/// A policy that training does not change: exactly one of `checkpoint` and `of_run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrozenPolicyConfig {
    /// A Hugging Face Qwen3 checkpoint, with tokenizer and chat template: a published one, or that of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<PathBuf>,
    /// A folder of adapters in PEFT's format, which answer beside the weights of `checkpoint`. Models with the same
    /// `checkpoint` share its weights and one engine, whatever adapters they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<PathBuf>,
    /// The moment of the run whose weights answer. The run keeps a copy of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_run: Option<RunMoment>,
    /// Number of RL steps after which the current weights take the place of those of `of_run = "rl"`, again and again.
    /// Default 0: never.
    #[serde(default, skip_serializing_if = "is_default")]
    pub refresh_every: u64,
    /// Maximum number of tokens of an answer. Default 512.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: u32,
    /// Sampling temperature, from 0 to 2. Default 1.
    #[serde(default = "default_temperature")]
    pub temperature: f64,
    /// Maximum number of tokens of a question and its answer. Default 2,048.
    #[serde(default = "default_context")]
    pub context: u32,
    /// Number of questions that are answered at once; further ones wait. Default 8. Memory grows with
    /// `slots x context`, as that of `[engine]` does by default.
    #[serde(default = "default_slots")]
    pub slots: usize,
}

/// A moment of the run that asks a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunMoment {
    /// Before the first step of training.
    Start,
    /// When RL began. Before that, it is the start.
    Rl,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_max_tokens() -> u32 {
    512
}

fn default_temperature() -> f64 {
    1.0
}

fn default_context() -> u32 {
    2_048
}

fn default_slots() -> usize {
    8
}

/// An invalid configuration of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct ModelConfigError {
    /// The key of the table.
    pub key: String,
    /// The mistake, and what to write instead.
    pub reason: String,
}

impl ModelConfig {
    /// Refuses a configuration that could never work. It reads nothing but the configuration itself.
    pub fn check(&self) -> Result<(), ModelConfigError> {
        let wrong = |key: &str, reason: &str| {
            let (key, reason) = (key.to_owned(), reason.to_owned());
            Err(ModelConfigError { key, reason })
        };
        let sources = [
            self.endpoint.is_some(),
            self.policy.is_some(),
            self.replay.is_some(),
        ];
        match sources.into_iter().filter(|given| *given).count() {
            0 => {
                return wrong(
                    "endpoint",
                    "it is missing; write `endpoint = { url = \"..\", model = \"..\" }`, or `policy`, or `replay`",
                );
            }
            1 => {}
            _ => {
                return wrong("endpoint", "keep one of `endpoint`, `policy` and `replay`");
            }
        }
        if let Some(endpoint) = &self.endpoint {
            endpoint.check().map_err(|error| ModelConfigError {
                key: format!("endpoint.{}", error.key),
                reason: error.reason,
            })?;
        }
        if let Some(policy) = &self.policy {
            let is_refreshed = policy.refresh_every > 0;
            for (key, is_wrong, mend) in [
                (
                    "policy.checkpoint",
                    policy.checkpoint.is_none() && policy.of_run.is_none(),
                    "it is missing; write it, or `of_run = \"start\"` for weights of the run itself",
                ),
                (
                    "policy.of_run",
                    policy.checkpoint.is_some() && policy.of_run.is_some(),
                    "keep one of `checkpoint` and `of_run`",
                ),
                (
                    "policy.adapter",
                    policy.adapter.is_some() && policy.checkpoint.is_none(),
                    "it belongs beside a `checkpoint`; write that instead of `of_run`, or leave the adapter out",
                ),
                (
                    "policy.refresh_every",
                    is_refreshed && policy.of_run != Some(RunMoment::Rl),
                    "it belongs to `of_run = \"rl\"`; leave it out",
                ),
                (
                    "policy.max_tokens",
                    policy.max_tokens == 0,
                    "write 1 or more",
                ),
                (
                    "policy.temperature",
                    !(0.0..=2.0).contains(&policy.temperature),
                    "write 0 to 2",
                ),
                (
                    "policy.context",
                    policy.context <= policy.max_tokens,
                    "write more than `max_tokens`, so that there is room for a question",
                ),
                (
                    "policy.slots",
                    !(1..=1_024).contains(&policy.slots),
                    "write 1 to 1024",
                ),
            ] {
                if is_wrong {
                    return wrong(key, mend);
                }
            }
        }
        if self.endpoint.is_none() && self.structured != Structured::None {
            let reason = "only an endpoint is told the schema; leave it out (answers are checked in every case)";
            return wrong("structured", reason);
        }
        if self.schema_retries > MAX_SCHEMA_RETRIES {
            let reason = format!("write 0 to {MAX_SCHEMA_RETRIES}");
            return wrong("schema_retries", &reason);
        }
        let longest = match (&self.endpoint, &self.policy) {
            (Some(endpoint), _) if endpoint.max_tokens == 0 => UNLIMITED_ANSWER,
            (Some(endpoint), _) => u64::from(endpoint.max_tokens),
            (None, Some(policy)) => u64::from(policy.max_tokens),
            (None, None) => 0,
        };
        for (key, budget) in [
            ("call.tokens", self.call),
            ("trajectory.tokens", self.trajectory),
            ("run.tokens", self.run),
        ] {
            if budget.tokens.is_some_and(|tokens| tokens <= longest) {
                let reason =
                    format!("write more than the {longest} tokens that one answer may take");
                return wrong(key, &reason);
            }
        }
        if let Some(price) = self.price
            && ![price.prompt, price.completion]
                .iter()
                .all(|one| one.is_finite() && *one >= 0.0)
        {
            return wrong("price", "write numbers of 0 or more");
        }
        Ok(())
    }

    /// Makes relative paths start at `base`.
    pub fn resolve_paths(&mut self, base: &Path) {
        let key_file = self
            .endpoint
            .as_mut()
            .and_then(|endpoint| endpoint.key_file.as_mut());
        let of_policy = self.policy.as_mut();
        let of_policy =
            of_policy.map(|policy| [policy.checkpoint.as_mut(), policy.adapter.as_mut()]);
        let paths = [self.replay.as_mut(), key_file].into_iter();
        for path in paths.chain(of_policy.into_iter().flatten()).flatten() {
            *path = base.join(&*path);
        }
    }

    /// The budgets of a call, a trajectory and a run, with their defaults.
    pub(crate) fn budgets(&self) -> [Budget; 3] {
        let or = |given: Budget, questions: Option<u64>, tokens: u64| Budget {
            questions: given.questions.or(questions),
            tokens: given.tokens.or(Some(tokens)),
            time_ms: given.time_ms,
        };
        [
            or(self.call, Some(32), 200_000),
            or(self.trajectory, Some(100), 400_000),
            or(self.run, None, 20_000_000),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let config: ModelConfig = rlf_config::parse(text, "c.toml").unwrap();
        config.check().unwrap_err().to_string()
    }

    #[test]
    fn a_model_has_one_source() {
        assert!(error("").starts_with("endpoint: it is missing"));
        let policy = "policy = { checkpoint = \"a\" }";
        assert!(error(&format!("{policy}\nreplay = \"b\"")).contains("keep one"));
        let nameless = error("endpoint = { url = \"http://127.0.0.1/v1\" }");
        assert!(nameless.starts_with("endpoint.model: "), "{nameless}");
        let hot = error("policy = { checkpoint = \"a\", temperature = 3.0 }");
        assert!(hot.starts_with("policy.temperature"), "{hot}");
        let full = error("policy = { checkpoint = \"a\", context = 512 }");
        assert!(full.starts_with("policy.context"), "{full}");
        let nothing = error("policy = { max_tokens = 5 }");
        assert!(
            nothing.starts_with("policy.checkpoint: it is missing"),
            "{nothing}"
        );
        let both = error("policy = { checkpoint = \"a\", of_run = \"rl\" }");
        assert!(both.starts_with("policy.of_run: keep one"), "{both}");
        let adapted = error("policy = { of_run = \"rl\", adapter = \"b\" }");
        assert!(adapted.starts_with("policy.adapter: "), "{adapted}");
        let refreshed = error("policy = { of_run = \"start\", refresh_every = 2 }");
        assert!(refreshed.starts_with("policy.refresh_every"), "{refreshed}");
        let price = error(&format!(
            "{policy}\nprice = {{ prompt = -1.0, completion = 1.0 }}"
        ));
        assert!(price.starts_with("price"), "{price}");
        let told = error(&format!("{policy}\nstructured = \"json-schema\""));
        assert!(told.starts_with("structured: only an endpoint"), "{told}");
        let often = error(&format!("{policy}\nschema_retries = 11"));
        assert_eq!(often, "schema_retries: write 0 to 10");
        let small = error(&format!("{policy}\ntrajectory = {{ tokens = 500 }}"));
        assert!(small.starts_with("trajectory.tokens"), "{small}");
    }

    #[test]
    fn keys_that_are_not_used_are_not_written() {
        let text = "policy = { checkpoint = \"a\" }";
        let config: ModelConfig = rlf_config::parse(text, "c.toml").unwrap();
        let written = serde_json::to_value(config).unwrap();
        let keys = |table: &serde_json::Value| -> Vec<String> {
            table.as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(keys(&written), ["policy", "call", "trajectory", "run"]);
        assert_eq!(
            keys(&written["policy"]),
            [
                "checkpoint",
                "max_tokens",
                "temperature",
                "context",
                "slots"
            ]
        );
    }

    #[test]
    fn a_budget_has_defaults_key_by_key() {
        let text = "replay = \"a\"\ncall = { questions = 3 }\nrun = { time_ms = 5 }";
        let config: ModelConfig = rlf_config::parse(text, "c.toml").unwrap();
        let [call, _, run] = config.budgets();
        assert_eq!((call.questions, call.tokens), (Some(3), Some(200_000)));
        assert_eq!((run.questions, run.time_ms), (None, Some(5)));
    }
}
