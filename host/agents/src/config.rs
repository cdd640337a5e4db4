//! Configuration of agents.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rlf_config::milliseconds;
use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

use crate::access::Token;

/// The folders of programs if there is no `PATH`.
const SYSTEM_PATH: &str = "/bin:/usr/bin";

/// The agent that leads the trajectories of a run, instead of our own loop.
///
/// It is a program of this machine (`command`), of which each trajectory gets a process of its own; or it runs anywhere,
/// and fetches its tasks over HTTP (`listen`); or it is a plugin in the sandbox (`plugin`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    /// The program and its arguments. It has the rights of this process: it is not in a sandbox. Excludes `listen` and
    /// `plugin`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Environment variables of the process. It inherits only those that docs/agents.md lists, such as `PATH` and `HOME`.
    pub env: BTreeMap<String, String>,
    /// The directory in which the process starts. Default: that in which rlf-host was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Number of processes, or of calls of the plugin, that may run at once. Further trajectories wait. Default 8.
    pub max_processes: usize,
    /// The plugin whose only tool leads trajectories, in the sandbox. Excludes `command` and `listen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// The address at which remote agents fetch tasks, such as `127.0.0.1:8700`. Excludes `command` and `plugin`.
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
            plugin: None,
            listen: None,
            public_url: None,
            token_env: None,
            wall: Duration::from_mins(5),
            fetch: Duration::from_mins(10),
        }
    }
}

