//! Directory tree in memory: files, their content, and limits on both.
//!
//! Names are in `names.rs`. This module does not know WASI's handles. Its errors are those of WASI, which are those of
//! POSIX.

use std::collections::BTreeMap;
use std::time::Duration;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::grant::ScratchFiles;
use crate::report::LimitReached;

/// The number of a file or directory, valid as long as it lives. Numbers are counted up, so they are the same in every
/// run.
pub(crate) type Inode = u64;

/// The directory that the guest is given.
pub(crate) const ROOT: Inode = 1;

/// An instant of the call's virtual wall clock, since 1970.
pub(crate) type Instant = Duration;

/// Times of the last changes. Reading moves none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) access: Instant,
    /// Last change of the bytes, or of the directory's names.
    pub(crate) modified: Instant,
    /// Last change of the content, these times, the name or the place.
    pub(crate) changed: Instant,
}

#[derive(Debug)]
pub(super) enum Content {
    File(Vec<u8>),
    Directory {
        /// Sorted by name, so every listing is sorted too.
        names: BTreeMap<String, Inode>,
        parent: Inode,
    },
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    /// True if it has a name. A node without one lives while it is open, as in POSIX.
    pub(super) linked: bool,
    open: u32,
    pub(super) times: Times,
}

/// Result of `stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) is_directory: bool,
    /// Size of a file in bytes; 0 for a directory.
    pub(crate) size: u64,
    pub(crate) linked: bool,
    pub(crate) times: Times,
}

/// All files of one call, under the limits of its grant.
pub(crate) struct Tree {
    pub(super) nodes: BTreeMap<Inode, Node>,
    last: Inode,
    bytes: u64,
    most: TreeLimits,
    refused: Option<LimitReached>,
}

#[derive(Clone, Copy)]
pub(super) struct TreeLimits {
    bytes: u64,
    entries: u64,
    pub(super) depth: u32,
}

