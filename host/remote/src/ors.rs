//! The protocol ORS, the Open Reward Standard (openrewardstandard.io).

mod answer;
mod environment;
mod session;

pub(crate) use environment::Environment;
