//! Who may ask: clients that show the token, and no pages in browsers.

use http::header::{AUTHORIZATION, ORIGIN};
use http::{HeaderMap, HeaderName, StatusCode};
use subtle::ConstantTimeEq as _;

use crate::refusal::Refusal;

/// Minimum length of a token.
const MIN_TOKEN: usize = 16;

/// The token can be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the token has {0} characters; make one of at least {MIN_TOKEN}, for example with `openssl rand -hex 32`"
)]
pub struct ShortToken(usize);

/// The token that clients show, if they need one.
#[derive(Default)]
pub(crate) struct Token(Option<String>);

impl Token {
    /// Refuses a token that can be guessed.
    pub(crate) fn new(token: Option<String>) -> Result<Self, ShortToken> {
        match token {
            Some(short) if short.len() < MIN_TOKEN => Err(ShortToken(short.len())),
            token => Ok(Self(token)),
        }
    }

    /// Refuses a request that does not show the token, as OpenAI's or Anthropic's packages send it.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(token) = &self.0 else { return Ok(()) };
        let is = |name, wanted: &str| {
            let shown = headers.get(name);
            shown.is_some_and(|shown| shown.as_bytes().ct_eq(wanted.as_bytes()).into())
        };
        if is(AUTHORIZATION, &format!("Bearer {token}"))
            || is(HeaderName::from_static("x-api-key"), token)
        {
            return Ok(());
        }
        Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "show the token: `Authorization: Bearer TOKEN`",
        ))
    }
}

/// Refuses requests of a page in a browser, which somebody else may have written.
pub(crate) fn not_of_a_page(headers: &HeaderMap) -> Result<(), Refusal> {
    if !headers.contains_key(ORIGIN) {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::FORBIDDEN,
        "origin",
        "pages in a browser are not served",
    ))
}
