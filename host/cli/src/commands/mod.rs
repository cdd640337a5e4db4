//! One module for each subcommand.

pub(crate) mod ablate;
pub(crate) mod bench;
pub(crate) mod cache;
pub(crate) mod data;
pub(crate) mod doctor;
#[cfg(feature = "hub")]
pub(crate) mod download;
pub(crate) mod env;
pub(crate) mod eval;
pub(crate) mod export;
pub(crate) mod forge;
mod lines;
pub(crate) mod mcp;
pub(crate) mod plan;
pub(crate) mod plugin;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod rollout;
pub(crate) mod run;
pub(crate) mod serve;
mod signature;
pub(crate) mod specification;
pub(crate) mod train;

use anyhow::Context;
use tokio::runtime::Runtime;

/// The runtime that trajectories, calls and sessions run on.
fn runtime() -> anyhow::Result<Runtime> {
    rlf_run::runtime().context("cannot start threads")
}
