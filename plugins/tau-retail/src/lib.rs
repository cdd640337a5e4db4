//! The retail store of tau-bench: an agent helps one user with orders, under a written policy.
//!
//! The operator binds the data; nothing of it is in the component:
//!
//! ```toml
//! [plugins.tau-retail]
//! data.retail = "tau-retail"     # a folder with orders.json, products.json, users.json,
//!                                # tools.json and wiki.md; other files in it are left alone
//! ```
//!
//! A task is `{"instruction": .., "user": "solo" | "model"}`; its reference `{"gold_hash": ..,
//! "outputs": [..]}`. The conversation begins with the policy as the system message.
//!
//! - `solo`, the default: the instruction, put into the first person, is the one user message (see
//!   [`instruction`]), and the agent's first words without a call end the episode.
//! - `model`: a model of the host's plays the user. It gets the instruction from the task; the
//!   session gives neither that nor a first user message. `say` takes the agent's words down and
//!   goes on with an empty observation, in whose place the host puts what its user says. When that
//!   is `###STOP###`, the host says just this to the session, which ends it and counts for nothing.
//!
//! In both, `transfer_to_human_agents` ends the conversation, as it does in tau-bench.
//!
//! An episode succeeds when the database has the task's hash, and one of the agent's messages holds
//! each of the outputs. A session keeps only the orders and users that it changed: see [`store`].

mod calculate;
mod digest;
mod instruction;
mod number;
mod python;
mod records;
mod scenarios;
mod session;
mod shop;
mod store;
mod table;
mod tool;
mod tools;

use rlf_plugin::plugin;

use session::Session;
use shop::{Shop, ShopError};

fn init() -> Result<Shop, ShopError> {
    Shop::load()
}

plugin!(init: init, environment: Session);

#[cfg(test)]
mod tests;
