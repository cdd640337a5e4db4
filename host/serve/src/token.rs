//! The bearer token: read once, compared in constant time.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq as _;

/// Minimum length. Shorter tokens can be guessed.
const MIN_LENGTH: usize = 16;
/// Maximum length. Longer tokens do not fit into a header.
const MAX_LENGTH: usize = 4_096;

/// The reason why a token cannot be used. It does not repeat the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is too short or too long.
    #[error(
        "the token has {0} characters; make one of {MIN_LENGTH} to {MAX_LENGTH}, for example with `openssl rand -hex 32`"
    )]
    Length(usize),
    /// A header cannot carry the token.
    #[error("the token has spaces or other characters than visible ASCII")]
    Characters,
    /// The file cannot be read.
    #[error("cannot read the token file {}: {reason}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// The environment variable is missing.
    #[error("the environment variable {0}, which is to hold the token, is not set")]
    NotSet(String),
    /// The token in a file or a variable cannot be used.
    #[error("{place}: {source}")]
    In {
        /// The file or the variable.
        place: String,
        /// The mistake.
        source: Box<TokenError>,
    },
}

/// The token that clients must show. Only its hash is kept, so no log and no crash contains the token, and every
/// comparison takes the same time.
#[derive(Clone)]
pub(crate) struct Token(blake3::Hash);

impl Token {
    /// Checks a token.
    pub(crate) fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim_end_matches(['\n', '\r']);
        if !(MIN_LENGTH..=MAX_LENGTH).contains(&text.len()) {
            return Err(TokenError::Length(text.len()));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        Ok(Self(blake3::hash(text.as_bytes())))
    }

    /// Reads the token from a file.
    pub(crate) fn from_file(file: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(file).map_err(|error| TokenError::Unreadable {
            file: file.to_owned(),
            reason: error.to_string(),
        })?;
        Self::found(&text, file.display().to_string())
    }

    /// Reads the token from an environment variable.
    pub(crate) fn from_env(name: &str) -> Result<Self, TokenError> {
        let text = std::env::var(name).map_err(|_| TokenError::NotSet(name.to_owned()))?;
        Self::found(&text, name.to_owned())
    }

    fn found(text: &str, place: String) -> Result<Self, TokenError> {
        Self::new(text).map_err(|error| TokenError::In {
            place,
            source: error.into(),
        })
    }

    fn is(&self, shown: &[u8]) -> bool {
        let shown = blake3::hash(shown);
        self.0.as_bytes().ct_eq(shown.as_bytes()).into()
    }

    /// True if an `Authorization` header contains the token: as `Bearer TOKEN`, or as the password of `Basic`. Clients
    /// that only take a URL send the latter for `http://any:TOKEN@host/run_code`.
    pub(crate) fn is_shown_by(&self, header: &[u8]) -> bool {
        let Some(space) = header.iter().position(|byte| *byte == b' ') else {
            return false;
        };
        let (scheme, rest) = header.split_at(space);
        let rest = rest.trim_ascii();
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return self.is(rest);
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return false;
        }
        let Ok(pair) = STANDARD.decode(rest) else {
            return false;
        };
        let password = pair.iter().position(|byte| *byte == b':');
        password.is_some_and(|colon| self.is(&pair[colon + 1..]))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "correct-horse-battery-staple";

    #[test]
    fn it_is_shown_as_bearer_or_as_the_password_of_basic() {
        let token = Token::new(&format!("{TEXT}\n")).unwrap();
        let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        for shown in [
            format!("Bearer {TEXT}"),
            format!("bearer  {TEXT}"),
            basic(&format!("verl:{TEXT}")),
            basic(&format!(":{TEXT}")),
        ] {
            assert!(token.is_shown_by(shown.as_bytes()), "{shown}");
        }
        for refused in [
            String::new(),
            TEXT.to_owned(),
            format!("Bearer {}", &TEXT[1..]),
            format!("Bearer {TEXT}x"),
            format!("Token {TEXT}"),
            "Bearer ".to_owned(),
            basic(TEXT),
            basic(&format!("{TEXT}:")),
            "Basic !".to_owned(),
        ] {
            assert!(!token.is_shown_by(refused.as_bytes()), "{refused}");
        }
    }

    #[test]
    fn a_token_that_can_be_guessed_or_not_be_sent_is_refused_and_not_repeated() {
        for bad in [
            "",
            "short",
            "fifteen-letters",
            "has spaces in the middle",
            "unicode-é-unicode-é",
        ] {
            let error = Token::new(bad).unwrap_err().to_string();
            assert!(bad.is_empty() || !error.contains(bad), "{error}");
        }
        assert_eq!(format!("{:?}", Token::new(TEXT).unwrap()), "Token(..)");
    }

    #[test]
    fn a_file_or_a_variable_that_is_not_there_is_named() {
        let error = Token::from_file(Path::new("/nowhere/token")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("/nowhere/token"), "{error}");
        let error = Token::from_env("RLF_NO_SUCH_TOKEN").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("RLF_NO_SUCH_TOKEN"), "{error}");
    }
}
