//! The retail store of tau-bench: an agent helps one user with orders, under written rules.
//!
//! The operator binds the data; the component contains none of it:
//!
//! ```toml
//! [plugins.tau-retail]
//! data.retail = "tau-retail"     # a folder with orders.json, products.json, users.json,
//!                                # tools.json and wiki.md; other files in it are left alone
//! ```
//!
//! A task is `{"instruction": .., "user": "solo" | "model"}`; its reference `{"gold_hash": .., "outputs": [..]}`. The
//! conversation begins with the store's rules as the system message.
//!
//! - `solo`, the default: the instruction, put into the first person, is the single user message (see
//!   [`instruction`]), and the agent's first text without a call ends the episode.
//! - `model`: a model of the host plays the user. It gets the instruction from the task; the session gives neither
//!   that nor a first user message. `say` records the agent's text and continues with an empty observation, which the
//!   host replaces by the user's reply. If that reply is `###STOP###`, the host passes it to the session, which ends
//!   and does not count it as said.
//!
//! In both, `transfer_to_human_agents` ends the conversation, as it does in tau-bench.
//!
//! An episode succeeds if the database has the task's hash, and each of the outputs is in one of the agent's
//! messages. A session keeps only the orders and users that it changed: see [`store`].

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
