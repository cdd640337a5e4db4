//! A component that was loaded, and its calls.
//!
//! - `load`: from bytes to a template
//! - `loaded`: the template
//! - `call`: one call, from its place in the pool to its report
//! - `pace`: the thread on which a call begins
//! - `cost`: the cost of a fresh instance, measured

mod call;
mod cost;
mod load;
mod loaded;
mod pace;

pub use call::{BoxFuture, CallReport, CallSpec};
pub use cost::InstanceCost;
pub use load::LoadRequest;
pub use loaded::Template;
