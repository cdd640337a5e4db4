//! A client's WebSocket. It is one session, from the first message to the last.

use std::ops::ControlFlow;
use std::pin::pin;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use serde::Serialize;
use tokio::time::{Instant, timeout, timeout_at};

use super::episode::Episode;
use super::protocol::{ClientMessage, Code, ServerMessage, read_message};
use super::rpc;
use crate::body::message_room;
use crate::queue::WaitBudget;
use crate::service::Service;

/// Maximum size of a message, in bytes. A larger one ends the session.
pub(super) const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// The protocol of a WebSocket's messages.
#[derive(Debug, Clone, Copy)]
pub(super) enum Protocol {
    /// OpenEnv's own messages.
    OpenEnv,
    /// JSON-RPC.
    JsonRpc,
}

/// Serves a client until the session ends.
pub(super) async fn serve(socket: WebSocket, mut episode: Episode, protocol: Protocol) {
    let service = episode.service.clone();
    let mut client = Client::new(socket, &service);
    while let Some(text) = client.next().await {
        let answered = answer(&mut episode, &text, protocol);
        let Some(ControlFlow::Continue(answer)) = client.unless_it_leaves(answered).await else {
            break;
        };
        let Some(answer) = answer else {
            continue;
        };
        let is_full =
            matches!(&answer, ServerMessage::Error(fault) if fault.code == Code::CapacityReached);
        let is_turned_away = is_full && episode.open_name().is_none();
        if !client.send(&answer).await || is_turned_away {
            break;
        }
    }
    // Whoever sees the connection closed finds the session's place free.
    drop(episode);
    client.leave().await;
}

/// The answer to a message; none to a notification. `Break` if the client ends the session.
async fn answer(
    episode: &mut Episode,
    text: &str,
    protocol: Protocol,
) -> ControlFlow<(), Option<ServerMessage>> {
    let mut wait = episode.service.wait();
    let room = message_room(text.as_bytes(), &episode.service, &mut wait).await;
    ControlFlow::Continue(match (protocol, room) {
        (Protocol::OpenEnv, Ok(_room)) => {
            return answer_message(episode, text, &mut wait).await;
        }
        (Protocol::OpenEnv, Err(refusal)) => Some(ServerMessage::Error(refusal.into())),
        (Protocol::JsonRpc, Ok(_room)) => {
            let client = rpc::Client::Socket;
            let answer = rpc::answer_text(episode, text.as_bytes(), client, &mut wait).await;
            answer.map(ServerMessage::Rpc)
        }
        (Protocol::JsonRpc, Err(refusal)) => Some(ServerMessage::Rpc(rpc::refused(refusal))),
    })
}

