//! Accepts connections up to a limit, applies time limits, and finishes the connections before the service ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioTimer;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::config::ServeConfig;
use crate::connection;
use crate::error::ServeError;
use crate::routes::{self, LocalAddress};
use crate::service::ConnectionPlace;
use crate::service::{Offer, Service, ids};

/// Maximum size of a request's head, in bytes. Larger heads are answered with 431.
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 64;

/// A listening service.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    service: Arc<Service>,
}

/// Numbers of requests that a service answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Requests answered.
    pub requests: u64,
    /// Requests that were under way when the service was asked to stop.
    pub finished: u64,
}

impl Server {
    /// Checks the configuration and listens.
    pub fn bind(config: ServeConfig, offer: Offer<'_>) -> BoxFuture<'_, Result<Self, ServeError>> {
        Box::pin(async move {
            let address = config.listen;
            let service = Service::new(config, offer)?;
            let failed = |source| ServeError::Listen { address, source };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            Ok(Self {
                address: listener.local_addr().map_err(failed)?,
                listener,
                service: Arc::new(service),
            })
        })
    }

    /// The address that it listens on, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The languages of programs.
    pub fn languages(&self) -> Vec<&str> {
        ids(&self.service.interpreters)
    }

    /// The served tools, rewards and environments.
    pub fn offers(&self) -> [(&'static str, Vec<&str>); 3] {
        let exposure = &self.service.exposure;
        [
            ("tools", exposure.tools.iter().map(String::as_str).collect()),
            (
                "rewards",
                exposure.rewards.keys().map(String::as_str).collect(),
            ),
            (
                "environments",
                exposure.environments.keys().map(String::as_str).collect(),
            ),
        ]
    }

    /// The tools, rewards and environments that are loaded but not served, each with the reason.
    pub fn withheld(&self) -> impl Iterator<Item = (&str, &str)> {
        let withheld = self.service.exposure.withheld.iter();
        withheld.map(|(name, why)| (name.as_str(), why.as_str()))
    }

    /// Serves until `stop` is ready. Then it accepts no more requests, answers those it has, and returns. Connections
    /// without a request are closed at once. `stopping` is called with the number of requests under way.
    pub async fn run(self, stop: impl Future<Output = ()>, stopping: impl FnOnce(u64)) -> Served {
        let Self {
            listener, service, ..
        } = self;
        let router = TowerToHyperService::new(routes::router(Arc::clone(&service)));
        let places = Arc::new(Semaphore::new(service.config.max_connections));
        let (asked_to_stop, asked) = watch::channel(());
        let mut protocol = http1::Builder::new();
        protocol
            .timer(TokioTimer::new())
            .header_read_timeout(service.config.client)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES);
        let accepting = async {
            loop {
                // The semaphore is never closed.
                let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                    break;
                };
                let Some((stream, local)) = accept(&listener).await else {
                    continue;
                };
                keep_from_hanging(&stream, service.config.client);
                let router = router.clone();
                // A WebSocket goes on when HTTP's part of the connection has ended.
                let held = ConnectionPlace(Arc::new((place, service.metrics.connects())));
                let place = held.clone();
                let handler = service_fn(move |mut request: Request<Incoming>| {
                    let extensions = request.extensions_mut();
                    extensions.insert(LocalAddress { local });
                    extensions.insert(place.clone());
                    router.call(request)
                });
                let served = connection::serve(stream, protocol.clone(), handler, asked.clone());
                tokio::spawn(async move {
                    if let Err(error) = served.await {
                        tracing::debug!(%error, "a connection ended");
                    }
                    drop(held);
                });
            }
        };
        tokio::select! {
            () = accepting => {}
            () = stop => {}
        }
        drop((listener, asked));
        service.stop();
        let under_way = service.metrics.under_way();
        let before = service.metrics.total();
        stopping(under_way);
        asked_to_stop.send_replace(());
        // Each connection holds a receiver until it ends or becomes a WebSocket.
        asked_to_stop.closed().await;
        service.sockets.close();
        service.sockets.wait().await;
        let requests = service.metrics.total();
        Served {
            requests,
            finished: requests - before,
        }
    }
}

/// Accepts a connection. Returns it with the address at which it arrived.
async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    /// Pause until the system may have free descriptors again.
    const PAUSE: Duration = Duration::from_millis(100);
    let stream = match listener.accept().await {
        Ok((stream, _)) => stream,
        Err(error) => {
            // Ignore a connection that was closed again. If descriptors have run out, wait.
            if !matches!(
                error.kind(),
                io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionRefused
            ) {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
            return None;
        }
    };
    let local = stream.local_addr().ok()?;
    Some((stream, local))
}

/// Turns off the delay before sending. On Linux, also lets the system drop a connection whose client does not receive its
/// answer.
fn keep_from_hanging(stream: &TcpStream, client: Duration) {
    let outcome = stream.set_nodelay(true).and_then(|()| {
        let milliseconds = u32::try_from(client.as_millis()).unwrap_or(u32::MAX);
        #[cfg(target_os = "linux")]
        rustix::net::sockopt::set_tcp_user_timeout(stream, milliseconds)?;
        #[cfg(not(target_os = "linux"))]
        let _ = milliseconds;
        Ok(())
    });
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection takes no options");
    }
}
