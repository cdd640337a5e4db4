//! Environments in this process, one file for each promise: order and isolation, failed calls, room for sessions, the
//! loop, and the interpreter as an environment.

mod eviction;
mod failure;
mod python;
mod rows;
mod session;
mod test_host;
mod trajectory;

/// Every kind of plugin, as the program loads them.
const KINDS: rlf_plugins::kind::Kinds = &[
    &rlf_tools::ToolLoader,
    &rlf_rewards::RewardLoader,
    &rlf_interpreters::InterpreterLoader,
    &rlf_environments::EnvironmentLoader,
];
