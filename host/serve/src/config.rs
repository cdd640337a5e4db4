//! `[serve]` of a configuration: address, access and limits.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rlf_config::milliseconds;
use serde::{Deserialize, Serialize};

use crate::token::TokenError;

/// Settings of the service. Every field may be left out of a configuration.
///
/// The limits of one program are not part of this table. They belong to the interpreter that runs it
/// (`[plugins.NAME.programs]`), and a request's own limits are clamped to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServeConfig {
    /// Address and port. Port 0 chooses a free port, which is printed. Every address except a loopback one requires a
    /// token. Default: 127.0.0.1:8080.
    pub listen: SocketAddr,
    /// File with the bearer token, 16 to 4,096 visible ASCII characters. Excludes `token_env`. Default: none.
    pub token_file: Option<PathBuf>,
    /// Name of the environment variable that holds the token. Default: none.
    pub token_env: Option<String>,
    /// Names by which clients may reach the service, as in `Host` without a port. Loopback names and the address of the
    /// connection are always allowed. Default: none.
    pub hosts: BTreeSet<String>,
    /// Web origins whose pages may send requests, such as `https://lab.example.com`. Default: none, which refuses every
    /// request that a browser makes for a page.
    pub origins: BTreeSet<String>,
    /// Plugins whose tools and rewards are served although they lead out of the sandbox: to a network, a
    /// secret, a model or a directory of the host. MCP servers (`[mcp.NAME]`) whose tools are served. Default: none.
    pub allow: BTreeSet<String>,
    /// Additional names of languages for clients, each with the interpreter's own name: `nodejs = "javascript"` for
    /// programs that need nothing from Node's library. Default: none.
    pub languages: BTreeMap<String, String>,
    /// Seed of every program's randomness, hash seeds included: the same request gets the same answer. Default: 0.
    pub seed: u64,
    /// Number of programs that may be in their first turn at once, and again number of longer programs and notebooks
    /// that may run at once. Further ones wait. A program that does not end in its first turn (100 ms of CPU time)
    /// counts as longer. Programs only compute, and one that sleeps takes no time, so more of them than guest threads
    /// would only make each slower. Default: the number of threads that run guests.
    pub max_runs: Option<usize>,
    /// Number of calls of tools and rewards that run at once. Further calls wait. Default: 256.
    pub max_calls: usize,
    /// Maximum time that a request waits, for all of its turns together. After it the answer is 504, and clients repeat
    /// the request. It should be longer than a program may run. Both times together should be shorter than clients wait
    /// for an answer. Key `queue_ms`, default 15,000 ms.
    #[serde(rename = "queue_ms", with = "milliseconds")]
    pub queue: Duration,
    /// Number of connections at once. Further ones wait to be accepted. Default: 1,024.
    pub max_connections: usize,
    /// Maximum number of open environment sessions; also the maximum number of MCP sessions. Default: 1,000.
    pub max_sessions: usize,
    /// Time after which a session that nobody uses is closed. Key `session_ms`, default 600,000 ms.
    #[serde(rename = "session_ms", with = "milliseconds")]
    pub session: Duration,
    /// Maximum size of a request's body, in bytes. A larger one is answered with 413. Default: 32 MiB.
    pub max_body_bytes: u64,
    /// Maximum size of all bodies together, in bytes. It counts the part that has arrived, of all requests that are
    /// being read, wait or run, and the messages of WebSockets while they are answered. A list of many small values
    /// counts with its size in memory. Other bodies are not read until there is room. Default: 256 MiB.
    pub body_budget_bytes: u64,
    /// Time limit for a client to send the head of a request, again to send its body, and again to receive the answer.
    /// Unused connections are kept for the same time. Key `client_ms`, default 30,000 ms.
    #[serde(rename = "client_ms", with = "milliseconds")]
    pub client: Duration,
    /// Maximum number of files that a program may be given, and of files that it may return. Default: 1,000.
    pub max_files: usize,
    /// Maximum number of cells of a notebook. Default: 1,000.
    pub max_cells: usize,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            token_file: None,
            token_env: None,
            hosts: BTreeSet::new(),
            origins: BTreeSet::new(),
            allow: BTreeSet::new(),
            languages: BTreeMap::new(),
            seed: 0,
            max_runs: None,
            max_calls: 256,
            queue: Duration::from_secs(15),
            max_connections: 1_024,
            max_sessions: 1_000,
            session: Duration::from_mins(10),
            max_body_bytes: 32 << 20,
            body_budget_bytes: 256 << 20,
            client: Duration::from_secs(30),
            max_files: 1_000,
            max_cells: 1_000,
        }
    }
}

/// Unit of the body budget, in bytes. With it, budgets of terabytes fit into a semaphore.
pub(crate) const BODY_UNIT: u64 = 1 << 10;

