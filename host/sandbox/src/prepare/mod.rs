//! From an author's component to the one that calls start from.
//!
//! - `component`: what a component says about itself
//! - `job`: what is to be prepared, and what came of it
//! - `snapshot`: `init` run once, its memory kept
//! - `segments`: fewer data segments in a snapshot
//! - `compile`: the way from bytes to compiled code
//! - `process`: the same in a process of its own
//! - `error`: why a component is not loaded

mod compile;
mod component;
mod error;
mod job;
pub mod process;
mod segments;
mod snapshot;

pub(crate) use compile::{key, make};
pub use component::ComponentInfo;
pub use error::LoadError;
pub(crate) use job::{Entry, Job};
pub use job::{InitMode, Preparation};
pub(crate) use snapshot::describe;
