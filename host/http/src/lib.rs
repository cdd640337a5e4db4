//! HTTP for plugins: fetches from hosts that an operator opened, and from no others.
//!
//! A plugin is an untrusted program, and a model may choose its requests. With a free network it could reach the
//! services of this machine, its neighbours and its cloud's metadata, carry data away, and wait for ever. So the
//! operator names hosts, and this crate sends requests to these hosts only:
//!
//! - Hosts by exact name, each over one scheme and at listed ports ([`HostRule`]).
//! - A name is resolved once for each fetch, every address is checked ([`Reach`]), and one of exactly
//!   those is connected to, with the name for TLS and `Host`.
//! - Redirects are answers. Proxy variables of the environment are not read, cookies not kept.
//! - Bytes, headers, time and numbers of requests are capped ([`HttpRules`]); a limit that is
//!   reached is reported by its key, its value and what was used ([`FetchError`]).
//! - Secrets are put into headers here, towards the one host each is bound to, and taken out of what
//!   comes back. The plugin never holds one.
//!
//! It knows nothing of plugins, tools or the sandbox: a rules, a deadline and requests come in,
//! answers and errors go out. One connection serves one request, in HTTP/1.1; a host with TLS costs a
//! handshake each time, shortened by the session tickets of the client.
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

pub use address::{Reach, is_public};
pub use client::{HttpCall, HttpClient};
pub use error::{FetchError, FetchLimit, HttpError, TimedOutBy};
pub use request::{Request, Response, Value};
pub use resolve::{Resolve, SystemResolver};
pub use rules::{HostRule, HttpRules, Scheme, SecretRule};
