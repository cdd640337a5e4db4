//! A server of OpenEnv whose behaviour depends on the path of its URL.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

/// A running server.
pub(crate) struct Scripted {
    address: String,
    seen: Arc<Seen>,
}

/// The record of what clients have done.
#[derive(Default)]
struct Seen {
    /// The number of WebSockets that are open.
    open: watch::Sender<usize>,
    /// The number of WebSockets so far.
    connections: AtomicUsize,
    /// Notified of each answered ping.
    pong: Notify,
}

impl Scripted {
    /// Starts a server. It ends with the runtime.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let seen = Arc::<Seen>::default();
        let seeing = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&seeing)));
            }
        });
        Self { address, seen }
    }

    /// The base URL of an environment.
    pub(crate) fn url(&self, environment: &str) -> String {
        format!("http://{}/{environment}", self.address)
    }

    /// The number of WebSockets so far.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// Waits until no WebSocket is open.
    pub(crate) async fn all_left(&self) {
        let mut open = self.seen.open.subscribe();
        open.wait_for(|open| *open == 0)
            .await
            .expect("the sender is held");
    }

    /// Waits for the answer to a ping.
    pub(crate) async fn pong(&self) {
        self.seen.pong.notified().await;
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Seen>) {
    let head = head(&stream).await;
    let path = head.split(' ').nth(1).unwrap_or_default();
    let mut parts = path.trim_start_matches('/').split('/');
    let (environment, what) = (parts.next().unwrap_or_default(), parts.next());
    if what != Some("ws") {
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse::<usize>().expect("a length"))
        });
        let mut request = vec![0; head.len() + length.unwrap_or_default()];
        stream
            .read_exact(&mut request)
            .await
            .expect("the request is whole");
        let (status, body) = match (what, listed(environment)) {
            (Some("schema"), _) => ("200 OK", json!({"action": schema(environment)})),
            (Some("mcp"), Some(tools)) => {
                let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}});
                ("200 OK", result)
            }
            _ => ("404 Not Found", json!({"detail": "Not Found"})),
        };
        let body = body.to_string();
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await.expect("it reads");
        return;
    }
    let number = seen.connections.fetch_add(1, Ordering::SeqCst);
    seen.open.send_modify(|open| *open += 1);
    // A client may leave at any time.
    _ = session(stream, environment, number, &seen.pong).await;
    seen.open.send_modify(|open| *open -= 1);
}

/// The head of a request, which stays to be read.
async fn head(stream: &TcpStream) -> String {
    let mut bytes = vec![0; 4_096];
    loop {
        let count = stream.peek(&mut bytes).await.expect("a request");
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        if let Some(end) = text.find("\r\n\r\n") {
            return text[..end + 4].to_owned();
        }
        assert!(count > 0, "a request has a head");
        tokio::task::yield_now().await;
    }
}

fn schema(environment: &str) -> Value {
    match environment {
        "calls" | "described" | "unlisted" => {
            json!({"type": "object", "properties": {"tool_name": {"type": "string"}, "arguments": {"type": "object"}}})
        }
        _ => json!({
            "type": "object",
            "properties": {"metadata": {"type": "object"}, "guess": {"type": "integer"}},
            "required": ["guess"],
        }),
    }
}

/// The tools that an environment lists outside of a session.
fn listed(environment: &str) -> Option<Value> {
    let description = match environment {
        "calls" => "Adds",
        "described" => "Adds to the count",
        _ => return None,
    };
    let schema = json!({"type": "object", "properties": {"by": {"type": "integer"}}});
    Some(json!([{"name": "add", "description": description, "inputSchema": schema}]))
}

async fn session(
    stream: TcpStream,
    environment: &str,
    number: usize,
    pong: &Notify,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut socket = accept_async(stream).await?;
    let answer = |value: Value| Message::text(value.to_string());
    let error = |code: &str, message: &str| {
        answer(json!({"type": "error", "data": {"code": code, "message": message}}))
    };
    let observation = |observation: Value, reward: Value, done: bool| {
        let data = json!({"observation": observation, "reward": reward, "done": done});
        answer(json!({"type": "observation", "data": data}))
    };
    if environment == "full" && number < 2 {
        socket
            .send(error("CAPACITY_REACHED", "1 of 1 sessions"))
            .await?;
        return Ok(socket.close(None).await?);
    }
    while let Some(received) = socket.next().await {
        let text = match received? {
            Message::Text(text) => text,
            Message::Pong(_) => {
                pong.notify_one();
                continue;
            }
            _ => continue,
        };
        let message: Value = serde_json::from_str(&text)?;
        let kind = message["type"].as_str().unwrap_or_default();
        let reply = match (kind, environment) {
            ("reset", "refuses") => error("VALIDATION_ERROR", "no such level"),
            ("reset", "pings") => {
                let begun = observation(json!({}), Value::Null, false);
                socket.send(begun).await?;
                Message::Ping("are you there?".into())
            }
            ("reset", _) => {
                let seen = json!({"hint": "from 0 to 9", "seed": message["data"]["seed"], "metadata": {"secret": 7}});
                observation(seen, Value::Null, false)
            }
            ("state", _) => answer(json!({"type": "state", "data": {"step_count": 1}})),
            ("mcp", _) => {
                let result = json!({"tools": listed(environment)});
                let response = json!({"jsonrpc": "2.0", "id": 1, "result": result});
                answer(json!({"type": "mcp", "data": response}))
            }
            ("step", "hangs") => {
                std::future::pending::<()>().await;
                continue;
            }
            ("step", "dies") => return Ok(()),
            ("step", "babbles") => Message::text("{]"),
            ("step", "floods") => Message::text("x".repeat(17 << 20)),
            ("step", "raises") => error("EXECUTION_ERROR", "list index out of range"),
            ("step", "overpays") => observation(json!({}), json!(7.5), true),
            ("step", "calls") => {
                let by = &message["data"]["arguments"]["by"];
                let result =
                    json!({"content": [{"type": "text", "text": by.to_string()}], "data": by});
                observation(
                    json!({"tool_name": "add", "result": result}),
                    json!(0.25),
                    false,
                )
            }
            ("step", _) => {
                let right = message["data"]["guess"] == 7;
                observation(json!({"right": right}), json!(right), right)
            }
            _ => error("UNKNOWN_TYPE", kind),
        };
        socket.send(reply).await?;
    }
    Ok(())
}
