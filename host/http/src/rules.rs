//! HTTP rules, `[plugins.<alias>.http]` of a configuration: the hosts that an operator opens.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rlf_config::milliseconds;
use serde::{Deserialize, Serialize};

use crate::error::HttpError;

/// Hosts that one plugin may fetch from, secrets that it may use there, and limits.
///
/// Every field may be left out; unknown keys are errors. The default opens nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpRules {
    /// The hosts, each by its exact name: no wildcards, no subdomains meant along. An address
    /// (`"10.0.0.7"`, `"[::1]"`) opens that address, where a URL says it literally. Default: none.
    pub hosts: BTreeMap<String, HostRule>,
    /// Secrets that a header may be filled with, by name. Default: none.
    pub secrets: BTreeMap<String, SecretRule>,
    /// A PEM file with the authorities that https hosts are trusted by, instead of the machine's.
    /// For servers of one's own. Default: the machine's, or what `SSL_CERT_FILE` names.
    pub certificate_authorities: Option<PathBuf>,
    /// The largest body of a request. Default 1 MiB; 0 allows no body.
    pub max_request_bytes: u64,
    /// The largest body of an answer, as the plugin sees it. Default 4 MiB.
    pub max_response_bytes: u64,
    /// Headers of a request, and again of an answer. Default 64.
    pub max_headers: u32,
    /// Bytes of a request's method, URL and headers together, and again of the head of an answer.
    /// Default 32 KiB, at most 1 MiB.
    pub max_header_bytes: u64,
    /// Time limit of one fetch, from resolving the name to the last byte of the answer. Default 5,000 ms: half of a
    /// call's wall-clock limit, so that the plugin has time left to handle a failure.
    #[serde(rename = "timeout_ms", with = "milliseconds")]
    pub timeout: Duration,
    /// Fetches of the plugin that may run at once, in all its calls together; more wait, inside
    /// the deadlines of their calls. Default 16.
    pub max_concurrent: u32,
    /// Fetches that one call may ask for, refused ones counted. Default 32.
    pub max_requests_per_call: u32,
}

impl Default for HttpRules {
    fn default() -> Self {
        Self {
            hosts: BTreeMap::new(),
            secrets: BTreeMap::new(),
            certificate_authorities: None,
            max_request_bytes: 1 << 20,
            max_response_bytes: 4 << 20,
            max_headers: 64,
            max_header_bytes: 32 << 10,
            timeout: Duration::from_secs(5),
            max_concurrent: 16,
            max_requests_per_call: 32,
        }
    }
}

/// Rule for one host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostRule {
    /// `https`, or `http` for a host whose traffic anyone on the way may read and change.
    /// Default `https`.
    pub scheme: Scheme,
    /// Default: 443 for https, 80 for http.
    pub ports: BTreeSet<u16>,
    /// Lets the name lead to this machine or into a network of its owner: loopback, 10/8,
    /// 172.16/12, 192.168/16, 100.64/10, fc00::/7. Link-local addresses, and with them a cloud's
    /// metadata, stay closed. Default false.
    pub allow_private_addresses: bool,
}

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Encrypted, and the server proves its name.
    #[default]
    Https,
    /// Unencrypted.
    Http,
}

impl Scheme {
    /// The scheme, as in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    pub(crate) fn default_port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}

/// Source of a secret, and the one host that it goes to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecretRule {
    /// The environment variable of the host program that holds it. This or `file`.
    pub env: Option<String>,
    /// The file that holds it; a line break at its end is not part of it. This or `env`.
    pub file: Option<PathBuf>,
    /// The host it is bound to, one of `hosts`.
    pub host: String,
    /// Text before it in the header, such as `"Bearer "`. Default: none.
    pub prefix: String,
}

impl HttpRules {
    /// Makes relative paths start at `base`, the folder of the file the rules were read from.
    pub fn resolve_paths(&mut self, base: &Path) {
        let files = self
            .secrets
            .values_mut()
            .filter_map(|rule| rule.file.as_mut());
        for path in files.chain(&mut self.certificate_authorities) {
            if path.is_relative() {
                *path = base.join(&*path);
            }
        }
    }

    /// Refuses limits that would stop everything, or under which counting is too late.
    pub(crate) fn check_limits(&self) -> Result<(), HttpError> {
        let timeout_ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        for (name, value, most) in [
            ("max_request_bytes", self.max_request_bytes, 1 << 30),
            ("max_response_bytes", self.max_response_bytes, 1 << 30),
            ("max_headers", u64::from(self.max_headers), 1_000),
            ("max_header_bytes", self.max_header_bytes, 1 << 20),
            ("timeout_ms", timeout_ms, 24 * 60 * 60 * 1_000),
            ("max_concurrent", u64::from(self.max_concurrent), 10_000),
            (
                "max_requests_per_call",
                u64::from(self.max_requests_per_call),
                u64::from(u32::MAX) - 1,
            ),
        ] {
            let reason = if value == 0 && name != "max_request_bytes" {
                "this would stop every fetch; write 1 or more, or leave `hosts` empty".to_owned()
            } else if value > most {
                format!("write at most {most}")
            } else {
                continue;
            };
            return Err(HttpError::Limit {
                name,
                value,
                reason,
            });
        }
        Ok(())
    }
}
