//! A URL leads only to a host of the rules, with its scheme and one of its ports.

use std::sync::Arc;
use std::time::Instant;

use rlf_http::{HostRule, HttpClient, HttpRules, Scheme};

use crate::names::Names;
use crate::server::{Answer, Server};
use crate::{LOOPBACK, MAX_WAIT, call, denied, get, invalid, rules};

fn clear_text(ports: &[u16]) -> HostRule {
    HostRule {
        scheme: Scheme::Http,
        ports: ports.iter().copied().collect(),
        allow_private_addresses: true,
    }
}

#[tokio::test]
async fn what_is_not_listed_is_not_even_looked_up() {
    let names = Arc::new(Names::all(LOOPBACK));
    let client = HttpClient::open_with(&rules(8080), names.clone()).unwrap();
    for (url, because) in [
        (
            "http://elsewhere.test:8080/",
            "host `elsewhere.test` is not one",
        ),
        ("http://api.test.elsewhere.test:8080/", "is not one"),
        ("http://sub.api.test:8080/", "is not one"),
        ("http://test:8080/", "is not one"),
        ("http://api.test.:8080/", "host `api.test.` is not one"),
        ("http://api.test%2e:8080/", "host `api.test.` is not one"),
        ("http://api%2Etest.:8080/", "host `api.test.` is not one"),
        ("http://api.test..:8080/", "host `api.test..` is not one"),
        (
            "http://elsewhere.test:8080/?http://api.test:8080/",
            "is not one",
        ),
        ("http://elsewhere.test:8080#@api.test:8080/", "is not one"),
        // The address that the name leads to, in any spelling.
        ("http://127.0.0.1:8080/", "host `127.0.0.1` is not one"),
        ("http://2130706433:8080/", "host `127.0.0.1` is not one"),
        ("http://0x7f.1:8080/", "host `127.0.0.1` is not one"),
        ("http://0177.0.0.01:8080/", "host `127.0.0.1` is not one"),
        ("http://127.1.:8080/", "host `127.0.0.1` is not one"),
        ("http://[::1]:8080/", "host `[::1]` is not one"),
        (
            "http://[::ffff:127.0.0.1]:8080/",
            "host `[::ffff:7f00:1]` is not one",
        ),
        (
            "http://api.test/",
            "host `api.test` is opened at port 8080, not at 80",
        ),
        ("http://api.test:80/", "not at 80"),
        ("http://api.test:22/", "not at 22"),
        (
            "https://api.test:8080/",
            "host `api.test` is opened for http, not for https",
        ),
    ] {
        let call = client.call(Instant::now() + MAX_WAIT);
        let reason = denied(call.fetch(get(url)).await);
        assert!(reason.contains(because), "{url}: {reason}");
    }
    assert_eq!(names.asked(), 0);
}

#[tokio::test]
async fn what_is_no_plain_url_is_invalid() {
    let call = call(&HttpRules {
        max_requests_per_call: 1_000,
        ..rules(8080)
    });
    for (url, because) in [
        ("", "not a URL"),
        ("api.test:8080/", "scheme `api.test`"),
        ("//api.test:8080/", "not a URL"),
        ("/path", "not a URL"),
        ("http://", "not a URL"),
        ("http://:8080/", "not a URL"),
        ("http://api.test:99999/", "not a URL"),
        ("http://[::1", "not a URL"),
        ("http://[fe80::1%25eth0]:8080/", "not a URL"),
        ("http://1.2.3.4.5:8080/", "not a URL"),
        ("file:///etc/passwd", "scheme `file`"),
        ("ftp://api.test:8080/", "scheme `ftp`"),
        ("data:text/plain,hello", "scheme `data`"),
        ("ws://api.test:8080/", "scheme `ws`"),
        ("unix:/run/service.sock", "scheme `unix`"),
        ("http://user@api.test:8080/", "a user or a password"),
        ("http://user:pass@api.test:8080/", "a user or a password"),
        (
            "http://api.test:8080@elsewhere.test/",
            "a user or a password",
        ),
        (r"http://elsewhere.test\@api.test:8080/", r"'\\' in it"),
        (r"http:\\api.test:8080\", r"'\\' in it"),
        (" http://api.test:8080/", "' ' in it"),
        ("http://api.test:8080/a b", "' ' in it"),
        ("ht\ttp://api.test:8080/", r"'\t' in it"),
        (
            "http://api.test:8080/\r\nhost: elsewhere.test",
            r"'\r' in it",
        ),
        ("http://api.test:8080/\0", r"'\0' in it"),
        ("http://api.test\u{a0}:8080/", r"'\u{a0}' in it"),
    ] {
        let reason = invalid(call.fetch(get(url)).await);
        assert!(reason.contains(because), "{url:?}: {reason}");
    }
}

#[tokio::test]
async fn other_spellings_of_a_listed_host_are_that_host() {
    let mut server = Server::start(Answer::ok("", "here")).await;
    let port = server.port;
    let mut rules = rules(port);
    rules
        .hosts
        .insert("Bücher.test".to_owned(), clear_text(&[port]));
    for (url, host, path) in [
        ("http://api.test:PORT", "api.test", "/"),
        ("HTTP://API.Test:PORT/a?b=c#d", "api.test", "/a?b=c"),
        ("http:api.test:PORT/%7e/../x", "api.test", "/x"),
        (
            "http://ａｐｉ.test:PORT/ü?\"ö{}",
            "api.test",
            "/%C3%BC?%22%C3%B6{}",
        ),
        ("http://BÜCHER.test:PORT/", "xn--bcher-kva.test", "/"),
        ("http://xn--bcher-kva.test:PORT/", "xn--bcher-kva.test", "/"),
    ] {
        let url = url.replace("PORT", &port.to_string());
        let answer = call(&rules).fetch(get(&url)).await;
        assert_eq!(answer.unwrap().body, b"here", "{url}");
        let request = server.request().await;
        let start = format!("GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\n");
        assert!(request.starts_with(&start), "{url}: {request}");
    }
}

#[tokio::test]
async fn an_address_is_opened_by_its_entry_and_by_its_permission() {
    let server = Server::start(Answer::ok("", "here")).await;
    let url = format!("http://127.0.0.1:{}/", server.port);
    let mut rules = rules(80);
    let mut rule = clear_text(&[server.port]);
    rules.hosts.insert("127.0.0.1".to_owned(), rule.clone());
    assert_eq!(call(&rules).fetch(get(&url)).await.unwrap().body, b"here");

    rule.allow_private_addresses = false;
    rules.hosts.insert("127.0.0.1".to_owned(), rule.clone());
    assert_eq!(
        denied(call(&rules).fetch(get(&url)).await),
        "host `127.0.0.1` leads to a loopback address, which is closed unless the operator's HTTP rules say \
         `allow_private_addresses` for it"
    );

    // Naming an address that is never open does not open it.
    rule.allow_private_addresses = true;
    rule.ports = [80].into();
    for host in ["169.254.169.254", "0.0.0.0", "[fe80::1]", "[::]"] {
        rules.hosts.insert(host.to_owned(), rule.clone());
        let reason = denied(call(&rules).fetch(get(format!("http://{host}/"))).await);
        assert!(reason.contains("which is closed"), "{reason}");
    }
}
