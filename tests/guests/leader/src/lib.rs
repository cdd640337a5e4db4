//! The agent that `plugin new --kind agent --lang rust` makes, as a component.

#[path = "../../../../host/cli/templates/rust/agent.rs"]
#[rustfmt::skip]
pub mod agent;
