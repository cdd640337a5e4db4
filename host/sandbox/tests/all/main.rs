//! Promises of the sandbox, one file for each. One binary, because each would link a whole
//! WebAssembly engine.

mod admission;
mod cache;
mod cancellation;
mod cost;
mod data;
mod determinism;
mod endings;
mod file_guest;
mod files;
mod guest;
mod host_memory;
mod init;
mod loading;
mod log;
mod memory;
mod output;
mod real_sources;
mod shared_code;
mod time;
