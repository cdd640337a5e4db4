//! One connection for one request: connect, send, read, close.
//!
//! No connection is kept between fetches. So no plugin meets another's connection, and every fetch goes to addresses
//! that were checked for it. Everything happens inside one future; dropping it closes the socket.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::error::FetchError;
use crate::hosts::Target;
use crate::metered::{Metered, Received};
use crate::request::head_line;
use crate::rules::{HttpRules, Scheme};

/// An answer as received. It may contain secrets.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Minimum size of hyper's buffer for the head of an answer. It is twice what hyper reads at first, so a head that
/// fills the buffer is known to be long.
const MIN_BUFFER_BYTES: u64 = 16 << 10;

/// Connects to the first of `addresses` that answers. Each address gets a share of the remaining time, so a silent one
/// does not use up the time of the others.
pub(crate) async fn connect(
    target: &Target,
    addresses: &[IpAddr],
    until: Instant,
) -> Result<TcpStream, FetchError> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (tried, &address) in addresses.iter().enumerate() {
        let now = Instant::now();
        let share = until.saturating_duration_since(now) / (addresses.len() - tried) as u32;
        let connecting = TcpStream::connect(SocketAddr::new(address, target.port));
        let connected = if tried + 1 == addresses.len() {
            // The caller enforces the end of the fetch's own time.
            Ok(connecting.await)
        } else {
            timeout_at(now + share, connecting).await
        };
        match connected {
            Ok(Ok(stream)) => {
                // There is one small request, so waiting for more data would only delay it.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(FetchError::Unavailable(format!(
        "cannot connect to `{}`: {}",
        target.authority(),
        last.kind()
    )))
}

/// Sends `request` over `stream` and reads its answer in full.
pub(crate) async fn exchange(
    rules: &HttpRules,
    tls: Option<&TlsConnector>,
    target: &Target,
    stream: TcpStream,
    request: http::Request<Full<Bytes>>,
) -> Result<Answer, FetchError> {
    let unavailable = |reason: String| FetchError::Unavailable(reason);
    let host = &target.host;
    let exchange = Exchange { rules, host };
    if target.scheme == Scheme::Http {
        return exchange.over(stream, request).await;
    }
    let tls =
        tls.ok_or_else(|| unavailable(format!("`{host}` needs TLS, which was not set up")))?;
    let name = match target.address {
        Some(address) => ServerName::from(address),
        None => ServerName::try_from(host.clone())
            .map_err(|_| unavailable(format!("no certificate can be for the name `{host}`")))?,
    };
    let stream = tls
        .connect(name, stream)
        .await
        .map_err(|error| unavailable(format!("no secure connection to `{host}`: {error}")))?;
    exchange.over(stream, request).await
}

struct Exchange<'a> {
    rules: &'a HttpRules,
    host: &'a str,
}

impl Exchange<'_> {
    async fn over<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        request: http::Request<Full<Bytes>>,
    ) -> Result<Answer, FetchError> {
        let received = Received::default();
        let stream = TokioIo::new(Metered::new(stream, received.clone()));
        let (mut sender, connection) = http1::Builder::new()
            .max_headers(self.rules.max_headers as usize)
            .max_buf_size(self.buffer() as usize)
            .handshake(stream)
            .await
            .map_err(|error| self.failed(&error, &received))?;
        let mut connection = pin!(connection);
        let mut answer = pin!(async {
            let response = sender
                .send_request(request)
                .await
                .map_err(|error| self.failed(&error, &received))?;
            self.read(response, &received).await
        });
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            // The last bytes of the answer may not be read yet.
            _ = &mut connection => answer.await,
        }
    }

    async fn read(
        &self,
        response: http::Response<Incoming>,
        received: &Received,
    ) -> Result<Answer, FetchError> {
        let (head, mut body) = response.into_parts();
        self.check_head(&head.headers)?;
        self.check_body(body.size_hint().lower())?;
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.failed(&error, received))?;
            // A chunked body may end with trailers. They are ignored.
            let Ok(data) = frame.into_data() else {
                continue;
            };
            self.check_body((read.len() + data.len()) as u64)?;
            read.extend_from_slice(&data);
        }
        Ok(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: read,
        })
    }

    fn check_head(&self, headers: &HeaderMap) -> Result<(), FetchError> {
        let lines = headers.iter();
        let used = lines
            .map(|(name, value)| head_line(name.as_str().len(), value.len()))
            .sum();
        if used > self.rules.max_header_bytes {
            return Err(self.head_bytes(used));
        }
        Ok(())
    }

    fn check_body(&self, used: u64) -> Result<(), FetchError> {
        let most = self.rules.max_response_bytes;
        if used > most {
            return Err(FetchError::exhausted(
                "the answer's body is too large",
                "max_response_bytes",
                most,
                used,
            ));
        }
        Ok(())
    }

    /// The size of hyper's buffer. It is larger than the head may be.
    fn buffer(&self) -> u64 {
        (self.rules.max_header_bytes + 1).max(MIN_BUFFER_BYTES)
    }

    fn head_bytes(&self, used: u64) -> FetchError {
        let most = self.rules.max_header_bytes;
        FetchError::exhausted(
            "the answer's headers are too large",
            "max_header_bytes",
            most,
            used,
        )
    }

    /// Converts hyper's error.
    fn failed(&self, error: &hyper::Error, received: &Received) -> FetchError {
        let Self { rules, host } = self;
        // hyper distinguishes these errors only by their text (tests/all/size.rs tests it). Too many lines and too long
        // lines have the same text.
        if error.is_parse() && error.to_string().contains("too large") {
            let most = u64::from(rules.max_headers);
            return if received.bytes() >= self.buffer() {
                self.head_bytes(received.bytes())
            } else {
                FetchError::exhausted(
                    "the answer has too many headers",
                    "max_headers",
                    most,
                    most + 1,
                )
            };
        }
        tracing::debug!(host, %error, "a fetch failed");
        FetchError::Unavailable(if error.is_parse() {
            format!("`{host}` answered with something that is not HTTP/1.1")
        } else if error.is_incomplete_message() {
            format!("`{host}` closed the connection before its answer was complete")
        } else {
            format!("the connection to `{host}` failed")
        })
    }
}
