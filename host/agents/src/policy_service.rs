//! A policy that is not being trained, served to anybody who speaks OpenAI's or Anthropic's protocol.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use axum::extract::FromRequestParts;
use http::request::Parts;
use rlf_rollout::agent::{PolicyChat, Turn, TurnRefused};

use crate::access::{self, ShortToken, Token};
use crate::form::Asked;
use crate::parameters::Sampling;
use crate::refusal::Refusal;
use crate::routes::{self, Policy};
use crate::server::{CannotListen, Server};

const KNOWN: &str = "there are POST /v1/chat/completions, POST /v1/messages and GET /v1/models";

/// The reason why a policy cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum PolicyServiceError {
    /// Other machines reach the address, and there is no token.
    #[error("other machines can connect to {0}, so clients need a token")]
    Unprotected(SocketAddr),
    /// The token can be guessed.
    #[error(transparent)]
    ShortToken(#[from] ShortToken),
    /// The address cannot be used.
    #[error(transparent)]
    Listen(#[from] CannotListen),
}

/// Serves a policy over HTTP. Dropping it refuses new connections.
pub struct PolicyService(Server);

impl PolicyService {
    /// Listens, and answers requests on the runtime of the caller. An address that other machines reach needs a token.
    pub fn start(
        address: SocketAddr,
        token: Option<String>,
        chat: PolicyChat,
    ) -> Result<Self, PolicyServiceError> {
        if token.is_none() && !address.ip().is_loopback() {
            return Err(PolicyServiceError::Unprotected(address));
        }
        let token = Token::new(token)?;
        let served = ServedPolicy(Arc::new((chat, token)));
        let router = routes::of_turns::<ServedPolicy, ServedPolicy>("");
        let router = routes::with_refusals(router, KNOWN).with_state(served);
        let server = Server::bind(address, router)?;
        server.serve()?;
        Ok(Self(server))
    }

    /// The address that it listens on, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }
}

/// The policy, for requests that show the token.
#[derive(Clone)]
struct ServedPolicy(Arc<(PolicyChat, Token)>);

impl FromRequestParts<ServedPolicy> for ServedPolicy {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, served: &Self) -> Result<Self, Refusal> {
        access::not_of_a_page(&parts.headers)?;
        let (_, token) = &*served.0;
        token.check(&parts.headers)?;
        Ok(served.clone())
    }
}

#[async_trait]
impl Policy for ServedPolicy {
    fn sampling(&self) -> Sampling {
        Sampling::Free
    }

    async fn turn(&self, asked: Asked) -> Result<Turn, TurnRefused> {
        let (chat, _) = &*self.0;
        chat.answer(&asked.turn, asked.params, asked.seed).await
    }
}