impl Tree {
    pub(crate) fn new(grant: &ScratchFiles, now: Instant) -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            last: 0,
            bytes: 0,
            most: TreeLimits {
                bytes: grant.bytes,
                entries: grant.entries,
                depth: grant.depth,
            },
            refused: None,
        };
        let root = tree.add(Content::directory(ROOT), now);
        debug_assert_eq!(root, ROOT);
        tree
    }

    /// The last limit that refused something.
    pub(crate) fn refused(&self) -> Option<&LimitReached> {
        self.refused.as_ref()
    }

    pub(super) fn refuse(&mut self, name: &str, value: u64, used: u64) {
        self.refused = Some(LimitReached::new(name, value, used));
    }

    pub(super) fn limits(&self) -> TreeLimits {
        self.most
    }

    /// Returns an error for one more file or directory if the limit is reached.
    pub(super) fn room_for_entry(&mut self) -> Result<(), ErrorCode> {
        // The root is not counted.
        let wanted = self.nodes.len() as u64;
        if wanted > self.most.entries {
            self.refuse("files.entries", self.most.entries, wanted);
            return Err(ErrorCode::Quota);
        }
        Ok(())
    }

    pub(super) fn add(&mut self, content: Content, now: Instant) -> Inode {
        self.last += 1;
        let times = Times {
            access: now,
            modified: now,
            changed: now,
        };
        let node = Node {
            content,
            linked: true,
            open: 0,
            times,
        };
        self.nodes.insert(self.last, node);
        self.last
    }

    /// Removes the last name of a node, and the node itself unless it is open.
    pub(super) fn unlink(&mut self, inode: Inode, now: Instant) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.linked = false;
            node.times.changed = now;
        }
        self.free(inode);
    }

    fn free(&mut self, inode: Inode) {
        let gone = |node: &mut Node| !node.linked && node.open == 0;
        if self.nodes.get_mut(&inode).is_some_and(gone)
            && let Some(node) = self.nodes.remove(&inode)
        {
            self.bytes -= node.size();
        }
    }

    /// Keeps a node alive until [`close`](Self::close), even if its name is removed.
    pub(crate) fn open(&mut self, inode: Inode) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.open += 1;
        }
    }

    pub(crate) fn close(&mut self, inode: Inode) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.open = node.open.saturating_sub(1);
        }
        self.free(inode);
    }

    /// Returns the node of an inode. A node exists while it is open or has a name.
    pub(super) fn node(&self, inode: Inode) -> Result<&Node, ErrorCode> {
        self.nodes.get(&inode).ok_or(ErrorCode::BadDescriptor)
    }

    pub(super) fn node_mut(&mut self, inode: Inode) -> Result<&mut Node, ErrorCode> {
        self.nodes.get_mut(&inode).ok_or(ErrorCode::BadDescriptor)
    }

    pub(crate) fn stat(&self, inode: Inode) -> Result<Stat, ErrorCode> {
        let node = self.node(inode)?;
        Ok(Stat {
            is_directory: node.is_directory(),
            size: node.size(),
            linked: node.linked,
            times: node.times,
        })
    }

    /// Sets the times that are given. The change itself happens `now`.
    pub(crate) fn set_times(
        &mut self,
        inode: Inode,
        access: Option<Instant>,
        modified: Option<Instant>,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let times = &mut self.node_mut(inode)?.times;
        times.access = access.unwrap_or(times.access);
        times.modified = modified.unwrap_or(times.modified);
        times.changed = now;
        Ok(())
    }

    /// At most `most` bytes from `offset` on, and whether the file ends there.
    pub(crate) fn read(
        &self,
        inode: Inode,
        offset: u64,
        most: u64,
    ) -> Result<(&[u8], bool), ErrorCode> {
        let Content::File(bytes) = &self.node(inode)?.content else {
            return Err(ErrorCode::IsDirectory);
        };
        let start = offset.min(bytes.len() as u64);
        let end = start.saturating_add(most).min(bytes.len() as u64);
        Ok((
            &bytes[start as usize..end as usize],
            end == bytes.len() as u64,
        ))
    }

    /// Writes all of `new` at `offset`, or at the end if `offset` is `None`. After an error nothing is written. Returns
    /// the position of the end of the write. Bytes between the old end and `offset` read as zeros and count.
    pub(crate) fn write(
        &mut self,
        inode: Inode,
        offset: Option<u64>,
        new: &[u8],
        now: Instant,
    ) -> Result<u64, ErrorCode> {
        let size = self.file_size(inode)?;
        let start = offset.unwrap_or(size);
        let end = start
            .checked_add(new.len() as u64)
            .ok_or(ErrorCode::FileTooLarge)?;
        if new.is_empty() {
            return Ok(end);
        }
        self.resize(inode, size.max(end), now)?;
        if let Content::File(bytes) = &mut self.node_mut(inode)?.content {
            // Inside: the file was just made that long.
            bytes[start as usize..end as usize].copy_from_slice(new);
        }
        Ok(end)
    }

    /// Cuts a file, or fills it up with zeros.
    pub(crate) fn resize(
        &mut self,
        inode: Inode,
        size: u64,
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let used = self.room_for_size(inode, size)?;
        let most = self.most.bytes;
        let node = self.node_mut(inode)?;
        if let Content::File(bytes) = &mut node.content {
            let size = size as usize;
            if size > bytes.capacity() {
                // Doubled, so that appending costs no copy each time, but never past the limit.
                let longest = size.saturating_add((most - used) as usize);
                let wanted = bytes.len().saturating_mul(2).clamp(size, longest);
                bytes
                    .try_reserve_exact(wanted - bytes.len())
                    .map_err(|_| ErrorCode::InsufficientMemory)?;
            }
            bytes.resize(size, 0);
            if size < bytes.capacity() / 4 {
                bytes.shrink_to_fit();
            }
        }
        node.times.modified = now;
        node.times.changed = now;
        self.bytes = used;
        Ok(())
    }

    /// Returns an error for a position in a file where no byte could be written.
    pub(crate) fn room_for_byte(
        &mut self,
        inode: Inode,
        offset: Option<u64>,
    ) -> Result<(), ErrorCode> {
        let size = self.file_size(inode)?;
        let end = offset.unwrap_or(size).saturating_add(1);
        self.room_for_size(inode, size.max(end)).map(drop)
    }

    /// Returns the total number of bytes of all files if this one had that size. Returns an error if that is too much.
    fn room_for_size(&mut self, inode: Inode, size: u64) -> Result<u64, ErrorCode> {
        let old = self.file_size(inode)?;
        let used = (self.bytes - old).saturating_add(size);
        if used > self.most.bytes && size > old {
            self.refuse("files.bytes", self.most.bytes, used);
            return Err(ErrorCode::InsufficientSpace);
        }
        Ok(used)
    }

    fn file_size(&self, inode: Inode) -> Result<u64, ErrorCode> {
        let node = self.node(inode)?;
        if node.is_directory() {
            return Err(ErrorCode::IsDirectory);
        }
        Ok(node.size())
    }

    /// The first name after `after` in a directory, and whether it is a directory's.
    pub(crate) fn next_name(
        &self,
        directory: Inode,
        after: Option<&str>,
    ) -> Result<Option<(String, bool)>, ErrorCode> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        let names = self.names(directory)?;
        let Some((name, inode)) = names.range::<str, _>((from, Unbounded)).next() else {
            return Ok(None);
        };
        Ok(Some((name.clone(), self.node(*inode)?.is_directory())))
    }

    pub(super) fn names(&self, directory: Inode) -> Result<&BTreeMap<String, Inode>, ErrorCode> {
        match &self.node(directory)?.content {
            Content::Directory { names, .. } => Ok(names),
            Content::File(_) => Err(ErrorCode::NotDirectory),
        }
    }

    /// Takes out all files whose path `keep` accepts, by path.
    pub(crate) fn take(&mut self, keep: impl Fn(&str) -> bool) -> BTreeMap<String, Vec<u8>> {
        let mut taken = BTreeMap::new();
        let mut directories = vec![(String::new(), ROOT)];
        while let Some((prefix, directory)) = directories.pop() {
            let names = self.names(directory).cloned().unwrap_or_default();
            for (name, inode) in names {
                let path = format!("{prefix}{name}");
                match self.nodes.get_mut(&inode).map(|node| &mut node.content) {
                    Some(Content::Directory { .. }) => {
                        directories.push((format!("{path}/"), inode));
                    }
                    Some(Content::File(bytes)) if keep(&path) => {
                        let mut bytes = std::mem::take(bytes);
                        bytes.shrink_to_fit();
                        self.bytes -= bytes.len() as u64;
                        taken.insert(path, bytes);
                    }
                    _ => {}
                }
            }
        }
        taken
    }
}

