//! One WebSocket to a server: messages, deadlines, and what a server may answer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};
use url::Url;

use super::error::ConnectionError;
use crate::host_form::beginning;
use crate::token::{Token, without_token};

/// Maximum size of a message of a server, in bytes. A larger one breaks the session.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Time limit for closing a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// One open WebSocket. A task of its own reads it all the time, because a server closes a connection that does not answer
/// its pings. Dropping the connection ends the session on the server.
#[derive(Debug)]
pub(crate) struct Connection {
    /// `None` after an error. A late answer is never read as that to another message.
    asks: Option<mpsc::Sender<Ask>>,
}

/// A message, and the place for its answer.
struct Ask {
    message: Message,
    limit: Duration,
    answer: oneshot::Sender<Result<Answer, ConnectionError>>,
}

/// The answer to a message.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// To `reset` and `step`.
    Observation(Observed),
    /// To `state`.
    State(Value),
    /// To `mcp`: a response of JSON-RPC.
    Mcp(Value),
    /// The reason why there is none.
    Error(Refusal),
}

/// An observation, with its reward.
#[derive(Debug, Deserialize)]
pub(crate) struct Observed {
    /// The observation.
    #[serde(default)]
    pub(crate) observation: Value,
    /// The reward of the step.
    #[serde(default)]
    pub(crate) reward: Option<Reward>,
    /// True if the episode is over.
    #[serde(default)]
    pub(crate) done: bool,
}

/// A reward. Some environments give true and false.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(crate) enum Reward {
    /// A number.
    Number(f64),
    /// 1 or 0.
    Bool(bool),
}

impl Reward {
    /// The reward as a number.
    pub(crate) fn value(self) -> f64 {
        match self {
            Self::Number(reward) => reward,
            Self::Bool(reward) => f64::from(u8::from(reward)),
        }
    }
}

/// The reason why a server does not do as it was asked.
#[derive(Debug, Deserialize)]
pub(crate) struct Refusal {
    /// The reason, in words.
    #[serde(default)]
    pub(crate) message: String,
    /// Its kind.
    #[serde(default)]
    pub(crate) code: String,
    /// The mistakes in a message, in pydantic's form.
    #[serde(default)]
    errors: Vec<Value>,
}

impl Refusal {
    /// The reason, with what is wrong where.
    pub(crate) fn reason(&self) -> String {
        let wrong = self.errors.iter().take(5).filter_map(|error| {
            let place = error.get("loc")?.as_array()?.iter();
            let place: Vec<String> = place
                .map(|part| {
                    part.as_str()
                        .map_or_else(|| part.to_string(), str::to_owned)
                })
                .collect();
            Some(format!(
                "{}: {}",
                place.join("."),
                error.get("msg")?.as_str()?
            ))
        });
        let wrong: Vec<String> = wrong.collect();
        if wrong.is_empty() {
            return self.message.clone();
        }
        format!("{}: {}", self.message, wrong.join("; "))
    }

    /// True if the server has no room for another session.
    pub(crate) fn is_capacity_reached(&self) -> bool {
        self.code == "CAPACITY_REACHED"
    }
}

