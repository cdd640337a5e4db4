//! A client's WebSocket. It is one session, from the first message to the last.

use std::pin::pin;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use serde::Serialize;
use tokio::time::{Instant, timeout, timeout_at};

use super::episode::Episode;
use super::protocol::{ClientMessage, Code, ServerMessage, read_message};
use super::rpc;
use crate::service::Service;

/// Maximum size of a message, in bytes. A larger one ends the session.
pub(super) const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// Serves OpenEnv's own messages.
pub(super) async fn serve_session(socket: WebSocket, mut episode: Episode) {
    let service = episode.service.clone();
    let mut client = Client::new(socket, &service);
    while let Some(text) = client.next().await {
        let answered = answer(&mut episode, &text);
        let Some(answer) = client.unless_it_leaves(answered).await.flatten() else {
            break;
        };
        let is_full =
            matches!(&answer, ServerMessage::Error(fault) if fault.code == Code::CapacityReached);
        if !client.send(&answer).await || is_full {
            break;
        }
    }
    client.leave().await;
}

/// Serves JSON-RPC.
pub(super) async fn serve_rpc(socket: WebSocket, mut episode: Episode) {
    let service = episode.service.clone();
    let mut client = Client::new(socket, &service);
    while let Some(text) = client.next().await {
        let answered = rpc::answer_text(&mut episode, &text);
        let Some(answer) = client.unless_it_leaves(answered).await else {
            break;
        };
        if !client.send(&answer).await {
            break;
        }
    }
    client.leave().await;
}

/// The answer to a message; `None` if the client ends the session.
async fn answer(episode: &mut Episode, text: &str) -> Option<ServerMessage> {
    let answered = match read_message(text) {
        Ok(ClientMessage::Reset { data }) => {
            episode.reset(data).await.map(ServerMessage::Observation)
        }
        Ok(ClientMessage::Step { data }) => {
            episode.step(data).await.map(ServerMessage::Observation)
        }
        Ok(ClientMessage::State) => episode.state().await.map(ServerMessage::State),
        Ok(ClientMessage::Mcp { data }) => Ok(ServerMessage::Mcp(rpc::answer(episode, data).await)),
        Ok(ClientMessage::Close) => return None,
        Err(fault) => Err(fault),
    };
    Some(answered.unwrap_or_else(ServerMessage::Error))
}

/// A client at the other end of a WebSocket.
struct Client<'a> {
    socket: WebSocket,
    service: &'a Service,
    /// A message that came while an earlier one was being answered. No client may send two.
    waiting: Option<Utf8Bytes>,
}

/// A message of a client, or its departure.
enum Received {
    Text(Utf8Bytes),
    /// Nothing to answer; the library answers pings.
    Nothing,
    /// The client has left, or sent what cannot be read.
    Left,
}

impl<'a> Client<'a> {
    fn new(socket: WebSocket, service: &'a Service) -> Self {
        Self {
            socket,
            service,
            waiting: None,
        }
    }

    async fn receive(&mut self) -> Received {
        match self.socket.recv().await {
            Some(Ok(Message::Text(text))) => Received::Text(text),
            Some(Ok(Message::Binary(bytes))) => {
                Utf8Bytes::try_from(bytes).map_or(Received::Left, Received::Text)
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Received::Nothing,
            Some(Ok(Message::Close(_)) | Err(_)) | None => Received::Left,
        }
    }

    /// The next message. `None` if the client has left, sent nothing for `serve.session_ms`, or the service stops.
    async fn next(&mut self) -> Option<Utf8Bytes> {
        let service = self.service;
        if let Some(text) = self.waiting.take() {
            return (!service.is_stopping()).then_some(text);
        }
        let deadline = Instant::now() + service.config.session;
        loop {
            let received = tokio::select! {
                received = timeout_at(deadline, self.receive()) => received.ok()?,
                () = service.stopped.cancelled() => return None,
            };
            match received {
                Received::Text(text) => return Some(text),
                Received::Nothing => {}
                Received::Left => return None,
            }
        }
    }

    /// Waits for an answer, and answers pings meanwhile. `None` if the client leaves. Then the answer is given up.
    async fn unless_it_leaves<T>(&mut self, answer: impl Future<Output = T>) -> Option<T> {
        let mut answer = pin!(answer);
        loop {
            tokio::select! {
                answer = &mut answer => return Some(answer),
                received = self.receive() => match received {
                    Received::Text(text) if self.waiting.is_none() => self.waiting = Some(text),
                    Received::Nothing => {}
                    Received::Text(_) | Received::Left => return None,
                },
            }
        }
    }

    /// Sends an answer. Returns false if the client does not take it.
    async fn send(&mut self, answer: &impl Serialize) -> bool {
        // Only maps whose keys are not strings cannot be written, and no answer has one.
        let Ok(text) = serde_json::to_string(answer) else {
            return false;
        };
        let sent = timeout(
            self.service.config.client,
            self.socket.send(Message::text(text)),
        );
        matches!(sent.await, Ok(Ok(())))
    }

    /// Closes the connection. A client that has left hears nothing.
    async fn leave(mut self) {
        let closed = self.socket.send(Message::Close(None));
        _ = timeout(self.service.config.client, closed).await;
    }
}
