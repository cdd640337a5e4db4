//! Answers: JSON, and refusals in the form that clients of FastAPI services read (`{"detail": ..}`).

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// Maximum time in `Retry-After`. Programs often end long before their limits.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

/// The refusal of a request, with its reason.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    status: StatusCode,
    detail: Value,
    /// Number of seconds after which a request refused with 504 may be repeated.
    retry_after: u64,
}

/// Body of every answer except 2xx.
#[derive(Debug, Serialize, JsonSchema)]
#[allow(dead_code)] // For the description alone.
pub(crate) struct RefusalBody {
    /// A sentence, or a list of `{type, loc, msg}` for a body that does not fit (422).
    detail: Value,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: Value::String(detail.into()),
            retry_after: 1,
        }
    }

    /// Refuses a body that does not fit the route. `place` leads from the body to the wrong value.
    pub(crate) fn invalid(kind: &str, place: &[&str], message: impl Into<String>) -> Self {
        let place: Vec<&str> = std::iter::once("body")
            .chain(place.iter().copied())
            .collect();
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            detail: json!([{"type": kind, "loc": place, "msg": message.into()}]),
            retry_after: 1,
        }
    }

    /// Refuses a request that waited too long, or for which the machine had no room. It may be repeated.
    pub(crate) fn later(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, detail)
    }

    /// Tells the client to repeat the request after this time: at least a second, at most [`MAX_RETRY_AFTER`].
    pub(crate) fn retry_after(mut self, time: Duration) -> Self {
        let time = time.clamp(Duration::from_secs(1), MAX_RETRY_AFTER);
        self.retry_after = time.as_millis().div_ceil(1_000) as u64;
        self
    }

    /// The reason as a sentence.
    pub(crate) fn reason(&self) -> String {
        match &self.detail {
            Value::String(reason) => reason.clone(),
            detail => detail.to_string(),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = json(&json!({ "detail": self.detail }));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::GATEWAY_TIMEOUT => {
                headers.insert(RETRY_AFTER, HeaderValue::from(self.retry_after));
            }
            // The rest of the body is not read.
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

/// Creates an answer of JSON. The keys have the order of the type's fields.
pub(crate) fn json<T: Serialize>(value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => typed("application/json", body),
        Err(error) => {
            // Only maps whose keys are not strings fail, and no type here has such a map.
            tracing::error!(%error, "an answer cannot be written as JSON");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Creates an answer with a media type.
pub(crate) fn typed(kind: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(body.into()));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_its_status_asks_for() {
        let header = |refusal: Refusal, name: &str| {
            let response = refusal.into_response();
            response
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        let refusal = |status| Refusal::new(status, "no");
        assert_eq!(
            header(refusal(StatusCode::UNAUTHORIZED), "www-authenticate").as_deref(),
            Some("Bearer")
        );
        assert_eq!(
            header(Refusal::later("full"), "retry-after").as_deref(),
            Some("1")
        );
        let later = |time| header(Refusal::later("full").retry_after(time), "retry-after");
        for (time, said) in [(0, "1"), (2_001, "3"), (600_000, "60")] {
            assert_eq!(later(Duration::from_millis(time)).as_deref(), Some(said));
        }
        assert_eq!(
            header(refusal(StatusCode::PAYLOAD_TOO_LARGE), "connection").as_deref(),
            Some("close")
        );
        let invalid = Refusal::invalid("missing", &["files", "a"], "Field required");
        assert_eq!(invalid.status(), 422);
        assert_eq!(
            invalid.detail,
            json!([{"type": "missing", "loc": ["body", "files", "a"], "msg": "Field required"}])
        );
    }
}