impl Connection {
    /// Connects to the server at a base URL. `permit` is held until the connection is closed.
    pub(crate) async fn open(
        base: &Url,
        token: Option<Arc<Token>>,
        permit: Arc<OwnedSemaphorePermit>,
    ) -> Result<Self, ConnectionError> {
        let unreachable = |error: Error| ConnectionError::Unreachable {
            base: base.clone(),
            source: Box::new(error),
        };
        let mut url = format!("{}/ws", base.as_str().trim_end_matches('/'));
        url.replace_range(..4, "ws");
        let mut request = url.into_client_request().map_err(unreachable)?;
        if let Some(token) = &token {
            let header = token.header().clone();
            request.headers_mut().insert(AUTHORIZATION, header);
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let connected = connect_async_with_config(request, Some(config), true).await;
        let (socket, _) = connected.map_err(unreachable)?;
        let (asks, asked) = mpsc::channel(1);
        tokio::spawn(keep(socket, asked, token, permit));
        Ok(Self { asks: Some(asks) })
    }

    /// Sends a message and waits for its answer. After an error, the connection is closed.
    pub(crate) async fn ask(
        &mut self,
        message: &Value,
        limit: Duration,
    ) -> Result<Answer, ConnectionError> {
        let asks = self.asks.take().ok_or(ConnectionError::Closed)?;
        let (answer, answered) = oneshot::channel();
        let ask = Ask {
            message: Message::text(message.to_string()),
            limit,
            answer,
        };
        let asked = async {
            asks.send(ask).await.map_err(|_| ConnectionError::Closed)?;
            answered.await.map_err(|_| ConnectionError::Closed)?
        };
        let answer = timeout(limit, asked).await;
        let answer = answer.map_err(|_| ConnectionError::Late(limit))??;
        self.asks = Some(asks);
        Ok(answer)
    }
}

/// Keeps a connection until nobody asks any more, or it breaks.
async fn keep(
    mut socket: Socket,
    mut asks: mpsc::Receiver<Ask>,
    token: Option<Arc<Token>>,
    permit: Arc<OwnedSemaphorePermit>,
) {
    let read = |text: &str| read(&without_token(text, token.as_deref()));
    let mut asked: Option<oneshot::Sender<Result<Answer, ConnectionError>>> = None;
    // A server without room says so before it is asked, and closes. Later, it must not speak unasked.
    let mut early = None;
    let mut is_first = true;
    loop {
        tokio::select! {
            ask = asks.recv() => {
                let Some(Ask { message, limit, answer }) = ask else {
                    break;
                };
                if let Some(early) = early.take() {
                    let unasked = Err(ConnectionError::Unasked);
                    _ = answer.send(if is_first { early } else { unasked });
                    break;
                }
                is_first = false;
                asked = Some(answer);
                // If the message cannot be sent, the next read says why.
                _ = timeout(limit, socket.send(message)).await;
            }
            received = socket.next() => {
                let (answer, is_end) = match received {
                    Some(Ok(Message::Text(text))) => (read(&text), false),
                    Some(Ok(Message::Binary(bytes))) => {
                        (read(&String::from_utf8_lossy(&bytes)), false)
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                    Some(Ok(Message::Close(_))) | None => (Err(ConnectionError::Closed), true),
                    Some(Err(error)) => (Err(ConnectionError::Broke(Box::new(error))), true),
                };
                if let Some(asked) = asked.take() {
                    // Whoever has stopped waiting needs no answer.
                    _ = asked.send(answer);
                    if is_end {
                        return;
                    }
                } else if is_end {
                    // What came before the end is still there for the next message.
                    let early = early.unwrap_or(answer);
                    if let Some(ask) = asks.recv().await {
                        _ = ask.answer.send(early);
                    }
                    return;
                } else if early.is_none() {
                    early = Some(answer);
                } else {
                    break;
                }
            }
        }
    }
    let closing = async {
        let close = Message::text(r#"{"type": "close"}"#);
        socket.send(close).await?;
        socket.close(None).await?;
        while let Some(Ok(_)) = socket.next().await {}
        Ok::<(), Error>(())
    };
    // A server that does not listen learns it from the closed connection.
    _ = timeout(CLOSE_TIMEOUT, closing).await;
    drop(permit);
}

fn read(text: &str) -> Result<Answer, ConnectionError> {
    rlf_json::from_str(text).map_err(|source| ConnectionError::Unreadable {
        begins: beginning(text),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_nonsense_is_shown() {
        let observed = |text: &str| match read(text).unwrap() {
            Answer::Observation(observed) => observed,
            other => panic!("{other:?}"),
        };
        let seen = observed(
            r#"{"type": "observation", "data": {"observation": {"a": 1}, "reward": true, "done": true}}"#,
        );
        assert_eq!(seen.reward.map(Reward::value), Some(1.0));
        assert!(seen.done);
        let bare = observed(r#"{"type": "observation", "data": {}}"#);
        assert!(bare.reward.is_none() && !bare.done && bare.observation.is_null());
        let full = r#"{"type": "error", "data": {"message": "full", "code": "CAPACITY_REACHED", "max_sessions": 1}}"#;
        assert!(
            matches!(read(full).unwrap(), Answer::Error(refusal) if refusal.is_capacity_reached())
        );
        for nonsense in ["", "[]", "{\"type\": \"mad\"}", "{\"reward\": NaN}"] {
            let error = read(nonsense).unwrap_err().to_string();
            assert!(error.contains("none of OpenEnv's"), "{error}");
        }
    }
}