/// The answer to one of OpenEnv's messages.
async fn answer_message(
    episode: &mut Episode,
    text: &str,
    wait: &mut WaitBudget,
) -> ControlFlow<(), Option<ServerMessage>> {
    let answered = match read_message(text) {
        Ok(ClientMessage::Reset { data }) => episode
            .reset(data, wait)
            .await
            .map(ServerMessage::Observation),
        Ok(ClientMessage::Step { data }) => episode
            .step(data, wait)
            .await
            .map(ServerMessage::Observation),
        Ok(ClientMessage::State) => episode.state(wait).await.map(ServerMessage::State),
        Ok(ClientMessage::Mcp { data }) => {
            let answer = rpc::answer(episode, data, rpc::Client::Socket, wait).await;
            return ControlFlow::Continue(answer.map(ServerMessage::Mcp));
        }
        Ok(ClientMessage::Close) => return ControlFlow::Break(()),
        Err(fault) => Err(fault),
    };
    ControlFlow::Continue(Some(answered.unwrap_or_else(ServerMessage::Error)))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::config::ServeConfig;

    fn episode(service: &Arc<Service>) -> Episode {
        Episode::new(Arc::clone(service), "nothing".to_owned())
    }

    /// The answer as JSON; null if there is none.
    async fn answered(episode: &mut Episode, text: &str, protocol: Protocol) -> Value {
        match answer(episode, text, protocol).await {
            ControlFlow::Continue(answer) => serde_json::to_value(answer).unwrap(),
            ControlFlow::Break(()) => panic!("the session ended"),
        }
    }

    #[tokio::test]
    async fn a_request_is_answered_and_a_notification_is_not() {
        let service = Service::offering_nothing(ServeConfig::default());
        let mut episode = episode(&service);
        for (rpc, answer) in [
            (json!({"method": "fly", "id": 7}), json!([7, -32_601])),
            (json!({"method": "fly", "id": null}), json!([null, -32_601])),
            (json!({"method": "fly"}), Value::Null),
            (json!({"params": {}}), json!([null, -32_600])),
            (json!(["fly"]), json!([null, -32_600])),
        ] {
            let id_and_code = |answer: &Value| match answer {
                Value::Null => Value::Null,
                answer => json!([answer["id"], answer["error"]["code"]]),
            };
            let text = rpc.to_string();
            let alone = answered(&mut episode, &text, Protocol::JsonRpc).await;
            assert_eq!(id_and_code(&alone), answer, "{rpc}");
            let message = json!({"type": "mcp", "data": rpc}).to_string();
            let within = answered(&mut episode, &message, Protocol::OpenEnv).await;
            assert_eq!(id_and_code(&within["data"]), answer, "{rpc}");
            assert_eq!(within.is_null(), answer.is_null(), "{rpc}");
            let over_http = {
                let (text, client) = (text.as_bytes(), rpc::Client::Http);
                rpc::answer_text(&mut episode, text, client, &mut service.wait()).await
            };
            assert_eq!(id_and_code(&json!(over_http)), answer, "{rpc}");
        }
    }

    #[tokio::test]
    async fn a_request_with_an_integer_that_would_be_rounded_is_refused_by_its_id() {
        let service = Service::offering_nothing(ServeConfig::default());
        let text = r#"{"id": 7, "method": "tools/call", "params": {"n": 18446744073709551616}}"#;
        let refused = answered(&mut episode(&service), text, Protocol::JsonRpc).await;
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&json!(7), &json!(-32_600))
        );
        let says = "the integer 18446744073709551616 has more than 64 bits";
        let message = refused["error"]["message"].as_str();
        assert!(
            message.is_some_and(|message| message.contains(says)),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn a_message_has_room_among_the_bodies_while_it_is_answered() {
        let service = Service::offering_nothing(ServeConfig {
            max_body_bytes: 4 << 10,
            body_budget_bytes: 4 << 10,
            queue: Duration::from_millis(1),
            ..ServeConfig::default()
        });
        let mut episode = episode(&service);
        let text = json!({"method": "fly", "id": 7, "type": "x".repeat(2_000)}).to_string();
        let zeros = format!("[{}0]", "0,".repeat(1_000));
        for _ in 0..3 {
            let read = answered(&mut episode, &text, Protocol::OpenEnv).await;
            assert_eq!(read["data"]["code"], "UNKNOWN_TYPE", "{read}");
            let read = answered(&mut episode, &text, Protocol::JsonRpc).await;
            assert_eq!(read["id"], 7, "{read}");

            let _held = message_room(&[b' '; 3_000], &service, &mut service.wait())
                .await
                .unwrap();
            for (text, code, rpc_code) in [
                (&text, "CAPACITY_REACHED", -32_000),
                (&zeros, "VALIDATION_ERROR", -32_602),
            ] {
                let own = answered(&mut episode, text, Protocol::OpenEnv).await;
                assert_eq!(own["data"]["code"], code, "{own}");
                let rpc = answered(&mut episode, text, Protocol::JsonRpc).await;
                assert_eq!(rpc["error"]["code"], rpc_code, "{rpc}");
                for refused in [&own["data"], &rpc["error"]] {
                    let why = refused["message"].as_str().unwrap();
                    assert!(why.contains("serve.body_budget_bytes"), "{why}");
                }
            }
        }
    }
}
