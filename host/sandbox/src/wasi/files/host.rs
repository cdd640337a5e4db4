//! A real directory of the host: wasmtime-wasi's own file system, with its writes counted.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use wasmtime::Result;
use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::filesystem::WasiFilesystemCtxView;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
    DirectoryEntryStream, ErrorCode, Filesize, HostDescriptor, HostDirectoryEntryStream,
    MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, FsError, FsResult, OutputStream, Pollable, StreamResult,
};
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

use crate::report::{FilesReport, Stopped};

/// Path of the host's directory in the guest.
const AT: &str = "/host";

/// The host's directory in one call.
pub(crate) struct HostDirectory {
    path: Arc<Path>,
    writes: AtomicU64,
    bytes: AtomicU64,
}

impl HostDirectory {
    pub(crate) fn new(path: Arc<Path>) -> Arc<Self> {
        Arc::new(Self {
            path,
            writes: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// Opens it for a guest. If that fails nothing is preopened, and the guest's call ends when it asks for the
    /// directory: see [`preopens::Host`] below.
    pub(crate) fn preopen(&self, builder: &mut WasiCtxBuilder) {
        if let Err(error) = builder.preopened_dir(&self.path, AT, FsPerms::ReadWrite) {
            tracing::warn!(path = %self.path.display(), "the host directory cannot be opened: {error:#}");
        }
    }

    pub(crate) fn report(&self) -> FilesReport {
        FilesReport {
            host_writes: self.writes.load(Ordering::Relaxed),
            host_bytes_written: self.bytes.load(Ordering::Relaxed),
            ..FilesReport::default()
        }
    }

    fn count(&self, bytes: u64) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// View of a store for the host's directory: wasmtime-wasi's file system, and the counter of its writes.
pub(crate) struct HostView<'a> {
    pub(crate) inner: WasiFilesystemCtxView<'a>,
    pub(crate) directory: Option<Arc<HostDirectory>>,
}

/// Gives the linker access to [`HostView`].
pub(crate) struct HasHost;

impl HasData for HasHost {
    type Data<'a> = HostView<'a>;
}

impl HostView<'_> {
    fn count(&self, bytes: u64) {
        if let Some(directory) = &self.directory {
            directory.count(bytes);
        }
    }

    /// Puts a counter between a guest and the stream it writes to.
    fn counted(
        &mut self,
        stream: Resource<DynOutputStream>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let Some(directory) = self.directory.clone() else {
            return Ok(stream);
        };
        let inner = self.inner.table.delete(stream)?;
        let stream: DynOutputStream = Box::new(Counted { inner, directory });
        Ok(self.inner.table.push(stream)?)
    }
}

/// A stream whose writes are counted.
struct Counted {
    inner: DynOutputStream,
    directory: Arc<HostDirectory>,
}

#[async_trait::async_trait]
impl Pollable for Counted {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[async_trait::async_trait]
impl OutputStream for Counted {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let length = bytes.len() as u64;
        self.inner.write(bytes)?;
        self.directory.count(length);
        Ok(())
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        let length = bytes.len() as u64;
        self.inner.blocking_write_and_flush(bytes).await?;
        self.directory.count(length);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

impl preopens::Host for HostView<'_> {
    fn get_directories(&mut self) -> Result<Vec<(Resource<Descriptor>, String)>> {
        let directories = preopens::Host::get_directories(&mut self.inner)?;
        if directories.is_empty() {
            return Err(Stopped::unavailable("its directory of the host cannot be opened").into());
        }
        Ok(directories)
    }
}

impl types::Host for HostView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> Result<ErrorCode> {
        types::Host::convert_error_code(&mut self.inner, error)
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> Result<Option<ErrorCode>> {
        types::Host::filesystem_error_code(&mut self.inner, error)
    }
}

/// Passes functions on to wasmtime-wasi, and counts writes that succeed.
macro_rules! hand_on {
    ($($what:ident $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        async fn $name(
            &mut self,
            descriptor: Resource<Descriptor>,
            $($argument: $type),*
        ) -> $result {
            let done = HostDescriptor::$name(&mut self.inner, descriptor, $($argument),*).await;
            hand_on!(@$what self, done);
            done
        }
    )*};
    (@read $self:ident, $done:ident) => {};
    (@write $self:ident, $done:ident) => {
        if $done.is_ok() {
            $self.count(0);
        }
    };
}

impl HostDescriptor for HostView<'_> {
    hand_on! {
        read advise(offset: Filesize, length: Filesize, advice: Advice) -> FsResult<()>;
        read sync_data() -> FsResult<()>;
        read get_flags() -> FsResult<DescriptorFlags>;
        read get_type() -> FsResult<DescriptorType>;
        read read(length: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)>;
        read read_directory() -> FsResult<Resource<DirectoryEntryStream>>;
        read sync() -> FsResult<()>;
        read stat() -> FsResult<DescriptorStat>;
        read stat_at(follow: PathFlags, path: String) -> FsResult<DescriptorStat>;
        read readlink_at(path: String) -> FsResult<String>;
        read is_same_object(other: Resource<Descriptor>) -> Result<bool>;
        read metadata_hash() -> FsResult<MetadataHashValue>;
        read metadata_hash_at(follow: PathFlags, path: String) -> FsResult<MetadataHashValue>;
        write set_size(size: Filesize) -> FsResult<()>;
        write set_times(access: NewTimestamp, modified: NewTimestamp) -> FsResult<()>;
        write set_times_at(follow: PathFlags, path: String, access: NewTimestamp, modified: NewTimestamp) -> FsResult<()>;
        write create_directory_at(path: String) -> FsResult<()>;
        write link_at(follow: PathFlags, old: String, new: Resource<Descriptor>, path: String) -> FsResult<()>;
        write remove_directory_at(path: String) -> FsResult<()>;
        write rename_at(old: String, new: Resource<Descriptor>, path: String) -> FsResult<()>;
        write symlink_at(target: String, path: String) -> FsResult<()>;
        write unlink_file_at(path: String) -> FsResult<()>;
    }

    async fn write(
        &mut self,
        descriptor: Resource<Descriptor>,
        bytes: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        let written = HostDescriptor::write(&mut self.inner, descriptor, bytes, offset).await?;
        self.count(written);
        Ok(written)
    }

    async fn open_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        follow: PathFlags,
        path: String,
        how: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let opened =
            HostDescriptor::open_at(&mut self.inner, descriptor, follow, path, how, flags).await?;
        if how.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE) {
            self.count(0);
        }
        Ok(opened)
    }

    fn read_via_stream(
        &mut self,
        descriptor: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        HostDescriptor::read_via_stream(&mut self.inner, descriptor, offset)
    }

    fn write_via_stream(
        &mut self,
        descriptor: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = HostDescriptor::write_via_stream(&mut self.inner, descriptor, offset)?;
        self.counted(stream)
    }

    fn append_via_stream(
        &mut self,
        descriptor: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = HostDescriptor::append_via_stream(&mut self.inner, descriptor)?;
        self.counted(stream)
    }

    fn drop(&mut self, descriptor: Resource<Descriptor>) -> Result<()> {
        HostDescriptor::drop(&mut self.inner, descriptor)
    }
}

impl HostDirectoryEntryStream for HostView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        HostDirectoryEntryStream::read_directory_entry(&mut self.inner, stream).await
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> Result<()> {
        HostDirectoryEntryStream::drop(&mut self.inner, stream)
    }
}
