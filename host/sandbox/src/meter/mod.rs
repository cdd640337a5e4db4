//! Metering: time and memory of a running guest, kept below its limits.
//!
//! - `cpu`: processor time, over the polls of a call
//! - `memory`: linear memories and tables
//! - `caller`: nested calls, charged to the call that makes them
//! - `room`: memory that calls share

mod caller;
mod cpu;
mod memory;
mod room;

pub use caller::Caller;
pub(crate) use cpu::{CpuMeter, Metered, interrupt_by_budget};
pub(crate) use memory::MemoryLimiter;
pub(crate) use room::{Room, acquire};
