//! Environments as data: runs one specification or several side by side, as one task has them.
//!
//! ```toml
//! [plugins.shop]
//! plugin = "specified"
//! data.specifications = "specifications"   # a `.toml` or `.json` file, or a folder of them
//! ```
//!
//! `init` reads and checks the specifications, so every session starts from compiled ones. Tools, tasks, states and
//! references have the form that environments in Python have: a tool is `Name-operation`, a state and a reference name
//! the environments, and a task is
//!
//! ```json
//! {"servers": {"LendingLibrary": {"scenario": "simple"}, "Clinic": null}}
//! ```
//!
//! The value of each is `{"scenario": SIZE}`, generated from the session's seed; `null`, the first scenario; or a whole
//! state. A reference is `{"state": {"LendingLibrary": STATE}}`; the score is the share of its environments whose state
//! is the expected one.

mod scenarios;
mod servers;
mod session;

use rlf_plugin::plugin;

use servers::Servers;
use session::Session;

fn init() -> Result<Servers, String> {
    Servers::load()
}

plugin!(init: init, environment: Session);

#[cfg(test)]
mod tests;
