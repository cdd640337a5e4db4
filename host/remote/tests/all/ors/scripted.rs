//! A server of ORS whose behaviour depends on the path of its URL.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A running server.
pub(crate) struct Scripted {
    address: String,
    /// The paths of all requests so far, with their bodies.
    seen: watch::Sender<Vec<(String, Value)>>,
}

/// A request.
struct Asked {
    path: String,
    head: String,
    body: Value,
}

impl Scripted {
    /// Starts a server. It ends with the runtime.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let seen = watch::Sender::default();
        let seeing = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, seeing.clone()));
            }
        });
        Self { address, seen }
    }

    /// The base URL of a server that behaves in this way.
    pub(crate) fn url(&self, behaviour: &str) -> String {
        format!("http://{}/{behaviour}", self.address)
    }

    /// The bodies of all requests for a path.
    pub(crate) fn bodies(&self, path: &str) -> Vec<Value> {
        let seen = self.seen.borrow();
        let of_path = seen.iter().filter(|(asked, _)| asked == path);
        of_path.map(|(_, body)| body.clone()).collect()
    }

    /// Waits until somebody has asked for a path.
    pub(crate) async fn asked_for(&self, path: &str) {
        let mut seen = self.seen.subscribe();
        let asked = seen.wait_for(|seen| seen.iter().any(|(asked, _)| asked == path));
        asked.await.expect("the sender is held");
    }
}

async fn serve(mut stream: TcpStream, seen: watch::Sender<Vec<(String, Value)>>) {
    let asked = read(&mut stream).await;
    seen.send_modify(|seen| seen.push((asked.path.clone(), asked.body.clone())));
    let times = seen
        .borrow()
        .iter()
        .filter(|(path, _)| *path == asked.path)
        .count();
    if let Some(answer) = answer(&asked, times).await {
        // A client may leave at any time.
        _ = stream.write_all(answer.as_bytes()).await;
    }
}

async fn read(stream: &mut TcpStream) -> Asked {
    let mut bytes = Vec::new();
    loop {
        let count = stream.read_buf(&mut bytes).await.expect("a request");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert!(count > 0, "a request has a head");
            continue;
        };
        let length =
            header(head, "content-length").map_or(0, |text| text.parse().expect("a length"));
        if body.len() < length {
            continue;
        }
        return Asked {
            path: head.split(' ').nth(1).expect("a path").to_owned(),
            body: serde_json::from_str(body).unwrap_or_default(),
            head: head.to_owned(),
        };
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (named, value) = line.split_once(": ")?;
        named.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// The answer to a request that has come `times` times. `None` closes the connection.
async fn answer(asked: &Asked, times: usize) -> Option<String> {
    let path: Vec<&str> = asked.path.trim_start_matches('/').split('/').collect();
    let json = |status: &str, body: Value| Some(response(status, "", &body.to_string()));
    let is_session = header(&asked.head, "x-session-id") == Some("s1");
    match path[..] {
        [_, "list_environments"] => json("200 OK", json!(["counting", "halving"])),
        [
            _,
            environment @ ("counting" | "halving"),
            "tools" | "task_tools",
        ] => {
            let schema = json!({"type": "object", "properties": {"by": {"type": "integer"}}});
            let tool = json!({"name": "add", "description": environment, "input_schema": schema});
            json("200 OK", json!({"tools": [tool]}))
        }
        // As in the specification, and as published servers do.
        ["picky", "create_session"] => json("200 OK", json!({"sid": "s1"})),
        [_, "create_session"] => {
            let stream = "event: task_id\r\ndata: s1\r\n\r\nevent: end\r\ndata: \r\n\r\n";
            Some(response("200 OK", "", stream))
        }
        _ if !is_session => json("404 Not Found", json!({"detail": "unknown environment"})),
        ["refuses", "create"] => json("400 Bad Request", json!({"detail": "Invalid split"})),
        [_, "create" | "ping" | "delete"] => json("200 OK", json!({"sid": "s1"})),
        ["prepares", _, "prompt"] if times < 3 => {
            let starting = json!({"detail": "Environment still starting."});
            json("503 Service Unavailable", starting)
        }
        [_, _, "prompt"] => json("200 OK", json!([{"type": "text", "text": "Count."}])),
        [behaviour, _, "call"] => called(behaviour, asked).await,
        _ => json("404 Not Found", json!({"detail": "Not Found"})),
    }
}

/// The answer to a call.
async fn called(behaviour: &str, asked: &Asked) -> Option<String> {
    let begin = "event: task_id\r\ndata: t\r\n\r\n: ping\r\n\r\n";
    let stream = |events: &str| Some(response("200 OK", "", &format!("{begin}{events}\r\n\r\n")));
    let in_pieces = |result: &str, middle: usize| {
        let (first, last) = result.split_at(middle);
        stream(&format!(
            "event: chunk\r\ndata: {first}\r\n\r\nevent: end\r\ndata: {last}"
        ))
    };
    let paid = |reward: f64| {
        let by = &asked.body["input"]["by"];
        let block = json!({"type": "text", "text": by.to_string(), "detail": null});
        let output = json!({"blocks": [block], "reward": reward, "finished": *by == 9});
        in_pieces(&json!({"ok": true, "output": output}).to_string(), 20)
    };
    let token = header(&asked.head, "x-api-key").unwrap_or("no token");
    match behaviour {
        "hangs" => std::future::pending().await,
        "dies" => None,
        "cuts" => stream("event: chunk\r\ndata: {"),
        "babbles" => stream("event: end\r\ndata: {]"),
        "floods" => stream(&format!("event: end\r\ndata: {}", "x".repeat(17 << 20))),
        "redirects" => {
            let elsewhere = format!("location: {}\r\n", asked.path.replace("redirects", "well"));
            Some(response("308 Permanent Redirect", &elsewhere, ""))
        }
        "forgets" => {
            let gone = json!({"detail": "Active environment not found"});
            Some(response("404 Not Found", "", &gone.to_string()))
        }
        "raises" => stream("event: error\r\ndata: list index out of range"),
        "echoes" => stream(&format!("event: error\r\ndata: you sent {token}")),
        "splits" => {
            let block = json!({"type": "text", "text": format!("you sent {token}")});
            let result = json!({"ok": true, "output": {"blocks": [block]}}).to_string();
            let begin = result.find(token).expect("the token is in the result");
            in_pieces(&result, begin + token.len() / 2)
        }
        "picky" => stream(
            "event: end\r\ndata: {\"ok\": false, \"error\": \"by is too small\", \"reason\": \"input_validation\"}",
        ),
        "ends" => stream(
            "event: end\r\ndata: {\"ok\": false, \"error\": \"'add' was not run\", \"reason\": \"episode_finished\"}",
        ),
        "overpays" => paid(7.5),
        _ => paid(0.5),
    }
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}
