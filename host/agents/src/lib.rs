//! Agents that lead trajectories: programs with a loop of their own, which ask the policy over HTTP.
//!
//! [`Agents`] gives every trajectory a base URL of its own. It speaks OpenAI's chat completions and Anthropic's messages,
//! and answers with the policy that is being trained. `docs/agents.md` describes what an agent can do there.
//!
//! The crate must not know how turns are made into training sequences: that is [`rlf_rollout::agent`].
//!
//! | looking for | module |
//! |---|---|
//! | the configuration `[agent]` | `config`: [`AgentConfig`] |
//! | starting agents, and their trajectories | `agents`: [`Agents`] |
//! | the trajectories that agents may ask, by their tokens | `seats` |
//! | the HTTP service | `server`, `routes` |
//! | requests and answers in OpenAI's form | `openai` |
//! | requests and answers in Anthropic's form | `anthropic` |
//! | what both forms share: sampling parameters, refusals, streams | `wire` |
//! | a policy that is not being trained, over HTTP | `policy_service`: [`PolicyService`] |
//! | an agent as a process of this machine | `process` |
//! | agents that fetch their tasks | `remote` |

mod agents;
mod anthropic;
mod config;
mod openai;
mod policy_service;
mod process;
mod remote;
mod routes;
mod seats;
mod server;
mod wire;

pub use agents::{Agents, AgentsError};
pub use config::{AgentConfig, InvalidAgent};
pub use policy_service::{PolicyService, PolicyServiceError};
