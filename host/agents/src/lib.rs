//! Agents that lead trajectories: programs with a loop of their own, which ask the policy over HTTP or, as plugins, from
//! inside the sandbox.
//!
//! [`Agents`] gives every trajectory a base URL of its own. It speaks OpenAI's chat completions and Anthropic's messages,
//! and answers with the policy that is being trained. [`ComponentAgent`] calls the tool of a plugin, which asks the same
//! policy through the gate `model`. `docs/agents.md` describes what an agent can do.
//!
//! The crate must not know how turns are made into training sequences: that is [`rlf_rollout::agent`].
//!
//! | looking for | module |
//! |---|---|
//! | the configuration `[agent]` | `config`: [`AgentConfig`] |
//! | starting agents over HTTP, and their trajectories | `agents`: [`Agents`] |
//! | an agent as a plugin in the sandbox | `component`: [`ComponentAgent`] |
//! | a task as agents see it, and their report | `task`, `report` |
//! | an agent as a process of this machine | `process` |
//! | the end of everything that an agent started | [`supervisor`] |
//! | agents that fetch their tasks | `remote` |
//! | the trajectories that agents may ask, by their tokens | `open_trajectories` |
//! | what agents ask over HTTP | `trajectory_service` |
//! | the tools of a trajectory over MCP | `mcp` |
//! | a policy that is not being trained, over HTTP | `policy_service`: [`PolicyService`] |
//! | turns of the policy over HTTP, for both services | `routes` |
//! | the forms of requests and answers | `form`, `openai`, `anthropic` |
//! | parameters of requests, which may be fixed by the run | `parameters` |
//! | bodies, refusals, tokens, connections | `body`, `refusal`, `access`, `server` |

mod access;
mod agents;
mod anthropic;
mod body;
mod component;
mod config;
mod form;
mod mcp;
mod open_trajectories;
mod openai;
mod parameters;
mod policy_service;
mod process;
mod refusal;
mod remote;
mod report;
mod routes;
mod server;
pub mod supervisor;
mod task;
mod trajectory_service;

pub use access::ShortToken;
pub use agents::{Agents, AgentsError};
pub use component::ComponentAgent;
pub use config::{AgentConfig, InvalidAgent};
pub use policy_service::{PolicyService, PolicyServiceError};
pub use server::CannotListen;
