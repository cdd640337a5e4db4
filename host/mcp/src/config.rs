//! Configuration of one server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rlf_config::milliseconds;
use rlf_http::{HostRule, HttpRules, Scheme, SecretRule};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::error::McpError;
use crate::variables::{Piece, pieces};

/// Maximum size of one message of a server, in bytes. A larger one ends the connection.
pub(crate) const MAX_MESSAGE_BYTES: u64 = 16 << 20;
/// Maximum size of one message to a server, in bytes.
const MAX_REQUEST_BYTES: u64 = 16 << 20;

/// A server whose tools models may call: a process on this machine (`command`), or a service (`url`).
///
/// In `args`, `env` and `headers`, `${NAME}` is the value of an environment variable of this process. In `args` and `env`,
/// `${NAME:-default}` is `default` if the variable is not set. So no secret has to be in a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpConfig {
    /// The program of a process that speaks MCP on its standard input and output. It has the rights of this process: it is
    /// not in a sandbox. Excludes `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Environment variables of the process. It inherits only those that docs/mcp.md lists, such as `PATH` and `HOME`.
    pub env: BTreeMap<String, String>,
    /// The directory in which the process starts. Default: that in which rlf-host was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The URL of a service that speaks MCP over streamable HTTP, such as `https://example.com/mcp`. Excludes `command`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every request, such as `Authorization = "Bearer ${TOKEN}"`. The value of a variable is a secret: it
    /// goes to the host of `url` only, and is removed from answers.
    pub headers: BTreeMap<String, String>,
    /// A PEM file with the certificate authorities for `url`, instead of the machine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_authorities: Option<PathBuf>,
    /// The tools that are offered, by the server's names for them. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Other names for tools: from the server's name to the name that models see. Names are unique among all tools.
    pub rename: BTreeMap<String, String>,
    /// The revision of the protocol: `auto`, or one of `2025-11-25` and `2026-07-28`. With `auto`, the server is asked for
    /// the newer one first. Default `auto`.
    pub protocol: Protocol,
    /// Time limit for connecting and listing tools. Default 30,000 ms.
    #[serde(rename = "connect_ms", with = "milliseconds")]
    pub connect: Duration,
    /// Time limit of a call, waiting for a place and connecting again included. Default 30,000 ms.
    #[serde(rename = "deadline_ms", with = "milliseconds")]
    pub deadline: Duration,
    /// Number of calls of the server's tools that may run at once. Further ones wait, within their deadline. Default 16.
    pub max_concurrency: usize,
    /// Number of retries of a call after an infrastructure failure, 0 or 1. Only a tool that says that it is read-only or
    /// idempotent is called again. Default 1.
    pub retries: u32,
    /// Maximum size of a call's arguments, in bytes. Default 1 MiB.
    pub arguments_bytes: u64,
    /// Maximum size of a call's result, in bytes. Default 1 MiB.
    pub result_bytes: u64,
    /// False leaves the server out. Default true.
    pub enabled: bool,
}

/// A revision of the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// The newest one that the server has.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// The revision with a handshake and sessions.
    #[serde(rename = "2025-11-25")]
    V2025,
    /// The revision without a handshake and sessions.
    #[serde(rename = "2026-07-28")]
    V2026,
}

impl Default for McpConfig {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            directory: None,
            url: None,
            headers: BTreeMap::new(),
            certificate_authorities: None,
            tools: None,
            rename: BTreeMap::new(),
            protocol: Protocol::Auto,
            connect: Duration::from_secs(30),
            deadline: Duration::from_secs(30),
            max_concurrency: 16,
            retries: 1,
            arguments_bytes: 1 << 20,
            result_bytes: 1 << 20,
            enabled: true,
        }
    }
}

