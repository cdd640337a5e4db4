//! A component that was loaded, and its calls.
//!
//! - `load`: from bytes to a template
//! - `loaded`: the template
//! - `call`: one call, from its place in the pool to its report
//! - `pace`: on whose thread a call begins
//! - `cost`: what a fresh instance costs, measured

mod call;
mod cost;
mod load;
mod loaded;
mod pace;

pub use call::{BoxFuture, CallReport, CallSpec};
pub use cost::InstanceCost;
pub use load::LoadRequest;
pub use loaded::Template;
