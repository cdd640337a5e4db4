//! The secrets of HTTP rules. They are read when a client is opened, and only the host program puts them into headers.

use std::collections::BTreeMap;
use std::fmt;

use http::HeaderValue;

use crate::error::{FetchError, HttpError};
use crate::hosts::Hosts;
use crate::rules::SecretRule;

/// Minimum length. Shorter secrets can be guessed, and occur in answers by chance, where they would be taken for a
/// leak.
const SHORTEST: usize = 8;
/// Maximum length. A longer text is probably the wrong file.
const MAX_SECRET_BYTES: usize = 4096;

/// A secret in memory. It is never printed.
pub(crate) struct Secret {
    name: String,
    /// The host, as spelled in a parsed URL.
    host: String,
    text: String,
    /// The value of the header: prefix and secret.
    header: HeaderValue,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[secret {} of {}]", self.name, self.host)
    }
}

impl Secret {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The secret itself, which must not come back.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn open(name: &str, rule: &SecretRule, hosts: &Hosts) -> Result<Self, String> {
        let is_name = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_name) {
            return Err(
                "name it with at most 64 of the letters a-z, digits, `-`, `_` and `.`".to_owned(),
            );
        }
        if rule.host.is_empty() {
            return Err("bind it to the one host it is for: `host = \"...\"`".to_owned());
        }
        let host = hosts.named(&rule.host).ok_or_else(|| {
            format!(
                "it is bound to host `{}`, which is not one of `hosts`; add that host or correct the name",
                rule.host
            )
        })?;
        let text = read(rule)?;
        // The errors never contain the secret itself.
        if text.len() < SHORTEST {
            return Err(format!(
                "it has {} characters; secrets of fewer than {SHORTEST} cannot be told from other text where they come back",
                text.len()
            ));
        }
        if text.len() > MAX_SECRET_BYTES {
            return Err(format!(
                "it has {} bytes, more than the {MAX_SECRET_BYTES} of a header; is this the right place?",
                text.len()
            ));
        }
        if !text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ')
        {
            return Err(
                "it has characters that a header cannot carry; it must be one line of ASCII"
                    .to_owned(),
            );
        }
        let mut header = HeaderValue::from_str(&format!("{}{text}", rule.prefix))
            .map_err(|_| "its `prefix` has characters that a header cannot carry".to_owned())?;
        header.set_sensitive(true);
        Ok(Self {
            name: name.to_owned(),
            host: host.to_owned(),
            text,
            header,
        })
    }
}

fn read(rule: &SecretRule) -> Result<String, String> {
    match (&rule.env, &rule.file) {
        (Some(variable), None) => std::env::var(variable).map_err(|error| match error {
            std::env::VarError::NotPresent => format!(
                "the environment variable `{variable}` is not set; set it where the host program is started"
            ),
            std::env::VarError::NotUnicode(_) => {
                format!("the environment variable `{variable}` is not text")
            }
        }),
        (None, Some(path)) => {
            let mut text = std::fs::read_to_string(path).map_err(|error| {
                format!("cannot read {}: {error}; correct the path or its permissions", path.display())
            })?;
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
            Ok(text)
        }
        (Some(_), Some(_)) => Err("both `env` and `file` say where it is; keep one".to_owned()),
        (None, None) => Err("say where it is: `env = \"VARIABLE\"` or `file = \"path\"`".to_owned()),
    }
}

/// All secrets of one plugin's HTTP rules.
#[derive(Debug)]
pub(crate) struct Secrets(BTreeMap<String, Secret>);

impl Secrets {
    pub(crate) fn open(
        rules: &BTreeMap<String, SecretRule>,
        hosts: &Hosts,
    ) -> Result<Self, HttpError> {
        let open = |(name, rule): (&String, &SecretRule)| {
            let secret = Secret::open(name, rule, hosts).map_err(|reason| HttpError::Secret {
                name: name.clone(),
                reason,
            })?;
            Ok((name.clone(), secret))
        };
        rules.iter().map(open).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Secret> {
        self.0.values()
    }

    /// True if a secret may be sent to `host`. Its answers may then contain the secret.
    pub(crate) fn any_for(&self, host: &str) -> bool {
        self.iter().any(|secret| secret.host == host)
    }

    /// The header value for the secret `name` in a request to `host`.
    pub(crate) fn header(&self, name: &str, host: &str) -> Result<HeaderValue, FetchError> {
        let secret = self.0.get(name).ok_or_else(|| {
            FetchError::Denied(format!(
                "no secret `{name}` is in the operator's HTTP rules"
            ))
        })?;
        if secret.host != host {
            return Err(FetchError::Denied(format!(
                "secret `{name}` is bound to host `{}` and is not sent to `{host}`",
                secret.host
            )));
        }
        Ok(secret.header.clone())
    }
}
