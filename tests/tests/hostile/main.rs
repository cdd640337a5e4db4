//! Hostile plugins beside one that behaves, one file for each promise. After every attack the host lives, the
//! neighbour's answers are right and within its own deadline, the pools are empty again, and the call ends as it
//! should.
//!
//! This is one binary, in one process with the sandbox, because each would link a whole WebAssembly engine. Attacks
//! that a real program can make are tools of the guest `misbehave`; shapes that no compiler makes are written in WAT.

mod crowd;
mod determinism;
mod files;
mod gates;
mod host_memory;
mod init;
mod isolation;
mod loading;
mod memory;
mod names;
mod nesting;
mod output;
mod schemas;
mod scores;
mod test_host;
mod time;
mod trajectories;

/// Every kind of plugin, as the program loads them.
const KINDS: rlf_plugins::kind::Kinds = &[
    &rlf_tools::ToolLoader,
    &rlf_rewards::RewardLoader,
    &rlf_interpreters::InterpreterLoader,
    &rlf_environments::EnvironmentLoader,
];
