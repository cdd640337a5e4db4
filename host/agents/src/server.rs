//! Accepts connections of agents, up to a limit.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Number of connections that may be open at once. Further ones wait.
const MAX_CONNECTIONS: usize = 2_048;
/// Time in which the head of a request has to arrive.
const HEAD: Duration = Duration::from_secs(30);
/// Pause after an error, until the system may have free descriptors again.
const PAUSE: Duration = Duration::from_millis(100);

/// An address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct CannotListen {
    address: SocketAddr,
    source: io::Error,
}

/// A listening service. It accepts connections from the first [`Server::serve`] on. Dropping it ends the service.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    router: Router,
    /// Taken by the task that accepts connections.
    listener: Mutex<Option<std::net::TcpListener>>,
    accepting: OnceLock<JoinHandle<()>>,
}

impl Server {
    /// Listens. This needs no runtime.
    pub(crate) fn bind(address: SocketAddr, router: Router) -> Result<Self, CannotListen> {
        let bind = || -> io::Result<_> {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (bound, listener) = bind().map_err(|source| CannotListen { address, source })?;
        Ok(Self {
            address: bound,
            router,
            listener: Mutex::new(Some(listener)),
            accepting: OnceLock::new(),
        })
    }

    /// Accepts connections in the background, on the runtime of the first caller.
    pub(crate) fn serve(&self) -> Result<(), CannotListen> {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = listener.take() {
            let listener = TcpListener::from_std(listener).map_err(|source| CannotListen {
                address: self.address,
                source,
            })?;
            let accepting = tokio::spawn(accept(listener, self.router.clone()));
            self.accepting.get_or_init(|| accepting);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(accepting) = self.accepting.get() {
            accepting.abort();
        }
    }
}

async fn accept(listener: TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(HEAD);
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = protocol.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(place);
        });
    }
}
