//! One call's scratch directory, and the hold that a handle or stream has on something in it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::grant::ScratchFiles;
use super::tree::{Inode, ROOT, Tree};
use crate::report::FilesReport;
use crate::wasi::clock;

/// The directory of one call. Handles and streams share it; only one guest ever does.
pub(crate) struct Scratch {
    grant: Arc<ScratchFiles>,
    tree: Mutex<Tree>,
}

impl Scratch {
    pub(crate) fn new(grant: Arc<ScratchFiles>) -> Arc<Self> {
        let tree = Mutex::new(Tree::new(&grant, clock::START));
        Arc::new(Self { grant, tree })
    }

    pub(crate) fn grant(&self) -> &Arc<ScratchFiles> {
        &self.grant
    }

    pub(crate) fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hold on the directory itself.
    pub(crate) fn root(self: &Arc<Self>) -> NodeHandle {
        NodeHandle::new(self, ROOT)
    }

    pub(crate) fn report(&self, succeeded: bool) -> FilesReport {
        let mut tree = self.tree();
        let mut report = FilesReport {
            refused: tree.refused().cloned(),
            ..FilesReport::default()
        };
        if succeeded && !self.grant.outputs.is_empty() {
            report.outputs = tree.take(|file| self.grant.keeps(file));
        }
        report
    }
}

/// Keeps a file or directory alive, with or without a name.
pub(crate) struct NodeHandle {
    scratch: Arc<Scratch>,
    inode: Inode,
}

impl NodeHandle {
    pub(crate) fn new(scratch: &Arc<Scratch>, inode: Inode) -> Self {
        scratch.tree().open(inode);
        Self {
            scratch: Arc::clone(scratch),
            inode,
        }
    }

    pub(crate) fn scratch(&self) -> &Arc<Scratch> {
        &self.scratch
    }

    pub(crate) fn tree(&self) -> MutexGuard<'_, Tree> {
        self.scratch.tree()
    }

    pub(crate) fn inode(&self) -> Inode {
        self.inode
    }
}

impl Clone for NodeHandle {
    fn clone(&self) -> Self {
        Self::new(&self.scratch, self.inode)
    }
}

impl Drop for NodeHandle {
    fn drop(&mut self) {
        self.scratch.tree().close(self.inode);
    }
}
