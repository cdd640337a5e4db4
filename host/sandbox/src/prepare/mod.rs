//! Preparation: from an author's component to the one that calls start from.
//!
//! - `component`: identity, imports and exports
//! - `component_file`: the same of a file, without keeping its bytes
//! - `attachment`: data behind a component in its file
//! - `job`: one component to prepare, and the result
//! - `snapshot`: `init` run once, its memory kept
//! - `segments`: fewer data segments in a snapshot
//! - `split`: a snapshot as code, which others share, and an image of its memory
//! - `compile`: preparing and compiling in this process
//! - `process`: the same in a child process
//! - `error`: reasons that a component is not loaded

mod attachment;
mod compile;
mod component;
mod component_file;
mod error;
mod job;
pub mod process;
mod segments;
mod snapshot;
mod split;

pub use attachment::Attachment;
pub(crate) use compile::{init_key, key, make};
pub use component::ComponentInfo;
pub use component_file::{ComponentFile, ComponentSource};
pub use error::LoadError;
pub(crate) use job::{Earlier, Entry, InitEntry, Job, Made};
pub use job::{InitMode, Preparation};
pub(crate) use snapshot::describe;
pub(crate) use split::IMAGE;
