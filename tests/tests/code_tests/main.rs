//! The reward `reward-code-tests` with the real interpreter: correct code earns the reward, and nothing else does.
//!
//! These tests run in one process with the sandbox, because whole groups are graded at once, as in training.
//! `plugin_commands` tests the command line.

mod bench;
mod cheats;
mod limits;
mod mbpp;
mod solutions;
mod weak;

/// Every kind of plugin, as the program loads them.
const KINDS: rlf_plugins::kind::Kinds = &[
    &rlf_tools::ToolLoader,
    &rlf_rewards::RewardLoader,
    &rlf_interpreters::InterpreterLoader,
    &rlf_environments::EnvironmentLoader,
];
