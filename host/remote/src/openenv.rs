//! The protocol OpenEnv.

mod connection;
mod convert;
mod description;
mod environment;
mod error;
mod session;

pub(crate) use environment::Environment;
