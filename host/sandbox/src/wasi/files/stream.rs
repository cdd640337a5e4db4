//! Files as streams: `read-via-stream`, `write-via-stream` and `append-via-stream`.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use super::handle::NodeHandle;
use crate::wasi::clock::GuestClock;

/// Maximum number of bytes of one `read` or `write`. It also bounds the host's allocation for them and for
/// `write-zeroes`.
pub(crate) const CHUNK: u64 = 64 << 10;

/// Reads from a position to the end of the file, which may move meanwhile.
pub(crate) struct Reader {
    pub(crate) held: NodeHandle,
    pub(crate) position: u64,
}

#[async_trait::async_trait]
impl Pollable for Reader {
    async fn ready(&mut self) {}
}

#[async_trait::async_trait]
impl InputStream for Reader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let tree = self.held.tree();
        let (bytes, _) = tree
            .read(self.held.inode(), self.position, CHUNK.min(size as u64))
            .map_err(|error| StreamError::LastOperationFailed(error.into()))?;
        if bytes.is_empty() && size > 0 {
            return Err(StreamError::Closed);
        }
        self.position += bytes.len() as u64;
        Ok(Bytes::copy_from_slice(bytes))
    }
}

/// Writes from a position on, or always at the end. A write that is refused changes nothing, and
/// the next may succeed: a guest that makes room can continue.
pub(crate) struct Writer {
    pub(crate) held: NodeHandle,
    /// `None` if it appends.
    pub(crate) position: Option<u64>,
    pub(crate) clock: Arc<GuestClock>,
}

#[async_trait::async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {}
}

#[async_trait::async_trait]
impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let now = self.clock.wall().map_err(StreamError::Trap)?;
        let end = self
            .held
            .tree()
            .write(self.held.inode(), self.position, &bytes, now)
            .map_err(|error| StreamError::LastOperationFailed(error.into()))?;
        if let Some(position) = &mut self.position {
            *position = end;
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CHUNK as usize)
    }
}
