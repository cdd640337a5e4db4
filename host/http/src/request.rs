//! Requests and responses of plugins, and the checks of requests.

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
    /// `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE` or `OPTIONS`.
    pub method: String,
    /// An absolute https or http URL. Its fragment is not sent.
    pub url: String,
    /// Names and values in order; a name may be repeated.
    pub headers: Vec<(String, Value)>,
    /// May be empty.
    pub body: Vec<u8>,
}

/// The body by its length only: it may be large, and is not the log's to keep.
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
    /// The name of a secret of the rules, which the host program puts in.
    Secret(String),
}

/// An answer, whatever its status: an error of the server's and a redirect are answers too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Such as 200, or 302: redirects are not followed.
    pub status: u16,
    /// Names in lower case, and values, in the order of arrival for each name. `content-length` is
    /// the server's and counts what stood where a secret was.
    pub headers: Vec<(String, String)>,
    /// Body as received, without secrets.
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

/// Headers that say where a request goes, how its bytes are framed, or that the connection becomes
/// something else; all of them the host program's. Those that begin with `proxy-` too.
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

/// Checks `request` against the rules and makes what is sent of it.
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
        // Not the secret's own length: that would tell it.
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

/// Bytes of one header on the wire.
pub(crate) fn head_line(name_bytes: usize, value_bytes: usize) -> u64 {
    (name_bytes + ": ".len() + value_bytes + "\r\n".len()) as u64
}

fn parse_url(url: &str) -> Result<Url, FetchError> {
    // Parsers forgive these, each in its own way: two readers of one URL would differ.
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

/// Path and query: the connection already leads to the host.
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
    // What comes back is counted, and looked through for secrets, as it is.
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
    // Piece by piece, a server that repeats what it is sent would give the secret away.
    if sent.values().any(HeaderValue::is_sensitive) && sent.contains_key(http::header::RANGE) {
        return Err(FetchError::Denied(
            "a request with a secret in it cannot ask for a range; leave `range` out".to_owned(),
        ));
    }
    Ok(sent)
}
