//! Answers: JSON, and refusals in the form that clients of FastAPI services read (`{"detail": ..}`).

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// A request that is not served, and why.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    status: StatusCode,
    detail: Value,
}

/// Body of every answer but a 2xx.
#[derive(Debug, Serialize, JsonSchema)]
#[allow(dead_code)] // For the description alone.
pub(crate) struct RefusalBody {
    /// A sentence; of a body that does not fit (422), a list of `{type, loc, msg}`.
    detail: Value,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: Value::String(detail.into()),
        }
    }

    /// A body that is not what the route takes. `place` leads from the body to what is wrong.
    pub(crate) fn invalid(kind: &str, place: &[&str], message: impl Into<String>) -> Self {
        let place: Vec<&str> = std::iter::once("body")
            .chain(place.iter().copied())
            .collect();
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            detail: json!([{"type": kind, "loc": place, "msg": message.into()}]),
        }
    }

    /// The request had to wait for too long, or the machine had no room for it: worth repeating.
    pub(crate) fn later(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, detail)
    }

    #[cfg(test)]
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
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            // What is left of the body is not worth reading.
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

/// An answer of JSON, in the order of the type's fields.
pub(crate) fn json<T: Serialize>(value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => typed("application/json", body),
        Err(error) => {
            // Maps with keys that are no strings: no type here has one.
            tracing::error!(%error, "an answer cannot be written as JSON");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// An answer of one media type.
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
