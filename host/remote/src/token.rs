//! The token of a server: read once, sent with every request, and kept out of what the server says.

use std::fmt;

use tokio_tungstenite::tungstenite::http::HeaderValue;

use crate::error::RemoteError;
use crate::protocol::Protocol;

/// Minimum length of a token. A shorter one occurs in answers by chance.
const MIN_TOKEN_BYTES: usize = 8;

/// A token, which is never shown.
pub(crate) struct Token {
    protocol: Protocol,
    text: String,
    header: HeaderValue,
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token")
    }
}

impl Token {
    /// Reads the token of an environment from an environment variable.
    pub(crate) fn read(
        protocol: Protocol,
        environment: &str,
        variable: &str,
    ) -> Result<Self, RemoteError> {
        let wrong = |reason| RemoteError::config(protocol, environment, "token_env", reason);
        let text = std::env::var(variable).unwrap_or_default();
        if text.is_empty() {
            let missing = format!("the environment variable {variable} is not set");
            return Err(wrong(missing));
        }
        if text.len() < MIN_TOKEN_BYTES {
            return Err(wrong(format!(
                "the token in {variable} has {} bytes; use one of at least {MIN_TOKEN_BYTES}, which no answer has by chance",
                text.len()
            )));
        }
        let header = HeaderValue::from_str(&format!("Bearer {text}"));
        let mut header = header.map_err(|_| {
            wrong(format!(
                "the token in {variable} has characters that no header may have"
            ))
        })?;
        header.set_sensitive(true);
        Ok(Self {
            protocol,
            text,
            header,
        })
    }

    /// The value of the header `Authorization` of a WebSocket.
    pub(crate) fn header(&self) -> &HeaderValue {
        &self.header
    }

    /// The header of a request over HTTP, with its name.
    pub(crate) fn http_header(&self) -> (&'static str, String) {
        match self.protocol {
            Protocol::OpenEnv => ("authorization", format!("Bearer {}", self.text)),
            Protocol::Ors => ("x-api-key", self.text.clone()),
        }
    }
}

/// A server's words, without the token that it was sent.
pub(crate) fn without_token(words: &str, token: Option<&Token>) -> String {
    match token {
        Some(token) => words.replace(&token.text, "[secret token]"),
        None => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_shown_to_its_server_alone() {
        // A variable that every process has.
        let path = std::env::var("PATH").unwrap();
        let read = |protocol| Token::read(protocol, "chess", "PATH").unwrap();
        let token = read(Protocol::OpenEnv);
        let bearer = format!("Bearer {path}");
        assert_eq!(token.header().as_bytes(), bearer.as_bytes());
        assert_eq!(token.http_header(), ("authorization", bearer));
        let of_ors = read(Protocol::Ors).http_header();
        assert_eq!(of_ors, ("x-api-key", path.clone()));
        let echoed = format!("you sent {path}.");
        assert_eq!(
            without_token(&echoed, Some(&token)),
            "you sent [secret token]."
        );
        assert_eq!(without_token(&echoed, None), echoed);
        assert!(!format!("{token:?}{:?}", token.header()).contains(&path));
    }
}
