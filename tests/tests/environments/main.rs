//! Environments in this process, one file for each promise: order and isolation, failed calls, room for sessions, the
//! loop, the interpreter as an environment, and the memory of its sessions.

mod agents;
mod eviction;
mod failure;
mod python;
mod rows;
mod session;
mod test_host;
mod trajectory;
#[cfg(target_os = "linux")]
mod written_pages;

/// Every kind of plugin, as the program loads them.
const KINDS: rlf_plugins::kind::Kinds = &[
    &rlf_tools::ToolLoader,
    &rlf_rewards::RewardLoader,
    &rlf_interpreters::InterpreterLoader,
    &rlf_environments::EnvironmentLoader,
];