/// The kind of agent, for the first lines of a run.
impl fmt::Display for AgentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.plugin, &self.public_url, self.listen) {
            (Some(plugin), _, _) => write!(f, "the plugin `{plugin}`"),
            (None, Some(url), Some(_)) => write!(f, "whoever asks {url}/agents/next for a task"),
            (None, None, Some(at)) => write!(f, "whoever asks http://{at}/agents/next for a task"),
            (None, _, None) => write!(f, "{}", self.command.join(" ")),
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
        let (program, listen) = (self.command.first(), self.listen);
        let (is_process, is_remote) = (program.is_some(), listen.is_some());
        let is_plugin = self.plugin.is_some();
        let listens_at = |is: fn(&IpAddr) -> bool| listen.is_some_and(|at| is(&at.ip()));
        let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        let of_listen = "it belongs to `listen`; leave it out";
        let of_command = "it belongs to `command`; leave it out";
        let mistakes = [
            (
                !is_process && !is_remote && !is_plugin,
                "command",
                "it is missing; write the program of an agent, or `plugin` for an agent in the sandbox, or `listen` for agents \
                 that fetch tasks",
            ),
            (
                is_plugin && (is_process || is_remote),
                "plugin",
                "keep one of `command`, `listen` and `plugin`",
            ),
            (
                is_process && is_remote,
                "listen",
                "keep one of `command`, `listen` and `plugin`",
            ),
            (
                self.plugin.as_ref().is_some_and(String::is_empty),
                "plugin",
                "write the name of a plugin",
            ),
            (
                program.is_some_and(String::is_empty),
                "command",
                "its first entry is the name of a program",
            ),
            (
                !is_remote && self.public_url.is_some(),
                "public_url",
                of_listen,
            ),
            (
                !is_remote && self.token_env.is_some(),
                "token_env",
                of_listen,
            ),
            (!is_process && !self.env.is_empty(), "env", of_command),
            (
                !is_process && self.directory.is_some(),
                "directory",
                of_command,
            ),
            (
                listens_at(|ip| !ip.is_loopback()) && self.token_env.is_none(),
                "token_env",
                "other machines reach the address of `listen`; name the environment variable with a token",
            ),
            (
                self.public_url.as_ref().is_some_and(|url| !is_url(url)),
                "public_url",
                "write a URL that begins with http:// or https://",
            ),
            (
                listens_at(IpAddr::is_unspecified) && self.public_url.is_none(),
                "public_url",
                "it is missing; `listen` is no address that agents can reach, so write the URL by which they do",
            ),
            (self.max_processes == 0, "max_processes", "write at least 1"),
            (self.wall.is_zero(), "wall_ms", "write at least 1"),
            (self.fetch.is_zero(), "fetch_ms", "write at least 1"),
        ];
        match mistakes.into_iter().find(|(is_made, ..)| *is_made) {
            None => Ok(()),
            Some((_, key, reason)) => Err(InvalidAgent {
                key,
                reason: reason.to_owned(),
            }),
        }
    }

    /// Refuses a program that cannot be started: `command` names a file that is missing or cannot be executed. A name without a
    /// slash is looked for in the `PATH` that the process gets. Reads the file system, which [`AgentConfig::check`] does not.
    pub fn check_program(&self) -> Result<(), InvalidAgent> {
        let Some(program) = self.command.first() else {
            return Ok(());
        };
        let wrong = |key: &'static str, reason: String| Err(InvalidAgent { key, reason });
        if let Some(directory) = self.directory.as_ref().filter(|place| !place.is_dir()) {
            let reason = format!("there is no directory {}", directory.display());
            return wrong("directory", reason);
        }
        // Relative paths start in the process's directory.
        let place = self.directory.as_deref().unwrap_or(Path::new("."));
        let is_program = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
        if program.contains('/') {
            let path = place.join(program);
            if is_program(&path) {
                return Ok(());
            }
            let why = if path.is_file() {
                "is no program that this user may execute; `chmod +x` makes it one, or begin `command` with its interpreter"
            } else {
                "does not exist"
            };
            return wrong("command", format!("{} {why}", path.display()));
        }
        let given = self.env.get("PATH").map(OsString::from);
        let folders = given.or_else(|| std::env::var_os("PATH"));
        let folders = folders.unwrap_or_else(|| SYSTEM_PATH.into());
        let mut programs =
            std::env::split_paths(&folders).map(|folder| place.join(folder).join(program));
        if programs.any(|path| is_program(&path)) {
            return Ok(());
        }
        let reason = format!(
            "no folder of PATH has a program `{program}`; install it, or write the path of a program"
        );
        wrong("command", reason)
    }

    /// The token that remote agents show.
    pub(crate) fn token(&self) -> Result<Token, InvalidAgent> {
        let Some(variable) = &self.token_env else {
            return Ok(Token::default());
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
        Token::new(Some(token)).map_err(|error| wrong(format!("{variable}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_that_cannot_work_names_its_key() {
        let command = |change: fn(&mut AgentConfig)| {
            let mut config = AgentConfig {
                command: vec!["agent".into()],
                ..AgentConfig::default()
            };
            change(&mut config);
            config
        };
        let remote = |address: &str| AgentConfig {
            listen: Some(address.parse().unwrap()),
            ..AgentConfig::default()
        };
        let plugin = |change: fn(&mut AgentConfig)| {
            let mut config = AgentConfig {
                plugin: Some("agent".into()),
                ..AgentConfig::default()
            };
            change(&mut config);
            config
        };
        assert_eq!(plugin(|_| {}).check(), Ok(()));
        assert_eq!(command(|_| {}).check(), Ok(()));
        assert_eq!(remote("127.0.0.1:1").check(), Ok(()));
        for (config, key) in [
            (AgentConfig::default(), "command"),
            (command(|config| config.command[0].clear()), "command"),
            (
                command(|config| config.listen = "[::1]:1".parse().ok()),
                "listen",
            ),
            (
                command(|config| config.token_env = Some("A".into())),
                "token_env",
            ),
            (command(|config| config.plugin = Some("a".into())), "plugin"),
            (
                plugin(|config| config.listen = "[::1]:1".parse().ok()),
                "plugin",
            ),
            (
                plugin(|config| config.plugin = Some(String::new())),
                "plugin",
            ),
            (
                plugin(|config| config.directory = Some("a".into())),
                "directory",
            ),
            (
                plugin(|config| config.token_env = Some("A".into())),
                "token_env",
            ),
            (remote("0.0.0.0:1"), "token_env"),
            (command(|config| config.max_processes = 0), "max_processes"),
            (command(|config| config.wall = Duration::ZERO), "wall_ms"),
        ] {
            assert_eq!(config.check().unwrap_err().key, key);
        }
    }

    #[test]
    fn a_program_that_cannot_be_started_is_named_with_what_helps() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap();
        std::fs::write(folder.path().join("notes"), "").unwrap();
        let checked = |program: &str, change: &dyn Fn(&mut AgentConfig)| {
            let mut config = AgentConfig {
                command: vec![program.to_owned()],
                ..AgentConfig::default()
            };
            change(&mut config);
            config.check_program().map_err(|error| error.to_string())
        };
        let as_it_is: &dyn Fn(&mut AgentConfig) = &|_| {};
        let in_folder: &dyn Fn(&mut AgentConfig) = &|config| config.directory = Some(place.into());
        assert_eq!(checked("sh", as_it_is), Ok(()));
        assert_eq!(checked("/bin/sh", in_folder), Ok(()));
        let refused = |program: &str, change: &dyn Fn(&mut AgentConfig)| {
            checked(program, change).unwrap_err()
        };
        let missing = refused("no-such-program", as_it_is);
        assert!(
            missing.starts_with("agent.command: no folder of PATH has a program `no-such-program`"),
            "{missing}"
        );
        let path: &dyn Fn(&mut AgentConfig) = &|config| {
            config.env.insert("PATH".into(), place.into());
        };
        assert!(refused("sh", path).contains("no folder of PATH"));
        let plain = refused("./notes", in_folder);
        assert!(plain.contains("chmod +x"), "{plain}");
        let gone = refused("./gone", in_folder);
        assert!(gone.contains("gone does not exist"), "{gone}");
        let nowhere: &dyn Fn(&mut AgentConfig) =
            &|config| config.directory = Some("no/such/folder".into());
        let nowhere = refused("sh", nowhere);
        assert!(
            nowhere.starts_with("agent.directory: there is no directory"),
            "{nowhere}"
        );
        let remote = AgentConfig {
            listen: "[::1]:1".parse().ok(),
            ..AgentConfig::default()
        };
        assert_eq!(remote.check_program(), Ok(()));
    }
}
