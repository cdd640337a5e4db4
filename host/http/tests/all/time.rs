//! No server, resolver or handshake holds a fetch longer than the rules and the deadline allow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rlf_http::{FetchError, HttpClient, HttpRules, Scheme, TimedOutBy};

use crate::names::{Names, Silent};
use crate::server::{Answer, Server};
use crate::{LOOPBACK, MAX_WAIT, client, get, rules, unavailable};

const SHORT: Duration = Duration::from_millis(100);

/// Tests the same time limit twice: in the rules, then as the deadline of the call.
async fn times_out(open: impl Fn(&HttpRules) -> HttpClient, mut rules: HttpRules, url: &str) {
    for by in [TimedOutBy::Rules, TimedOutBy::Deadline] {
        let (timeout, until_deadline) = match by {
            TimedOutBy::Rules => (SHORT, MAX_WAIT),
            TimedOutBy::Deadline => (MAX_WAIT, SHORT),
        };
        rules.timeout = timeout;
        let call = open(&rules).call(Instant::now() + until_deadline);
        let error = call.fetch(get(url)).await.unwrap_err();
        let FetchError::Timeout {
            host,
            waited,
            by: reported,
        } = &error
        else {
            panic!("{url}: {error:?}")
        };
        assert_eq!((host.as_str(), *reported), ("api.test", by));
        // The rules' time begins with the fetch, the deadline's began before it.
        assert!(by == TimedOutBy::Deadline || *waited >= SHORT, "{error}");
    }
}

#[tokio::test]
async fn a_silent_server_is_left() {
    let server = Server::start(Answer::Silence).await;
    let url = format!("http://api.test:{}/", server.port);
    times_out(client, rules(server.port), &url).await;
}

#[tokio::test]
async fn a_server_that_drips_is_left() {
    for start in [
        "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nx",
        "HTTP/1.1 200 OK\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nheader: v",
        "HTTP/1.1 200 O",
    ] {
        let server = Server::start(Answer::Drip(start.into())).await;
        let url = format!("http://api.test:{}/", server.port);
        times_out(client, rules(server.port), &url).await;
    }
}

#[tokio::test]
async fn a_server_that_only_promises_is_left() {
    let server = Server::start(Answer::Again(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec())).await;
    let url = format!("http://api.test:{}/", server.port);
    times_out(client, rules(server.port), &url).await;
}

#[tokio::test]
async fn a_server_that_never_shakes_hands_is_left() {
    let server = Server::start(Answer::Silence).await;
    let mut rules = rules(server.port);
    rules.hosts.get_mut("api.test").unwrap().scheme = Scheme::Https;
    rules.certificate_authorities = Some(crate::tls::authority());
    let url = format!("https://api.test:{}/", server.port);
    times_out(client, rules, &url).await;
}

#[tokio::test]
async fn a_silent_resolver_is_left() {
    let open = |rules: &HttpRules| HttpClient::open_with(rules, Arc::new(Silent)).unwrap();
    times_out(open, rules(80), "http://api.test/").await;
}

#[tokio::test]
async fn a_deadline_that_has_passed_looks_nothing_up() {
    let names = Arc::new(Names::all(LOOPBACK));
    let client = HttpClient::open_with(&rules(80), names.clone()).unwrap();
    let call = client.call(Instant::now().checked_sub(SHORT).unwrap());
    match call.fetch(get("http://api.test/")).await {
        Err(FetchError::Timeout { by, .. }) => assert_eq!(by, TimedOutBy::Deadline),
        other => panic!("{other:?}"),
    }
    assert_eq!(names.asked(), 0);
}

#[tokio::test]
async fn waiting_for_room_ends_with_the_deadline() {
    let mut server = Server::start(Answer::Silence).await;
    let mut rules = rules(server.port);
    rules.max_concurrent = 1;
    let client = client(&rules);
    let url = format!("http://api.test:{}/", server.port);
    let first = client.call(Instant::now() + MAX_WAIT);
    let request = get(&url);
    let first = tokio::spawn(async move { first.fetch(request).await });
    server.request().await;

    let second = client.call(Instant::now() + SHORT).fetch(get(&url)).await;
    assert_eq!(
        unavailable(second),
        "the plugin's other fetches left no room before the deadline of the call (max_concurrent = 1)"
    );
    first.abort();
}
