//! HTTP rules, `[plugins.<alias>.http]` of a configuration: the hosts that an operator opens to a plugin.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rlf_config::milliseconds;
use serde::{Deserialize, Serialize};

use crate::error::HttpError;

/// The hosts that one plugin may fetch from, the secrets that it may use there, and limits.
///
/// Every field may be left out; unknown keys are errors. The default opens nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpRules {
    /// The hosts, each by its exact name. There are no wildcards, and subdomains are not included. An address
    /// (`"10.0.0.7"`, `"[::1]"`) opens that address for URLs that contain it literally. Default: none.
    pub hosts: BTreeMap<String, HostRule>,
    /// Secrets for headers, by name. Default: none.
    pub secrets: BTreeMap<String, SecretRule>,
    /// A PEM file with the certificate authorities for https hosts, instead of the machine's. It is for private
    /// servers. Default: the machine's, or the file that `SSL_CERT_FILE` names.
    pub certificate_authorities: Option<PathBuf>,
    /// Maximum size of a request's body, in bytes. Default 1 MiB; 0 allows no body.
    pub max_request_bytes: u64,
    /// Maximum size of an answer's body as the plugin sees it, in bytes. Default 4 MiB.
    pub max_response_bytes: u64,
    /// Maximum number of headers of a request, and of an answer. Default 64.
    pub max_headers: u32,
    /// Maximum size in bytes of a request's method, URL and headers together, and of an answer's head. Default 32 KiB,
    /// at most 1 MiB.
    pub max_header_bytes: u64,
    /// Time limit of one fetch, from resolving the name to the last byte of the answer. Default 5,000 ms: half of a
    /// call's wall-clock limit, so the plugin has time left to handle a failure.
    #[serde(rename = "timeout_ms", with = "milliseconds")]
    pub timeout: Duration,
    /// Number of fetches of the plugin that may run at once, in all its calls together. Further ones wait, within the
    /// deadlines of their calls. Default 16.
    pub max_concurrent: u32,
    /// Number of fetches that one call may ask for, including refused ones. Default 32.
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

/// The rule for one host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostRule {
    /// `https`, or `http` for a host whose traffic anyone on the way may read and change. Default `https`.
    pub scheme: Scheme,
    /// The open ports. Default: 443 for https, 80 for http.
    pub ports: BTreeSet<u16>,
    /// Allows the name to lead to this machine or into a network of its owner: loopback, 10/8, 172.16/12, 192.168/16,
    /// 100.64/10, fc00::/7. Link-local addresses stay closed, and with them a cloud's metadata. Default false.
    pub allow_private_addresses: bool,
}

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Encrypted. The server proves its name.
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

/// The source of a secret, and the one host that receives it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecretRule {
    /// The environment variable of the host program that holds the secret. Excludes `file`.
    pub env: Option<String>,
    /// The file that holds the secret. A line break at its end is not part of it. Excludes `env`.
    pub file: Option<PathBuf>,
    /// The host that the secret is bound to, one of `hosts`.
    pub host: String,
    /// Text before the secret in the header, such as `"Bearer "`. Default: none.
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

    /// Refuses limits that would stop every fetch, and limits too large to be enforced in time.
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
