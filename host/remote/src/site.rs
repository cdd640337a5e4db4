//! A server that is asked over HTTP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rlf_http::{HttpClient, Request, Value as Header};
use serde_json::Value;
use url::Url;

use crate::config::RemoteConfig;
use crate::error::{RemoteError, SiteError};
use crate::host_form::brief;
use crate::protocol::Protocol;
use crate::token::{Token, without_token};

/// The base URL of a server, the token for it, and a client that reaches only this server.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) base: Url,
    pub(crate) token: Option<Arc<Token>>,
    client: HttpClient,
}

impl Site {
    /// Reads the token. Nothing is asked yet.
    pub(crate) fn open(
        protocol: Protocol,
        environment: &str,
        config: &RemoteConfig,
    ) -> Result<Self, RemoteError> {
        let base = config.base(protocol, environment)?;
        let token = config.token_env.as_ref();
        let token = token.map(|variable| Token::read(protocol, environment, variable));
        let token = token.transpose()?.map(Arc::new);
        let client = HttpClient::open(&config.rules(&base)).map_err(|error| {
            RemoteError::config(protocol, environment, "url", error.to_string())
        })?;
        Ok(Self {
            base,
            token,
            client,
        })
    }

    /// Asks once, with GET, or with POST if there is a body. `session` is the id of a session of ORS. A redirect is an
    /// error. Returns the answer without the token.
    pub(crate) async fn ask(
        &self,
        path: &[&str],
        session: Option<&str>,
        body: Option<&Value>,
        limit: Duration,
    ) -> Result<String, SiteError> {
        let url = self.url(path);
        let headers = [
            self.token.as_deref().map(Token::http_header),
            session.map(|id| ("x-session-id", id.to_owned())),
            body.map(|_| ("content-type", "application/json".to_owned())),
        ];
        let headers = headers.into_iter().flatten();
        let headers = headers.map(|(name, value)| (name.to_owned(), Header::Text(value)));
        let request = Request {
            method: body.map_or("GET", |_| "POST").to_owned(),
            url: url.clone(),
            headers: headers.collect(),
            body: body.map(Value::to_string).unwrap_or_default().into_bytes(),
        };
        let call = self.client.call(Instant::now() + limit);
        let response = match call.fetch(request).await {
            Ok(response) => response,
            Err(source) => return Err(SiteError::Fetch { url, source }),
        };
        let token = self.token.as_deref();
        let answer = without_token(&String::from_utf8_lossy(&response.body), token);
        if response.status != 200 {
            let status = response.status;
            return Err(SiteError::Status {
                url,
                status,
                detail: detail(&answer),
            });
        }
        Ok(answer)
    }

    /// The URL of a path below the base.
    fn url(&self, path: &[&str]) -> String {
        let mut url = self.base.clone();
        // Every http URL has a path.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url.into()
    }
}

/// The reason that an answer with an error gives, after a colon. Servers that are written with FastAPI give one.
fn detail(answer: &str) -> String {
    let answer: Value = rlf_json::from_str(answer).unwrap_or_default();
    match answer.get("detail") {
        Some(Value::String(text)) => format!(": {}", brief(text)),
        Some(other) => format!(": {}", brief(&other.to_string())),
        None => String::new(),
    }
}
