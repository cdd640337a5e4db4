//! One session on a server: its calls, pings while it is held, and its end.

use std::sync::Arc;
use std::time::Duration;

use rlf_dialogue::trajectory::Verdict;
use rlf_environments::error::SessionError;
use rlf_environments::server::{ServerSession, ServerStep};
use rlf_sandbox::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::timeout;

use super::answer::{AnswerError, Called, called};
use crate::error::SiteError;
use crate::rewards::{Rewards, lost};
use crate::site::Site;

/// Time between two pings. Servers end a session that nobody has asked for anything for some minutes.
pub(crate) const PING_PAUSE: Duration = Duration::from_secs(30);

/// Time limit of a ping, and of ending a session.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// One session. Dropping it ends it on the server.
#[derive(Debug)]
pub(crate) struct Session {
    site: Arc<Site>,
    /// The server's name for the environment.
    environment: String,
    id: String,
    rewards: Rewards,
    _held: oneshot::Sender<()>,
}

impl Session {
    /// Keeps a session alive, with a ping after every `pause`. `permit` is held until the session has ended.
    pub(crate) fn keep(
        site: Arc<Site>,
        environment: String,
        id: String,
        rewards: Rewards,
        permit: OwnedSemaphorePermit,
        pause: Duration,
    ) -> Self {
        let (held, dropped) = oneshot::channel();
        tokio::spawn(keep(Arc::clone(&site), id.clone(), dropped, permit, pause));
        Self {
            site,
            environment,
            id,
            rewards,
            _held: held,
        }
    }

    /// Asks within the session, with GET, or with POST if there is a body.
    pub(crate) async fn ask(
        &self,
        path: &[&str],
        body: Option<&Value>,
        limit: Duration,
    ) -> Result<String, SiteError> {
        self.site.ask(path, Some(&self.id), body, limit).await
    }

    /// Calls a tool. The call is sent once, because a second one would be one more step.
    async fn act(&mut self, tool: &str, arguments: &Value) -> ServerStep {
        let path = [self.environment.as_str(), "call"];
        let call = json!({"name": tool, "input": arguments});
        let answer = self.ask(&path, Some(&call), self.rewards.config.deadline);
        let answer = answer.await.map_err(AnswerError::from);
        let token = self.site.token.as_deref();
        match answer.and_then(|answer| called(&answer, token)) {
            Ok(Called {
                result,
                reward,
                finished,
            }) => self.rewards.step(result, reward, finished),
            Err(why) => lost(why.to_string()),
        }
    }
}

async fn keep(
    site: Arc<Site>,
    id: String,
    mut dropped: oneshot::Receiver<()>,
    permit: OwnedSemaphorePermit,
    pause: Duration,
) {
    let nothing = json!({});
    // If a ping fails, the next call says why.
    while timeout(pause, &mut dropped).await.is_err() {
        _ = site
            .ask(&["ping"], Some(&id), Some(&nothing), PING_TIMEOUT)
            .await;
    }
    // A server that does not listen ends the session for lack of pings.
    _ = site
        .ask(&["delete"], Some(&id), Some(&nothing), PING_TIMEOUT)
        .await;
    drop(permit);
}

impl ServerSession for Session {
    fn call<'a>(&'a mut self, tool: &'a str, arguments: &'a Value) -> BoxFuture<'a, ServerStep> {
        Box::pin(self.act(tool, arguments))
    }

    /// The state, which the protocol does not tell: null.
    fn state(&self) -> BoxFuture<'_, Result<Value, SessionError>> {
        Box::pin(async { Ok(Value::Null) })
    }

    fn verify(&self) -> Result<Verdict, SessionError> {
        self.rewards.verdict()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::config::RemoteConfig;
    use crate::protocol::Protocol;

    /// Answers the next request. Returns its path.
    async fn asked(listener: &TcpListener) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = String::new();
        while !request.ends_with("\r\n\r\n{}") {
            let mut bytes = [0; 1_024];
            let count = stream.read(&mut bytes).await.unwrap();
            request += &String::from_utf8_lossy(&bytes[..count]);
        }
        assert!(request.contains("x-session-id: s1\r\n"), "{request}");
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        stream.write_all(answer).await.unwrap();
        request.split(' ').nth(1).unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_session_is_pinged_while_it_is_held_and_then_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = Arc::new(RemoteConfig {
            url: format!("http://{}", listener.local_addr().unwrap()),
            ..RemoteConfig::default()
        });
        let permits = Arc::new(Semaphore::new(1));
        let session = Session::keep(
            Arc::new(Site::open(Protocol::Ors, "it", &config).unwrap()),
            "counting".to_owned(),
            "s1".to_owned(),
            Rewards::new(Protocol::Ors, &config, None),
            Arc::clone(&permits).acquire_owned().await.unwrap(),
            Duration::from_millis(1),
        );
        assert_eq!(asked(&listener).await, "/ping");
        assert_eq!(asked(&listener).await, "/ping");
        assert_eq!(permits.available_permits(), 0);
        drop(session);
        let mut path = asked(&listener).await;
        while path == "/ping" {
            path = asked(&listener).await;
        }
        assert_eq!(path, "/delete");
        drop(permits.acquire().await.unwrap());
    }
}
