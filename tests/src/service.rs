//! A running `rlf-host serve`, and a client that reads bytes from its socket.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Deref;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::Host;
use crate::process::{Ended, Running};

/// More than any answer takes: a connection that is silent for longer has hung.
const MAX_WAIT: Duration = Duration::from_mins(2);

/// A service on its own port, and a client of it.
#[derive(Debug)]
pub struct Service {
    running: Running,
    client: Client,
    _folder: TempDir,
}

/// A client that knows the address of a service.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    address: SocketAddr,
}

impl Deref for Service {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// An answer that came back on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its head, as sent.
    pub head: String,
    /// Its body, as sent.
    pub body: String,
}

impl Service {
    /// Starts `rlf-host serve` with this configuration and more arguments.
    pub fn start(host: &Host, config: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("serve.toml");
        fs::write(&file, config).expect("can be written");
        let mut arguments = vec!["serve".into(), file.display().to_string()];
        let plugins = host.plugins().display().to_string();
        arguments.extend(["--listen", "127.0.0.1:0", "--plugins", &plugins].map(str::to_owned));
        arguments.extend(more.iter().map(|&word| word.to_owned()));
        let mut running = host.start(arguments);
        let address = running.rest_of_line("listening on http://");
        Self {
            client: Client::of(&address),
            running,
            _folder: folder,
        }
    }

    /// The process.
    pub fn process(&mut self) -> &mut Running {
        &mut self.running
    }

    /// Waits for its end.
    pub fn wait(self) -> Ended {
        self.running.wait()
    }
}

impl Client {
    /// A client of the service at this address, such as `127.0.0.1:8000`.
    pub fn of(address: &str) -> Self {
        Self {
            address: address.parse().expect("an address"),
        }
    }

    /// The address of the service.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection to it.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream
            .set_read_timeout(Some(MAX_WAIT))
            .expect("takes a timeout");
        stream
    }

    /// Sends bytes on a new connection. Returns the connection, to read from.
    pub fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("it reads");
        stream
    }

    /// Sends a request whose connection is closed after the answer.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        read(self.send(self.request(method, path, headers, body).as_bytes()))
    }

    /// The bytes of a request. `Host` and, with a body, the content type are as clients send them, unless `headers`
    /// has them.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        let mut add = |name: &str, value: &str| head.extend([name, ": ", value, "\r\n"]);
        let given = |name: &str| headers.iter().any(|(given, _)| *given == name);
        if !given("host") {
            add("host", &self.address.to_string());
        }
        if !body.is_empty() {
            if !given("content-type") {
                add("content-type", "application/json");
            }
            if !given("content-length") {
                add("content-length", &body.len().to_string());
            }
        }
        for (name, value) in headers {
            add(name, value);
        }
        format!("{head}\r\n{body}")
    }

    /// `GET`.
    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    /// `POST` of JSON.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[], &body.to_string())
    }

    /// The value of a metric.
    #[track_caller]
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").body;
        let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
        let value = values.find_map(|value| value.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no metric {name}: {text}"))
    }

    /// Waits until a metric has a value that suffices.
    #[track_caller]
    pub fn wait_for_metric(&self, name: &str, suffices: impl Fn(u64) -> bool) {
        let until = Instant::now() + MAX_WAIT;
        while !suffices(self.metric(name)) {
            assert!(Instant::now() < until, "{name} did not become so");
        }
    }

    /// The body of the answer to `POST`. Fails the test unless the status is 200.
    #[track_caller]
    pub fn posted(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }
}

/// Everything that arrives on a connection until it is closed.
fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no whole answer, {ended:?}: {text:?}"));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("no status: {head:?}")),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

impl Answer {
    /// Reads an answer from a connection until it is closed.
    pub fn read(stream: TcpStream) -> Self {
        read(stream)
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("not JSON: {error}: {self:?}"))
    }
}
