//! The name of a request, and the part of its log line that handlers know.

use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;

/// The name of a request in logs and answers, kept among the request's extensions.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// The name of this request.
pub(crate) fn id(request: &Request) -> String {
    let id = request.extensions().get::<RequestId>();
    id.map(|id| id.0.clone()).unwrap_or_default()
}

/// The part of a request's log line that its handler knows. Handlers attach it to their answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestLog {
    /// The language, tool or reward.
    pub(crate) what: String,
    /// The end of the request, in one word.
    pub(crate) ended: String,
    pub(crate) queued: Duration,
    pub(crate) took: Duration,
}

/// Attaches a log to an answer.
pub(crate) fn logged(mut response: Response, log: RequestLog) -> Response {
    response.extensions_mut().insert(log);
    response
}

/// A time for the log: milliseconds with two digits.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 1e2
}
