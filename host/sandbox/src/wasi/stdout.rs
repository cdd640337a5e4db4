//! Standard output and error of a guest, kept within limits.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use crate::record::Record;
use crate::report::{Ending, LimitReached, Stopped, Stream};

/// Output stream of a guest. It is never full and never waits; beyond the hard limit it ends the call.
#[derive(Clone)]
pub(crate) struct GuestOutput {
    record: Arc<Record>,
    stream: Stream,
}

impl GuestOutput {
    /// Maximum number of bytes of one `write`. It also bounds the host's allocation for `write-zeroes`.
    const CHUNK: usize = 64 << 10;

    pub(crate) fn new(record: Arc<Record>, stream: Stream) -> Self {
        Self { record, stream }
    }

    fn print(&self, bytes: &[u8]) -> Result<(), Stopped> {
        Self::print_to(&self.record, self.stream, bytes)
    }

    /// Keeps printed bytes, or ends the call if they are too many.
    pub(crate) fn print_to(record: &Record, stream: Stream, bytes: &[u8]) -> Result<(), Stopped> {
        if let Some(tee) = record.tee() {
            tee.show(stream, bytes);
        }
        let output = match stream {
            Stream::Stdout => &record.stdout,
            Stream::Stderr => &record.stderr,
        };
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.push(bytes);
        let stop = record.limits().output_stop_bytes;
        if output.total_bytes() <= stop {
            return Ok(());
        }
        let limit = LimitReached::new("output_stop_bytes", stop, output.total_bytes());
        let reason = format!("the plugin printed more than it may ({limit})");
        Err(Stopped::by_limit(Ending::OutputLimit, reason, limit))
    }
}

impl IsTerminal for GuestOutput {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestOutput {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for GuestOutput {
    async fn ready(&mut self) {}
}

impl OutputStream for GuestOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.print(&bytes)
            .map_err(|stopped| StreamError::Trap(stopped.into()))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(Self::CHUNK)
    }
}

impl AsyncWrite for GuestOutput {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(
            self.print(bytes)
                .map(|()| bytes.len())
                .map_err(io::Error::other),
        )
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