/// The reason why a `[serve]` table cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServeConfigError {
    /// A number is out of its range.
    #[error("serve.{key} = {value}: write {least} to {most}")]
    OutOfRange {
        /// The key in `[serve]`.
        key: &'static str,
        /// The value given.
        value: u64,
        /// The minimum that is allowed.
        least: u64,
        /// The maximum that is allowed.
        most: u64,
    },
    /// Two keys name a token.
    #[error("`serve.token_file` and `serve.token_env` both name a token; keep one")]
    TwoTokens,
    /// An entry of `hosts` is more than a name.
    #[error("serve.hosts: `{0}`: write a host's name alone, such as `sandbox.example.com`")]
    Host(String),
    /// An entry of `origins` is not a scheme and a host.
    #[error("serve.origins: `{0}`: write scheme and host, such as `https://lab.example.com`")]
    Origin(String),
    /// The token cannot be read or is too weak.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The address can be reached from other machines, and there is no token.
    #[error(
        "{0} can be reached from other machines, and every client that reaches it could run programs here; name a token by \
         `serve.token_file` or `serve.token_env`, or listen on 127.0.0.1"
    )]
    Unprotected(SocketAddr),
}

impl ServeConfigError {
    /// The key of `[serve]` that is wrong.
    pub fn key(&self) -> &'static str {
        match self {
            Self::OutOfRange { key, .. } => key,
            Self::TwoTokens | Self::Token(_) => "token_file",
            Self::Host(_) => "hosts",
            Self::Origin(_) => "origins",
            Self::Unprotected(_) => "listen",
        }
    }
}

impl ServeConfig {
    /// Checks all keys. The error names the first wrong key and what to write instead.
    pub fn validate(&self) -> Result<(), ServeConfigError> {
        let ranges = [
            ("max_runs", self.max_runs.unwrap_or(1) as u64, 1, 10_000),
            ("max_calls", self.max_calls as u64, 1, 100_000),
            ("max_connections", self.max_connections as u64, 1, 100_000),
            ("max_files", self.max_files as u64, 1, 100_000),
            ("max_cells", self.max_cells as u64, 1, 100_000),
            ("queue_ms", self.queue.as_millis() as u64, 1, 86_400_000),
            ("client_ms", self.client.as_millis() as u64, 10, 86_400_000),
            ("max_body_bytes", self.max_body_bytes, 1 << 10, 2 << 30),
            (
                "body_budget_bytes",
                self.body_budget_bytes,
                self.max_body_bytes,
                1 << 40,
            ),
        ];
        for (key, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Err(ServeConfigError::OutOfRange {
                    key,
                    value,
                    least,
                    most,
                });
            }
        }
        if self.token_file.is_some() && self.token_env.is_some() {
            return Err(ServeConfigError::TwoTokens);
        }
        for host in &self.hosts {
            if host.is_empty() || host.contains(['/', ':', '*', ' ']) {
                return Err(ServeConfigError::Host(host.clone()));
            }
        }
        for origin in &self.origins {
            let plain = origin.split_once("://").is_some_and(|(scheme, rest)| {
                matches!(scheme, "http" | "https") && !rest.is_empty() && !rest.contains(['/', '*'])
            });
            if !plain {
                return Err(ServeConfigError::Origin(origin.clone()));
            }
        }
        Ok(())
    }

    /// Makes relative paths start at `base`, the folder of the file that the table was read from.
    pub fn resolve_paths(&mut self, base: &Path) {
        if let Some(file) = &mut self.token_file
            && file.is_relative()
        {
            *file = base.join(&*file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> ServeConfig {
        rlf_config::parse(text, "c.toml").unwrap()
    }

    #[test]
    fn an_empty_table_is_the_default_and_can_be_used() {
        assert_eq!(config(""), ServeConfig::default());
        assert_eq!(config("").validate(), Ok(()));
        assert!(config("").listen.ip().is_loopback());
    }

    #[test]
    fn what_cannot_work_is_refused_by_its_key() {
        for (text, said) in [
            ("max_runs = 0", "serve.max_runs = 0: write 1 to 10000"),
            ("queue_ms = 0", "serve.queue_ms = 0: write 1 to 86400000"),
            (
                "body_budget_bytes = 1024",
                "serve.body_budget_bytes = 1024: write 33554432 to",
            ),
            ("token_env = \"A\"\ntoken_file = \"b\"", "both name a token"),
            ("hosts = [\"a:80\"]", "write a host's name alone"),
            ("origins = [\"*\"]", "write scheme and host"),
            ("origins = [\"https://a/b\"]", "write scheme and host"),
        ] {
            let error = config(text).validate().unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn unknown_keys_are_errors() {
        let error = rlf_config::parse::<ServeConfig>("listn = \"a\"", "c.toml").unwrap_err();
        assert!(
            error.to_string().contains("did you mean `listen`?"),
            "{error}"
        );
    }

    #[test]
    fn the_page_has_every_key_with_its_default() {
        let page = include_str!("../../../docs/serve.md");
        let rows: BTreeMap<&str, &str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
            .filter_map(|(key, rest)| Some((key, rest.split_once(" | ")?.0)))
            .collect();
        let serde_json::Value::Object(defaults) =
            serde_json::to_value(ServeConfig::default()).unwrap()
        else {
            panic!("a table")
        };
        for (key, value) in defaults {
            let row = rows
                .iter()
                .find(|(keys, _)| keys.split("`, `").any(|one| one == key));
            let (_, default) =
                row.unwrap_or_else(|| panic!("docs/serve.md has no row for `{key}`"));
            match value {
                serde_json::Value::Number(number) => {
                    assert_eq!(default.replace(',', ""), number.to_string(), "`{key}`");
                }
                serde_json::Value::String(text) => assert_eq!(*default, text, "`{key}`"),
                _ => {}
            }
        }
    }
}
