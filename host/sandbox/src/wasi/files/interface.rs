//! `wasi:filesystem` over a scratch directory.
//!
//! The traits are those that wasmtime-wasi implements for real directories. Their handles have its types, but a handle
//! is only an index into the store's table, and the values there are this crate's.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::Result;
use wasmtime::component::{HasData, Resource, ResourceTable, ResourceTableError};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
    DirectoryEntryStream, ErrorCode, Filesize, HostDescriptor, HostDirectoryEntryStream,
    MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::handle::{NodeHandle, Scratch};
use super::path::Opening;
use super::stream::{CHUNK, Reader, Writer};
use super::tree::{Inode, Instant, Stat, Tree};
use crate::wasi::clock::GuestClock;

/// The value of a guest's `descriptor`.
struct Handle {
    held: NodeHandle,
    flags: DescriptorFlags,
}

/// The value of a guest's `directory-entry-stream`: a place in the sorted names, so that a listing costs the host no
/// memory.
struct Listing {
    held: NodeHandle,
    after: Option<String>,
}

/// View of a store for the file system interfaces.
pub(crate) struct ScratchView<'a> {
    pub(crate) scratch: Option<&'a Arc<Scratch>>,
    pub(crate) clock: &'a Arc<GuestClock>,
    pub(crate) table: &'a mut ResourceTable,
}

/// Gives the linker access to [`ScratchView`].
pub(crate) struct HasScratch;

impl HasData for HasScratch {
    type Data<'a> = ScratchView<'a>;
}

/// The same table entry under the type that the bindings have for it.
fn retyped<Ours: 'static, Theirs: 'static>(resource: &Resource<Ours>) -> Resource<Theirs> {
    Resource::new_own(resource.rep())
}

impl ScratchView<'_> {
    fn handle(&self, descriptor: &Resource<Descriptor>) -> Result<&Handle, ResourceTableError> {
        self.table.get(&Resource::new_borrow(descriptor.rep()))
    }

    fn push(&mut self, handle: Handle) -> Result<Resource<Descriptor>, ResourceTableError> {
        self.table.push(handle).map(|resource| retyped(&resource))
    }

    /// The current time, for a change. Reading it moves the virtual clock.
    fn now(&self) -> FsResult<Instant> {
        self.clock.wall().map_err(FsError::trap)
    }

    /// Changes names below a directory.
    fn change(
        &self,
        descriptor: &Resource<Descriptor>,
        change: impl FnOnce(&mut Tree, Inode, Instant) -> Result<(), ErrorCode>,
    ) -> FsResult<()> {
        let now = self.now()?;
        let base = &self.handle(descriptor)?.held;
        change(&mut base.tree(), base.inode(), now)?;
        Ok(())
    }

    /// The new value of a time; `None` leaves it.
    fn time(timestamp: NewTimestamp, now: Instant) -> FsResult<Option<Instant>> {
        match timestamp {
            NewTimestamp::NoChange => Ok(None),
            NewTimestamp::Now => Ok(Some(now)),
            NewTimestamp::Timestamp(time) if time.nanoseconds < 1_000_000_000 => {
                Ok(Some(Duration::new(time.seconds, time.nanoseconds)))
            }
            NewTimestamp::Timestamp(_) => Err(ErrorCode::Invalid.into()),
        }
    }
}

impl Handle {
    /// The file, if it was opened for this.
    fn file(&self, needs: DescriptorFlags) -> Result<&NodeHandle, ErrorCode> {
        if self.held.tree().stat(self.held.inode())?.is_directory {
            Err(ErrorCode::IsDirectory)
        } else if self.flags.contains(needs) {
            Ok(&self.held)
        } else {
            Err(ErrorCode::BadDescriptor)
        }
    }

    fn find(&self, path: &str) -> Result<NodeHandle, ErrorCode> {
        let inode = self.held.tree().find(self.held.inode(), path)?;
        Ok(NodeHandle::new(self.held.scratch(), inode))
    }
}

impl NodeHandle {
    fn stat(&self) -> Result<Stat, ErrorCode> {
        self.tree().stat(self.inode())
    }

    /// The inode number, in the form that WASI has for it.
    fn hash(&self) -> MetadataHashValue {
        MetadataHashValue {
            lower: self.inode(),
            upper: 0,
        }
    }
}

fn datetime(time: Instant) -> Datetime {
    Datetime {
        seconds: time.as_secs(),
        nanoseconds: time.subsec_nanos(),
    }
}

fn kind(is_directory: bool) -> DescriptorType {
    if is_directory {
        DescriptorType::Directory
    } else {
        DescriptorType::RegularFile
    }
}

