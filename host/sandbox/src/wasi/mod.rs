//! What a guest sees of a machine: WASI, virtual and empty, and the host interfaces of the contract.
//!
//! Each file implements one interface over a small view of the store, so that none of them knows the
//! store itself. `guest::linker` puts them together.
//!
//! - `clock`, `random`: virtual time and seeded randomness, or the machine's where they are granted
//! - `stdout`: standard output and error
//! - `files`: the file system
//! - `log`, `data`, `process`: interfaces of `rlf:plugin`

pub(crate) mod clock;
pub(crate) mod data;
pub(crate) mod files;
pub(crate) mod log;
pub(crate) mod process;
pub(crate) mod random;
pub(crate) mod stdout;
