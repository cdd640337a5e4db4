//! The reward `reward-code-tests` with the real interpreter: what right code earns, and that nothing else earns it.
//!
//! In one process with the sandbox, because whole groups are graded at once, as in training. The command line is
//! tried in `plugin_commands`.

mod bench;
mod cheats;
mod limits;
mod mbpp;
mod solutions;
mod weak;

/// Every kind of plugins, as the program loads them.
const KINDS: rlf_plugins::kind::Kinds = &[
    &rlf_tools::ToolLoader,
    &rlf_rewards::RewardLoader,
    &rlf_interpreters::InterpreterLoader,
    &rlf_environments::EnvironmentLoader,
];
