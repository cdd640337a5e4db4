//! HTTP for plugins: fetches from hosts that an operator opened, and from no others.
//!
//! A plugin is an untrusted program, and a model may choose its requests. With a free network it could reach the
//! services of this machine, its neighbours and its cloud's metadata, carry data away, and wait for ever. So the
//! operator names hosts, and this crate sends requests to these hosts only:
//!
//! - Hosts by exact name, each over one scheme and at listed ports ([`HostRule`]).
//! - A name is resolved once for each fetch, and every address is checked ([`NetworkKind`]). The connection goes to one of
//!   these addresses only, with the name for TLS and `Host`.
//! - A redirect is an answer. Proxy variables of the environment are not read, and cookies are not kept.
//! - Bytes, headers, time and the number of requests are limited ([`HttpRules`]). The error of an exceeded limit has
//!   the limit's key, its value and the amount used ([`FetchError`]).
//! - This crate puts secrets into headers, only for the one host that each is bound to, and removes them from the
//!   answers. The plugin never holds a secret.
//!
//! It must not know plugins, tools or the sandbox: rules, a deadline and requests come in, answers and errors go out.
//! One connection serves one request, in HTTP/1.1. A host with TLS costs a handshake for each request, shortened by the
//! client's session tickets.
//!
//! | looking for | module |
//! |---|---|
//! | the operator's rules | `rules`: [`HttpRules`] |
//! | a client, and the fetches of one call | `client`: [`HttpClient`], [`HttpCall`] |
//! | requests, answers, and the checks of requests | `request` |
//! | allowed hosts, name resolution, allowed addresses | `hosts`, `resolve`, `address` |
//! | one connection, and the count of its bytes | `connection`, `metered`, `tls` |
//! | secrets, and their removal from answers | `secret`, `redact` |
//! | errors | `error` |
//!
//! ```
//! use std::time::{Duration, Instant};
//! use rlf_http::{FetchError, HttpClient, HttpRules, Request, Value};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let key = tempfile::NamedTempFile::new()?;
//! # std::fs::write(key.path(), "correct-horse-battery")?;
//! let mut rules: HttpRules = rlf_config::parse(
//!     r#"
//! hosts."api.example.com" = {}                                 # https at port 443
//! hosts."wiki.intranet" = { scheme = "http", ports = [8080], allow_private_addresses = true }
//! secrets.search = { file = "search.key", host = "api.example.com", prefix = "Bearer " }
//! max_response_bytes = 100_000
//! "#,
//!     "example.toml",
//! )?;
//! # rules.secrets.get_mut("search").unwrap().file = Some(key.path().to_owned());
//! let client = HttpClient::open(&rules)?;
//!
//! let call = client.call(Instant::now() + Duration::from_secs(10));
//! let request = Request {
//!     method: "GET".to_owned(),
//!     url: "https://elsewhere.example.com/".to_owned(),
//!     headers: vec![("authorization".to_owned(), Value::Secret("search".to_owned()))],
//!     body: Vec::new(),
//! };
//! assert_eq!(
//!     call.fetch(request).await,
//!     Err(FetchError::Denied(
//!         "host `elsewhere.example.com` is not one that the operator's HTTP rules allow".to_owned()
//!     ))
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod client;
mod connection;
mod error;
mod hosts;
mod metered;
mod redact;
mod request;
mod resolve;
mod rules;
mod secret;
mod tls;

pub use address::{NetworkKind, is_public};
pub use client::{HttpCall, HttpClient};
pub use error::{FetchError, FetchLimit, HttpError, TimedOutBy};
pub use request::{Request, Response, Value};
pub use resolve::{Resolve, SystemResolver};
pub use rules::{HostRule, HttpRules, Scheme, SecretRule};
