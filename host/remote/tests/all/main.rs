//! Sessions on servers that do as OpenEnv's or ORS's, and on servers that do not.

mod ors;
mod scripted;
mod sessions;
