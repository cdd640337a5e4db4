//! Programs over HTTP: `rlf-host serve` compared with a service that starts a process for each request. Both run on the
//! loopback interface with connections kept open.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::native::threads;
use super::{AT_ONCE, Build, PROGRAMS, Samples};

/// A running server, which ends when this is dropped.
struct Server {
    child: Child,
    address: String,
    _plugins: Option<tempfile::TempDir>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts the service that makes a process for each request.
    fn spawning(python: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(python)
            .args(["-c", include_str!("spawning_server.py")])
            .stdout(Stdio::piped())
            .spawn()
            .context("the server to compare with cannot be started")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("no pipe")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let port: u16 = line.trim().parse().context("the server says no port")?;
        Ok(Self {
            child,
            address: format!("127.0.0.1:{port}"),
            _plugins: None,
        })
    }

    /// Starts `rlf-host serve`.
    fn ours(build: &Build) -> anyhow::Result<Self> {
        // The directory holds only this build.
        let plugins = tempfile::tempdir().context("cannot make a temporary folder")?;
        let folder = plugins.path().join("python");
        std::fs::create_dir(&folder)?;
        let component = build.folder.join("python.wasm");
        std::fs::copy(&component, folder.join("python.wasm"))
            .with_context(|| format!("cannot read {}", component.display()))?;
        let mut child = Command::new(std::env::current_exe()?.with_file_name("rlf-host"))
            .args(["serve", "--listen", "127.0.0.1:0", "--plugins"])
            .arg(plugins.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("rlf-host serve cannot be started")?;
        let stdout = child.stdout.take().context("no pipe")?;
        let address = BufReader::new(stdout)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, rest) = line.split_once("http://")?;
                Some(rest.trim_end_matches('/').to_owned())
            });
        let address = address.context("rlf-host serve did not say where it listens")?;
        let address = address
            .split(['/', ' '])
            .next()
            .unwrap_or_default()
            .to_owned();
        Ok(Self {
            child,
            address,
            _plugins: Some(plugins),
        })
    }

    fn measure(
        &self,
        code: &str,
        printed: &str,
        at_once: usize,
        time: Duration,
    ) -> anyhow::Result<Samples> {
        let connections = (0..at_once)
            .map(|_| Ok(Mutex::new(Connection::open(&self.address)?)))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let body = json!({"code": code, "language": "python", "run_timeout": 10}).to_string();
        threads(at_once, time, |caller| {
            let connection = connections[caller].lock();
            let mut connection = connection.map_err(|_| anyhow::anyhow!("a connection broke"))?;
            let answer = connection.post("/run_code", &body)?;
            let stdout = answer["run_result"]["stdout"].as_str().unwrap_or_default();
            ensure!(
                answer["status"] == "Success" && stdout.ends_with(printed),
                "it was answered otherwise: {answer}"
            );
            Ok(())
        })
    }
}

struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Connection {
    fn open(address: &str) -> anyhow::Result<Self> {
        let stream =
            TcpStream::connect(address).with_context(|| format!("no connection to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_mins(1)))?;
        Ok(Self {
            stream: BufReader::new(stream),
            host: address.to_owned(),
        })
    }

    fn post(&mut self, path: &str, body: &str) -> anyhow::Result<Value> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            ensure!(
                self.stream.read_line(&mut line)? > 0,
                "the server closed the connection"
            );
            let header = line.trim_end().to_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }
}

pub(super) fn compare(build: &Build, python: &Path, time: Duration) -> anyhow::Result<()> {
    println!("over HTTP on loopback, connections kept open");
    println!(
        "  {:<44}{:>8}{:>11}{:>11}{:>11}{:>9}",
        "", "at once", "p50 us", "p99 us", "runs/s", "x"
    );
    let (ours, spawning) = (Server::ours(build)?, Server::spawning(python)?);
    for (name, code, printed) in &PROGRAMS[..2] {
        for at_once in AT_ONCE {
            let peer = spawning.measure(code, printed, at_once, time)?;
            let own = ours.measure(code, printed, at_once, time)?;
            for (way, samples, ratio) in [
                ("an HTTP server that starts a process", &peer, 1.0),
                ("rlf-host serve", &own, own.runs_per_s / peer.runs_per_s),
            ] {
                println!(
                    "  {:<44}{at_once:>8}{:>11.1}{:>11.1}{:>11.0}{ratio:>9.1}",
                    format!("{name}: {way}"),
                    samples.at(0.5),
                    samples.at(0.99),
                    samples.runs_per_s,
                );
            }
        }
    }
    println!();
    Ok(())
}
