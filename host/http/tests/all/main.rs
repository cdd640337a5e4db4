//! Promises about plugins and the network, one file for each. Everything stays on the loopback interface, and the
//! machine's resolver is asked only for `localhost`.

mod addresses;
mod cancellation;
mod environment;
mod hosts;
mod names;
mod opening;
mod quotas;
mod rebinding;
mod redirects;
mod requests;
mod secrets;
mod server;
mod size;
mod time;
mod tls;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rlf_http::{
    FetchError, HostRule, HttpCall, HttpClient, HttpRules, Request, Response, Scheme, Value,
};

use crate::names::Names;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Far longer than any test takes, so a fetch ends only for the tested reason.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// Opens `api.test` at `port` of this machine, without TLS.
fn rules(port: u16) -> HttpRules {
    let rule = HostRule {
        scheme: Scheme::Http,
        ports: [port].into(),
        allow_private_addresses: true,
    };
    HttpRules {
        hosts: [("api.test".to_owned(), rule)].into(),
        timeout: MAX_WAIT,
        ..HttpRules::default()
    }
}

/// A client for which every name resolves to this machine.
fn client(rules: &HttpRules) -> HttpClient {
    HttpClient::open_with(rules, Arc::new(Names::all(LOOPBACK))).unwrap()
}

fn call(rules: &HttpRules) -> HttpCall {
    client(rules).call(Instant::now() + MAX_WAIT)
}

fn get(url: impl Into<String>) -> Request {
    Request {
        method: "GET".to_owned(),
        url: url.into(),
        ..Request::default()
    }
}

fn with_header(mut request: Request, name: &str, value: &str) -> Request {
    request
        .headers
        .push((name.to_owned(), Value::Text(value.to_owned())));
    request
}

/// Fetches `/` of `api.test`.
async fn fetch(rules: &HttpRules, port: u16) -> Result<Response, FetchError> {
    call(rules)
        .fetch(get(format!("http://api.test:{port}/")))
        .await
}

fn denied(result: Result<Response, FetchError>) -> String {
    match result {
        Err(FetchError::Denied(reason)) => reason,
        other => panic!("not denied: {other:?}"),
    }
}

fn invalid(result: Result<Response, FetchError>) -> String {
    match result {
        Err(FetchError::Invalid(reason)) => reason,
        other => panic!("not invalid: {other:?}"),
    }
}

fn unavailable(result: Result<Response, FetchError>) -> String {
    match result {
        Err(FetchError::Unavailable(reason)) => reason,
        other => panic!("not unavailable: {other:?}"),
    }
}

/// The key, the value and the used amount of the exceeded limit.
fn exhausted(result: Result<Response, FetchError>) -> (&'static str, u64, u64) {
    match result {
        Err(FetchError::Exhausted { limit, .. }) => (limit.name, limit.value, limit.used),
        other => panic!("no limit reached: {other:?}"),
    }
}
