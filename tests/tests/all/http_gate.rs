//! A plugin reaches only the hosts that the operator opened to it, and never holds a secret.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::thread;

use rlf_tests::{Ended, Host};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Answers `requests` requests on the loopback interface with the request itself.
pub(crate) fn echo(requests: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the loopback");
    let port = listener.local_addr().expect("is bound").port();
    thread::spawn(move || {
        for stream in listener.incoming().take(requests) {
            let mut stream = stream.expect("somebody connects");
            let mut asked = [0; 4096];
            let length = stream.read(&mut asked).expect("asks");
            let body = &asked[..length];
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).expect("listens");
            stream.write_all(body).expect("listens");
            let _ = stream.shutdown(Shutdown::Write);
        }
    });
    port
}

/// The plugin `fetch` with its grants.
struct Fetch {
    host: Host,
    folder: TempDir,
}

impl Fetch {
    fn new(grants: &str) -> Self {
        let fetch = Self {
            host: Host::with_test_plugins(),
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        let write = |name: &str, text: &str| {
            fs::write(fetch.folder.path().join(name), text).expect("can be written");
        };
        write("key", "open-sesame-42\n");
        // `plugin inspect` prints the pin. Without grants the plugin does not load, so the pin is read from the
        // refusal.
        write("grants.toml", "");
        let refused = fetch.call(&json!({"url": "http://localhost"}));
        let message = refused.refused();
        let hash = message
            .split("hash = \"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap_or_else(|| panic!("no hash in: {message}"));
        write(
            "grants.toml",
            &format!("[plugins.fetch]\nhash = \"{hash}\"\n{grants}"),
        );
        fetch
    }

    fn call(&self, arguments: &Value) -> Ended {
        let config = self.folder.path().join("grants.toml");
        self.host.plugin([
            "call",
            "fetch",
            "get",
            &arguments.to_string(),
            "--config",
            config.to_str().expect("a plain name"),
        ])
    }
}

fn opened(port: u16) -> String {
    format!(
        "grants = [\"http\"]\n\
         [plugins.fetch.http]\n\
         hosts.localhost = {{ scheme = \"http\", ports = [{port}], allow_private_addresses = true }}\n\
         secrets.key = {{ file = \"key\", host = \"localhost\", prefix = \"Bearer \" }}\n\
         max_requests_per_call = 3\n"
    )
}

#[test]
fn a_host_that_is_opened_is_reached_and_others_are_not() {
    let port = echo(1);
    let fetch = Fetch::new(&opened(port));
    let reached = fetch.call(&json!({"url": format!("http://localhost:{port}/a?b=c")}));
    let text = &reached.succeeded().stdout;
    assert!(text.starts_with("200 GET /a?b=c HTTP/1.1"), "{text}");
    for url in [
        "http://localhost:1/",
        "https://localhost/",
        "http://127.0.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://example.com/",
        "file:///etc/passwd",
    ] {
        let refused = fetch.call(&json!({"url": url}));
        let text = &refused.succeeded().stdout;
        assert!(text.starts_with("refused: "), "{url}: {text}");
    }
}

#[test]
fn a_secret_is_sent_where_it_is_bound_and_taken_out_of_what_comes_back() {
    let port = echo(1);
    let fetch = Fetch::new(&opened(port));
    let url = format!("http://localhost:{port}/");
    let reached = fetch.call(&json!({"url": url, "secret": "key"}));
    let text = &reached.succeeded().stdout;
    assert!(text.contains("authorization: "), "{text}");
    assert!(text.contains("[secret key]"), "{text}");
    assert!(!text.contains("open-sesame-42"), "{text}");
    let unknown = fetch.call(&json!({"url": url, "secret": "kye"}));
    assert!(
        unknown.succeeded().stdout.starts_with("refused: "),
        "{unknown}"
    );
}

#[test]
fn requests_of_a_call_are_counted_together() {
    let port = echo(3);
    let fetch = Fetch::new(&opened(port));
    let reached = fetch.call(&json!({"url": format!("http://localhost:{port}/"), "times": 5}));
    let lines = &reached.succeeded().stdout;
    assert_eq!(lines.matches("200 GET").count(), 3, "{lines}");
    assert_eq!(
        lines.matches("max_requests_per_call = 3").count(),
        2,
        "{lines}"
    );
}

#[test]
fn a_grant_without_a_host_and_a_host_without_a_grant_open_nothing() {
    let without_host = Fetch::new("grants = [\"http\"]\n");
    let url = json!({"url": "http://localhost"});
    without_host
        .call(&url)
        .refused_with(&["`http` is granted, but no host is named"]);
    let without_grant = Fetch::new("http.hosts.localhost = { scheme = \"http\" }\n");
    without_grant
        .call(&url)
        .refused_with(&["which nobody granted"]);
}
