//! A model that is asked for environments, by a script: it answers well, lies, stalls, fails, and returns what cannot be used.
//! Nothing is played here; the end-to-end tests do that.

#[path = "writer/asking.rs"]
mod asking;
#[path = "writer/revising.rs"]
mod revising;
#[path = "writer/scripted.rs"]
mod scripted;
#[path = "writer/writing.rs"]
mod writing;
