//! One test binary for the crate, one module for each set of promises.

mod any_input;
#[path = "../../../../tests/src/data.rs"]
mod data;
mod demonstrations;
#[cfg(feature = "parquet")]
mod parquet;
mod play;
mod steps;
mod support;
mod task_file;
mod tasks;
