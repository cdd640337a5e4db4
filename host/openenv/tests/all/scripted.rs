//! A server of OpenEnv whose behaviour depends on the path of its URL.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

/// A running server.
pub(crate) struct Scripted {
    address: String,
    /// The number of WebSockets that are open.
    pub(crate) open: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

impl Scripted {
    /// Starts a server. It ends with the runtime.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (open, connections) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let counters = (Arc::clone(&open), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (open, connections) = (Arc::clone(&counters.0), Arc::clone(&counters.1));
                tokio::spawn(serve(stream, open, connections));
            }
        });
        Self {
            address,
            open,
            connections,
        }
    }

    /// The base URL of an environment.
    pub(crate) fn url(&self, environment: &str) -> String {
        format!("http://{}/{environment}", self.address)
    }

    /// The number of WebSockets so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: TcpStream, open: Arc<AtomicUsize>, connections: Arc<AtomicUsize>) {
    let head = head(&stream).await;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut parts = path.trim_start_matches('/').split('/');
    let (environment, what) = (parts.next().unwrap_or_default(), parts.next());
    if what != Some("ws") {
        let mut read = vec![0; head.len()];
        stream
            .read_exact(&mut read)
            .await
            .expect("the head is there");
        let (status, body) = match what {
            Some("schema") => ("200 OK", json!({"action": schema(environment)})),
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
    let number = connections.fetch_add(1, Ordering::SeqCst);
    open.fetch_add(1, Ordering::SeqCst);
    let environment = environment.to_owned();
    // A client may leave at any time.
    _ = session(stream, &environment, number).await;
    open.fetch_sub(1, Ordering::SeqCst);
}

/// The head of a request, which stays to be read.
async fn head(stream: &TcpStream) -> String {
    let mut bytes = vec![0; 4_096];
    loop {
        let count = stream.peek(&mut bytes).await.expect("a request");
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        if text.contains("\r\n\r\n") || count == 0 {
            return text;
        }
        tokio::task::yield_now().await;
    }
}

fn schema(environment: &str) -> Value {
    match environment {
        "calls" => {
            json!({"type": "object", "properties": {"tool_name": {"type": "string"}, "arguments": {"type": "object"}}})
        }
        _ => json!({
            "type": "object",
            "properties": {"metadata": {"type": "object"}, "guess": {"type": "integer"}},
            "required": ["guess"],
        }),
    }
}

async fn session(
    stream: TcpStream,
    environment: &str,
    number: usize,
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
    let mut pongs = 0;
    while let Some(received) = socket.next().await {
        let text = match received? {
            Message::Text(text) => text,
            Message::Pong(_) => {
                pongs += 1;
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
            ("step", "pings") => observation(json!({"pongs": pongs > 0}), Value::Null, false),
            ("reset", _) => {
                let seen = json!({"hint": "from 0 to 9", "seed": message["data"]["seed"], "metadata": {"secret": 7}});
                observation(seen, Value::Null, false)
            }
            ("state", _) => answer(json!({"type": "state", "data": {"step_count": 1}})),
            ("mcp", _) => {
                let tool = json!({"name": "add", "description": "Adds", "inputSchema": {"type": "object", "properties": {"by": {"type": "integer"}}}});
                answer(
                    json!({"type": "mcp", "data": {"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}}),
                )
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
