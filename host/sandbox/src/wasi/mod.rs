//! Interfaces that every guest may import: WASI, virtual and empty, and the host interfaces of the contract.
//!
//! Each file implements one interface over a small view of the store, so none of them knows the
//! store itself. `guest::linker` links them.
//!
//! - `clock`, `random`: virtual time and seeded randomness, or the machine's if they are granted
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
