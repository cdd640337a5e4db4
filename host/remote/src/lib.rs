//! Environments behind a URL, as environments of a run.
//!
//! Such an environment is a thing on another machine: it can hang, die, and answer nonsense, and nothing that it did can
//! be undone. So every wait has a deadline and every answer a limit. A trajectory whose session breaks is excluded,
//! and not scored.
//!
//! The crate must not know tasks, rewards of plugins, or how trajectories are generated. To `rlf-environments`, each of
//! its environments is one more [`EnvironmentServer`](rlf_environments::server::EnvironmentServer).
//!
//! | looking for | module |
//! |---|---|
//! | the protocols | `protocol`: [`Protocol`] |
//! | the settings of one environment | `config`: [`RemoteConfig`] |
//! | all environments of a configuration, and the opening of sessions | `server`: [`connect`] |
//! | OpenEnv: a WebSocket for each session | `openenv` |
//! | ORS: requests over HTTP | `ors` |
//! | the rewards of an episode, and the verdict | `rewards` |
//! | one request over HTTP, the token of a server | `site`, `token` |
//! | tools, results and words in the host's form | `host_form` |
//! | the reasons why an environment cannot be used | `error`: [`RemoteError`] |

mod config;
mod error;
mod host_form;
mod openenv;
mod ors;
mod protocol;
mod rewards;
mod server;
mod site;
mod token;

pub use config::{RemoteConfig, RewardOf};
pub use error::RemoteError;
pub use protocol::Protocol;
pub use server::connect;