impl McpConfig {
    /// Refuses a configuration that could never work. It reads nothing but the configuration itself.
    pub fn check(&self, server: &str) -> Result<(), McpError> {
        let wrong = |key: &str, reason: &str| {
            Err(McpError::Config {
                server: server.to_owned(),
                key: key.to_owned(),
                reason: reason.to_owned(),
            })
        };
        match (&self.command, &self.url) {
            (None, None) => {
                return wrong(
                    "command",
                    "it is missing; write the program of a server, or the `url` of one",
                );
            }
            (Some(_), Some(_)) => return wrong("url", "keep one of `command` and `url`"),
            (Some(command), None) if command.is_empty() => {
                return wrong("command", "write the name of a program");
            }
            (None, Some(url)) => {
                if let Err(reason) = target(url) {
                    return wrong("url", &reason);
                }
            }
            _ => {}
        }
        let of_process = [
            ("args", self.args.is_empty()),
            ("env", self.env.is_empty()),
            ("directory", self.directory.is_none()),
        ];
        let of_service = [
            ("headers", self.headers.is_empty()),
            (
                "certificate_authorities",
                self.certificate_authorities.is_none(),
            ),
        ];
        let (unused, needs) = match self.command {
            Some(_) => (&of_service[..], "url"),
            None => (&of_process[..], "command"),
        };
        if let Some((key, _)) = unused.iter().find(|(_, is_default)| !is_default) {
            return wrong(
                key,
                &format!("it is for a server with a `{needs}`; leave it out"),
            );
        }
        let texts = (self.args.iter().map(|text| ("args".to_owned(), text)))
            .chain((self.env.iter()).map(|(name, text)| (format!("env.{name}"), text)));
        for (key, text) in texts {
            if let Err(reason) = pieces(text) {
                return wrong(&key, &reason);
            }
        }
        for (name, text) in &self.headers {
            if let Err(reason) = header(text) {
                return wrong(&format!("headers.{name}"), &reason);
            }
        }
        let day = Duration::from_hours(24);
        for (key, is_wrong, mend) in [
            (
                "connect_ms",
                self.connect.is_zero() || self.connect > day,
                "write 1 to 86400000",
            ),
            (
                "deadline_ms",
                self.deadline.is_zero() || self.deadline > day,
                "write 1 to 86400000",
            ),
            (
                "max_concurrency",
                !(1..=10_000).contains(&self.max_concurrency),
                "write 1 to 10000",
            ),
            ("retries", self.retries > 1, "write 0 or 1"),
            (
                "result_bytes",
                !(1..=MAX_MESSAGE_BYTES).contains(&self.result_bytes),
                "write 1 to 16777216",
            ),
            (
                "arguments_bytes",
                !(1..=MAX_REQUEST_BYTES).contains(&self.arguments_bytes),
                "write 1 to 16777216",
            ),
            (
                "tools",
                self.tools.as_ref().is_some_and(Vec::is_empty),
                "write the names of tools, or leave it out for all of them; `enabled = false` leaves the server out",
            ),
        ] {
            if is_wrong {
                return wrong(key, mend);
            }
        }
        Ok(())
    }

    /// Makes relative paths start at `base`, the folder of the file that the configuration was read from.
    pub fn resolve_paths(&mut self, base: &Path) {
        let paths = [&mut self.directory, &mut self.certificate_authorities];
        for path in paths.into_iter().flatten() {
            *path = base.join(&*path);
        }
        // A name without a separator is looked for in PATH.
        if let Some(command) = &mut self.command
            && command.contains('/')
            && let Some(path) = base.join(&*command).to_str()
        {
            path.clone_into(command);
        }
    }

    /// The rules that open the one host of `url`.
    pub(crate) fn rules(&self, url: &Url) -> HttpRules {
        let host = url.host_str().unwrap_or_default().to_owned();
        let rule = HostRule {
            scheme: if url.scheme() == "https" {
                Scheme::Https
            } else {
                Scheme::Http
            },
            ports: BTreeSet::from_iter(url.port_or_known_default()),
            // The operator named the server.
            allow_private_addresses: true,
        };
        let mut secrets = BTreeMap::new();
        for (name, text) in &self.headers {
            if let Ok(Header::Secret { prefix, variable }) = header(text) {
                let secret = SecretRule {
                    env: Some(variable.to_owned()),
                    file: None,
                    host: host.clone(),
                    prefix: prefix.to_owned(),
                };
                secrets.insert(name.clone(), secret);
            }
        }
        HttpRules {
            hosts: BTreeMap::from([(host, rule)]),
            secrets,
            certificate_authorities: self.certificate_authorities.clone(),
            max_request_bytes: MAX_REQUEST_BYTES,
            max_response_bytes: MAX_MESSAGE_BYTES,
            timeout: self.deadline.max(self.connect),
            // Messages besides calls need places too, such as that a call is cancelled.
            max_concurrent: self.max_concurrency as u32 + 16,
            ..HttpRules::default()
        }
    }
}

/// The value of a header.
pub(crate) enum Header<'a> {
    Text(&'a str),
    Secret { prefix: &'a str, variable: &'a str },
}

