//! A server on the loopback interface that gives one answer after the other, and keeps the requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) enum Answer {
    /// Status, additional headers (each ended by a line break) and body.
    Is(u16, &'static str, String),
    /// Nothing, but the connection stays open.
    Silence,
    /// No answer; the connection is closed.
    HangUp,
    /// Status 200 and a body without an end.
    Flood,
}

impl Answer {
    /// A chat completion that says `text`.
    pub(crate) fn says(text: &str) -> Self {
        let message = serde_json::json!({"role": "assistant", "content": text});
        let choice = serde_json::json!({"message": message, "finish_reason": "stop"});
        Self::body(&serde_json::json!({"choices": [choice]}).to_string())
    }

    pub(crate) fn body(body: &str) -> Self {
        Self::Is(200, "", body.to_owned())
    }

    pub(crate) fn status(status: u16) -> Self {
        Self::Is(status, "", format!("status is {status}"))
    }
}

pub(crate) struct Server {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers as many requests as there are answers, and then closes.
    pub(crate) async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read_request(&mut stream).await;
                seen.lock().unwrap().push(request);
                // Later failures only mean that the client has left.
                let _ = respond(&mut stream, answer).await;
            }
        });
        Self { port, requests }
    }

    /// Heads and bodies, as received.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn respond(stream: &mut TcpStream, answer: Answer) -> std::io::Result<()> {
    match answer {
        Answer::Is(status, headers, body) => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(body.as_bytes()).await?;
            stream.shutdown().await
        }
        Answer::Silence => {
            // Waits until the client leaves.
            let mut rest = [0; 1];
            tokio::time::timeout(Duration::from_mins(1), stream.read(&mut rest))
                .await
                .map_or(Ok(()), |read| read.map(drop))
        }
        Answer::HangUp => stream.shutdown().await,
        Answer::Flood => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            loop {
                stream.write_all(&[b' '; 4096]).await?;
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                (name.eq_ignore_ascii_case("content-length")).then(|| value.trim().parse().ok())?
            });
            if body.len() >= length.unwrap_or(0_usize) {
                return text;
            }
        }
        match stream.read(&mut part).await {
            Ok(count) if count > 0 => read.extend_from_slice(&part[..count]),
            _ => return text,
        }
    }
}
