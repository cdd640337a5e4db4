//! One guest: its store, the interfaces that it is linked with, and how it is run to its end.
//!
//! - `state`: the data of a store
//! - `gate`: ways out of the sandbox, each opened to a plugin separately
//! - `linker`: the interfaces that components find
//! - `supervise`: polling a guest under its meter until it ends

mod gate;
mod linker;
mod state;
mod supervise;

pub(crate) use gate::Gates;
pub use gate::OpenGate;
pub(crate) use linker::{linker, with_grants};
pub use state::State;
pub(crate) use state::{Deadlines, Guest};
pub(crate) use supervise::supervise;
