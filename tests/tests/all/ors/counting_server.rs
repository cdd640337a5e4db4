//! A server of ORS with one environment, a counter. The first addition of a session is worth 1.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

/// The sessions so far: how many have begun, and which ones have added.
type Sessions = Mutex<(usize, BTreeSet<String>)>;

/// Starts a server, which answers until the process ends. Returns its URL.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the loopback");
    let address = listener.local_addr().expect("is bound");
    let sessions = Arc::new(Sessions::default());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sessions = Arc::clone(&sessions);
            // If a connection fails, its client reports it.
            thread::spawn(move || answer(&stream, &sessions));
        }
    });
    format!("http://{address}")
}

/// Answers a request. `None` is the end of the connection.
fn answer(mut stream: &TcpStream, sessions: &Sessions) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut path, mut session, mut length) = (String::new(), String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if path.is_empty() {
            line.split(' ').nth(1)?.clone_into(&mut path);
        } else if let Some(id) = line.strip_prefix("x-session-id: ") {
            id.clone_into(&mut session);
        } else if let Some(bytes) = line.strip_prefix("content-length: ") {
            length = bytes.parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
    let (status, text) = match path.as_str() {
        "/list_environments" => ("200 OK", json!(["counting"]).to_string()),
        "/counting/tools" | "/counting/task_tools" => {
            let properties = json!({"by": {"type": "integer"}});
            let schema = json!({"type": "object", "properties": properties, "required": ["by"]});
            let tool = json!({"name": "add", "description": "Adds.", "input_schema": schema});
            ("200 OK", json!({"tools": [tool]}).to_string())
        }
        "/create_session" => {
            sessions.0 += 1;
            (
                "200 OK",
                format!("event: task_id\ndata: s{}\n\n", sessions.0),
            )
        }
        "/create" => {
            let task: Value = serde_json::from_slice(&body).ok()?;
            if task["split"] == "train" {
                ("200 OK", json!({"sid": session}).to_string())
            } else {
                let refused = json!({"detail": "Invalid split"});
                ("400 Bad Request", refused.to_string())
            }
        }
        "/counting/prompt" => {
            let block = json!({"type": "text", "text": "Add one."});
            ("200 OK", json!([block]).to_string())
        }
        "/counting/call" => {
            let reward = if sessions.1.insert(session) { 1.0 } else { 0.0 };
            let block = json!({"type": "text", "text": "done"});
            let output = json!({"blocks": [block], "reward": reward, "finished": false});
            let result = json!({"ok": true, "output": output});
            ("200 OK", format!("event: end\ndata: {result}\n\n"))
        }
        _ => ("200 OK", json!({"sid": session}).to_string()),
    };
    let length = text.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close");
    stream
        .write_all(format!("{head}\r\n\r\n{text}").as_bytes())
        .ok()
}
