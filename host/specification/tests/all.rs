//! What specifications promise: see the module of each promise.

#[path = "all/examples.rs"]
mod examples;
#[path = "all/python.rs"]
mod python;
