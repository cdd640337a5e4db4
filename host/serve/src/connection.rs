//! Serves one connection to its end. A request is in hand from the end of its head until its whole answer is handed to
//! the system. When the service stops, a connection without a request in hand ends at once.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::rt::ReadBufCursor;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Serves a connection until it ends, or until `stop` changes and no request is in hand.
pub(crate) async fn serve<S>(
    stream: TcpStream,
    protocol: http1::Builder,
    service: S,
    mut stop: watch::Receiver<()>,
) -> Result<(), hyper::Error>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = std::convert::Infallible>,
{
    let traffic = Arc::new(Traffic::default());
    let takes = Arc::clone(&traffic);
    let handler = service_fn(move |request| {
        let taken = InHand::new(&takes);
        let answer = service.call(request);
        async move {
            answer
                .await
                .map(|answer| answer.map(|body| Delivered { body, taken }))
        }
    });
    let watched = Watched {
        stream: TokioIo::new(stream),
        traffic: Arc::clone(&traffic),
    };
    let mut connection = pin!(protocol.serve_connection(watched, handler).with_upgrades());
    tokio::select! {
        ended = connection.as_mut() => return ended,
        _ = stop.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    std::future::poll_fn(|context| match connection.as_mut().poll(context) {
        // Only a part of a head can be missing here.
        Poll::Pending if traffic.is_idle() => Poll::Ready(Ok(())),
        other => other,
    })
    .await
}

/// The state of a connection, shared by its reading and its writing end.
#[derive(Debug, Default)]
struct Traffic {
    /// Number of requests whose answers are not completely written.
    in_hand: AtomicUsize,
    /// True if the system has no room for the bytes to write.
    is_blocked: AtomicBool,
}

impl Traffic {
    /// True if the client waits for no answer.
    fn is_idle(&self) -> bool {
        self.in_hand.load(Ordering::Relaxed) == 0 && !self.is_blocked.load(Ordering::Relaxed)
    }

    fn noting<T>(&self, written: Poll<T>) -> Poll<T> {
        self.is_blocked
            .store(written.is_pending(), Ordering::Relaxed);
        written
    }
}

/// A request in hand, until it is dropped.
struct InHand(Arc<Traffic>);

impl InHand {
    fn new(traffic: &Arc<Traffic>) -> Self {
        traffic.in_hand.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(traffic))
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.in_hand.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer. It is dropped when its last part is on its way.
struct Delivered {
    body: Body,
    #[expect(dead_code, reason = "held for its drop")]
    taken: InHand,
}

impl hyper::body::Body for Delivered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that notes when the system accepts no more bytes. HTTP/1 writes until everything is written or the stream
/// is full.
struct Watched {
    stream: TokioIo<TcpStream>,
    traffic: Arc<Traffic>,
}

impl hyper::rt::Read for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl hyper::rt::Write for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.traffic.noting(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.traffic.noting(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
