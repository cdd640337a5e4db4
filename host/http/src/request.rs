//! Requests and responses of plugins, with the checks of requests.

use std::fmt;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONNECTION, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use http_body_util::Full;
use url::Url;

use crate::error::FetchError;
use crate::hosts::{Hosts, Target};
use crate::rules::HttpRules;
use crate::secret::Secrets;

/// A request, as a plugin wrote it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// The method: `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE` or `OPTIONS`.
    pub method: String,
    /// The absolute https or http URL. Its fragment is not sent.
    pub url: String,
    /// Names and values, in order. A name may be repeated.
    pub headers: Vec<(String, Value)>,
    /// The body, which may be empty.
    pub body: Vec<u8>,
}

/// Shows only the length of the body, which may be large and does not belong in a log.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &self.url)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// The value of a request's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Plain text.
    Text(String),
    /// The name of a secret of the rules. The host program inserts the secret.
    Secret(String),
}

/// An answer with any status: errors of the server and redirects are answers too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status, such as 200, or 302 because redirects are not followed.
    pub status: u16,
    /// Names in lower case, and values, in the order of arrival for each name. `content-length` comes from the server,
    /// and counts the secrets that were removed.
    pub headers: Vec<(String, String)>,
    /// The body as received, without secrets.
    pub body: Vec<u8>,
}

const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// Headers that decide the target of a request, the framing of its bytes, or a change of protocol. Only the host
/// program sets them, and those that begin with `proxy-`.
const RESERVED: [&str; 11] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Checks `request` against the rules, and builds the request to send.
pub(crate) fn prepare(
    request: Request,
    rules: &HttpRules,
    hosts: &Hosts,
    secrets: &Secrets,
) -> Result<(Target, http::Request<Full<Bytes>>), FetchError> {
    let Request {
        method,
        url,
        headers,
        body,
    } = request;
    check_sizes(rules, method.len() + url.len(), &headers, &body)?;
    let url = parse_url(&url)?;
    let target = hosts.admit(&url)?;
    let method = parse_method(&method)?;
    let sent = fill_headers(&target, headers, secrets)?;

    let mut request = http::Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = method;
    *request.uri_mut() = origin_form(&url)?;
    *request.headers_mut() = sent;
    Ok((target, request))
}

fn check_sizes(
    rules: &HttpRules,
    first_line_bytes: usize,
    headers: &[(String, Value)],
    body: &[u8],
) -> Result<(), FetchError> {
    let value = |value: &Value| match value {
        Value::Text(text) => text.len(),
        // The secret's own length is not used, because the count would reveal it.
        Value::Secret(name) => name.len(),
    };
    let header_bytes = headers
        .iter()
        .map(|(name, text)| head_line(name.len(), value(text)));
    for (reason, name, most, used) in [
        (
            "the request's body is too large",
            "max_request_bytes",
            rules.max_request_bytes,
            body.len() as u64,
        ),
        (
            "the request has too many headers",
            "max_headers",
            u64::from(rules.max_headers),
            headers.len() as u64,
        ),
        (
            "the request's method, URL and headers are too large",
            "max_header_bytes",
            rules.max_header_bytes,
            first_line_bytes as u64 + header_bytes.sum::<u64>(),
        ),
    ] {
        if used > most {
            return Err(FetchError::exhausted(reason, name, most, used));
        }
    }
    Ok(())
}

/// Number of bytes of one header on the wire.
pub(crate) fn head_line(name_bytes: usize, value_bytes: usize) -> u64 {
    (name_bytes + ": ".len() + value_bytes + "\r\n".len()) as u64
}

fn parse_url(url: &str) -> Result<Url, FetchError> {
    // Parsers tolerate these characters, each in its own way, so two of them could read one URL differently.
    if let Some(bad) = url
        .chars()
        .find(|c| c.is_control() || c.is_whitespace() || *c == '\\')
    {
        return Err(FetchError::Invalid(format!(
            "the URL has {bad:?} in it; encode it with `%`"
        )));
    }
    Url::parse(url).map_err(|error| {
        FetchError::Invalid(format!(
            "not a URL ({error}); write it in full, such as https://example.com/path"
        ))
    })
}

/// Path and query only, because the connection already leads to the host.
fn origin_form(url: &Url) -> Result<Uri, FetchError> {
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    path.parse().map_err(|error| {
        FetchError::Invalid(format!("the URL's path or query cannot be sent ({error})"))
    })
}

fn parse_method(method: &str) -> Result<Method, FetchError> {
    METHODS
        .into_iter()
        .find(|known| known.as_str() == method)
        .ok_or_else(|| {
            FetchError::Invalid(format!(
                "method {method:?} cannot be used; use one of {}, in capitals",
                METHODS.map(|method| method.to_string()).join(", ")
            ))
        })
}

fn fill_headers(
    target: &Target,
    headers: Vec<(String, Value)>,
    secrets: &Secrets,
) -> Result<HeaderMap, FetchError> {
    let invalid = |reason: String| FetchError::Invalid(reason);
    let mut sent = HeaderMap::with_capacity(headers.len() + 3);
    let authority = HeaderValue::try_from(target.authority())
        .map_err(|error| invalid(format!("the URL's host cannot be sent ({error})")))?;
    sent.insert(HOST, authority);
    sent.insert(CONNECTION, HeaderValue::from_static("close"));
    // The bytes of an answer are counted and searched for secrets as they arrive, so they must not be compressed.
    sent.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (written, value) in headers {
        let name = HeaderName::from_bytes(written.as_bytes())
            .map_err(|_| invalid(format!("{written:?} is no name of a header")))?;
        if RESERVED.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
            return Err(FetchError::Denied(format!(
                "header `{name}` is set by the host alone; leave it out"
            )));
        }
        let value = match value {
            Value::Secret(secret) => secrets.header(&secret, &target.host)?,
            Value::Text(text) if text.chars().any(char::is_control) => {
                return Err(invalid(format!(
                    "the value of header `{name}` has control characters in it"
                )));
            }
            Value::Text(text) => HeaderValue::try_from(text)
                .map_err(|_| invalid(format!("the value of header `{name}` cannot be sent")))?,
        };
        sent.append(name, value);
    }
    // With ranges, a server that repeats what it is sent could return the secret in pieces.
    if sent.values().any(HeaderValue::is_sensitive) && sent.contains_key(http::header::RANGE) {
        return Err(FetchError::Denied(
            "a request with a secret in it cannot ask for a range; leave `range` out".to_owned(),
        ));
    }
    Ok(sent)
}
