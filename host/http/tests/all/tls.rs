//! https hosts prove the name in the rules, at whatever address they are reached.

use std::path::{Path, PathBuf};

use rlf_http::{HttpRules, Scheme};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::server::{Answer, Event, Server};
use crate::{call, get, rules, unavailable};

fn certificate(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/certificates")
        .join(file)
}

pub(crate) fn authority() -> PathBuf {
    certificate("authority.pem")
}

/// Rules that open `api.test` and `other.test`, trusting the authority in `file`.
fn https(port: u16, file: &str) -> HttpRules {
    let mut rules = rules(port);
    let mut rule = rules.hosts["api.test"].clone();
    rule.scheme = Scheme::Https;
    for name in ["api.test", "other.test", "127.0.0.1"] {
        rules.hosts.insert(name.to_owned(), rule.clone());
    }
    rules.certificate_authorities = Some(certificate(file));
    rules
}

#[tokio::test]
async fn the_name_goes_into_the_handshake_and_into_the_request() {
    let mut server = Server::start_tls(Answer::ok("", "proven")).await;
    let rules = https(server.port, "authority.pem");
    let answer = call(&rules)
        .fetch(get(format!("https://api.test:{}/", server.port)))
        .await;
    assert_eq!(answer.unwrap().body, b"proven");
    assert_eq!(server.next().await, Event::Connected);
    assert_eq!(
        server.next().await,
        Event::ServerName(Some("api.test".to_owned()))
    );
    let request = server.request().await;
    assert!(
        request.contains(&format!("\r\nhost: api.test:{}\r\n", server.port)),
        "{request}"
    );
}

#[tokio::test]
async fn who_does_not_prove_the_name_is_sent_nothing() {
    let mut server = Server::start_tls(Answer::ok("", "unproven")).await;
    for (file, host, because) in [
        ("authority.pem", "other.test", "not valid for name"),
        ("authority.pem", "127.0.0.1", "not valid for name"),
        ("server.pem", "api.test", "UnknownIssuer"),
    ] {
        let rules = https(server.port, file);
        let answer = call(&rules)
            .fetch(get(format!("https://{host}:{}/", server.port)))
            .await;
        let reason = unavailable(answer);
        assert!(
            reason.starts_with(&format!("no secure connection to `{host}`: ")),
            "{reason}"
        );
        assert!(reason.contains(because), "{reason}");
        assert_eq!(server.next().await, Event::Connected);
        assert_eq!(server.next().await, Event::Closed);
    }
}

#[tokio::test]
async fn a_server_in_the_clear_is_no_https_server() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let rules = https(listener.local_addr().unwrap().port(), "authority.pem");
    let port = rules.hosts["api.test"].ports.first().unwrap();
    let call = call(&rules);
    let fetch = call.fetch(get(format!("https://api.test:{port}/")));
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        stream
    };
    let (answer, _stream) = tokio::join!(fetch, serve);
    let reason = unavailable(answer);
    assert!(
        reason.starts_with("no secure connection to `api.test`: "),
        "{reason}"
    );
}
