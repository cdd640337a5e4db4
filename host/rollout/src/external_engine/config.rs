//! Configuration of an external engine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rlf_config::milliseconds;
use rlf_endpoint::{EndpointConfig, EndpointConfigError};
use serde::{Deserialize, Serialize};

/// The program that samples, and so the protocol that it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// SGLang, by its own `/generate`. Default.
    #[default]
    Sglang,
    /// vLLM, by OpenAI's completions with token ids.
    Vllm,
}

impl EngineKind {
    /// The name in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sglang => "sglang",
            Self::Vllm => "vllm",
        }
    }
}

/// `[external_engine]`: an engine beside this program that samples the policy's turns. `url` is needed; unknown keys
/// are errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExternalEngineConfig {
    /// `sglang` (default) or `vllm`.
    pub kind: EngineKind,
    /// The base URL, such as `http://127.0.0.1:30000`. A `/v1` at its end is left out.
    pub url: String,
    /// The model by vLLM's name for it (`--served-model-name`). vLLM needs it, except with `[model.lora]`, where
    /// requests name the adapter. SGLang does not read it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The environment variable that holds the key. Default: no key is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// The file that holds the key. A line break at its end is not part of it. Excludes `key_env`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// True if a seed is sent with every turn. Default true; use false for an engine that refuses a seed, or to save
    /// the time that vLLM needs for seeds.
    pub send_seed: bool,
    /// Time limit of one attempt, for a turn or for an update of the weights. Key `timeout_ms`, default 600,000 ms.
    #[serde(rename = "timeout_ms", with = "milliseconds")]
    pub timeout: Duration,
    /// Number of retries if the engine is busy (429), failed (5xx) or could not be reached. Default 4.
    pub retries: u32,
    /// The wait before the first retry. It doubles each time, up to 30 s. Key `backoff_ms`, default 500 ms.
    #[serde(rename = "backoff_ms", with = "milliseconds")]
    pub backoff: Duration,
    /// Number of turns in flight at once. Further ones wait here instead of in the engine. Default 512.
    pub max_concurrent: u32,
    /// A program and its arguments that make the engine load new weights. The folder of the weights is added as the
    /// last argument. The engine has the weights, and answers, when the program has ended with status 0. The program
    /// has the rights of this process: it is not in a sandbox. Default: the engine is asked over HTTP. Not with
    /// `[model.lora]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub update_command: Vec<String>,
}

impl Default for ExternalEngineConfig {
    fn default() -> Self {
        Self {
            kind: EngineKind::Sglang,
            url: String::new(),
            model: String::new(),
            key_env: None,
            key_file: None,
            send_seed: true,
            timeout: Duration::from_mins(10),
            retries: 4,
            backoff: Duration::from_millis(500),
            max_concurrent: 512,
            update_command: Vec::new(),
        }
    }
}

impl ExternalEngineConfig {
    /// Refuses a configuration that could never work. `lora` says whether the run trains adapters. It reads nothing but
    /// the configuration itself.
    pub fn check(&self, lora: bool) -> Result<(), EndpointConfigError> {
        self.endpoint().check()?;
        let needs_model = self.kind == EngineKind::Vllm && !lora;
        for (is_wrong, key, reason) in [
            (
                needs_model && self.model.trim().is_empty(),
                "model",
                "vLLM is asked for a model by name; write that of its `--served-model-name`",
            ),
            (
                lora && !self.update_command.is_empty(),
                "update_command",
                "with [model.lora], adapters are loaded over HTTP; leave it out",
            ),
            (
                (self.update_command.first()).is_some_and(|program| program.trim().is_empty()),
                "update_command",
                "the program's name is empty; write it first, then its arguments",
            ),
        ] {
            if is_wrong {
                let reason = reason.to_owned();
                return Err(EndpointConfigError { key, reason });
            }
        }
        Ok(())
    }

    /// Makes relative paths start at `base`.
    pub fn resolve_paths(&mut self, base: &Path) {
        if let Some(key_file) = &mut self.key_file {
            *key_file = base.join(&*key_file);
        }
    }

    /// The engine's host as an endpoint.
    pub(super) fn endpoint(&self) -> EndpointConfig {
        let url = self.url.trim_end_matches('/');
        EndpointConfig {
            url: url.strip_suffix("/v1").unwrap_or(url).to_owned(),
            model: if self.model.is_empty() {
                self.kind.as_str().to_owned()
            } else {
                self.model.clone()
            },
            key_env: self.key_env.clone(),
            key_file: self.key_file.clone(),
            timeout: self.timeout,
            retries: self.retries,
            backoff: self.backoff,
            max_concurrent: self.max_concurrent,
            ..EndpointConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_that_could_never_work_is_refused_by_its_key() {
        let named = |url: &str, more: &str| {
            let text = format!("url = \"{url}\"\n{more}");
            rlf_config::parse::<ExternalEngineConfig>(&text, "test.toml").unwrap()
        };
        let here = "http://127.0.0.1:30000";
        assert_eq!(named(here, "").check(false), Ok(()));
        assert_eq!(named(here, "kind = \"vllm\"").check(true), Ok(()));
        for (config, lora, key) in [
            (named("", ""), false, "url"),
            (named("unix:/engine", ""), false, "url"),
            (named(here, "kind = \"vllm\""), false, "model"),
            (named(here, "timeout_ms = 0"), false, "timeout_ms"),
            (
                named(here, "update_command = [\"a\"]"),
                true,
                "update_command",
            ),
            (
                named(here, "update_command = [\"\"]"),
                false,
                "update_command",
            ),
        ] {
            assert_eq!(config.check(lora).unwrap_err().key, key);
        }
    }

    #[test]
    fn the_paths_of_services_begin_after_the_host() {
        for url in [
            "http://a:1",
            "http://a:1/",
            "http://a:1/v1",
            "http://a:1/v1/",
        ] {
            let config = ExternalEngineConfig {
                url: url.to_owned(),
                ..ExternalEngineConfig::default()
            };
            assert_eq!(config.endpoint().base(), "http://a:1");
        }
    }
}
