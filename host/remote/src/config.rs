//! Configuration of one environment behind a URL.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rlf_config::milliseconds;
use rlf_http::{HostRule, HttpRules, Scheme};
use rlf_plugins::manifest::is_valid_name;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::error::RemoteError;
use crate::protocol::Protocol;

/// Maximum size of an answer over HTTP, in bytes.
const MAX_ANSWER_BYTES: u64 = 16 << 20;

/// `[openenv.NAME]` or `[ors.NAME]` of a configuration: an environment that a server offers with this protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RemoteConfig {
    /// The base URL of the server, such as `http://127.0.0.1:8000`.
    pub url: String,
    /// For ORS: the server's name for the environment. Default: the first one that the server lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The environment variable with the token that is sent, to OpenEnv as `Authorization: Bearer TOKEN`, and to ORS as
    /// `X-API-Key: TOKEN`. Default: none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// For OpenEnv: the name of the tool that acts, if the environment's actions are no tool calls. Default `step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The reward of an episode: `last`, the last one that the server gave, or `sum`. Default `last` for OpenEnv, and
    /// `sum` for ORS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reward: Option<RewardOf>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewardOf {
    /// The last one.
    Last,
    /// Their sum.
    Sum,
}

impl RewardOf {
    /// The reward of an episode, unless the configuration says otherwise.
    pub(crate) fn default_of(protocol: Protocol) -> Self {
        match protocol {
            Protocol::OpenEnv => Self::Last,
            Protocol::Ors => Self::Sum,
        }
    }
}

impl Default for RemoteConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            environment: None,
            token_env: None,
            tool: None,
            reward: None,
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

impl RemoteConfig {
    /// Writes out the defaults that depend on the protocol.
    pub fn fill(&mut self, protocol: Protocol) {
        self.reward.get_or_insert(RewardOf::default_of(protocol));
        if protocol == Protocol::OpenEnv {
            self.tool = Some(self.tool().to_owned());
        }
    }

    /// Refuses a configuration that could never work. It reads nothing but the configuration itself.
    pub fn check(&self, protocol: Protocol, environment: &str) -> Result<(), RemoteError> {
        let wrong =
            |key, reason: &str| Err(RemoteError::config(protocol, environment, key, reason));
        self.base(protocol, environment)?;
        match protocol {
            Protocol::OpenEnv if self.environment.is_some() => {
                return wrong("environment", "only [ors.NAME] has it; leave it out");
            }
            Protocol::Ors if self.tool.is_some() => {
                return wrong("tool", "only [openenv.NAME] has it; leave it out");
            }
            _ => {}
        }
        if self.environment.as_ref().is_some_and(String::is_empty) {
            return wrong("environment", "write a name that the server lists");
        }
        if !is_valid_name(self.tool()) {
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

    /// The name of the tool that acts.
    pub(crate) fn tool(&self) -> &str {
        self.tool.as_deref().unwrap_or("step")
    }

    /// The base URL, without a slash at its end.
    pub(crate) fn base(&self, protocol: Protocol, environment: &str) -> Result<Url, RemoteError> {
        let wrong = |reason: &str| RemoteError::config(protocol, environment, "url", reason);
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
            // A request has the arguments of a call, or the setup of a task.
            max_request_bytes: 2 * MAX_ANSWER_BYTES,
            max_response_bytes: MAX_ANSWER_BYTES,
            timeout: self.connect.max(self.deadline),
            // Sessions are counted, and each asks for one thing after the other.
            max_concurrent: 10_000,
            ..HttpRules::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let config: RemoteConfig = rlf_config::parse(text, "c.toml").unwrap();
        let refused = config.check(Protocol::OpenEnv, "chess");
        refused.unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_said_with_its_key() {
        let url = "url = \"http://127.0.0.1:8000/\"\n";
        let ok: RemoteConfig = rlf_config::parse(url, "c.toml").unwrap();
        ok.check(Protocol::OpenEnv, "chess").unwrap();
        let base = ok.base(Protocol::OpenEnv, "chess").unwrap();
        assert_eq!(base.as_str(), "http://127.0.0.1:8000/");
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
            ("environment = \"a\"", "environment: only [ors.NAME] has it"),
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

    #[test]
    fn each_protocol_has_its_own_keys_and_defaults() {
        let parse = |text: &str| -> RemoteConfig { rlf_config::parse(text, "c.toml").unwrap() };
        let url = "url = \"http://127.0.0.1:8000\"\n";
        let filled = |protocol| {
            let mut config = parse(url);
            config.fill(protocol);
            config.check(protocol, "chess").unwrap();
            (config.tool, config.reward)
        };
        // A run from before there was another protocol has recorded these.
        let of_openenv = (Some("step".to_owned()), Some(RewardOf::Last));
        assert_eq!(filled(Protocol::OpenEnv), of_openenv);
        assert_eq!(filled(Protocol::Ors), (None, Some(RewardOf::Sum)));
        for (more, says) in [
            (
                "tool = \"act\"",
                "[ors.chess] tool: only [openenv.NAME] has it",
            ),
            (
                "environment = \"\"",
                "[ors.chess] environment: write a name",
            ),
        ] {
            let config = parse(&format!("{url}{more}"));
            let error = config.check(Protocol::Ors, "chess").unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
