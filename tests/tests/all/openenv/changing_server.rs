//! A server of OpenEnv that begins its tasks well while a run looks at them, and in another way afterwards.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, accept};

/// Number of times that a run opens each task before it plays: once in every split.
const LOOKS: usize = 3;

/// Number of resets so far, by the `later` of the task's setup.
type Resets = Mutex<BTreeMap<String, usize>>;

/// Starts a server, which answers until the process ends. A task's `setup.later` says how it begins after the first
/// looks. Returns the server's URL.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the loopback");
    let address = listener.local_addr().expect("is bound");
    let resets = Arc::new(Resets::default());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let resets = Arc::clone(&resets);
            // If a connection fails, its client reports it.
            thread::spawn(move || answer(stream, &resets));
        }
    });
    format!("http://{address}")
}

/// Answers a request, or all messages of a session. `None` is the end of a session, or of its connection.
fn answer(mut stream: TcpStream, resets: &Resets) -> Option<()> {
    let mut first = [0; 8];
    // The handshake of a session reads it again.
    stream.peek(&mut first).ok()?;
    if first != *b"GET /ws " {
        let body = json!({"action": {"properties": {"tool_name": {}}}}).to_string();
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close");
        let answer = format!("{head}\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).ok()?;
        // The client closes the connection when it has read the answer.
        return stream.read_to_end(&mut Vec::new()).ok().map(drop);
    }
    let mut socket = accept(stream).ok()?;
    let mut way = String::new();
    loop {
        let Message::Text(text) = socket.read().ok()? else {
            continue;
        };
        let asked: Value = serde_json::from_str(&text).ok()?;
        let answer = match asked["type"].as_str()? {
            "reset" => {
                way = way_to_begin(asked["data"]["later"].as_str()?, resets);
                let hint = "long ".repeat(if way == "long" { 5_000 } else { 1 });
                observation(&json!({"hint": hint}))
            }
            "mcp" => {
                let tools = tools(&way).iter().map(|name| json!({"name": name}));
                let tools: Vec<Value> = tools.collect();
                let listed = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}});
                json!({"type": "mcp", "data": listed})
            }
            "step" => observation(&json!({"result": "done"})),
            "state" => json!({"type": "state", "data": {}}),
            _ => return None,
        };
        socket.send(Message::text(answer.to_string())).ok()?;
    }
}

/// Counts a reset. Returns how the task begins now.
fn way_to_begin(later: &str, resets: &Resets) -> String {
    let mut resets = resets.lock().unwrap_or_else(PoisonError::into_inner);
    let count = resets.entry(later.to_owned()).or_default();
    *count += 1;
    let way = if *count > LOOKS { later } else { "well" };
    way.to_owned()
}

/// The tools of a task that begins in this way.
fn tools(way: &str) -> &'static [&'static str] {
    match way {
        "with a plugin's tool" => &["add", "undo", "calculate"],
        "with fewer tools" => &["add"],
        "with other tools" => &["show"],
        _ => &["add", "undo"],
    }
}

fn observation(observation: &Value) -> Value {
    let data = json!({"observation": observation, "reward": null, "done": false});
    json!({"type": "observation", "data": data})
}
