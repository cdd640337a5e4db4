//! One file per subcommand.

pub(crate) mod bench;
pub(crate) mod conformance;
pub(crate) mod data;
pub(crate) mod doctor;
pub(crate) mod env;
pub(crate) mod eval;
pub(crate) mod plugin;
pub(crate) mod report;
pub(crate) mod rollout;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod train;

use anyhow::Context;
use tokio::runtime::Runtime;

/// Runs the trajectories; guests and the decoder have threads of their own.
fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("rlf-rollout")
        .enable_all()
        .build()
        .context("cannot start threads")
}
