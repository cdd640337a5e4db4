//! A policy that is not being trained, served to anybody who speaks OpenAI's or Anthropic's protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use rlf_rollout::agent::PolicyChat;

use crate::config::MIN_TOKEN;
use crate::routes::{body, is_shown, known_models, unknown};
use crate::server::Server;
use crate::wire::{Refusal, Sampling};
use crate::{anthropic, openai};

/// The reason why a policy cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum PolicyServiceError {
    /// Other machines reach the address, and there is no token.
    #[error("other machines can connect to {0}, so clients need a token")]
    Unprotected(SocketAddr),
    /// The token can be guessed.
    #[error(
        "the token has {0} characters; make one of at least {MIN_TOKEN}, for example with `openssl rand -hex 32`"
    )]
    ShortToken(usize),
    /// The address cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Serves a policy over HTTP. Dropping it refuses new connections.
pub struct PolicyService(Server);

struct Shared {
    chat: PolicyChat,
    /// The token that clients show.
    token: Option<String>,
    /// Number of answers so far, for their ids.
    answers: AtomicU64,
}

impl PolicyService {
    /// Listens, and answers requests on the runtime of the caller. An address that other machines reach needs a token.
    pub fn start(
        address: SocketAddr,
        token: Option<String>,
        chat: PolicyChat,
    ) -> Result<Self, PolicyServiceError> {
        match &token {
            None if !address.ip().is_loopback() => {
                return Err(PolicyServiceError::Unprotected(address));
            }
            Some(token) if token.len() < MIN_TOKEN => {
                return Err(PolicyServiceError::ShortToken(token.len()));
            }
            _ => {}
        }
        let shared = Shared {
            chat,
            token,
            answers: AtomicU64::new(0),
        };
        let router = Router::new()
            .route("/v1/chat/completions", post(chat_completions))
            .route("/v1/messages", post(messages))
            .route("/v1/models", get(models))
            .fallback(unknown)
            .with_state(Arc::new(shared));
        let failed = |source| PolicyServiceError::Listen { address, source };
        let server = Server::bind(address, router).map_err(failed)?;
        server.serve().map_err(failed)?;
        Ok(Self(server))
    }

    /// The address that it listens on, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }
}

impl Shared {
    fn admit(&self, request: &Request) -> Result<(), Refusal> {
        if is_shown(self.token.as_deref(), request.headers()) {
            return Ok(());
        }
        let why = "show the token: `Authorization: Bearer TOKEN`";
        Err(Refusal::unauthorized(why))
    }

    fn next_id(&self) -> String {
        format!("{:08x}", self.answers.fetch_add(1, Ordering::Relaxed))
    }
}

async fn chat_completions(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Response> {
    let turn = async {
        shared.admit(&request)?;
        let request = openai::Request::read(&body(request).await?, Sampling::Free)?;
        let turn = (shared.chat).answer(&request.turn, request.params, request.seed);
        Ok(request.answer(&turn.await?, &shared.next_id()))
    };
    turn.await.map_err(|refusal: Refusal| refusal.openai())
}

async fn messages(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Response> {
    let turn = async {
        shared.admit(&request)?;
        let request = anthropic::Request::read(&body(request).await?, Sampling::Free)?;
        let turn = (shared.chat).answer(&request.turn, request.params, None);
        Ok(request.answer(&turn.await?, &shared.next_id()))
    };
    turn.await.map_err(|refusal: Refusal| refusal.anthropic())
}

async fn models(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Response> {
    (shared.admit(&request)).map_err(|refusal| refusal.openai())?;
    Ok(known_models())
}
