//! The hosts of HTTP rules, and the check whether a URL leads to one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use url::{Host, Url};

use crate::error::{FetchError, HttpError};
use crate::rules::{HostRule, Scheme};

/// The rule of each host. A key is spelled as in a parsed URL: lower case, IDNA, canonical addresses.
#[derive(Debug)]
pub(crate) struct Hosts(BTreeMap<String, HostRule>);

/// The target of a request: a host of the rules, with its scheme and one of its ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The host, as in the rules and the URL.
    pub(crate) host: String,
    /// The address, if the host is an address and not a name.
    pub(crate) address: Option<IpAddr>,
    pub(crate) scheme: Scheme,
    pub(crate) port: u16,
    pub(crate) allow_private_addresses: bool,
}

impl Target {
    /// The `Host` header.
    pub(crate) fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl Hosts {
    pub(crate) fn open(rules: &BTreeMap<String, HostRule>) -> Result<Self, HttpError> {
        let mut hosts = BTreeMap::new();
        for (written, rule) in rules {
            let failed = |reason: String| HttpError::Host {
                host: written.clone(),
                reason,
            };
            let host = canonical(written).map_err(failed)?;
            let mut rule = rule.clone();
            if rule.ports.contains(&0) {
                return Err(failed("port 0 is none; write the server's".to_owned()));
            }
            if rule.ports.is_empty() {
                rule.ports = BTreeSet::from([rule.scheme.default_port()]);
            }
            if hosts.insert(host.clone(), rule).is_some() {
                return Err(failed(format!(
                    "`{host}` stands here twice, spelled in two ways; keep one"
                )));
            }
        }
        Ok(Self(hosts))
    }

    /// The host of the rules that `name` means, if there is one.
    pub(crate) fn named(&self, name: &str) -> Option<&str> {
        let host = canonical(name).ok()?;
        self.0.get_key_value(&host).map(|(host, _)| host.as_str())
    }

    pub(crate) fn any_https(&self) -> bool {
        self.0.values().any(|rule| rule.scheme == Scheme::Https)
    }

    /// Checks that the rules allow `url`, and returns its target.
    pub(crate) fn admit(&self, url: &Url) -> Result<Target, FetchError> {
        let denied = |reason: String| Err(FetchError::Denied(reason));
        if !matches!(url.scheme(), "http" | "https") {
            return Err(FetchError::Invalid(format!(
                "URLs of scheme `{}` cannot be fetched; only https and http can",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(FetchError::Invalid(
                "a URL with a user or a password in it is not sent; use a header".to_owned(),
            ));
        }
        let (Some(name), Some(host), Some(port)) =
            (url.host_str(), url.host(), url.port_or_known_default())
        else {
            return Err(FetchError::Invalid("the URL names no host".to_owned()));
        };
        let Some(rule) = self.0.get(name) else {
            return denied(format!(
                "host `{name}` is not one that the operator's HTTP rules allow"
            ));
        };
        let scheme = rule.scheme;
        if url.scheme() != scheme.as_str() {
            return denied(format!(
                "host `{name}` is opened for {}, not for {}",
                scheme.as_str(),
                url.scheme()
            ));
        }
        if !rule.ports.contains(&port) {
            let ports: Vec<_> = rule.ports.iter().map(ToString::to_string).collect();
            return denied(format!(
                "host `{name}` is opened at port {}, not at {port}",
                ports.join(", ")
            ));
        }
        Ok(Target {
            host: name.to_owned(),
            address: match host {
                Host::Domain(_) => None,
                Host::Ipv4(address) => Some(address.into()),
                Host::Ipv6(address) => Some(address.into()),
            },
            scheme,
            port,
            allow_private_addresses: rule.allow_private_addresses,
        })
    }
}

/// Canonical spelling of a host of the rules, as in parsed URLs. The error says why it is not a host.
fn canonical(written: &str) -> Result<String, String> {
    if written.parse::<Ipv6Addr>().is_ok() {
        return Err(format!("write `[{written}]`, as in a URL"));
    }
    let host = Host::parse(written).map_err(|error| {
        format!("not a host ({error}); write its bare name, without scheme, port and path")
    })?;
    let canonical = host.to_string();
    match host {
        Host::Domain(name) if name.contains('*') => {
            Err("wildcards open what nobody looked at; list each host by its exact name".to_owned())
        }
        Host::Domain(name) if name.ends_with('.') => Err(
            "a name with a dot at its end is another one to servers; leave the dot out".to_owned(),
        ),
        // `0x7f.1` is 127.0.0.1. The error asks whether that is meant.
        Host::Ipv4(_) | Host::Ipv6(_) if canonical != written => {
            Err(format!("this is the address {canonical}; write it so"))
        }
        Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_) => Ok(canonical),
    }
}
