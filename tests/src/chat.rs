//! A chat model behind an endpoint on the loopback interface: it gives the answers that a test sets, and records the
//! questions.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

/// A question that arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The first line of its request.
    pub line: String,
    /// Its body.
    pub body: Value,
}

impl Question {
    /// Role and text of each message.
    pub fn messages(&self) -> Vec<(&str, &str)> {
        let messages = self.body["messages"].as_array().into_iter().flatten();
        let texts =
            messages.map(|message| Some((message["role"].as_str()?, message["content"].as_str()?)));
        let texts: Option<Vec<_>> = texts.collect();
        texts.unwrap_or_else(|| panic!("a message is no text: {self:?}"))
    }
}

/// The reaction to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// A completion with this text.
    Says(&'static str),
    /// Status 200 with this body, whatever it is.
    Is(&'static str),
    /// A status other than success, with an empty body.
    Fails(u16),
    /// The connection is closed without an answer.
    HangsUp,
    /// The connection stays open without an answer until the client leaves.
    Stalls,
}

impl Reply {
    /// A completion with a text that the test wrote while it ran. The text is kept to the end of the process.
    pub fn says(text: impl Into<String>) -> Self {
        Self::Says(text.into().leak())
    }

    /// Status 200 with a body that the test wrote while it ran.
    pub fn is(body: impl Into<String>) -> Self {
        Self::Is(body.into().leak())
    }
}

/// The endpoint. It answers until the process ends.
#[derive(Debug)]
pub struct ChatEndpoint {
    url: String,
    asked: Arc<Mutex<Vec<Question>>>,
}

impl ChatEndpoint {
    /// Starts an endpoint that answers with `reply`, any number of questions at once.
    pub fn start(reply: impl Fn(&Question) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the loopback");
        let address = listener.local_addr().expect("is bound");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, reply) = (Arc::clone(&asked), Arc::new(reply));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, reply) = (Arc::clone(&kept), Arc::clone(&reply));
                // If a connection fails, its client reports it.
                thread::spawn(move || stream.and_then(|stream| answer(&stream, &kept, &*reply)));
            }
        });
        Self {
            url: format!("http://{address}/v1"),
            asked,
        }
    }

    /// The base URL, as a configuration names it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The questions since the last call of this method, in order of arrival.
    pub fn take_questions(&self) -> Vec<Question> {
        std::mem::take(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn answer(
    stream: &TcpStream,
    asked: &Mutex<Vec<Question>>,
    reply: &dyn Fn(&Question) -> Reply,
) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        match header.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let question = Question {
        line: line.trim_end().to_owned(),
        body: serde_json::from_slice(&body)?,
    };
    let reply = reply(&question);
    asked
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(question);
    let (status, body) = match reply {
        Reply::Says(text) => {
            let message = json!({"role": "assistant", "content": text});
            let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
            // A token for every four bytes, whatever the text is.
            let tokens = json!({"prompt_tokens": length / 4, "completion_tokens": text.len() / 4});
            let body = json!({"object": "chat.completion", "choices": [choice], "usage": tokens});
            (200, body.to_string())
        }
        Reply::Is(body) => (200, body.to_owned()),
        Reply::Fails(status) => (status, String::new()),
        Reply::HangsUp => return Ok(()),
        Reply::Stalls => return reader.read_to_end(&mut Vec::new()).map(drop),
    };
    let length = body.len();
    write!(
        &*stream,
        "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}
