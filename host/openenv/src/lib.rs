//! Environments behind a URL that speak OpenEnv, as environments of a run.
//!
//! Such an environment is a thing on another machine: it can hang, die, and answer nonsense, and nothing that it did can
//! be undone. So every wait has a deadline and every answer a limit. A trajectory whose session breaks is excluded,
//! and not scored.
//!
//! The crate must not know tasks, rewards, or how trajectories are generated. To `rlf-environments` it is one more
//! [`EnvironmentServer`](rlf_environments::server::EnvironmentServer).
//!
//! | looking for | module |
//! |---|---|
//! | the settings of one environment | `config`: [`OpenEnvConfig`] |
//! | all environments of a configuration, and the opening of sessions | `server`: [`connect`] |
//! | what a server says of its environment before any session | `description` |
//! | a session: calls, rewards, the verdict | `session` |
//! | one WebSocket, its messages and their deadlines | `connection` |
//! | tools, messages and results in the host's form | `convert` |
//! | the token of a server | `token` |
//! | the reasons why an environment cannot be used | `error`: [`OpenEnvError`] |

mod config;
mod connection;
mod convert;
mod description;
mod error;
mod server;
mod session;
mod token;

pub use config::{OpenEnvConfig, RewardOf};
pub use error::OpenEnvError;
pub use server::connect;
