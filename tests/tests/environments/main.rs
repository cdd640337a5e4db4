//! Environments in this process, one file for each promise: order and isolation, calls that fail, room, and the loop; and the
//! interpreter as one.

mod failure;
mod python;
mod room;
mod scene;
mod session;
mod trajectory;
