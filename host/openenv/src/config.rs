//! Configuration of one environment behind a URL.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rlf_config::milliseconds;
use rlf_http::{HostRule, HttpRules, Scheme};
use rlf_plugins::manifest::is_valid_name;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::error::OpenEnvError;

/// `[openenv.NAME]` of a configuration: an environment that a server offers with the protocol of OpenEnv.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpenEnvConfig {
    /// The base URL of the server, such as `http://127.0.0.1:8000`.
    pub url: String,
    /// The environment variable with the token that is sent as `Authorization: Bearer TOKEN`. Default: none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// The name of the tool that acts, for an environment whose actions are no tool calls. Default `step`.
    pub tool: String,
    /// The reward of an episode: `last`, the last one that the server gave, or `sum`. Default `last`.
    pub reward: RewardOf,
    /// The lowest and the highest reward of an episode. They become the scores 0 and 1. A reward outside of them excludes
    /// the trajectory. Default 0 and 1.
    pub reward_range: [f64; 2],
    /// The reward from which an episode counts as a success. Default: the highest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_reward: Option<f64>,
    /// Time limit for connecting, waiting for room on the server and beginning an episode. Default 30,000 ms.
    #[serde(rename = "connect_ms", with = "milliseconds")]
    pub connect: Duration,
    /// Time limit of one step. Default 30,000 ms.
    #[serde(rename = "deadline_ms", with = "milliseconds")]
    pub deadline: Duration,
    /// Number of sessions that may be open at once. Further trajectories wait. Default 16.
    pub max_sessions: usize,
    /// Maximum size of a call's arguments, in bytes. Default 1 MiB.
    pub arguments_bytes: u64,
    /// Maximum size of a call's result, in bytes. Default 1 MiB.
    pub result_bytes: u64,
    /// False leaves the environment out. Default true.
    pub enabled: bool,
}

/// The reward of an episode, of those that its steps have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewardOf {
    /// The last one.
    #[default]
    Last,
    /// Their sum.
    Sum,
}

impl Default for OpenEnvConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            token_env: None,
            tool: "step".to_owned(),
            reward: RewardOf::Last,
            reward_range: [0.0, 1.0],
            success_reward: None,
            connect: Duration::from_secs(30),
            deadline: Duration::from_secs(30),
            max_sessions: 16,
            arguments_bytes: 1 << 20,
            result_bytes: 1 << 20,
            enabled: true,
        }
    }
}

impl OpenEnvConfig {
    /// Refuses a configuration that could never work. It reads nothing but the configuration itself.
    pub fn check(&self, environment: &str) -> Result<(), OpenEnvError> {
        let wrong = |key, reason: &str| Err(OpenEnvError::config(environment, key, reason));
        self.base(environment)?;
        if !is_valid_name(&self.tool) {
            return wrong("tool", "write 1 to 64 of a-z A-Z 0-9 _ -");
        }
        let [least, most] = self.reward_range;
        if least >= most || !(most - least).is_finite() {
            return wrong("reward_range", "write two numbers, the lower one first");
        }
        if let Some(success) = self.success_reward
            && !(least..=most).contains(&success)
        {
            let reason = format!("write a reward from {least} to {most}, which is `reward_range`");
            return wrong("success_reward", &reason);
        }
        let day = Duration::from_hours(24);
        for (key, time) in [("connect_ms", self.connect), ("deadline_ms", self.deadline)] {
            if time.is_zero() || time > day {
                return wrong(key, "write 1 to 86400000");
            }
        }
        if !(1..=10_000).contains(&self.max_sessions) {
            return wrong("max_sessions", "write 1 to 10000");
        }
        let sizes = [
            ("arguments_bytes", self.arguments_bytes),
            ("result_bytes", self.result_bytes),
        ];
        for (key, size) in sizes {
            if !(1..=16 << 20).contains(&size) {
                return wrong(key, "write 1 to 16777216");
            }
        }
        Ok(())
    }

    /// The base URL, without a slash at its end.
    pub(crate) fn base(&self, environment: &str) -> Result<Url, OpenEnvError> {
        let wrong = |reason: &str| OpenEnvError::config(environment, "url", reason);
        if self.url.is_empty() {
            return Err(wrong(
                "it is missing; write the URL of a server, such as `http://127.0.0.1:8000`",
            ));
        }
        let url = Url::parse(self.url.trim_end_matches('/'))
            .map_err(|error| wrong(&format!("{:?} is no URL: {error}", self.url)))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(wrong("write a URL that begins with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("no secrets in the URL; use `token_env`"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("leave out what begins with `?` or `#`"));
        }
        Ok(url)
    }

    /// The rules that open the one host of the URL.
    pub(crate) fn rules(&self, base: &Url) -> HttpRules {
        let host = base.host_str().unwrap_or_default().to_owned();
        let rule = HostRule {
            scheme: if base.scheme() == "https" {
                Scheme::Https
            } else {
                Scheme::Http
            },
            ports: BTreeSet::from_iter(base.port_or_known_default()),
            // The operator named the server.
            allow_private_addresses: true,
        };
        HttpRules {
            hosts: BTreeMap::from([(host, rule)]),
            max_response_bytes: 4 << 20,
            timeout: self.connect,
            ..HttpRules::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let config: OpenEnvConfig = rlf_config::parse(text, "c.toml").unwrap();
        config.check("chess").unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_said_with_its_key() {
        let url = "url = \"http://127.0.0.1:8000/\"\n";
        let ok: OpenEnvConfig = rlf_config::parse(url, "c.toml").unwrap();
        ok.check("chess").unwrap();
        assert_eq!(ok.base("chess").unwrap().as_str(), "http://127.0.0.1:8000/");
        for (text, says) in [
            ("", "[openenv.chess] url: it is missing"),
            ("url = \"ws://a\"", "[openenv.chess] url: write a URL"),
            ("url = \"http://u:p@a\"", "[openenv.chess] url: no secrets"),
            ("url = \"http://a?b\"", "[openenv.chess] url: leave out"),
        ] {
            let error = error(text);
            assert!(error.contains(says), "{error}");
        }
        for (more, says) in [
            ("tool = \"a b\"", "tool: write 1 to 64"),
            ("reward_range = [1, 0]", "reward_range: write two numbers"),
            (
                "success_reward = 2",
                "success_reward: write a reward from 0 to 1",
            ),
            ("deadline_ms = 0", "deadline_ms: write 1 to"),
            ("max_sessions = 0", "max_sessions: write 1 to"),
            ("result_bytes = 0", "result_bytes: write 1 to"),
        ] {
            let error = error(&format!("{url}{more}"));
            assert!(error.contains(says), "{error}");
        }
    }
}
