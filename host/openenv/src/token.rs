//! The token of a server: read once, sent with every request, and kept out of what the server says.

use std::fmt;

use tokio_tungstenite::tungstenite::http::HeaderValue;

use crate::error::OpenEnvError;

/// Minimum length of a token. A shorter one occurs in answers by chance.
const MIN_TOKEN_BYTES: usize = 8;

/// A token, which is never shown.
pub(crate) struct Token {
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
    pub(crate) fn read(environment: &str, variable: &str) -> Result<Self, OpenEnvError> {
        let wrong = |reason: String| OpenEnvError::config(environment, "token_env", reason);
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
        Ok(Self { text, header })
    }

    /// The value of the header `Authorization`.
    pub(crate) fn header(&self) -> &HeaderValue {
        &self.header
    }

    /// The value of the header `Authorization`, as text.
    pub(crate) fn header_text(&self) -> String {
        format!("Bearer {}", self.text)
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
        let token = Token::read("chess", "PATH").unwrap();
        assert_eq!(token.header().as_bytes(), token.header_text().as_bytes());
        assert_eq!(token.header_text(), format!("Bearer {path}"));
        let echoed = format!("you sent {path}.");
        assert_eq!(
            without_token(&echoed, Some(&token)),
            "you sent [secret token]."
        );
        assert_eq!(without_token(&echoed, None), echoed);
        assert!(!format!("{token:?}{:?}", token.header()).contains(&path));
    }
}