impl From<Stat> for DescriptorStat {
    fn from(stat: Stat) -> Self {
        Self {
            type_: kind(stat.is_directory),
            link_count: u64::from(stat.linked),
            size: stat.size,
            data_access_timestamp: Some(datetime(stat.times.access)),
            data_modification_timestamp: Some(datetime(stat.times.modified)),
            status_change_timestamp: Some(datetime(stat.times.changed)),
        }
    }
}

impl preopens::Host for ScratchView<'_> {
    fn get_directories(&mut self) -> Result<Vec<(Resource<Descriptor>, String)>> {
        let Some(scratch) = self.scratch else {
            return Ok(Vec::new());
        };
        let handle = Handle {
            held: scratch.root(),
            flags: DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY,
        };
        let at = scratch.grant().at.clone();
        Ok(vec![(self.push(handle)?, at)])
    }
}

impl types::Host for ScratchView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> Result<Option<ErrorCode>> {
        Ok(self.table.get(&error)?.downcast_ref().copied())
    }
}

impl HostDescriptor for ScratchView<'_> {
    fn read_via_stream(
        &mut self,
        descriptor: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        let held = self.handle(&descriptor)?.file(DescriptorFlags::READ)?;
        let stream: DynInputStream = Box::new(Reader {
            held: held.clone(),
            position: offset,
        });
        Ok(self.table.push(stream)?)
    }

    fn write_via_stream(
        &mut self,
        descriptor: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.writer(&descriptor, Some(offset))
    }

    fn append_via_stream(
        &mut self,
        descriptor: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.writer(&descriptor, None)
    }

    async fn advise(
        &mut self,
        descriptor: Resource<Descriptor>,
        _offset: Filesize,
        _length: Filesize,
        _advice: Advice,
    ) -> FsResult<()> {
        self.handle(&descriptor)?.file(DescriptorFlags::empty())?;
        Ok(())
    }

    async fn sync_data(&mut self, descriptor: Resource<Descriptor>) -> FsResult<()> {
        self.sync(descriptor).await
    }

    async fn sync(&mut self, descriptor: Resource<Descriptor>) -> FsResult<()> {
        // Nothing is ever pending, because files are in memory.
        self.handle(&descriptor)?;
        Ok(())
    }

    async fn get_flags(&mut self, descriptor: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        Ok(self.handle(&descriptor)?.flags)
    }

    async fn get_type(&mut self, descriptor: Resource<Descriptor>) -> FsResult<DescriptorType> {
        let stat = self.handle(&descriptor)?.held.stat()?;
        Ok(kind(stat.is_directory))
    }

    async fn set_size(&mut self, descriptor: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        let now = self.now()?;
        let held = self.handle(&descriptor)?.file(DescriptorFlags::WRITE)?;
        held.tree().resize(held.inode(), size, now)?;
        Ok(())
    }

    async fn set_times(
        &mut self,
        descriptor: Resource<Descriptor>,
        access: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let now = self.now()?;
        let (access, modified) = (Self::time(access, now)?, Self::time(modified, now)?);
        let held = &self.handle(&descriptor)?.held;
        held.tree().set_times(held.inode(), access, modified, now)?;
        Ok(())
    }

    async fn read(
        &mut self,
        descriptor: Resource<Descriptor>,
        length: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        let held = self.handle(&descriptor)?.file(DescriptorFlags::READ)?;
        let tree = held.tree();
        let (bytes, end) = tree.read(held.inode(), offset, CHUNK.min(length))?;
        Ok((bytes.to_vec(), end))
    }

    async fn write(
        &mut self,
        descriptor: Resource<Descriptor>,
        bytes: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        let now = self.now()?;
        let held = self.handle(&descriptor)?.file(DescriptorFlags::WRITE)?;
        held.tree().write(held.inode(), Some(offset), &bytes, now)?;
        Ok(bytes.len() as u64)
    }

    async fn read_directory(
        &mut self,
        descriptor: Resource<Descriptor>,
    ) -> FsResult<Resource<DirectoryEntryStream>> {
        let held = self.handle(&descriptor)?.held.clone();
        if !held.stat()?.is_directory {
            return Err(ErrorCode::NotDirectory.into());
        }
        let listing = self.table.push(Listing { held, after: None })?;
        Ok(retyped(&listing))
    }

    async fn create_directory_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.change(&descriptor, |tree, base, now| {
            tree.create_directory_at(base, &path, now)
        })
    }

    async fn stat(&mut self, descriptor: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        Ok(self.handle(&descriptor)?.held.stat()?.into())
    }

    async fn stat_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        _follow: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        Ok(self.handle(&descriptor)?.find(&path)?.stat()?.into())
    }

    async fn set_times_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        _follow: PathFlags,
        path: String,
        access: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let now = self.now()?;
        let (access, modified) = (Self::time(access, now)?, Self::time(modified, now)?);
        let found = self.handle(&descriptor)?.find(&path)?;
        found
            .tree()
            .set_times(found.inode(), access, modified, now)?;
        Ok(())
    }

    async fn link_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        _follow: PathFlags,
        old_path: String,
        _new_descriptor: Resource<Descriptor>,
        _new_path: String,
    ) -> FsResult<()> {
        // POSIX has EPERM for a file system without links.
        self.handle(&descriptor)?.find(&old_path)?;
        Err(ErrorCode::NotPermitted.into())
    }

    async fn open_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        _follow: PathFlags,
        path: String,
        how: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let now = self.now()?;
        let opening = Opening {
            create: how.contains(OpenFlags::CREATE),
            exclusive: how.contains(OpenFlags::EXCLUSIVE),
            truncate: how.contains(OpenFlags::TRUNCATE),
            directory: how.contains(OpenFlags::DIRECTORY),
            write: flags.contains(DescriptorFlags::WRITE),
        };
        let base = &self.handle(&descriptor)?.held;
        let inode = base.tree().open_at(base.inode(), &path, opening, now)?;
        let held = NodeHandle::new(base.scratch(), inode);
        let flags = if held.stat()?.is_directory {
            // A directory that can be opened here can be changed, as libraries expect.
            DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY
        } else {
            flags & (DescriptorFlags::READ | DescriptorFlags::WRITE)
        };
        Ok(self.push(Handle { held, flags })?)
    }

    async fn readlink_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        path: String,
    ) -> FsResult<String> {
        self.handle(&descriptor)?.find(&path)?;
        // The file exists and is not a link, because there are no links.
        Err(ErrorCode::Invalid.into())
    }

    async fn remove_directory_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.change(&descriptor, |tree, base, now| {
            tree.remove_directory_at(base, &path, now)
        })
    }

    async fn rename_at(
        &mut self,
        old: Resource<Descriptor>,
        old_path: String,
        new: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let now = self.now()?;
        let old = &self.handle(&old)?.held;
        let new = self.handle(&new)?.held.inode();
        old.tree()
            .rename_at((old.inode(), &old_path), (new, &new_path), now)?;
        Ok(())
    }

    async fn symlink_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        _target: String,
        _path: String,
    ) -> FsResult<()> {
        self.handle(&descriptor)?;
        Err(ErrorCode::NotPermitted.into())
    }

    async fn unlink_file_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.change(&descriptor, |tree, base, now| {
            tree.unlink_file_at(base, &path, now)
        })
    }

    async fn is_same_object(
        &mut self,
        one: Resource<Descriptor>,
        other: Resource<Descriptor>,
    ) -> Result<bool> {
        let one = self.handle(&one)?.held.inode();
        Ok(one == self.handle(&other)?.held.inode())
    }

    async fn metadata_hash(
        &mut self,
        descriptor: Resource<Descriptor>,
    ) -> FsResult<MetadataHashValue> {
        Ok(self.handle(&descriptor)?.held.hash())
    }

    async fn metadata_hash_at(
        &mut self,
        descriptor: Resource<Descriptor>,
        _follow: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        Ok(self.handle(&descriptor)?.find(&path)?.hash())
    }

    fn drop(&mut self, descriptor: Resource<Descriptor>) -> Result<()> {
        self.table
            .delete(Resource::<Handle>::new_own(descriptor.rep()))?;
        Ok(())
    }
}

impl ScratchView<'_> {
    fn writer(
        &mut self,
        descriptor: &Resource<Descriptor>,
        position: Option<u64>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let held = self.handle(descriptor)?.file(DescriptorFlags::WRITE)?;
        // Some C libraries use one code, EIO, for every failure of a stream. Here they report that there is no space.
        held.tree().room_for_byte(held.inode(), position)?;
        let stream: DynOutputStream = Box::new(Writer {
            held: held.clone(),
            position,
            clock: Arc::clone(self.clock),
        });
        Ok(self.table.push(stream)?)
    }
}

impl HostDirectoryEntryStream for ScratchView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let listing = self
            .table
            .get_mut(&Resource::<Listing>::new_borrow(stream.rep()))?;
        let held = &listing.held;
        let next = held
            .tree()
            .next_name(held.inode(), listing.after.as_deref())?;
        Ok(next.map(|(name, is_directory)| {
            listing.after = Some(name.clone());
            DirectoryEntry {
                type_: kind(is_directory),
                name,
            }
        }))
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> Result<()> {
        self.table
            .delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}