/// Reads the value of a header: a text without variables, or a prefix and one variable.
pub(crate) fn header(text: &str) -> Result<Header<'_>, String> {
    match pieces(text)?.as_slice() {
        [] => Ok(Header::Text("")),
        [Piece::Text(text)] => Ok(Header::Text(text)),
        [Piece::Variable(variable, None)] => Ok(Header::Secret {
            prefix: "",
            variable,
        }),
        [Piece::Text(prefix), Piece::Variable(variable, None)] => {
            Ok(Header::Secret { prefix, variable })
        }
        _ => Err("write a text, or a text that ends in one `${NAME}`".to_owned()),
    }
}

/// Reads the URL of a service.
pub(crate) fn target(url: &str) -> Result<Url, String> {
    let parsed = Url::parse(url).map_err(|error| {
        format!("{url:?} is not a URL ({error}); write it in full, such as https://example.com/mcp")
    })?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
        return Err(format!("{url:?} must begin with https:// or http://"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(
            "it contains a password; write it as a header, such as `headers.Authorization = \"Bearer ${TOKEN}\"`"
                .to_owned(),
        );
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let config: McpConfig = rlf_config::parse(text, "c.toml").unwrap();
        config.check("x").unwrap_err().to_string()
    }

    #[test]
    fn a_server_is_a_process_or_a_service() {
        for (text, begins) in [
            ("", "[mcp.x] command: it is missing"),
            (
                "command = \"a\"\nurl = \"http://b\"",
                "[mcp.x] url: keep one",
            ),
            (
                "command = \"a\"\nheaders.X = \"1\"",
                "[mcp.x] headers: it is for",
            ),
            (
                "url = \"http://b\"\nargs = [\"1\"]",
                "[mcp.x] args: it is for",
            ),
            ("url = \"b\"", "[mcp.x] url: \"b\" is not a URL"),
            ("url = \"ftp://b\"", "[mcp.x] url: \"ftp://b\" must begin"),
            (
                "url = \"https://u:p@b\"",
                "[mcp.x] url: it contains a password",
            ),
            (
                "command = \"a\"\nargs = [\"${\"]",
                "[mcp.x] args: a `${` has no",
            ),
            ("command = \"a\"\nenv.K = \"${-}\"", "[mcp.x] env.K: "),
            (
                "url = \"http://b\"\nheaders.K = \"${A} ${B}\"",
                "[mcp.x] headers.K: write a text",
            ),
            (
                "command = \"a\"\ntools = []",
                "[mcp.x] tools: write the names",
            ),
            (
                "command = \"a\"\ndeadline_ms = 0",
                "[mcp.x] deadline_ms: write",
            ),
        ] {
            let said = error(text);
            assert!(said.starts_with(begins), "{text}: {said}");
            assert!(!said.contains("u:p"), "{said}");
        }
        let config: McpConfig =
            rlf_config::parse("command = \"a\"\nprotocol = \"2025-11-25\"", "c").unwrap();
        config.check("x").unwrap();
    }

    #[test]
    fn a_variable_in_a_header_is_a_secret_of_the_one_host() {
        let text = "url = \"https://b.example/mcp\"\nheaders = { Authorization = \"Bearer ${T}\", X = \"y\" }";
        let config: McpConfig = rlf_config::parse(text, "c.toml").unwrap();
        let rules = config.rules(&target(config.url.as_ref().unwrap()).unwrap());
        assert_eq!(rules.secrets.len(), 1);
        let secret = &rules.secrets["Authorization"];
        assert_eq!(
            (secret.env.as_deref(), &*secret.prefix, &*secret.host),
            (Some("T"), "Bearer ", "b.example")
        );
    }

    #[test]
    fn a_path_starts_at_the_configuration_and_a_program_is_looked_for() {
        let resolved = |command: &str| {
            let text = format!("command = {command:?}\ndirectory = \"d\"");
            let mut config: McpConfig = rlf_config::parse(&text, "c.toml").unwrap();
            config.resolve_paths(Path::new("/base"));
            assert_eq!(config.directory.unwrap(), Path::new("/base/d"));
            config.command.unwrap()
        };
        assert_eq!(resolved("uvx"), "uvx");
        assert_eq!(resolved("./server"), "/base/./server");
        assert_eq!(resolved("/bin/server"), "/bin/server");
    }
}
