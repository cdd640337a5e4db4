//! Environments in this process, one file for each promise: order and isolation, calls that fail, room, and the loop.

mod failure;
mod room;
mod scene;
mod session;
mod trajectory;
