//! Sessions on servers that do as OpenEnv's, and on servers that do not.

mod scripted;
mod sessions;
