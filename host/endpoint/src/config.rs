//! Configuration of an endpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use rlf_config::milliseconds;
use rlf_http::{HostRule, HttpRules, Scheme, SecretRule};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

/// The name of the key among the secrets of the HTTP rules.
pub(crate) const KEY: &str = "key";

/// Maximum size of an answer's body. The longest completion is far smaller.
const MAX_ANSWER_BYTES: u64 = 4 << 20;
const MAX_QUESTION_BYTES: u64 = 16 << 20;

/// Ends of the URLs for questions and for embeddings.
const CHAT: &str = "/chat/completions";
const EMBEDDINGS: &str = "/embeddings";

/// Keys of a request that the configuration sets elsewhere, so they cannot be in `extra`.
const OWN: [&str; 8] = [
    "model",
    "messages",
    "input",
    "temperature",
    "max_tokens",
    "seed",
    "stream",
    "n",
];

/// An OpenAI-compatible endpoint. `url` and `model` are needed; unknown keys are errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EndpointConfig {
    /// The base URL, such as `http://127.0.0.1:8000/v1`. `/chat/completions` is added if it is missing, or `/embeddings`
    /// for embeddings.
    pub url: String,
    /// The model to ask, by the endpoint's name for it.
    pub model: String,
    /// The environment variable that holds the key. Default: no key is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// The file that holds the key. A line break at its end is not part of it. Excludes `key_env`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Sampling temperature, from 0 to 2. Default 1.0.
    pub temperature: f64,
    /// Maximum number of tokens of an answer. Default 1,024; 0 leaves it to the endpoint.
    pub max_tokens: u32,
    /// True if a seed is sent with every request. Default true; use false for endpoints that refuse a seed.
    pub send_seed: bool,
    /// Time limit of one attempt. Key `timeout_ms`, default 60,000 ms.
    #[serde(rename = "timeout_ms", with = "milliseconds")]
    pub timeout: Duration,
    /// Number of retries if the endpoint is busy (429), failed (5xx) or could not be reached. Default 4.
    pub retries: u32,
    /// The wait before the first retry. It doubles each time, up to 30 s, and is lengthened at random by up to half. If
    /// the endpoint asks for a longer wait in `retry-after`, that counts, up to 60 s. Key `backoff_ms`, default 500 ms.
    #[serde(rename = "backoff_ms", with = "milliseconds")]
    pub backoff: Duration,
    /// Number of questions in flight at once. Further ones wait. Default 32.
    pub max_concurrent: u32,
    /// Additional keys for the body of every request, such as `reasoning_effort = "low"`. Default: none.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            model: String::new(),
            key_env: None,
            key_file: None,
            temperature: 1.0,
            max_tokens: 1024,
            send_seed: true,
            timeout: Duration::from_mins(1),
            retries: 4,
            backoff: Duration::from_millis(500),
            max_concurrent: 32,
            extra: Map::new(),
        }
    }
}

/// An invalid configuration of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct EndpointConfigError {
    /// The key of the configuration.
    pub key: &'static str,
    /// The mistake, and what to write instead. It never contains a part of the endpoint's key.
    pub reason: String,
}

fn wrong<T>(key: &'static str, reason: impl Into<String>) -> Result<T, EndpointConfigError> {
    let reason = reason.into();
    Err(EndpointConfigError { key, reason })
}

impl EndpointConfig {
    /// Refuses a configuration that could never work. It reads nothing but the configuration itself.
    pub fn check(&self) -> Result<(), EndpointConfigError> {
        self.target()?;
        if self.model.trim().is_empty() {
            return wrong("model", "name the model, as the endpoint names it");
        }
        if self.key_env.is_some() && self.key_file.is_some() {
            return wrong("key_file", "`key_env` says where the key is too; keep one");
        }
        if !(0.0..=2.0).contains(&self.temperature) {
            return wrong("temperature", format!("{}: write 0 to 2", self.temperature));
        }
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        for (key, value, least, most) in [
            ("timeout_ms", milliseconds(self.timeout), 1, 3_600_000),
            ("backoff_ms", milliseconds(self.backoff), 0, 30_000),
            ("retries", u64::from(self.retries), 0, 100),
            ("max_concurrent", u64::from(self.max_concurrent), 1, 10_000),
        ] {
            if !(least..=most).contains(&value) {
                return wrong(key, format!("{value}: write {least} to {most}"));
            }
        }
        if let Some(own) = OWN.iter().find(|own| self.extra.contains_key(**own)) {
            return wrong("extra", format!("`{own}` is not set in here; leave it out"));
        }
        Ok(())
    }

    /// The base URL, to show. A query, which may hold a key, is left out. Empty if the URL cannot be used.
    pub fn base(&self) -> String {
        let Ok(mut url) = self.target() else {
            return String::new();
        };
        url.set_query(None);
        let url = url.as_str();
        url.strip_suffix(CHAT).unwrap_or(url).to_owned()
    }

    /// The URL for questions.
    pub(crate) fn target(&self) -> Result<Url, EndpointConfigError> {
        self.url_of(CHAT)
    }

    /// The URL for embeddings.
    pub(crate) fn embeddings_target(&self) -> Result<Url, EndpointConfigError> {
        self.url_of(EMBEDDINGS)
    }

    /// The URL that ends in `service`.
    fn url_of(&self, service: &str) -> Result<Url, EndpointConfigError> {
        let example = "write the endpoint's base, such as \"http://127.0.0.1:8000/v1\"";
        if self.url.is_empty() {
            return wrong("url", format!("it is missing; {example}"));
        }
        // The errors do not contain the URL, because a user may have put a key into it, which must not appear in a log.
        let Ok(mut url) = Url::parse(&self.url) else {
            return wrong("url", format!("this is no URL; {example}"));
        };
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return wrong("url", format!("only http and https are spoken; {example}"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return wrong(
                "url",
                "it has a user or a password in it; leave them out and use `key_env` or `key_file`",
            );
        }
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let base = [CHAT, EMBEDDINGS]
            .iter()
            .find_map(|service| path.strip_suffix(service))
            .unwrap_or(path);
        let path = format!("{base}{service}");
        url.set_path(&path);
        Ok(url)
    }

    /// HTTP rules that open this endpoint and nothing else.
    pub(crate) fn rules(&self, target: &Url) -> HttpRules {
        let host = target.host_str().unwrap_or_default().to_owned();
        let rule = HostRule {
            scheme: if target.scheme() == "https" {
                Scheme::Https
            } else {
                Scheme::Http
            },
            ports: BTreeSet::from_iter(target.port_or_known_default()),
            // The operator named the endpoint, and most private models are in a private network.
            allow_private_addresses: true,
        };
        let secret = SecretRule {
            env: self.key_env.clone(),
            file: self.key_file.clone(),
            host: host.clone(),
            prefix: "Bearer ".to_owned(),
        };
        let has_key = self.key_env.is_some() || self.key_file.is_some();
        HttpRules {
            hosts: BTreeMap::from([(host, rule)]),
            secrets: BTreeMap::from_iter(has_key.then(|| (KEY.to_owned(), secret))),
            max_request_bytes: MAX_QUESTION_BYTES,
            max_response_bytes: MAX_ANSWER_BYTES,
            timeout: self.timeout,
            max_concurrent: self.max_concurrent,
            ..HttpRules::default()
        }
    }
}
