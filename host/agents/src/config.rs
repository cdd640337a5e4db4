//! Configuration of agents.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use rlf_config::milliseconds;
use serde::{Deserialize, Serialize};

/// Minimum length of the token that remote agents show.
pub(crate) const MIN_TOKEN: usize = 16;

/// The agent that leads the trajectories of a run, instead of our own loop.
///
/// It is a program of this machine (`command`), of which each trajectory gets a process of its own; or it runs anywhere,
/// and fetches its tasks over HTTP (`listen`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    /// The program and its arguments. It has the rights of this process: it is not in a sandbox. Excludes `listen`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Environment variables of the process. It inherits only those that docs/agents.md lists, such as `PATH` and `HOME`.
    pub env: BTreeMap<String, String>,
    /// The directory in which the process starts. Default: that in which rlf-host was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Number of processes that may run at once. Further trajectories wait. Default 8.
    pub max_processes: usize,
    /// The address at which remote agents fetch tasks, such as `127.0.0.1:8700`. Excludes `command`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// The URL of `listen` as agents see it, if it differs, such as `http://trainer:8700`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// The environment variable with the token that remote agents show. It is needed for an address that other machines
    /// reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// Time limit of one trajectory, from the start of its agent. Default 300,000 ms.
    #[serde(rename = "wall_ms", with = "milliseconds")]
    pub wall: Duration,
    /// Time that a trajectory waits for a remote agent to fetch it. Default 600,000 ms.
    #[serde(rename = "fetch_ms", with = "milliseconds")]
    pub fetch: Duration,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            env: BTreeMap::new(),
            directory: None,
            max_processes: 8,
            listen: None,
            public_url: None,
            token_env: None,
            wall: Duration::from_mins(5),
            fetch: Duration::from_mins(10),
        }
    }
}

/// A value of the configuration that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("agent.{key}: {reason}")]
pub struct InvalidAgent {
    /// The key.
    pub key: &'static str,
    /// The mistake, and how to correct it.
    pub reason: String,
}

impl AgentConfig {
    /// Refuses a configuration that could never work.
    pub fn check(&self) -> Result<(), InvalidAgent> {
        let wrong = |key, reason: &str| {
            Err(InvalidAgent {
                key,
                reason: reason.to_owned(),
            })
        };
        match (self.command.first(), self.listen) {
            (None, None) => {
                return wrong(
                    "command",
                    "it is missing; write the program of an agent, or `listen` for agents that fetch tasks",
                );
            }
            (Some(_), Some(_)) => return wrong("listen", "keep one of `command` and `listen`"),
            (Some(program), None) if program.is_empty() => {
                return wrong("command", "its first entry is the name of a program");
            }
            (Some(_), None) => {
                for (key, is_set) in [
                    ("public_url", self.public_url.is_some()),
                    ("token_env", self.token_env.is_some()),
                ] {
                    if is_set {
                        return wrong(key, "it belongs to `listen`; leave it out");
                    }
                }
            }
            (None, Some(address)) => {
                if !self.env.is_empty() {
                    return wrong("env", "it belongs to `command`; leave it out");
                }
                if self.directory.is_some() {
                    return wrong("directory", "it belongs to `command`; leave it out");
                }
                if !address.ip().is_loopback() && self.token_env.is_none() {
                    return wrong(
                        "token_env",
                        "other machines reach the address of `listen`; name the environment variable with a token",
                    );
                }
            }
        }
        if let Some(url) = &self.public_url
            && !(url.starts_with("http://") || url.starts_with("https://"))
        {
            return wrong(
                "public_url",
                "write a URL that begins with http:// or https://",
            );
        }
        if self
            .listen
            .is_some_and(|address| address.ip().is_unspecified())
            && self.public_url.is_none()
        {
            return wrong(
                "public_url",
                "it is missing; `listen` is no address that agents can reach, so write the URL by which they do",
            );
        }
        if self.max_processes == 0 {
            return wrong("max_processes", "write at least 1");
        }
        for (key, time) in [("wall_ms", self.wall), ("fetch_ms", self.fetch)] {
            if time.is_zero() {
                return wrong(key, "write at least 1");
            }
        }
        Ok(())
    }

    /// The token that remote agents show.
    pub(crate) fn token(&self) -> Result<Option<String>, InvalidAgent> {
        let Some(variable) = &self.token_env else {
            return Ok(None);
        };
        let wrong = |reason: String| InvalidAgent {
            key: "token_env",
            reason,
        };
        let token = std::env::var(variable).map_err(|_| {
            wrong(format!(
                "the environment variable {variable} is not set; set it where rlf-host is started"
            ))
        })?;
        if token.len() < MIN_TOKEN {
            return Err(wrong(format!(
                "the token in {variable} has {} characters; make one of at least {MIN_TOKEN}, for example with `openssl rand -hex 32`",
                token.len()
            )));
        }
        Ok(Some(token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_that_cannot_work_names_its_key() {
        let command = || AgentConfig {
            command: vec!["agent".into()],
            ..AgentConfig::default()
        };
        let remote = |address: &str| AgentConfig {
            listen: Some(address.parse().unwrap()),
            ..AgentConfig::default()
        };
        assert_eq!(command().check(), Ok(()));
        assert_eq!(remote("127.0.0.1:1").check(), Ok(()));
        for (config, key) in [
            (AgentConfig::default(), "command"),
            (
                AgentConfig {
                    command: vec![String::new()],
                    ..AgentConfig::default()
                },
                "command",
            ),
            (
                AgentConfig {
                    listen: remote("127.0.0.1:1").listen,
                    ..command()
                },
                "listen",
            ),
            (
                AgentConfig {
                    token_env: Some("A".into()),
                    ..command()
                },
                "token_env",
            ),
            (remote("0.0.0.0:1"), "token_env"),
            (
                AgentConfig {
                    max_processes: 0,
                    ..command()
                },
                "max_processes",
            ),
            (
                AgentConfig {
                    wall: Duration::ZERO,
                    ..command()
                },
                "wall_ms",
            ),
        ] {
            assert_eq!(config.check().unwrap_err().key, key);
        }
    }
}
