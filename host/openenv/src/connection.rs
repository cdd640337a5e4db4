//! One WebSocket to a server: messages, deadlines, and what a server may answer.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};
use url::Url;

/// Maximum size of a message of a server, in bytes. A larger one breaks the session.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Time for taking leave of a server.
const LEAVING: Duration = Duration::from_secs(2);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// One open WebSocket. Dropping it ends the session on the server.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Taken when it is dropped.
    socket: Option<Socket>,
    /// Held until the server knows that the session has ended.
    place: Option<OwnedSemaphorePermit>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let (Some(mut socket), Ok(runtime)) = (self.socket.take(), Handle::try_current()) else {
            return;
        };
        let place = self.place.take();
        runtime.spawn(async move {
            let leaving = async {
                socket.send(Message::text(r#"{"type": "close"}"#)).await?;
                socket.close(None).await
            };
            // A server that does not listen learns it from the closed connection.
            _ = timeout(LEAVING, leaving).await;
            drop(place);
        });
    }
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
}

impl Refusal {
    /// True if the server has no room for another session.
    pub(crate) fn is_for_want_of_room(&self) -> bool {
        self.code == "CAPACITY_REACHED"
    }
}

impl Connection {
    /// Connects to the server at a base URL. The error says why there is no connection.
    pub(crate) async fn open(
        base: &Url,
        token: Option<&str>,
        limit: Duration,
    ) -> Result<Self, String> {
        let mut url = format!("{}/ws", base.as_str().trim_end_matches('/'));
        url.replace_range(..4, "ws");
        let mut request = url
            .into_client_request()
            .map_err(|error| format!("{base} cannot be asked: {error}"))?;
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| "the token has characters that no header may have".to_owned())?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let connected = connect_async_with_config(request, Some(config), true);
        match timeout(limit, connected).await {
            Ok(Ok((socket, _))) => Ok(Self {
                socket: Some(socket),
                place: None,
            }),
            Ok(Err(error)) => Err(format!("{base} cannot be reached: {error}")),
            Err(_) => Err(format!(
                "{base} did not answer within connect_ms = {}",
                limit.as_millis()
            )),
        }
    }

    /// Holds a place among the sessions until the connection has ended.
    pub(crate) fn hold(&mut self, place: OwnedSemaphorePermit) {
        self.place = Some(place);
    }

    /// Sends a message and waits for its answer. After an error, the connection is of no more use.
    pub(crate) async fn ask(&mut self, message: &Value, limit: Duration) -> Result<Answer, String> {
        let Some(socket) = &mut self.socket else {
            return Err("the connection is closed".to_owned());
        };
        let asked = async {
            // A server without room answers before it is asked, and closes. So its answer is read in any case.
            let sent = socket.send(Message::text(message.to_string())).await;
            loop {
                let text = match socket.next().await {
                    Some(Ok(Message::Text(text))) => text.to_string(),
                    Some(Ok(Message::Binary(bytes))) => String::from_utf8(bytes.into())
                        .map_err(|_| "it answered with bytes that are no text".to_owned())?,
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                    Some(Ok(Message::Close(_))) | None => {
                        return Err(match sent {
                            Ok(()) => "it closed the connection".to_owned(),
                            Err(error) => format!("it closed the connection: {error}"),
                        });
                    }
                    Some(Err(error)) => return Err(format!("the connection broke: {error}")),
                };
                return read(&text);
            }
        };
        let answered = timeout(limit, asked).await;
        answered
            .unwrap_or_else(|_| Err(format!("it did not answer within {} ms", limit.as_millis())))
    }
}

fn read(text: &str) -> Result<Answer, String> {
    rlf_json::from_str(text).map_err(|error| {
        let begins: String = text.chars().take(100).collect();
        let begins = rlf_sandbox::safe_text(begins.as_bytes());
        format!("its answer is none of OpenEnv's: {error}; it begins with {begins:?}")
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
            matches!(read(full).unwrap(), Answer::Error(refusal) if refusal.is_for_want_of_room())
        );
        for nonsense in ["", "[]", "{\"type\": \"mad\"}", "{\"reward\": NaN}"] {
            assert!(read(nonsense).unwrap_err().contains("none of OpenEnv's"));
        }
    }
}
