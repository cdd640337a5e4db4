//! A server on the loopback interface. It answers as a test needs, and reports what it saw.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{interval, timeout};
use tokio_rustls::TlsAcceptor;

use crate::MAX_WAIT;

#[derive(Clone)]
pub(crate) enum Answer {
    /// These bytes, then the end of the connection.
    Bytes(Vec<u8>),
    /// Status 200, with the whole request as the body.
    Echo,
    /// Nothing, but the connection stays open.
    Silence,
    /// These bytes, then the last of them again every few milliseconds.
    Drip(Vec<u8>),
    /// These bytes, then the last of them again without pause.
    Flood(Vec<u8>),
    /// All of these bytes, repeated without pause.
    Again(Vec<u8>),
}

impl Answer {
    pub(crate) fn text(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }

    /// Status 200 with `headers`, each ended by a line break, and `body`.
    pub(crate) fn ok(headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Bytes(
            format!("HTTP/1.1 200 OK\r\n{headers}content-length: {length}\r\n\r\n{body}").into(),
        )
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Connected,
    /// The server name that the client sent in TLS.
    ServerName(Option<String>),
    /// Head and body, as received.
    Request(String),
    /// The client closed the connection.
    Closed,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    events: UnboundedReceiver<Event>,
}

impl Server {
    pub(crate) async fn start(answer: Answer) -> Self {
        Self::start_with(answer, None).await
    }

    /// Uses TLS, with the certificate for `api.test`.
    pub(crate) async fn start_tls(answer: Answer) -> Self {
        let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates");
        let certificate = CertificateDer::from_pem_file(files.join("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(files.join("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        Self::start_with(answer, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start_with(answer: Answer, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, events) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = tell.send(Event::Connected);
                let (answer, tls, tell) = (answer.clone(), tls.clone(), tell.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, answer, &tell).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                let name = stream.get_ref().1.server_name().map(str::to_owned);
                                let _ = tell.send(Event::ServerName(name));
                                serve(stream, answer, &tell).await;
                            }
                        }
                    }
                    let _ = tell.send(Event::Closed);
                });
            }
        });
        Self { port, events }
    }

    /// Waits for the next event.
    pub(crate) async fn next(&mut self) -> Event {
        let next = timeout(MAX_WAIT, self.events.recv()).await;
        next.expect("nothing happened at the server").unwrap()
    }

    /// Waits for the next request.
    pub(crate) async fn request(&mut self) -> String {
        loop {
            if let Event::Request(request) = self.next().await {
                return request;
            }
        }
    }

    pub(crate) async fn closed(&mut self) {
        while self.next().await != Event::Closed {}
    }

    /// True if no client has connected.
    pub(crate) fn is_untouched(&mut self) -> bool {
        self.events.try_recv().is_err()
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    answer: Answer,
    tell: &UnboundedSender<Event>,
) {
    let request = read_request(&mut stream).await;
    let _ = tell.send(Event::Request(request.clone()));
    // Later failures only mean that the client has left.
    let _ = respond(&mut stream, answer, &request).await;
}

async fn respond<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    answer: Answer,
    request: &str,
) -> std::io::Result<()> {
    match answer {
        Answer::Bytes(bytes) => {
            stream.write_all(&bytes).await?;
            return stream.shutdown().await;
        }
        Answer::Echo => {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
                request.len()
            );
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(request.as_bytes()).await?;
            return stream.shutdown().await;
        }
        Answer::Silence => {}
        Answer::Drip(bytes) => {
            stream.write_all(&bytes).await?;
            let mut drop = interval(Duration::from_millis(5));
            loop {
                drop.tick().await;
                stream.write_all(&bytes[bytes.len() - 1..]).await?;
                stream.flush().await?;
            }
        }
        Answer::Flood(bytes) => {
            stream.write_all(&bytes).await?;
            let wave = vec![bytes[bytes.len() - 1]; 1 << 14];
            loop {
                stream.write_all(&wave).await?;
            }
        }
        Answer::Again(bytes) => {
            let wave = bytes.repeat(1_000);
            loop {
                stream.write_all(&wave).await?;
            }
        }
    }
    // Waits until the client leaves.
    while stream.read(&mut [0; 256]).await? > 0 {}
    Ok(())
}

/// The head, and the body if the head has its length.
async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> String {
    let mut request = String::new();
    loop {
        if let Some((head, body)) = request.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return request;
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => request.push_str(&String::from_utf8_lossy(&buffer[..read])),
            _ => return request,
        }
    }
}