impl Content {
    pub(super) fn directory(parent: Inode) -> Self {
        Self::Directory {
            names: BTreeMap::new(),
            parent,
        }
    }
}

impl Node {
    pub(super) fn is_directory(&self) -> bool {
        matches!(self.content, Content::Directory { .. })
    }

    fn size(&self) -> u64 {
        match &self.content {
            Content::File(bytes) => bytes.len() as u64,
            Content::Directory { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::Opening;
    use super::*;

    const NOW: Instant = Instant::from_secs(5);

    fn tree_with_file(bytes: u64) -> (Tree, Inode) {
        let grant = ScratchFiles {
            bytes,
            ..ScratchFiles::default()
        };
        let mut tree = Tree::new(&grant, Instant::from_secs(1));
        let create = Opening {
            create: true,
            write: true,
            ..Opening::default()
        };
        let file = tree.open_at(ROOT, "f", create, NOW).unwrap();
        (tree, file)
    }

    #[test]
    fn a_hole_reads_as_zeros_and_counts() {
        let (mut tree, file) = tree_with_file(10);
        assert_eq!(tree.write(file, Some(4), b"ab", NOW), Ok(6));
        assert_eq!(tree.read(file, 0, 99), Ok((&b"\0\0\0\0ab"[..], true)));
        assert_eq!(tree.read(file, 3, 2), Ok((&b"\0a"[..], false)));
        assert_eq!(tree.read(file, u64::MAX, 1), Ok((&b""[..], true)));
        assert_eq!(tree.resize(file, 10, NOW), Ok(()));
        assert_eq!(
            tree.write(file, None, b"x", NOW),
            Err(ErrorCode::InsufficientSpace)
        );
        assert_eq!(
            tree.write(file, Some(9), b"x", NOW),
            Ok(10),
            "inside is always room"
        );
    }

    #[test]
    fn a_terabyte_is_refused_before_anything_is_taken() {
        let (mut tree, file) = tree_with_file(16 << 20);
        let far = 1 << 40;
        for refused in [
            tree.write(file, Some(far), b"x", NOW).map(drop),
            tree.resize(file, far, NOW),
            tree.resize(file, u64::MAX, NOW),
        ] {
            assert_eq!(refused, Err(ErrorCode::InsufficientSpace));
        }
        assert_eq!(
            tree.write(file, Some(u64::MAX), b"x", NOW),
            Err(ErrorCode::FileTooLarge)
        );
        // Writing no bytes changes nothing, at any position.
        assert_eq!(tree.write(file, Some(far), b"", NOW), Ok(far));
        let Content::File(bytes) = &tree.node(file).unwrap().content else {
            panic!("a file");
        };
        assert_eq!(bytes.capacity(), 0);
        let refused = tree.refused().unwrap();
        assert_eq!(
            (refused.name.as_str(), refused.value),
            ("files.bytes", 16 << 20)
        );
        assert_eq!(refused.used, u64::MAX);
    }

    #[test]
    fn memory_stays_near_the_limit_and_is_given_back() {
        let (mut tree, file) = tree_with_file(1_000_000);
        for _ in 0..1_000 {
            tree.write(file, None, &[1; 1_000], NOW).unwrap();
        }
        let capacity = |tree: &Tree| match &tree.node(file).unwrap().content {
            Content::File(bytes) => bytes.capacity(),
            Content::Directory { .. } => unreachable!(),
        };
        assert_eq!(capacity(&tree), 1_000_000);
        tree.resize(file, 10, NOW).unwrap();
        assert!(capacity(&tree) < 1_000);
    }

    #[test]
    fn times_move_with_changes_and_not_with_reading() {
        let (mut tree, file) = tree_with_file(100);
        let later = Instant::from_secs(9);
        tree.read(file, 0, 1).unwrap();
        let times = |tree: &Tree, inode| tree.stat(inode).unwrap().times;
        let all = |time| Times {
            access: time,
            modified: time,
            changed: time,
        };
        assert_eq!(times(&tree, file), all(NOW));
        tree.write(file, None, b"x", later).unwrap();
        assert_eq!(
            times(&tree, file),
            Times {
                access: NOW,
                ..all(later)
            }
        );
        // Making the file changed the directory; writing it did not.
        assert_eq!(times(&tree, ROOT).modified, NOW);
        assert_eq!(times(&tree, ROOT).access, Instant::from_secs(1));
        tree.set_times(file, Some(Instant::ZERO), None, later)
            .unwrap();
        assert_eq!(
            times(&tree, file),
            Times {
                access: Instant::ZERO,
                ..all(later)
            }
        );
    }
}
